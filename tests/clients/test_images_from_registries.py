"""`lastcall run` and `lastcall image` with a registry on loopback: a cluster whose node has no route out."""

import base64
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from oci_registry import Fault, Registry
from pods import Manifest
from run_command import Lastcall, lastcall
from waiting import eventually

from lastcall.kube.cri.sandbox.images.from_host import static_busybox

pytestmark = [
    pytest.mark.real_kernel,
    pytest.mark.skipif(static_busybox() is None, reason="no static busybox on this machine to make an image of"),
]

SCRIPT = "trap 'echo bye; exit 0' TERM; >/up; echo up as $(id -u); while :; do sleep 0.05; done"
UP = {"exec": {"command": ["/bin/sh", "-c", "[ -e /up ]"]}, "periodSeconds": 1}
"""Its handler is there."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    program = Path(str(static_busybox())).read_bytes()
    with Registry() as registry:
        files = {"bin/busybox": program, "bin/sh": program, "bin/id": program, "bin/sleep": program}
        registry.add("app:v1", files, {"Entrypoint": ["/bin/sh", "-c", SCRIPT], "Env": ["PATH=/bin"]})
        yield registry


@pytest.fixture
def data() -> Iterator[Path]:
    """An XDG_DATA_HOME that every user can write: pulled images stay in it."""
    place = Path(tempfile.mkdtemp(prefix="lastcall-test-data-"))
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


@pytest.fixture(params=ordinary_user.USERS)
def user(request: pytest.FixtureRequest) -> Any:
    return request.param


def app(image: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "app", "image": image, "readinessProbe": UP}],
            "terminationGracePeriodSeconds": 5,
            **spec,
        },
    }


def pull_secret(name: str, registry: Registry, password: str) -> Manifest:
    config = {"auths": {registry.host: {"username": "me", "password": password}}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(json.dumps(config).encode()).decode()},
    }


def run(manifests: list[Manifest], user: str, data: Path, *arguments: str) -> Any:
    environment = {"XDG_DATA_HOME": str(data), "DOCKER_CONFIG": None}
    return lastcall(["run", "-", "--after", "0", *arguments], manifests=manifests, user=user, environment=environment)


@pytest.mark.core
def test_a_pod_of_an_image_from_a_registry_runs_and_ends(registry: Registry, user: str, data: Path) -> None:
    done = run([app(f"{registry.host}/app:v1")], user, data)
    assert done.status == 0, done
    assert "default/p ended gracefully" in done.out
    assert "exit code 0 (Completed)" in done.out
    assert len(registry.asked("GET .*blobs")) == 2
    again = run([app(f"{registry.host}/app:v1", restartPolicy="Never")], user, data)
    assert again.status == 0, again
    assert len(registry.asked("GET .*blobs")) == 2, "another cluster takes what the first one pulled"


def test_a_store_that_cannot_be_written_is_no_hindrance(registry: Registry, user: str, data: Path) -> None:
    (data / "lastcall").write_text("a file where a directory should be")
    done = run([app(f"{registry.host}/app:v1")], user, data)
    assert done.status == 0, done


@pytest.mark.parametrize("auth", ["basic", "bearer"])
def test_the_pod_s_pull_secrets_open_a_private_registry(registry: Registry, user: str, data: Path, auth: str) -> None:
    registry.auth = auth
    image = app(f"{registry.host}/app:v1", imagePullSecrets=[{"name": "other"}, {"name": "mine"}])
    other = pull_secret("other", registry, "x")
    other["data"][".dockerconfigjson"] = base64.b64encode(b'{"auths": {"r.example": {"username": "u"}}}').decode()
    done = run([other, pull_secret("mine", registry, "secret"), image], user, data)
    assert done.status == 0, done
    stored = [path for path in data.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]
    assert stored == [], "credentials are never on a disk"


@pytest.mark.parametrize(
    ("auth", "text"),
    [
        ("basic", "pull access denied, repository does not exist or may require authorization: 401 Unauthorized"),
        ("bearer", "failed to authorize: failed to fetch oauth token: unexpected status from GET request to "),
    ],
)
def test_a_wrong_password_is_told_in_the_pod(registry: Registry, user: str, data: Path, auth: str, text: str) -> None:
    registry.auth = auth
    image = app(f"{registry.host}/app:v1", imagePullSecrets=[{"name": "mine"}])
    done = run([pull_secret("mine", registry, "wrong"), image], user, data)
    assert done.status == 1, done
    assert "container app: ErrImagePull: failed to pull and unpack image" in done.err
    assert text in done.err
    assert f'Event Failed: Failed to pull image "{registry.host}/app:v1"' in done.err
    assert "imagePullSecret" in done.err
    assert "wrong" not in done.err
    assert not (data / "lastcall").exists()


def test_a_pull_secret_that_is_not_there_is_told(registry: Registry, data: Path) -> None:
    registry.auth = "basic"
    done = run([app(f"{registry.host}/app:v1", imagePullSecrets=[{"name": "lost"}])], ordinary_user.USERS[0], data)
    assert done.status == 1
    assert "FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (lost)" in done.err
    assert "authorization failed: no basic auth credentials" in done.err


def test_ctrl_c_during_a_pull_ends_at_once_and_leaves_a_beginning_to_go_on_with(
    registry: Registry, user: str, data: Path
) -> None:
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    registry.faults.append(Fault(layer, hang_at=131072))
    environment = {"XDG_DATA_HOME": str(data), "DOCKER_CONFIG": None}
    manifests = [app(f"{registry.host}/app:v1")]
    with Lastcall(["run", "-"], manifests=manifests, user=user, environment=environment) as command:
        command.tree()
        eventually(lambda: beginning(data, layer) == 131072)
        command.interrupt()
        command.interrupt()
        assert command.finish(60).status == 130
    done = run(manifests, user, data)
    assert done.status == 0, done
    assert registry.asked(layer)[-1][2]["Range"] == "bytes=131072-"


def beginning(data: Path, layer: str) -> int:
    try:
        return (data / "lastcall" / "images" / "downloads" / layer[7:]).stat().st_size
    except OSError:
        return 0


def test_two_clusters_that_start_together_pull_an_image_once(registry: Registry, data: Path) -> None:
    layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
    hold = threading.Event()
    registry.faults.append(Fault(f"GET .*{layer}", hold=hold))
    results: list[Any] = []

    def one() -> None:
        results.append(run([app(f"{registry.host}/app:v1")], ordinary_user.USERS[0], data))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(registry.asked("HEAD .*manifests")) == 2 and registry.asked(f"GET .*{layer}"))
    hold.set()
    for thread in threads:
        thread.join(180)
    assert [each.status for each in results] == [0, 0], results
    assert len(registry.asked(f"GET .*{layer}")) == 1


def test_an_image_pulled_imported_shown_used_and_removed(registry: Registry, user: str, data: Path) -> None:
    environment: dict[str, str | None] = {"XDG_DATA_HOME": str(data), "DOCKER_CONFIG": None}

    def image(*arguments: str) -> Any:
        return lastcall(["image", *arguments], user=user, environment=environment)

    name = f"{registry.host}/app:v1"
    pulled = image("pull", name)
    assert pulled.status == 0, pulled
    assert f"{name} sha256:" in pulled.out
    assert " pulled, " in pulled.out
    assert "\x1b" not in pulled.out, "plain lines when piped"
    assert "is up to date" in image("pull", name).out
    (entry,) = image("ls", "-o", "json").document["images"]
    assert (entry["repoTags"], entry["created"]) == ([name], "2024-05-06T07:08:09Z")
    registry.requests.clear()
    assert run([app(name)], user, data).status == 0
    assert registry.requests == [], "IfNotPresent, and it is present"
    removed = image("rm", entry["digest"][7:19])
    assert (removed.status, removed.out.strip()) == (0, f"removed {entry['digest'][7:19]}")
    assert image("ls", "-o", "json").document["images"] == []
    assert "freed nothing" in image("prune").out
    missing = image("pull", f"{registry.host}/app:v2")
    assert missing.status == 1
    assert f"{registry.host}/app:v2: not found" in missing.err
    assert "fix: " in missing.err
