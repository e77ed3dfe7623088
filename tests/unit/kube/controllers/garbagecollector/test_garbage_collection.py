"""What the garbage collector does with an object whose owners are gone, wait or stay (garbagecollector/controller.py).

Source: pkg/controller/garbagecollector/garbagecollector.go (attemptToDeleteItem, processDeletingDependentsItem,
attemptToOrphanWorker, removeFinalizer).
"""

from collections.abc import Awaitable, Callable

import pytest
from fake_api import FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import EVENTS, PODS, REPLICASETS
from lastcall.kube.controllers.manager import run_controllers
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

CONFLICT = status_failure(409, "Conflict", "x")
GOES = {"deletionTimestamp": "2030-01-01T00:00:00Z"}


class API(FakeAPI):
    """Keeps how objects are deleted, and what is patched."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.deleted: list[tuple[str, str | None]] = []
        self.patched: list[tuple[str, Object]] = []

    async def delete(self, resource, name, namespace="", **options) -> Object:  # type: ignore[no-untyped-def]
        self.deleted.append((name, options.get("propagation_policy")))
        return await super().delete(resource, name, namespace, **options)

    async def patch(self, resource, name, patch, namespace="", **options) -> Object:  # type: ignore[no-untyped-def]
        self.patched.append((name, patch["metadata"]))
        if any("$patch" in each for each in patch["metadata"].get("ownerReferences") or ()):
            old = self._existing(resource, name, namespace)
            gone = {each["uid"] for each in patch["metadata"]["ownerReferences"]}
            left = [each for each in old["metadata"].get("ownerReferences") or () if each["uid"] not in gone]
            patch = {"metadata": {"ownerReferences": left}}
        return await super().patch(resource, name, patch, namespace, **options)


def run(test: Callable[[World, API, ListRecorder], Awaitable[None]]) -> None:
    async def main(world: World) -> None:
        api, recorder = API(world), ListRecorder(world)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world, client=api, recorder_for=lambda _: recorder, root_ca_pem=b"ca",
                names=["garbage-collector-controller"],
            )  # fmt: skip
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(1)
            await test(world, api, recorder)
            tasks.cancel()

    run_virtual(main)


def owner(name: str = "web", **meta: object) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **meta}, "spec": {}}


def reference(name: str, *, blocks: bool = False) -> Object:
    known = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-{name}"}
    return {**known, "blockOwnerDeletion": True} if blocks else known


def pod(*owners: Object, name: str = "p", **meta: object) -> Object:
    made = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": list(owners), **meta}
    return {"metadata": made, "spec": {}}


def names(api: API) -> list[str]:
    return sorted(each["metadata"]["name"] for each in (*api.of(PODS), *api.of(REPLICASETS)))


@pytest.mark.parametrize(
    ("finalizers", "policy"),
    [([], "Background"), (["orphan"], "Orphan"), (["foregroundDeletion"], "Foreground"), (["x/y"], "Background")],
)
def test_an_object_whose_owner_is_gone_goes_by_its_own_finalizers(finalizers: list, policy: str) -> None:
    async def test(world: World, api: API, recorder: ListRecorder) -> None:
        api.put(REPLICASETS, owner())
        api.put(PODS, pod(reference("web"), finalizers=finalizers))
        await world.clock.sleep(1)
        assert api.deleted == []
        api.remove(REPLICASETS, "web", "default")
        await world.clock.sleep(1)
        assert api.deleted == [("p", policy)]
        (record,) = recorder.records
        assert (record["kind"], record["pod_uid"]) == ("DeletionDecided", "uid-p")
        facts = record["facts"]
        assert facts["why"] == "its owner is gone: ReplicaSet web"
        assert (facts["ownerKind"], facts["owner"], facts["ownerUid"]) == ("ReplicaSet", "web", "uid-web")

    run(test)


def test_an_owner_that_never_was_is_asked_for() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.put(PODS, pod(reference("web")))
        await world.clock.sleep(1)
        assert api.deleted == [("p", "Background")]

    run(test)


def test_an_owner_of_another_life_is_gone() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.put(REPLICASETS, owner(uid="another"))
        api.put(PODS, pod(reference("web")))
        await world.clock.sleep(1)
        assert api.deleted == [("p", "Background")]

    run(test)


def test_with_one_owner_left_only_the_reference_to_the_other_goes() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        for name in ("web", "db"):
            api.put(REPLICASETS, owner(name))
        api.put(PODS, pod(reference("web"), reference("db")))
        await world.clock.sleep(1)
        api.remove(REPLICASETS, "web", "default")
        await world.clock.sleep(1)
        assert api.deleted == [] and names(api) == ["db", "p"]
        assert [each["uid"] for each in api.of(PODS)[0]["metadata"]["ownerReferences"]] == ["uid-db"]
        assert api.patched == [("p", {"uid": "uid-p", "ownerReferences": [{"$patch": "delete", "uid": "uid-web"}]})]

    run(test)


def test_an_owner_in_the_foreground_goes_when_what_blocks_it_is_gone() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        made = api.put(REPLICASETS, owner())
        api.put(PODS, pod(reference("web", blocks=True), name="a", finalizers=["x/y"]))
        api.put(PODS, pod(reference("web"), name="b"))
        await world.clock.sleep(1)
        api.put(
            REPLICASETS, {**made, "metadata": {**made["metadata"], **GOES, "finalizers": ["foregroundDeletion", "x"]}}
        )
        await world.clock.sleep(1)
        assert sorted(api.deleted) == [("a", "Background"), ("b", "Background")]
        await world.clock.sleep(2)
        assert api.of(REPLICASETS)[0]["metadata"]["finalizers"] == ["x"]

    run(test)


def test_a_dependent_with_dependents_of_its_own_goes_in_the_foreground() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        top = api.put(REPLICASETS, owner("top"))
        api.put(REPLICASETS, owner("middle", ownerReferences=[reference("top", blocks=True)]))
        api.put(PODS, pod(reference("middle")))
        await world.clock.sleep(1)
        api.put(REPLICASETS, {**top, "metadata": {**top["metadata"], **GOES, "finalizers": ["foregroundDeletion"]}})
        await world.clock.sleep(1)
        assert api.deleted[0] == ("middle", "Foreground")

    run(test)


def test_orphans_lose_their_reference_and_then_the_owner_its_finalizer() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        made = api.put(REPLICASETS, owner())
        api.put(PODS, pod(reference("web"), name="a"))
        api.put(PODS, pod(reference("web"), name="b"))
        await world.clock.sleep(1)
        api.put(REPLICASETS, {**made, "metadata": {**made["metadata"], **GOES, "finalizers": ["orphan"]}})
        await world.clock.sleep(3)
        assert api.deleted == [] and api.of(REPLICASETS)[0]["metadata"]["finalizers"] == []
        assert [each["metadata"]["ownerReferences"] for each in api.of(PODS)] == [[], []]

    run(test)


@pytest.mark.parametrize("code", [404, 422, 500])
def test_an_orphan_that_is_gone_holds_nobody_and_what_else_fails_is_tried_again(code: int) -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        made = api.put(REPLICASETS, owner())
        api.put(PODS, pod(reference("web"), name="a"))
        await world.clock.sleep(1)
        api.fail_next("patch", "pods", status_failure(code, {404: "NotFound", 422: "Invalid"}.get(code, "X"), "x"))
        api.put(REPLICASETS, {**made, "metadata": {**made["metadata"], **GOES, "finalizers": ["orphan"]}})
        await world.clock.sleep(3)
        assert api.of(REPLICASETS)[0]["metadata"]["finalizers"] == []
        assert sum(1 for name, _ in api.patched if name == "a") == (2 if code == 500 else 1)

    run(test)


@pytest.mark.parametrize("conflicts", [1, 4, 12])
def test_a_finalizer_is_taken_off_whatever_changes_meanwhile(conflicts: int) -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.fail_next("patch", "replicasets", CONFLICT, times=conflicts)
        api.put(REPLICASETS, owner(**GOES, finalizers=["orphan"]))
        await world.clock.sleep(60)
        assert api.of(REPLICASETS)[0]["metadata"]["finalizers"] == []
        assert sum(1 for name, _ in api.patched if name == "web") == conflicts + 1

    run(test)


def test_a_delete_that_conflicts_is_decided_again_and_one_of_what_is_gone_is_not() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.fail_next("delete", "pods", CONFLICT)
        api.put(PODS, pod(reference("web"), name="a"))
        await world.clock.sleep(1)
        assert api.deleted == [("a", "Background")] * 2 and names(api) == []
        api.fail_next("delete", "pods", status_failure(404, "NotFound", "x"))
        api.put(PODS, pod(reference("web"), name="b"))
        await world.clock.sleep(30)
        assert api.deleted[2:] == [("b", "Background")]

    run(test)


def test_an_owner_in_another_namespace_is_said() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.put(REPLICASETS, owner(namespace="shop"))
        await world.clock.sleep(1)
        api.put(PODS, pod(reference("web")))
        await world.clock.sleep(1)
        (event,) = api.of(EVENTS)
        assert (event["type"], event["reason"]) == ("Warning", "OwnerRefInvalidNamespace")
        text = "ownerRef [apps/v1/ReplicaSet, namespace: default, name: web, uid: uid-web] does not exist in namespace"
        assert event["message"] == f'{text} "default"'
        assert api.deleted == [("p", "Background")]

    run(test)


def test_a_chain_of_owners_is_told() -> None:
    async def test(world: World, api: API, recorder: ListRecorder) -> None:
        api.put(REPLICASETS, owner("top"))
        api.put(REPLICASETS, owner("middle", ownerReferences=[reference("top")]))
        api.put(PODS, pod(reference("middle")))
        await world.clock.sleep(1)
        api.remove(REPLICASETS, "top", "default")
        await world.clock.sleep(1)
        assert names(api) == []
        assert recorder.records[-1]["facts"]["why"] == (
            "its owner is gone: ReplicaSet middle, which ReplicaSet top had owned"
        )

    run(test)


def test_an_object_that_goes_already_is_left_alone() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.put(REPLICASETS, owner())
        api.put(PODS, pod(reference("web"), **GOES))
        await world.clock.sleep(1)
        api.remove(REPLICASETS, "web", "default")
        await world.clock.sleep(1)
        assert api.deleted == []

    run(test)
