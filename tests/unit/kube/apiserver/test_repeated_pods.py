"""Pods of one body: the second is not looked at again, and nobody can tell."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import NAMESPACES, PODS, PRIORITYCLASSES, SERVICEACCOUNTS
from lastcall.kube.apiserver.registry.repeated_pods import RepeatedPods


def body(**spec: Any) -> Object:
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "10m"}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    meta = {"generateName": "web-", "labels": {"app": "web"}, "ownerReferences": [owner]}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


BODIES = {
    "ordinary": body(),
    "two containers, one with a mount": body(
        containers=[
            {"name": "a", "image": "a:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
            {"name": "b", "image": "b:1"},
        ],
        initContainers=[{"name": "c", "image": "c:1"}],
        volumes=[{"name": "data", "emptyDir": {}}],
    ),
    "no token": body(automountServiceAccountToken=False),
    "a volume named like a token's": body(volumes=[{"name": "kube-api-access-mine", "emptyDir": {}}]),
    "gated": body(schedulingGates=[{"name": "example.com/gate"}]),
}


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each Pod that was asked for again, whether it was known."""
    known: list[bool] = []
    another = RepeatedPods.another

    async def noted(self: RepeatedPods, key: Any) -> Object | None:
        pod = await another(self, key)
        known.append(pod is not None)
        return pod

    monkeypatch.setattr(RepeatedPods, "another", noted)
    return known


def three_pods(virtual: Callable, obj: Object) -> list[bytes]:
    """The Pods as they are stored in a new cluster."""
    found: list[bytes] = []

    async def scenario(api: Any) -> None:
        given = copy_object(obj)
        for _ in range(3):
            await api.world.clock.sleep(7)
            await api.admin.create(PODS, given, "default")
        assert given == obj
        entries, _, _ = await api.server.operations.shared.store.list("pods/")
        found.extend(entry.value.encoded() for entry in entries)

    virtual(scenario)
    return found


@pytest.mark.parametrize("name", BODIES)
def test_the_second_pod_of_a_body_is_what_it_would_be_if_it_were_the_first(
    virtual: Callable, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    remembered = three_pods(virtual, BODIES[name])
    monkeypatch.setattr(RepeatedPods, "key", lambda *_: None)
    assert remembered == three_pods(virtual, BODIES[name])
    assert len({orjson.loads(each)["metadata"]["uid"] for each in remembered}) == 3


def test_it_shares_what_is_the_same(virtual: Callable, looked_up: list[bool]) -> None:
    async def scenario(api: Any) -> None:
        pods = [await api.admin.create(PODS, body(), "default") for _ in range(3)]
        assert looked_up == [False, True, True]
        assert pods[0]["spec"]["tolerations"] is pods[2]["spec"]["tolerations"]
        fields = [each["metadata"]["managedFields"][0]["fieldsV1"] for each in pods]
        assert fields[0] is fields[1] is fields[2]
        assert len({each["spec"]["volumes"][0]["name"] for each in pods}) == 3
        for pod in pods:
            mounts = pod["spec"]["containers"][0]["volumeMounts"]
            assert [mount["name"] for mount in mounts] == [pod["spec"]["volumes"][0]["name"]]

    virtual(scenario)


def test_what_admission_looks_at_has_changed(virtual: Callable, looked_up: list[bool]) -> None:
    async def scenario(api: Any) -> None:
        for _ in range(2):
            await api.admin.create(PODS, body(), "default")
        secrets = {"imagePullSecrets": [{"name": "pull"}]}
        await api.admin.patch(SERVICEACCOUNTS, "default", secrets, "default")
        for _ in range(2):
            pod = await api.admin.create(PODS, body(), "default")
            assert pod["spec"]["imagePullSecrets"] == [{"name": "pull"}]
        await api.admin.create(PRIORITYCLASSES, {"metadata": {"name": "all"}, "value": 7, "globalDefault": True})
        for _ in range(2):
            pod = await api.admin.create(PODS, body(), "default")
            assert pod["spec"]["priorityClassName"] == "all" and pod["spec"]["priority"] == 7
        assert looked_up == [False, True, False, True, False, True]
        await api.admin.create(NAMESPACES, {"metadata": {"name": "gone"}})
        await api.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "gone")
        await api.admin.create(PODS, body(), "gone")
        await api.admin.delete(NAMESPACES, "gone")
        with pytest.raises(StatusError, match="being terminated"):
            await api.admin.create(PODS, body(), "gone")

    virtual(scenario)


def test_a_name_that_is_taken_is_not_given_twice(virtual: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(api: Any) -> None:
        taken = (await api.admin.create(PODS, body(), "default"))["metadata"]["name"]
        monkeypatch.setattr(
            "lastcall.kube.apiserver.registry.repeated_pods.generate_name",
            lambda prefix, random: taken if prefix == "web-" else f"{prefix}x",
        )
        second = await api.admin.create(PODS, body(), "default")
        assert second["metadata"]["name"] != taken
        assert len((await api.admin.list(PODS, "default")).items) == 2

    virtual(scenario)


def test_only_the_latest_bodies_are_remembered(virtual: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastcall.kube.apiserver.registry.repeated_pods.KNOWN", 2)

    async def scenario(api: Any) -> None:
        for number in range(5):
            await api.admin.create(PODS, body(hostname=f"h{number}"), "default")
        assert len(api.server.operations.repeated._known) == 2

    virtual(scenario)
