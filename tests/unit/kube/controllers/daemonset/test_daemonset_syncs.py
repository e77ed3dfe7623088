"""Which DaemonSets are looked at, and what one look writes, beside an API.

Source: pkg/controller/daemon/daemon_controller.go (addPod, updatePod, updateNode, syncDaemonSet, syncNodes), update.go.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import ConnectionLost, FakeAPI, ListRecorder, play

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CONTROLLERREVISIONS, DAEMONSETS, EVENTS, NODES, PODS, Resource
from lastcall.kube.controllers.daemonset import controller
from lastcall.world.world import World

Test = Callable[[World, FakeAPI, ListRecorder], Awaitable[None]]
FORBIDDEN = status_failure(403, "Forbidden", "no")


def run(test: Test, *there: tuple[Resource, Object], nodes: int = 2) -> None:
    """Play a test with a controller that starts where some objects are there already."""
    known = [(NODES, {"metadata": {"name": f"n{number}"}}) for number in range(1, nodes + 1)]
    play(test, ["daemonset-controller"], [*known, *there])


def template(image: str = "one", **spec: Any) -> Object:
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "app", "image": image}], **spec}}


def a_set(kind: str = "RollingUpdate", **spec: Any) -> Object:
    known = {"selector": {"matchLabels": {"app": "a"}}, "template": template(), "updateStrategy": {"type": kind}}
    return {"metadata": {"name": "a", "namespace": "default", "uid": "u", "generation": 1}, "spec": {**known, **spec}}


async def become_ready(world: World, api: FakeAPI, of: Object) -> None:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    api.put(PODS, {**of, "status": {"phase": "Running", "conditions": [condition]}})
    await world.clock.sleep(0.1)


async def change(world: World, api: FakeAPI, **spec: Any) -> None:
    (latest,) = api.of(DAEMONSETS)
    meta = {**latest["metadata"], "generation": latest["metadata"]["generation"] + 1}
    api.put(DAEMONSETS, {**latest, "metadata": meta, "spec": {**latest["spec"], **spec}})
    await world.clock.sleep(0.1)


def images(api: FakeAPI) -> list[str]:
    return [each["spec"]["containers"][0]["image"] for each in api.of(PODS)]


def calls(api: FakeAPI, resource: Resource = PODS) -> list[str]:
    return [verb for verb, plural, _ in api.calls if plural == resource.plural and verb not in ("list", "watch")]


def status(api: FakeAPI) -> Object:
    return api.of(DAEMONSETS)[0].get("status") or {}


def test_a_rollout_replaces_one_pod_after_the_other_as_each_is_available() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        for each in api.of(PODS):
            await become_ready(world, api, each)
        assert status(api)["numberAvailable"] == 2
        await change(world, api, template=template("two"))
        assert sorted(images(api)) == ["one", "two"]
        assert status(api)["updatedNumberScheduled"] == 1
        (record,) = recorder.records
        assert (record["facts"]["node"], record["facts"]["step"]) == ("n1", "rollout")
        assert record["rule"] == "pkg/controller/daemon/daemon_controller.go:podsShouldBeOnNode"
        await become_ready(world, api, api.of(PODS)[-1])
        assert images(api) == ["two", "two"]

    run(test, (DAEMONSETS, a_set()))


def test_on_delete_a_pod_is_replaced_when_somebody_deletes_it() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        await change(world, api, template=template("two"))
        assert images(api) == ["one", "one"]
        api.remove(PODS, api.of(PODS)[0]["metadata"]["name"], "default")
        await world.clock.sleep(0.1)
        assert sorted(images(api)) == ["one", "two"]

    run(test, (DAEMONSETS, a_set("OnDelete")))


def test_a_pod_that_is_nobody_s_and_matches_is_adopted() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        meta = {"name": "found", "namespace": "default", "labels": {"app": "a"}}
        api.put(PODS, {"metadata": {**meta, "name": "other", "labels": {}}, "spec": {"nodeName": "n9"}})
        before = len(calls(api))
        api.put(PODS, {"metadata": meta, "spec": {"nodeName": "n1"}})
        await world.clock.sleep(0.1)
        assert calls(api)[before] == "patch"
        other = api.objects["pods", "default", "other"]
        assert "ownerReferences" not in other["metadata"]

    run(test, (DAEMONSETS, a_set()))


@pytest.mark.parametrize("how", ["given away", "deleted", "ending"])
def test_a_node_whose_pod_goes_gets_another_when_it_is_gone(how: str) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        (made,) = api.of(PODS)
        meta = made["metadata"]
        if how == "given away":
            theirs = [{**meta["ownerReferences"][0], "uid": "another", "name": "b"}]
            api.put(PODS, {**made, "metadata": {**meta, "ownerReferences": theirs}})
        elif how == "ending":
            api.put(PODS, {**made, "metadata": {**meta, "deletionTimestamp": "2030-01-01T00:00:00Z"}})
        else:
            api.remove(PODS, meta["name"], "default")
        await world.clock.sleep(0.1)
        assert calls(api).count("create") == (1 if how == "ending" else 2)
        if how == "ending":
            api.remove(PODS, meta["name"], "default")
            await world.clock.sleep(0.1)
            assert calls(api).count("create") == 2

    run(test, (DAEMONSETS, a_set()), nodes=1)


def test_a_change_of_a_node_that_decides_nothing_brings_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    sync = controller.DaemonSetController._sync

    async def counted(self: Any, key: str) -> None:
        looks.append(key)
        await sync(self, key)

    monkeypatch.setattr(controller.DaemonSetController, "_sync", counted)

    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        before = len(looks)
        api.put(NODES, {"metadata": {"name": "n1", "labels": {"some": "label"}}})
        api.put(NODES, {"metadata": {"name": "n3"}, "spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})
        await world.clock.sleep(0.1)
        assert len(looks) == before
        api.put(NODES, {"metadata": {"name": "n1"}, "spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})
        await world.clock.sleep(0.1)
        assert len(looks) > before and len(api.of(PODS)) == 1

    run(test, (DAEMONSETS, a_set()))


@pytest.mark.parametrize("error", [FORBIDDEN, ConnectionLost("lost")])
def test_a_pod_that_cannot_be_deleted_is_tried_again(error: Exception) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("delete", "pods", error)
        await change(world, api, template=template("two", nodeName="n2"))
        await world.clock.sleep(2)
        assert [each["spec"]["containers"][0]["image"] for each in api.of(PODS)] == ["two"]
        said = [each["reason"] for each in api.of(EVENTS)]
        assert ("FailedDelete" in said) is isinstance(error, type(FORBIDDEN))

    run(test, (DAEMONSETS, a_set()))


@pytest.mark.parametrize(("limit", "left"), [(None, 4), (1, 2), (0, 1)])
def test_revisions_beyond_the_limit_go_and_those_in_use_stay(limit: int | None, left: int) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        for number in range(3):
            await change(world, api, template=template(str(number)))
        assert len(api.of(CONTROLLERREVISIONS)) == left

    known = {} if limit is None else {"revisionHistoryLimit": limit}
    run(test, (DAEMONSETS, a_set(**known)), nodes=0)


def test_a_revision_that_a_pod_still_has_stays() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        for number in range(3):
            await change(world, api, template=template(str(number)))
        assert images(api) == ["one"] and len(api.of(CONTROLLERREVISIONS)) == 2

    run(test, (DAEMONSETS, a_set("OnDelete", revisionHistoryLimit=0)), nodes=1)
