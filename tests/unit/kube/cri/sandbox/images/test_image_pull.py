"""Pulls from a registry on loopback, through both ends of the way out."""

import asyncio
import json
import os
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oci_registry import DOCKER_LIST, DOCKER_MANIFEST, INDEX, MANIFEST, Fault, Registry, digest_of, gzipped, tar_of
from waiting import until

from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.cluster.egress.pair import EgressClient, local_way_out
from lastcall.kube.cri.api import AuthConfig, RuntimeServiceError
from lastcall.kube.cri.sandbox.images import ImageStore, parse_reference
from lastcall.kube.cri.sandbox.images.layout import ImageError, ImageLayout
from lastcall.kube.cri.sandbox.images.platform import parse_platform, this_machine
from lastcall.kube.cri.sandbox.images.pull import ImagePuller, Progress, PullError
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FILES = {"bin/app": b"#!/bin/sh\n" + os.urandom(300_000)}


class QuickClock:
    """The real clock, whose waits between attempts are short. Keeps what was asked."""

    def __init__(self) -> None:
        self.real = World().clock
        self.waits: list[float] = []

    def monotonic_ns(self) -> int:
        return self.real.monotonic_ns()

    def wall_ns(self) -> int:
        return self.real.wall_ns()

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await self.real.sleep(min(seconds, 0.01))


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


@pytest.fixture
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], None]:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))

    def write(value: dict[str, Any]) -> None:
        (tmp_path / "docker").mkdir(exist_ok=True)
        (tmp_path / "docker" / "config.json").write_text(json.dumps(value))

    return write


@pytest.fixture
async def way_out(docker_config: Any) -> AsyncIterator[EgressClient]:
    with local_way_out() as client:
        yield client


class Puller:
    def __init__(self, root: Path, way_out: EgressClient, stall: float = 5.0) -> None:
        self.clock = QuickClock()
        self.layout = ImageLayout(root)
        self.store = ImageStore(root, unpacked=root.parent / f"{root.name}-unpacked")
        self.puller = ImagePuller(World(self.clock), self.layout, way_out, stall=stall)

    async def __call__(self, name: str, auth: AuthConfig | None = None, **more: Any) -> str:
        return (await self.puller.pull(parse_reference(name), auth, **more)).digest

    def file(self, name: str, path: str = "bin/app") -> bytes:
        lower = self.store.rootfs(name).lowerdirs
        return next((Path(each) / path).read_bytes() for each in lower if (Path(each) / path).exists())

    async def failure(self, name: str, auth: AuthConfig | None = None) -> PullError:
        with pytest.raises(PullError) as caught:
            await self(name, auth)
        return caught.value


@pytest.fixture
def pull(tmp_path: Path, way_out: EgressClient) -> Puller:
    return Puller(tmp_path / "images", way_out)


async def test_an_image_is_pulled_by_tag_and_by_digest(registry: Registry, pull: Puller) -> None:
    digest = registry.add("team/app:v1", FILES, {"Cmd": ["/bin/app"], "User": "7"})
    assert await pull(f"{registry.host}/team/app:v1") == digest
    assert pull.file(f"{registry.host}/team/app:v1") == FILES["bin/app"]
    (entry,) = pull.store.entries()
    assert entry.image.repo_tags == (f"{registry.host}/team/app:v1",)
    assert entry.image.repo_digests == (f"{registry.host}/team/app@{digest}",)
    assert (entry.image.user, entry.digest, entry.created) == ("7", digest, "2024-05-06T07:08:09Z")
    assert entry.pulled.endswith("Z")
    asked = len(registry.asked("blobs"))
    assert await pull(f"{registry.host}/team/app@{digest}") == digest
    assert len(registry.asked("blobs")) == asked, "everything was there"
    (entry,) = pull.store.entries()
    assert entry.image.repo_tags == (f"{registry.host}/team/app:v1",)


async def test_a_pull_of_what_is_here_already_asks_only_whether_the_tag_has_moved(
    registry: Registry, pull: Puller
) -> None:
    registry.add("app:v1", FILES)
    first = await pull(f"{registry.host}/app:v1")
    registry.requests.clear()
    assert await pull(f"{registry.host}/app:v1") == first
    assert [each[0] for each in registry.requests] == ["HEAD"]
    second = registry.add("app:v1", {"bin/app": b"new"})
    assert await pull(f"{registry.host}/app:v1") == second != first
    assert pull.file(f"{registry.host}/app:v1") == b"new"
    assert len(pull.store.entries()) == 1


@pytest.mark.parametrize("kind", [INDEX, DOCKER_LIST])
async def test_the_image_for_this_machine_is_taken_from_an_index(registry: Registry, pull: Puller, kind: str) -> None:
    here = this_machine().architecture
    manifests = {
        (other, ""): registry.manifest([tar_of({"bin/app": other.encode()})], platform=(other, ""))
        for other in ("s390x", here, "riscv64")
    }
    digest = registry.index("app:v1", manifests, kind)
    assert await pull(f"{registry.host}/app:v1") == digest
    assert pull.file(f"{registry.host}/app:v1") == here.encode()
    assert len(registry.asked("GET .*blobs")) == 2, "config and layer of one platform"


async def test_an_image_for_another_platform_can_be_asked_for(registry: Registry, pull: Puller) -> None:
    arms = {
        variant: registry.manifest([tar_of({"bin/app": variant.encode()})], platform=("arm", variant))
        for variant in ("v5", "v6", "v7")
    }
    registry.index("app:v1", {("arm", variant): manifest for variant, manifest in arms.items()})
    digest = await pull(f"{registry.host}/app:v1", platform=parse_platform("linux/arm/v6"))
    assert digest == digest_of(arms["v6"])
    assert pull.file(f"{registry.host}/app:v1") == b"v6"


async def test_an_image_for_no_platform_of_this_machine_is_refused(registry: Registry, pull: Puller) -> None:
    registry.index("app:v1", {("s390x", ""): registry.manifest([tar_of(FILES)])})
    error = await pull.failure(f"{registry.host}/app:v1")
    assert f"no match for platform {this_machine()} in manifest sha256:" in str(error)
    registry.add("single:v1", FILES, platform=("s390x", ""))
    error = await pull.failure(f"{registry.host}/single:v1")
    assert "which is for linux/s390x" in str(error)
    assert error.reason == "ImageNotFound"
    assert pull.store.entries() == []


@pytest.mark.parametrize("compress", [gzipped, zstd.compress, bytes], ids=["gzip", "zstd", "plain"])
async def test_layers_may_be_compressed_in_any_way(
    registry: Registry, pull: Puller, compress: Callable[[bytes], bytes]
) -> None:
    manifest = registry.manifest(
        [tar_of({"bin/app": b"below"}), tar_of(FILES)], compress=compress, media_type=DOCKER_MANIFEST
    )
    registry.put("app:v1", manifest, DOCKER_MANIFEST)
    await pull(f"{registry.host}/app:v1")
    assert pull.file(f"{registry.host}/app:v1") == FILES["bin/app"]


async def test_a_broken_zstd_layer_is_told(registry: Registry, pull: Puller) -> None:
    registry.put("app:v1", registry.manifest([tar_of(FILES)], compress=lambda data: b"\x28\xb5\x2f\xfd" + data))
    await pull(f"{registry.host}/app:v1")
    with pytest.raises(ImageError, match="cannot be unpacked: zstd"):
        pull.file(f"{registry.host}/app:v1")


async def test_zstd_frames_follow_one_another_in_a_layer(registry: Registry, pull: Puller) -> None:
    def in_two_frames(data: bytes) -> bytes:
        return zstd.compress(data[:1000]) + zstd.compress(data[1000:])

    registry.put("app:v1", registry.manifest([tar_of(FILES)], compress=in_two_frames))
    await pull(f"{registry.host}/app:v1")
    assert pull.file(f"{registry.host}/app:v1") == FILES["bin/app"]


async def test_a_zstd_layer_that_asks_for_much_memory_is_refused(registry: Registry, pull: Puller) -> None:
    def with_a_window_of_256_mib(data: bytes) -> bytes:
        compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 28})
        return compressor.compress(data) + compressor.flush()

    registry.put("app:v1", registry.manifest([tar_of(FILES)], compress=with_a_window_of_256_mib))
    await pull(f"{registry.host}/app:v1")
    with pytest.raises(ImageError, match="too much memory"):
        pull.file(f"{registry.host}/app:v1")


# -- errors, as containerd words them ------------------------------------------------------------------------------


async def test_a_missing_tag_is_not_found(registry: Registry, pull: Puller) -> None:
    name = f"{registry.host}/app:v1"
    error = await pull.failure(name)
    assert str(error) == (
        f'failed to pull and unpack image "{name}": failed to resolve reference "{name}": {name}: not found'
    )
    assert (error.reason, error.status) == ("ImageNotFound", 404)


async def test_a_registry_that_is_not_there_is_told_in_go_s_words(pull: Puller) -> None:
    error = await pull.failure("127.0.0.1:9/missing:1")
    assert str(error) == (
        'failed to pull and unpack image "127.0.0.1:9/missing:1": failed to resolve reference "127.0.0.1:9/missing:1": '
        'failed to do request: Head "http://127.0.0.1:9/v2/missing/manifests/1": '
        "dial tcp 127.0.0.1:9: connect: connection refused"
    )
    assert error.reason == ""


@pytest.mark.parametrize("status", [403, 418, 500])
async def test_an_unexpected_status_is_named(registry: Registry, pull: Puller, status: int) -> None:
    registry.faults.append(Fault("manifests", times=99, status=status))
    error = await pull.failure(f"{registry.host}/app:v1")
    assert f"unexpected status from HEAD request to http://{registry.host}/v2/app/manifests/v1: {status}" in str(error)
    assert error.status == status


async def test_a_busy_registry_is_asked_again_when_it_says(registry: Registry, pull: Puller) -> None:
    registry.add("app:v1", FILES)
    registry.faults += [
        Fault("HEAD", status=429, headers={"Retry-After": "7"}),
        Fault("GET .*manifests", status=503, headers={"Retry-After": "999"}),
        Fault("GET .*blobs", status=502),
    ]
    await pull(f"{registry.host}/app:v1")
    assert pull.clock.waits == [7.0, 30.0, 0.5]


async def test_a_layer_that_is_cut_off_goes_on_where_it_stopped(registry: Registry, pull: Puller) -> None:
    registry.add("app:v1", FILES)
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    registry.faults += [Fault(layer, truncate_at=200_000), Fault(layer, truncate_at=50_000)]
    await pull(f"{registry.host}/app:v1")
    assert pull.file(f"{registry.host}/app:v1") == FILES["bin/app"]
    ranges = [headers.get("Range") for _, _, headers in registry.asked(layer)]
    assert ranges[0] is None
    assert all(each is not None and int(each[6:-1]) > 0 for each in ranges[1:])
    assert registry.sent < 2 * len(registry.blobs[layer])


async def test_a_registry_without_ranges_is_read_from_the_beginning_again(registry: Registry, pull: Puller) -> None:
    registry.add("app:v1", FILES)
    registry.ranges = False
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    registry.faults.append(Fault(layer, truncate_at=200_000))
    await pull(f"{registry.host}/app:v1")
    assert pull.file(f"{registry.host}/app:v1") == FILES["bin/app"]


async def test_what_a_cancelled_pull_left_is_gone_on_with(registry: Registry, pull: Puller) -> None:
    registry.add("app:v1", FILES)
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    registry.faults.append(Fault(layer, hang_at=131072))
    arrived = asyncio.Event()

    def seen(progress: Progress) -> None:
        if progress.digest == layer and progress.done == 131072:
            arrived.set()

    task = asyncio.ensure_future(pull(f"{registry.host}/app:v1", on_progress=seen))
    await asyncio.wait_for(arrived.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert pull.store.entries() == []
    await pull(f"{registry.host}/app:v1")
    assert registry.asked(layer)[-1][2]["Range"] == "bytes=131072-"
    assert pull.file(f"{registry.host}/app:v1") == FILES["bin/app"]
    assert not any((pull.layout.root / "downloads").iterdir())


async def test_a_wrong_beginning_is_found_and_fetched_anew(registry: Registry, pull: Puller) -> None:
    registry.add("app:v1", FILES)
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    (pull.layout.root / "downloads").mkdir(parents=True)
    (pull.layout.root / "downloads" / layer[7:]).write_bytes(b"x" * 1000)
    await pull(f"{registry.host}/app:v1")
    assert pull.file(f"{registry.host}/app:v1") == FILES["bin/app"]


async def test_a_registry_that_falls_silent_is_given_up(
    registry: Registry, tmp_path: Path, way_out: EgressClient
) -> None:
    registry.add("app:v1", FILES)
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    registry.faults.append(Fault(layer, times=99, hang_at=0))
    error = await Puller(tmp_path / "images", way_out, stall=0.1).failure(f"{registry.host}/app:v1")
    assert str(error).endswith(f"failed to copy: blob {layer}: i/o timeout")


# -- hostile registries --------------------------------------------------------------------------------------------


async def test_a_blob_with_other_bytes_is_not_kept(registry: Registry, pull: Puller) -> None:
    registry.add("app:v1", FILES)
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    evil = os.urandom(len(registry.blobs[layer]))
    registry.faults.append(Fault(layer, times=99, body=evil))
    error = await pull.failure(f"{registry.host}/app:v1")
    assert str(error).endswith(f"blob {layer} has digest {digest_of(evil)}: failed precondition")
    assert pull.store.entries() == []
    assert not pull.layout.blob_path(layer).exists()
    assert not any((pull.layout.root / "downloads").iterdir())


async def test_a_blob_that_does_not_end_is_cut_off(registry: Registry, pull: Puller) -> None:
    registry.add("app:v1", FILES)
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    registry.faults.append(Fault(layer, times=99, body=registry.blobs[layer] + b"x"))
    error = await pull.failure(f"{registry.host}/app:v1")
    assert f"has more than the {len(registry.blobs[layer])} bytes it should" in str(error)


async def test_a_manifest_with_another_digest_is_refused(registry: Registry, pull: Puller) -> None:
    registry.add("app:v1", FILES)
    registry.faults.append(Fault("GET .*manifests", times=9, body=registry.manifest([])))
    error = await pull.failure(f"{registry.host}/app:v1")
    assert "expected sha256:" in str(error)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"x" * (4 * 1024 * 1024 + 1), "more than 4194304 bytes"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"manifests": [], "layers": [], "config": {}}', "an image and an index of images at once"),
        (b'{"schemaVersion": 1}', "schema 1"),
        (b'{"layers": "x", "config": {}}', "layers is not a list"),
        (b'{"layers": [], "config": {"digest": "sha256:1", "size": 1}}', "not a descriptor"),
        (b'{"layers": [], "config": {"digest": "sha256:%s", "size": 99999999}}' % (b"0" * 64), "at most"),
        (b'{"manifests": [{"digest": "../../x", "size": 1}]}', "not a descriptor"),
        (b'{"errors": []}', "is not an image"),
    ],
)
async def test_a_hostile_manifest_is_refused(registry: Registry, pull: Puller, body: bytes, text: str) -> None:
    registry.put("app:v1", body, MANIFEST if b"layers" in body else INDEX)
    error = await pull.failure(f"{registry.host}/app:v1")
    assert text in str(error)
    assert pull.store.entries() == []


async def test_indexes_in_indexes_end_somewhere(registry: Registry, pull: Puller) -> None:
    manifest, kind = registry.manifest([tar_of(FILES)]), MANIFEST
    for _ in range(5):
        entry = {"mediaType": kind, "digest": registry.put("app", manifest, kind), "size": len(manifest)}
        manifest, kind = json.dumps({"manifests": [entry]}).encode(), INDEX
    registry.put("app:v1", manifest, kind)
    assert "nested" in str(await pull.failure(f"{registry.host}/app:v1"))


async def test_more_layers_than_the_disk_has_room_for_are_not_begun(registry: Registry, pull: Puller) -> None:
    value = json.loads(registry.manifest([tar_of(FILES)]))
    value["layers"][0]["size"] = 1 << 60
    registry.put("app:v1", json.dumps(value).encode())
    assert "are free in" in str(await pull.failure(f"{registry.host}/app:v1"))
    assert registry.asked("blobs") == []


async def test_a_redirect_to_another_host_takes_no_credentials_along(registry: Registry, pull: Puller) -> None:
    registry.auth = "basic"
    registry.add("app:v1", FILES)
    with Registry() as other:
        other.blobs = registry.blobs
        for digest in registry.blobs:
            location = f"http://{other.host}/v2/x/blobs/{digest}?signature=a%2Fb"
            registry.faults.append(Fault(f"GET .*{digest}", times=9, status=307, headers={"Location": location}))
        await pull(f"{registry.host}/app:v1", AuthConfig("me", "secret"))
        assert all("Authorization" in headers for _, _, headers in registry.asked("blobs"))
        assert len(other.requests) == 2
        for _, path, headers in other.requests:
            assert "Authorization" not in headers
            assert path.endswith("?signature=a%2Fb"), "a signed address is sent as it came"


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("http://registry.example/x", "plain http is spoken with loopback addresses only"),
        ("ftp://127.0.0.1/x", "not an http address"),
        ("file:///etc/passwd", "not a URL"),
        ("/v2/app/blobs/again", "stopped after 5 redirects"),
    ],
)
async def test_a_redirect_to_elsewhere_is_refused(registry: Registry, pull: Puller, location: str, text: str) -> None:
    registry.add("app:v1", FILES)
    registry.faults.append(Fault("blobs", times=99, status=307, headers={"Location": location}))
    assert text in str(await pull.failure(f"{registry.host}/app:v1"))


@pytest.mark.parametrize("known", [True, False])
async def test_a_certificate_must_be_of_an_authority_this_machine_trusts(
    registry: Registry, pull: Puller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    authority = ClusterCA.create()
    certificate, key = authority.issue_server(["127.0.0.1"])
    for name, data in (("cert", certificate), ("key", key), ("ca", authority.certificate_pem)):
        (tmp_path / name).write_bytes(data)
    if known:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    registry.add("app:v1", FILES)
    with Registry(tls=context) as other:
        other.blobs = registry.blobs
        for digest in registry.blobs:
            location = f"https://{other.host}/v2/x/blobs/{digest}"
            registry.faults.append(Fault(f"GET .*{digest}", times=9, status=307, headers={"Location": location}))
        if known:
            await pull(f"{registry.host}/app:v1")
            assert pull.file(f"{registry.host}/app:v1") == FILES["bin/app"]
            assert len(other.requests) == 2
        else:
            error = await pull.failure(f"{registry.host}/app:v1")
            assert "tls: failed to verify certificate: " in str(error)
            assert other.requests == []


# -- who asks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("auth", ["basic", "bearer"])
async def test_a_registry_that_asks_who_is_there_is_told(registry: Registry, pull: Puller, auth: str) -> None:
    registry.auth = auth
    registry.add("team/app:v1", FILES)
    await pull(f"{registry.host}/team/app:v1", AuthConfig("me", "secret"))
    assert pull.file(f"{registry.host}/team/app:v1") == FILES["bin/app"]
    if auth == "bearer":
        (asked,) = registry.asked("/token")
        assert "scope=repository:team/app:pull" in asked[1]
        assert "service=tests" in asked[1]


async def test_a_token_that_ran_out_is_fetched_anew(registry: Registry, pull: Puller) -> None:
    registry.auth = "bearer"
    registry.add("app:v1", FILES)

    def expire(line: str) -> None:
        if "blobs" in line and len(registry.asked("/token")) == 1:
            registry._tokens += 1

    registry.on_request = expire
    await pull(f"{registry.host}/app:v1", AuthConfig("me", "secret"))
    assert len(registry.asked("/token")) == 2


@pytest.mark.parametrize(
    ("auth", "credentials", "text"),
    [
        ("basic", None, "authorization failed: no basic auth credentials"),
        ("basic", AuthConfig("me", "wrong"), "may require authorization: 401 Unauthorized"),
        (
            "bearer",
            None,
            "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to ",
        ),
        ("bearer", AuthConfig("me", "wrong"), "failed to authorize: failed to fetch oauth token: unexpected status "),
    ],
)
async def test_wrong_credentials_are_told_without_them(
    registry: Registry, pull: Puller, auth: str, credentials: AuthConfig | None, text: str
) -> None:
    registry.auth = auth
    registry.add("app:v1", FILES)
    error = await pull.failure(f"{registry.host}/app:v1", credentials)
    assert text in str(error)
    assert "wrong" not in str(error)
    assert error.status == 401
    assert len(registry.requests) <= 3, "nobody guesses passwords"


async def test_the_user_s_docker_config_is_asked(registry: Registry, pull: Puller, docker_config: Any) -> None:
    registry.auth = "basic"
    registry.add("app:v1", FILES)
    docker_config({"auths": {registry.host: {"auth": "bWU6c2VjcmV0"}, "other.example": {"auth": "YTpi"}}})
    await pull(f"{registry.host}/app:v1")


async def test_a_credential_helper_is_run_without_a_shell(
    registry: Registry, pull: Puller, docker_config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.auth = "basic"
    registry.add("app:v1", FILES)
    helper = tmp_path / "bin" / "docker-credential-test"
    helper.parent.mkdir()
    helper.write_text(f'#!/bin/sh\nread key; echo "$1 $key" > {tmp_path}/asked\n'
                      'echo "{\\"Username\\": \\"me\\", \\"Secret\\": \\"secret\\"}"\n')  # fmt: skip
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{helper.parent}:{os.environ['PATH']}")
    docker_config({"credHelpers": {registry.host: "test"}})
    await pull(f"{registry.host}/app:v1")
    assert (tmp_path / "asked").read_text() == f"get {registry.host}\n"


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"credsStore": "not-there"}, "names docker-credential-not-there, which is not on the PATH"),
        ({"credsStore": "../evil; rm"}, "is not the name of a credential helper"),
        ({"auths": ["x"]}, "auths is not an object"),
        ({"auths": {"x": {"auth": "%%%"}}}, "is not base64 of user:password"),
    ],
)
async def test_a_docker_config_that_does_not_work_is_named_when_it_is_needed(
    registry: Registry, pull: Puller, docker_config: Any, config: Any, text: str
) -> None:
    docker_config(config)
    registry.add("app:v1", FILES)
    await pull(f"{registry.host}/app:v1")
    registry.auth = "basic"
    assert text in str(await pull.failure(f"{registry.host}/app:v1"))


# -- several at once -----------------------------------------------------------------------------------------------


async def test_two_pulls_of_one_image_fetch_each_blob_once(
    registry: Registry, tmp_path: Path, way_out: EgressClient
) -> None:
    registry.add("app:v1", FILES)
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    hold = threading.Event()
    registry.faults.append(Fault(f"GET .*{layer}", hold=hold))
    # Two layouts of one directory, as two clusters have them.
    first, second = (Puller(tmp_path / "images", way_out) for _ in range(2))
    tasks = [asyncio.ensure_future(each(f"{registry.host}/app:v1")) for each in (first, second)]
    await until(lambda: bool(registry.asked(f"GET .*{layer}") and second.clock.waits + first.clock.waits))
    hold.set()
    assert (await tasks[0]) == (await tasks[1])
    assert len(registry.asked(f"GET .*{layer}")) == 1


async def test_nothing_is_collected_while_somebody_pulls(registry: Registry, pull: Puller) -> None:
    registry.add("app:v1", FILES)
    registry.add("old:v1", {"x": b"old"})
    await pull(f"{registry.host}/old:v1")
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    hold = threading.Event()
    registry.faults.append(Fault(f"GET .*{layer}", hold=hold))
    task = asyncio.ensure_future(pull(f"{registry.host}/app:v1"))
    await until(lambda: bool(registry.asked(f"GET .*{layer}")))
    other = ImageStore(pull.layout.root, unpacked=pull.layout.root.parent / "other")
    assert other.remove(f"{registry.host}/old:v1")
    assert other.layout.collect().busy
    hold.set()
    await task
    assert pull.file(f"{registry.host}/app:v1") == FILES["bin/app"]
    collected = other.layout.collect()
    assert (collected.busy, collected.blobs) == (False, 3)
    assert pull.file(f"{registry.host}/app:v1") == FILES["bin/app"]


async def test_progress_tells_every_blob_to_its_end(registry: Registry, pull: Puller) -> None:
    registry.add("app:v1", FILES)
    told: list[Progress] = []
    await pull(f"{registry.host}/app:v1", on_progress=told.append)
    assert {each.digest for each in told if each.done == each.size} == set(registry.blobs)
    await pull(f"{registry.host}/app:v1", on_progress=told.append)
    assert {each.digest for each in told if each.present} == set(registry.blobs)


# -- the store of a cluster ----------------------------------------------------------------------------------------


def store_of(tmp_path: Path, puller: Callable[[ImageLayout], ImagePuller], root: Path | None = None) -> ImageStore:
    async def pulls(layout: ImageLayout, reference: Any, auth: AuthConfig | None) -> object:
        return await puller(layout).pull(reference, auth)

    return ImageStore(root or tmp_path / "images", unpacked=tmp_path / "unpacked", pulls=pulls)


async def test_the_store_pulls_what_is_not_there_and_names_it_by_its_digest(
    registry: Registry, tmp_path: Path, way_out: EgressClient
) -> None:
    store = store_of(tmp_path, lambda layout: ImagePuller(World(), layout, way_out))
    digest = registry.add("app:v1", FILES)
    name = f"{registry.host}/app:v1"
    assert await store.image_status(name) is None
    identity = await store.pull_image(name)
    found = await store.image_status(name)
    assert found is not None and found.id == identity
    assert store.rootfs(name).image_ref == f"{registry.host}/app@{digest}"
    with pytest.raises(RuntimeServiceError, match=r"^rpc error: code = NotFound desc = failed to pull") as caught:
        await store.pull_image(f"{registry.host}/app:v2")
    assert caught.value.reason == "ImageNotFound"


async def test_a_store_that_cannot_be_written_leaves_pulls_to_the_cluster_s_own(
    registry: Registry, tmp_path: Path, way_out: EgressClient
) -> None:
    registry.add("app:v1", FILES)
    (tmp_path / "file").write_text("")
    store = store_of(tmp_path, lambda layout: ImagePuller(World(), layout, way_out), tmp_path / "file" / "images")
    await store.pull_image(f"{registry.host}/app:v1")
    assert await store.image_status(f"{registry.host}/app:v1") is not None
    assert (tmp_path / "unpacked" / "pulled" / "index.json").exists()


async def test_an_image_made_here_is_not_looked_for_in_a_registry(
    registry: Registry, tmp_path: Path, way_out: EgressClient
) -> None:
    from lastcall.kube.cri.sandbox.images import build_image

    store = store_of(tmp_path, lambda layout: ImagePuller(World(), layout, way_out))
    name = f"{registry.host}/app:latest"
    built = build_image(store, name, {"x": (b"here", 0o644)})
    assert await store.pull_image(name) == built.id
    assert registry.requests == []


async def test_a_pulled_image_whose_blob_is_gone_is_pulled_again(
    registry: Registry, tmp_path: Path, way_out: EgressClient
) -> None:
    registry.add("app:v1", FILES)
    name = f"{registry.host}/app:v1"
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    await store_of(tmp_path, lambda layout: ImagePuller(World(), layout, way_out)).pull_image(name)
    ImageLayout(tmp_path / "images").blob_path(layer).unlink()
    store = store_of(tmp_path, lambda layout: ImagePuller(World(), layout, way_out))
    assert await store.image_status(name) is None
    await store.pull_image(name)
    assert await store.image_status(name) is not None
