"""What the API gives for a Pod's volumes: keys, modes, tokens and the root CA, in virtual time."""

import base64
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from lastcall.kube.api.errors import status_failure
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.node.interfaces import VolumeError
from lastcall.kube.node.volumes.sources import PodTokens, VolumeSources
from lastcall.world.clock import now, rfc3339
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

POD: dict[str, Any] = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": [{"name": "c"}]}}


class Api:
    """ConfigMaps and Secrets by name, and tokens with `life` seconds; `error` in the place of an answer is raised."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.objects: dict[str, Any] = {}
        self.reads: list[str] = []
        self.tokens: list[Any] = []
        self.life = 3600.0
        self.error: Exception | None = None

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        assert namespace == POD["metadata"]["namespace"]
        self.reads.append(name)
        if self.error is not None:
            raise self.error
        if name not in self.objects:
            raise status_failure(404, "NotFound", "gone")
        return self.objects[name]

    async def create(self, resource: Any, obj: Any, namespace: str, *, name: str, subresource: str) -> Any:
        assert subresource == "token"
        if self.error is not None:
            raise self.error
        self.tokens.append((name, obj["spec"]))
        end = now(self.world.clock).timestamp() + self.life
        expires = rfc3339(datetime.fromtimestamp(end, UTC))
        return {"status": {"token": f"jwt-{len(self.tokens)}", "expirationTimestamp": expires}}


def play(scenario: Callable[[Api, VolumeSources], Awaitable[Any]]) -> Any:
    async def main(world: World) -> Any:
        api = Api(world)
        return await scenario(api, VolumeSources(api, world.clock, {"cpu": "2"}))  # type: ignore[arg-type]

    return run_virtual(main)


def files(volume: dict[str, Any], pod: dict[str, Any] = POD, **objects: Any) -> dict[str, tuple[bytes, int]]:
    """The files of a volume by path, with the API's objects by name."""

    async def scenario(api: Api, sources: VolumeSources) -> Any:
        api.objects = objects
        found = await sources.files(pod, {"name": "v", **volume}, PodTokens())  # type: ignore[typeddict-item]
        return {path: (file.data, file.mode) for path, file in found.items()}

    found: dict[str, tuple[bytes, int]] = play(scenario)
    return found


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


MAP = {"data": {"b": "2", "a": "1"}, "binaryData": {"c": encoded("3")}}
SECRET = {"data": {"k": encoded("v")}}
NAMESPACE_FILE = {"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"configMap": {"name": "m"}}, {"a": (b"1", 0o644), "b": (b"2", 0o644), "c": (b"3", 0o644)}),
        ({"configMap": {"name": "m", "items": []}}, {"a": (b"1", 0o644), "b": (b"2", 0o644), "c": (b"3", 0o644)}),
        ({"configMap": {"name": "m", "defaultMode": 0, "items": [{"key": "a", "path": "x"}]}}, {"x": (b"1", 0)}),
        (
            {"configMap": {"name": "m", "defaultMode": 0o400, "items": [{"key": "a", "path": "x", "mode": 0}]}},
            {"x": (b"1", 0)},
        ),
        ({"configMap": {"name": "m", "optional": True, "items": [{"key": "no", "path": "x"}]}}, {}),
        ({"configMap": {"name": "no", "optional": True}}, {}),
        ({"configMap": {"name": "empty"}}, {}),
        ({"secret": {"secretName": "s", "defaultMode": 0o600}}, {"k": (b"v", 0o600)}),
        ({"secret": {"secretName": "no", "optional": True}}, {}),
        ({"secret": {"secretName": "empty"}}, {}),
        ({"downwardAPI": {"items": [NAMESPACE_FILE]}}, {"ns": (b"n", 0o644)}),
        ({"downwardAPI": {"defaultMode": 0o400, "items": [{**NAMESPACE_FILE, "mode": 0o600}]}}, {"ns": (b"n", 0o600)}),
        (
            {
                "downwardAPI": {
                    "items": [{"path": "cpu", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}}]
                }
            },
            {"cpu": (b"2", 0o644)},
        ),
        ({"downwardAPI": {}}, {}),
        (
            {
                "projected": {
                    "defaultMode": 0o440,
                    "sources": [
                        {"configMap": {"name": "m", "items": [{"key": "a", "path": "a"}]}},
                        {"secret": {"name": "s"}},
                        {"downwardAPI": {"items": [NAMESPACE_FILE]}},
                    ],
                }
            },
            {"a": (b"1", 0o440), "k": (b"v", 0o440), "ns": (b"n", 0o440)},
        ),
        ({"projected": {}}, {}),
    ],
)
def test_a_volume_has_the_keys_that_it_names_with_the_mode_of_each(
    volume: dict[str, Any], expected: dict[str, tuple[bytes, int]]
) -> None:
    """pkg/volume/{configmap,secret,downwardapi,projected}: MakePayload, collectData."""
    assert files(volume, m=MAP, s=SECRET, empty={}) == expected


@pytest.mark.parametrize(
    ("volume", "why"),
    [
        ({"configMap": {"name": "no"}}, 'configmap "no" not found'),
        ({"secret": {"secretName": "no"}}, 'secret "no" not found'),
        (
            {"secret": {"secretName": "s", "items": [{"key": "no", "path": "x"}]}},
            "references non-existent secret key: no",
        ),
        (
            {"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "spec.x"}}]}},
            "unsupported fieldPath: spec.x",
        ),
        (
            {"projected": {"sources": [{"clusterTrustBundle": {}}]}},
            "projected volume source clusterTrustBundle is not supported",
        ),
        ({"projected": {"sources": [{}]}}, "projected volume source nothing is not supported"),
    ],
)
def test_what_a_volume_lacks_is_named(volume: dict[str, Any], why: str) -> None:
    with pytest.raises(VolumeError, match=f"^{why}$"):
        files(volume, s=SECRET)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (status_failure(403, "Forbidden", "not yours"), "failed to get secret n/s: not yours"),
        (ConnectionLost("away"), "failed to get secret n/s: away"),
    ],
)
def test_an_optional_source_that_cannot_be_asked_for_is_an_error(error: Exception, why: str) -> None:
    async def scenario(api: Api, sources: VolumeSources) -> None:
        api.error = error
        volume: Any = {"name": "v", "secret": {"secretName": "s", "optional": True}}
        with pytest.raises(VolumeError, match=f"^{why}$"):
            await sources.files(POD, volume, PodTokens())

    play(scenario)


def test_the_root_ca_of_a_namespace_is_read_once_a_minute_and_other_maps_each_time() -> None:
    async def scenario(api: Api, sources: VolumeSources) -> list[str]:
        api.objects = {"kube-root-ca.crt": {"data": {"ca.crt": "1"}}, "other": {"data": {"a": "1"}}}
        await api.world.clock.sleep(1000)  # virtual

        async def read(name: str) -> dict[str, Any]:
            volume: Any = {"name": "v", "configMap": {"name": name}}
            return await sources.files(POD, volume, PodTokens())

        for _ in range(2):
            await read("kube-root-ca.crt")
            await read("other")
        api.objects["kube-root-ca.crt"] = {"data": {"ca.crt": "2"}}
        await api.world.clock.sleep(59)
        assert (await read("kube-root-ca.crt"))["ca.crt"].data == b"1"
        await api.world.clock.sleep(2)
        assert (await read("kube-root-ca.crt"))["ca.crt"].data == b"2"
        return api.reads

    assert play(scenario) == ["kube-root-ca.crt", "other", "other", "kube-root-ca.crt"]


def token(**source: Any) -> Any:
    return {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token", **source}}]}}


@pytest.mark.parametrize(
    ("source", "spec", "account", "asked"),
    [
        ({}, {}, "default", {"audiences": [], "expirationSeconds": 3600}),
        (
            {"expirationSeconds": 600},
            {"serviceAccountName": "robot"},
            "robot",
            {"audiences": [], "expirationSeconds": 600},
        ),
        ({"audience": "vault"}, {}, "default", {"audiences": ["vault"], "expirationSeconds": 3600}),
    ],
)
def test_a_token_is_bound_to_the_pod_and_made_for_its_account(
    source: dict[str, Any], spec: dict[str, Any], account: str, asked: dict[str, Any]
) -> None:
    async def scenario(api: Api, sources: VolumeSources) -> Any:
        await sources.files({**POD, "spec": spec}, token(**source), PodTokens())
        return api.tokens

    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    assert play(scenario) == [(account, {**asked, "boundObjectRef": bound})]


@pytest.mark.parametrize(
    ("default_mode", "context", "mode"),
    [(None, {}, 0o644), (0o400, {}, 0o400), (0, {}, 0), (0o644, {"fsGroup": 0}, 0o600), (None, {"fsGroup": 7}, 0o600)],
)
def test_a_token_is_private_as_soon_as_its_reader_is_known(
    default_mode: int | None, context: dict[str, Any], mode: int
) -> None:
    """pkg/volume/projected/projected.go."""
    volume = token()
    volume["projected"]["defaultMode"] = default_mode
    assert files(volume, {**POD, "spec": {"securityContext": context}})["token"] == (b"jwt-1", mode)


def test_a_token_is_kept_until_four_fifths_of_its_life_and_each_audience_has_its_own() -> None:
    """pkg/kubelet/token/token_manager.go:GetServiceAccountToken."""

    async def scenario(api: Api, sources: VolumeSources) -> list[bytes]:
        tokens, seen = PodTokens(), list[bytes]()
        for pause, source in ((0, {}), (2879, {}), (2, {}), (0, {"audience": "x"}), (0, {"expirationSeconds": 700})):
            await api.world.clock.sleep(pause)
            seen.append((await sources.files(POD, token(**source), tokens))["token"].data)
        return seen

    assert play(scenario) == [b"jwt-1", b"jwt-1", b"jwt-2", b"jwt-3", b"jwt-4"]


def test_an_old_token_is_used_while_no_new_one_is_to_be_had_until_it_expires() -> None:
    async def scenario(api: Api, sources: VolumeSources) -> None:
        tokens = PodTokens()
        api.error = ConnectionLost("away")
        with pytest.raises(VolumeError, match=r"^failed to fetch token: away$"):
            await sources.files(POD, token(), tokens)
        api.error = None
        await sources.files(POD, token(), tokens)
        api.error = ConnectionLost("away")
        await api.world.clock.sleep(3500)
        assert (await sources.files(POD, token(), tokens))["token"].data == b"jwt-1"
        await api.world.clock.sleep(100)
        with pytest.raises(VolumeError, match=r"^failed to fetch token: away$"):
            await sources.files(POD, token(), tokens)

    play(scenario)
