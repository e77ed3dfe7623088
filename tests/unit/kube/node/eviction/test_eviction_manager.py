"""Node-pressure eviction as it is performed (eviction_manager.go), with a node and workers of the test's."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from lastcall.kube.node.eviction.decide import EvictionConfig, FileUsage, Observation, PodUsage, parse_thresholds
from lastcall.kube.node.eviction.manager import CLEANUP_SECONDS, MONITORING_SECONDS, EvictionManager
from lastcall.kube.node.versions import behaviour_of
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

MI = 1 << 20


def pod(name: str, *, limit: str = "") -> dict[str, Any]:
    volume = {"name": "scratch", "emptyDir": {"sizeLimit": limit} if limit else {}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"priority": 0, "containers": [{"name": "app"}], "volumes": [volume]},
        "status": {"phase": "Running"},
    }


class Node:
    """The statistics, the Pods and the workers of one node. Each look at the node is noted with its time."""

    def __init__(self, world: World, *pods: dict[str, Any]) -> None:
        self.world = world
        self.free = 500 * MI
        self.pods = list(pods)
        self.used = {"scratch": FileUsage(9 * MI, 1)}
        self.looks: list[float] = []
        self.evicted: list[str] = []
        self.finished: set[str] = set()
        self.reclaim: list[Callable[[], Awaitable[None]]] = []
        self.began = world.clock.monotonic_ns()

    @property
    def seconds(self) -> float:
        return (self.world.clock.monotonic_ns() - self.began) / 1e9

    def manager(self) -> EvictionManager:
        return EvictionManager(
            world=self.world,
            workers=self,  # type: ignore[arg-type]
            events=self,  # type: ignore[arg-type]
            recorder=self,  # type: ignore[arg-type]
            node_name="node-1",
            config=EvictionConfig(parse_thresholds({"nodefs.available": "100Mi"})),
            stats=self,
            active_pods=lambda: self.pods,
            behaviour=behaviour_of("1.36"),
            reclaim=self.reclaim,
        )

    async def observe(self) -> dict[str, Observation]:
        self.looks.append(self.seconds)
        return {"nodefs.available": Observation(self.free, 1000 * MI, self.seconds)}

    async def pod_usage(self, pods: Sequence[Any]) -> dict[str, PodUsage]:
        return {each["metadata"]["uid"]: PodUsage(volumes=self.used) for each in pods}

    def event(self, *said: Any, **more: Any) -> None:
        pass

    def record(self, *said: Any, **more: Any) -> str:
        return ""

    async def kill_pod_now(self, pod: Any, **more: Any) -> None:
        self.evicted.append(pod["metadata"]["name"])
        self.pods.remove(pod)

    def should_pod_be_finished(self, uid: str) -> bool:
        return uid in self.finished


def test_disk_that_cannot_be_given_back_is_a_fault_and_the_next_part_is_asked_all_the_same() -> None:
    """eviction_manager.go:reclaimNodeLevelResources goes on after an error."""
    asked: list[str] = []

    async def fails() -> None:
        asked.append("containers")
        raise ValueError("no such directory")

    async def gives() -> None:
        asked.append("images")
        node.free = 500 * MI

    async def main(world: World) -> None:
        nonlocal node
        node = Node(world, pod("a"))
        node.free = 50 * MI
        node.reclaim = [fails, gives]
        assert await node.manager().synchronize(node) == []

    node: Any = None
    with crash_guard.installed() as faults:
        run_virtual(main)
    assert (asked, node.evicted) == (["containers", "images"], [])
    assert [(each.component, each.key, each.error) for each in faults.all()] == [
        ("kubelet eviction", "reclaim", "ValueError: no such directory")
    ]


@pytest.mark.parametrize(
    ("ends", "looks_again"),
    [
        ({"a": 3.0, "b": 5.0}, 5.0),
        ({"a": 5.0, "b": 3.0}, 5.0),
        ({"a": 1.0, "b": 1.0}, 1.0),
        ({"a": 3.0}, CLEANUP_SECONDS),
        ({}, CLEANUP_SECONDS),
    ],
)
def test_after_an_eviction_the_node_is_looked_at_again_when_all_its_pods_are_gone_or_30_s_later(
    ends: dict[str, float], looks_again: float
) -> None:
    """eviction_manager.go:waitForPodsCleanup: podCleanupTimeout, podCleanupPollFreq. Both exceed their own limit."""

    async def main(world: World) -> Node:
        node = Node(world, pod("a", limit="1Mi"), pod("b", limit="1Mi"), pod("c"))
        async with Tasks() as tasks:
            tasks.spawn(node.manager().run(), name="eviction")
            for name, at in sorted(ends.items(), key=lambda each: each[1]):
                await world.clock.sleep(at - 0.5 - node.seconds)
                node.finished.add(name)
            await world.clock.sleep(CLEANUP_SECONDS + MONITORING_SECONDS + 1 - node.seconds)
            tasks.cancel()
        return node

    node = run_virtual(main)
    assert node.evicted == ["a", "b"]
    assert node.looks[:3] == pytest.approx([0.0, looks_again, looks_again + MONITORING_SECONDS])
