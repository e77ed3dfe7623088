"""Mirrors of static Pods as they are made and deleted (pod/mirror_client.go), in virtual time beside an API."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import ConnectionLost, FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import NODES, PODS
from lastcall.kube.node.static_pods.decide import mirror_pod
from lastcall.kube.node.workers.mirrors import FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS, MirrorPods
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

HASH = "kubernetes.io/config.hash"


def static(hash_: str = "1") -> Any:
    annotations = {HASH: hash_, "kubernetes.io/config.source": "file"}
    meta = {"name": "p-node-1", "namespace": "n", "uid": f"static-{hash_}", "annotations": annotations}
    return {"metadata": meta, "spec": {"containers": []}, "status": {"phase": "Pending"}}


class Node:
    """A node with one static Pod, whose cache of mirrors is what the API has unless the test says otherwise."""

    def __init__(self, world: World, tasks: Tasks) -> None:
        self.world, self.api, self.recorder = world, FakeAPI(world), ListRecorder(world)
        self.api.put(NODES, {"metadata": {"name": "node-1", "uid": "node-uid"}})
        self.pod: Any = static()
        self.sees = True
        self.mirrors = MirrorPods(
            world=world,
            tasks=tasks,
            client=self.api,  # type: ignore[arg-type]
            recorder=self.recorder,  # type: ignore[arg-type]
            pods=self,  # type: ignore[arg-type]
            node_name="node-1",
        )

    def get_pod(self, uid: str) -> Any:
        return self.pod if self.pod is not None and self.pod["metadata"]["uid"] == uid else None

    def get_mirror(self, namespace: str, name: str) -> Any:
        return self.api.objects.get(("pods", namespace, name)) if self.sees else None

    def mirror_of(self, pod: Any, **meta: Any) -> Object:
        """Put a mirror of some static Pod into the API."""
        made: Any = mirror_pod(pod, self.api.objects[("nodes", "", "node-1")])  # type: ignore[arg-type]
        made["metadata"] |= meta
        return self.api.put(PODS, made)

    def writes(self) -> list[str]:
        return [verb for verb, plural, _ in self.api.calls if plural == "pods"]

    async def reconcile(self, seconds: float = 0.01) -> None:
        self.mirrors.reconcile(self.pod)
        await self.world.clock.sleep(seconds)


def on_node(scenario: Callable[[Node], Awaitable[None]]) -> Node:
    async def main(world: World) -> Node:
        async with Tasks() as tasks:
            node = Node(world, tasks)
            await scenario(node)
            tasks.cancel()
        return node

    return run_virtual(main)


def test_a_static_pod_without_a_mirror_gets_one_and_keeps_it() -> None:
    async def scenario(node: Node) -> None:
        await node.reconcile()
        await node.reconcile()

    node = on_node(scenario)
    assert node.writes() == ["create"]
    (mirror,) = node.api.of(PODS)
    (record,) = node.recorder.records
    assert record["pod_uid"] == "static-1"
    meta = mirror["metadata"]
    expected = {"mirrorUid": meta["uid"], "namespace": "n", "name": "p-node-1"}
    assert record["facts"] == {**expected, "resourceVersion": meta["resourceVersion"]}


@pytest.mark.parametrize(
    ("hash_", "meta"), [("other", {}), ("1", {"deletionTimestamp": "2030-01-01T00:00:00Z"})], ids=["other", "deleted"]
)
def test_a_mirror_that_is_not_the_pod_s_is_replaced(hash_: str, meta: dict[str, str]) -> None:
    async def scenario(node: Node) -> None:
        before = node.mirror_of(static(hash_), **meta)
        await node.reconcile()
        (mirror,) = node.api.of(PODS)
        assert mirror["metadata"]["uid"] != before["metadata"]["uid"]
        assert mirror["metadata"]["annotations"][HASH] == "1"

    assert on_node(scenario).writes() == ["delete", "create"]


def test_a_mirror_is_made_once_however_often_it_is_asked_for() -> None:
    async def scenario(node: Node) -> None:
        node.api.latency = 1.0
        for _ in range(3):
            await node.reconcile()
        await node.world.clock.sleep(10)

    assert on_node(scenario).writes() == ["create"]


def test_a_mirror_that_the_node_does_not_see_yet_is_left_alone() -> None:
    async def scenario(node: Node) -> None:
        node.mirror_of(static())
        node.sees = False
        await node.reconcile(100)
        assert node.recorder.records == []

    assert on_node(scenario).writes() == ["create"]


def test_a_node_that_is_being_deleted_gets_no_mirrors() -> None:
    async def scenario(node: Node) -> None:
        meta = {"name": "node-1", "uid": "node-uid", "deletionTimestamp": "2030-01-01T00:00:00Z"}
        node.api.put(NODES, {"metadata": meta})
        await node.reconcile(100)

    assert on_node(scenario).writes() == []


@pytest.mark.parametrize("error", [ConnectionLost("gone"), status_failure(500, "InternalError", "no")])
def test_what_fails_is_tried_again_less_and_less_often(error: Exception) -> None:
    async def scenario(node: Node) -> None:
        times = 6
        node.api.fail_next("create", "pods", error, times=times)
        began = node.world.clock.monotonic_ns()
        await node.reconcile()
        while not node.api.of(PODS):
            await node.world.clock.sleep(0.01)
        waited = sum(min(FIRST_RETRY_SECONDS * 2**number, MAX_RETRY_SECONDS) for number in range(times))
        assert (node.world.clock.monotonic_ns() - began) / 1e9 == pytest.approx(waited, abs=0.05)

    assert on_node(scenario).writes() == ["create"] * 7


def test_a_pod_that_is_gone_needs_no_mirror_any_more() -> None:
    async def scenario(node: Node) -> None:
        node.api.fail_next("create", "pods", ConnectionLost("gone"), times=9)
        await node.reconcile()
        node.pod = None
        await node.world.clock.sleep(100)

    assert on_node(scenario).writes() == ["create"]


def test_a_bug_is_a_fault_and_the_mirror_is_made_all_the_same() -> None:
    async def scenario(node: Node) -> None:
        node.api.fail_next("create", "pods", KeyError("a bug"))
        await node.reconcile(100)
        assert len(node.api.of(PODS)) == 1

    with crash_guard.installed() as faults:
        on_node(scenario)
    assert [(each.component, each.key) for each in faults.all()] == [("kubelet mirror pods", "static-1")]


def test_a_mirror_of_a_pod_that_has_ended_is_deleted_once_and_no_other_of_its_name() -> None:
    async def scenario(node: Node) -> None:
        orphan = node.mirror_of(static())
        node.api.latency = 1.0
        node.mirrors.delete_orphan(orphan)  # type: ignore[arg-type]
        node.mirrors.delete_orphan(orphan)  # type: ignore[arg-type]
        await node.world.clock.sleep(5)
        assert node.api.of(PODS) == [] and node.writes() == ["delete"]
        node.mirror_of(static("other"), uid="another")
        node.mirrors.delete_orphan(orphan)  # type: ignore[arg-type]
        await node.world.clock.sleep(5)
        assert len(node.api.of(PODS)) == 1

    assert on_node(scenario).writes() == ["delete", "delete"]


@pytest.mark.parametrize("error", [ConnectionLost("gone"), status_failure(500, "InternalError", "no")])
def test_an_orphan_that_could_not_be_deleted_may_be_asked_for_again(error: Exception) -> None:
    async def scenario(node: Node) -> None:
        orphan = node.mirror_of(static())
        node.api.fail_next("delete", "pods", error)
        for left in (1, 0):
            node.mirrors.delete_orphan(orphan)  # type: ignore[arg-type]
            await node.world.clock.sleep(1)
            assert len(node.api.of(PODS)) == left

    on_node(scenario)


def test_a_bug_in_a_deletion_is_a_fault() -> None:
    async def scenario(node: Node) -> None:
        orphan = node.mirror_of(static())
        node.api.fail_next("delete", "pods", KeyError("a bug"))
        node.mirrors.delete_orphan(orphan)  # type: ignore[arg-type]
        await node.world.clock.sleep(1)

    with crash_guard.installed() as faults:
        on_node(scenario)
    assert [(each.component, each.key) for each in faults.all()] == [("kubelet mirror pods", "p-node-1")]
