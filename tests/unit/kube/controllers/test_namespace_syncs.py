"""What the namespace controller deletes, writes and waits for, beside an API.

Source: pkg/controller/namespace/deletion/namespaced_resources_deleter.go (Delete, deleteAllContent, finalizeNamespace,
updateNamespaceStatusFunc, retryOnConflictError).
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import ConnectionLost, FakeAPI, ListRecorder, play

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CONFIGMAPS, NAMESPACES, PODS, SECRETS, Resource
from lastcall.world.world import World

Test = Callable[[World, FakeAPI, ListRecorder], Awaitable[None]]
START = "2030-01-01T00:00:00Z"
FORBIDDEN = status_failure(403, "Forbidden", "no")
CONFLICT = status_failure(409, "Conflict", "changed")
NOT_FOUND = status_failure(404, "NotFound", "gone")


def run(test: Test, *there: tuple[Resource, Object]) -> None:
    """Play a test with a controller that starts where some objects are there already."""
    play(test, ["namespace-controller"], there)


def namespace(*finalizers: str, going: bool = True, **meta: Any) -> Object:
    known = {"name": "team", "uid": "u", **({"deletionTimestamp": START} if going else {}), **meta}
    return {"metadata": known, "spec": {"finalizers": list(finalizers or ("kubernetes",))}}


def thing(name: str = "x", namespace: str = "team", **meta: Any) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid of {name}", **meta}}


def pod(name: str = "p", **meta: Any) -> Object:
    return {**thing(name, **meta), "spec": {}, "status": {"phase": "Running"}}


def finalizers(api: FakeAPI) -> list[str]:
    return api.of(NAMESPACES)[0]["spec"]["finalizers"]


def condition(api: FakeAPI, kind: str) -> tuple[str, str]:
    found = {each["type"]: each for each in api.of(NAMESPACES)[0]["status"]["conditions"]}
    return found[kind]["status"], found[kind]["message"]


def calls(api: FakeAPI, resource: Resource) -> list[str]:
    return [verb for verb, plural, _ in api.calls if plural == resource.plural and verb not in ("list", "watch")]


def test_all_that_is_in_a_namespace_goes_and_then_the_finalizer_of_kubernetes_alone() -> None:
    async def test(_: World, api: FakeAPI, recorder: ListRecorder) -> None:
        assert api.of(PODS) == [] and api.of(SECRETS) == []
        assert [each["metadata"]["namespace"] for each in api.of(CONFIGMAPS)] == ["other"]
        assert finalizers(api) == ["example.com/hold"], "somebody else's stays"
        assert api.of(NAMESPACES)[0]["status"]["phase"] == "Terminating"
        assert calls(api, NAMESPACES).count("update") == 2
        (record,) = recorder.records
        assert record["facts"]["why"] == "its namespace team is deleted" and record["facts"]["namespace"] == "team"

    held = namespace("kubernetes", "example.com/hold")
    others = (CONFIGMAPS, thing(namespace="other")), (CONFIGMAPS, thing()), (SECRETS, thing())
    run(test, (NAMESPACES, held), (PODS, pod()), *others)


def test_a_namespace_that_is_not_deleted_or_has_no_finalizer_is_let_be() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert calls(api, NAMESPACES) == [] and len(api.of(CONFIGMAPS)) == 1
        bare = {**namespace(), "spec": {}}
        api.put(NAMESPACES, bare)
        await world.clock.sleep(0.1)
        assert calls(api, NAMESPACES) == ["get"] and len(api.of(CONFIGMAPS)) == 1
        api.put(NAMESPACES, namespace())
        await world.clock.sleep(0.1)
        assert api.of(CONFIGMAPS) == [] and finalizers(api) == []

    run(test, (NAMESPACES, namespace(going=False)), (CONFIGMAPS, thing()))


def test_objects_are_asked_to_go_by_uid_in_the_background() -> None:
    asked: list[Object] = []

    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        delete = api.delete

        async def noted(*args: Any, **options: Any) -> Object:
            asked.append(options)
            return await delete(*args, **options)

        api.delete = noted  # type: ignore[method-assign]
        api.put(NAMESPACES, namespace())
        await world.clock.sleep(0.1)

    run(test, (PODS, pod()), (SECRETS, thing()))
    assert asked == [{"uid": f"uid of {name}", "propagation_policy": "Background"} for name in "px"]


def test_other_objects_wait_until_the_last_pod_has_ended() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert len(api.of(SECRETS)) == 1 and finalizers(api) == ["kubernetes"]
        assert condition(api, "NamespaceContentRemaining")[0] == "False", "Pods that end are no problem"
        api.remove(PODS, "p", "team")
        await world.clock.sleep(0.1)
        assert api.of(SECRETS) == [] and finalizers(api) == []

    ending = pod(deletionTimestamp=START, deletionGracePeriodSeconds=30)
    run(test, (NAMESPACES, namespace()), (PODS, ending), (SECRETS, thing()))


def test_what_a_finalizer_holds_is_named_and_looked_at_again() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert condition(api, "NamespaceContentRemaining") == (
            "True",
            "Some resources are remaining: configmaps. has 2 resource instances",
        )
        assert condition(api, "NamespaceFinalizersRemaining") == (
            "True",
            "Some content in the namespace has finalizers remaining: x/y in 2 resource instances, "
            "z/z in 1 resource instances",
        )
        lists = api.calls.count(("list", "configmaps", ""))
        await world.clock.sleep(10)
        assert api.calls.count(("list", "configmaps", "")) == lists + 1, "half of the 15 s and one"
        for name in ("a", "b"):
            api.remove(CONFIGMAPS, name, "team")
        await world.clock.sleep(0.1)
        assert finalizers(api) == [] and condition(api, "NamespaceFinalizersRemaining")[0] == "False"

    held = [thing("a", finalizers=["x/y"]), thing("b", finalizers=["x/y", "z/z"])]
    going = [(CONFIGMAPS, {**each, "metadata": {**each["metadata"], "deletionTimestamp": START}}) for each in held]
    run(test, (NAMESPACES, namespace()), *going)


def test_what_cannot_be_deleted_is_said_and_tried_again() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("delete", "secrets", FORBIDDEN, times=2)
        api.put(NAMESPACES, namespace())
        await world.clock.sleep(0.001)
        assert condition(api, "NamespaceDeletionContentFailure")[1].endswith("no")
        assert finalizers(api) == ["kubernetes"] and len(api.of(SECRETS)) == 1
        await world.clock.sleep(1)
        assert finalizers(api) == [] and condition(api, "NamespaceDeletionContentFailure")[0] == "False"

    run(test, (SECRETS, thing()))


@pytest.mark.parametrize("error", [NOT_FOUND, CONFLICT])
def test_an_object_that_is_gone_or_another_by_now_is_no_failure(error: Exception) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("delete", "secrets", error)
        api.put(NAMESPACES, namespace())
        await world.clock.sleep(0.001)
        assert not condition(api, "NamespaceDeletionContentFailure")[1].endswith(str(error))

    run(test, (SECRETS, thing()))


def test_a_write_that_conflicts_is_made_onto_the_latest_namespace() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        update, tried = api.update, []

        async def conflicts(resource: Resource, obj: Object, namespace: str = "", **more: str) -> Object:
            tried.append(more.get("subresource"))
            if len(tried) in (1, 3):  # the status first, then the finalizers
                current = api.of(NAMESPACES)[0]
                meta = {**current["metadata"], "labels": {"tried": str(len(tried))}}
                api.put(NAMESPACES, {**current, "metadata": meta})
                raise CONFLICT
            return await update(resource, obj, namespace, **more)

        api.update = conflicts  # type: ignore[method-assign]
        api.put(NAMESPACES, namespace())
        await world.clock.sleep(0.001)
        assert tried[:4] == ["status", "status", "finalize", "finalize"] and finalizers(api) == []
        assert api.of(NAMESPACES)[0]["metadata"]["labels"] == {"tried": "3"}

    run(test)


def test_a_namespace_that_is_another_by_now_is_not_written() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        update = api.update

        async def another(resource: Resource, obj: Object, namespace: str = "", **more: str) -> Object:
            api.update = update  # type: ignore[method-assign]
            fresh = {"metadata": {"name": "team", "uid": "v"}, "spec": {"finalizers": ["kubernetes"]}}
            del api.objects["namespaces", "", "team"]
            api.put(NAMESPACES, fresh)
            raise CONFLICT

        api.update = another  # type: ignore[method-assign]
        api.put(NAMESPACES, namespace())
        await world.clock.sleep(1)
        (found,) = api.of(NAMESPACES)
        assert found["metadata"]["uid"] == "v" and "status" not in found and finalizers(api) == ["kubernetes"]

    run(test)


@pytest.mark.parametrize("error", [FORBIDDEN, ConnectionLost("lost")])
def test_a_namespace_that_cannot_be_read_or_written_is_tried_again(error: Exception) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("get", "namespaces", error)
        api.fail_next("update", "namespaces", error)
        api.put(NAMESPACES, namespace())
        await world.clock.sleep(1)
        assert finalizers(api) == []

    run(test)
