"""A node of the virtual cluster with the real kubelet on the simulated runtime, put together as in the tests."""

from collections.abc import Callable, Mapping

from virtual_node import VirtualNode

from lastcall.kube.client.api import Client
from lastcall.kube.cri.simulated_program import Program
from lastcall.records.ring import RingRecorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World


class KubeletNode:
    """`bench.virtual_cluster_nodes.VirtualNode` with everything that a node does."""

    def __init__(
        self,
        world: World,
        number: int,
        client_of: Callable[[str], Client],
        recorder: RingRecorder,
        allocatable: Mapping[str, str],
    ) -> None:
        self._node = VirtualNode(
            world,
            number,
            f"node-{number}",
            tasks=lambda: self._tasks,
            client_of=client_of,
            recorder=recorder,  # type: ignore[arg-type]
            programs={"app": Program()},
            allocatable=allocatable,
        )
        self._tasks: Tasks

    async def start(self, tasks: Tasks) -> None:
        self._tasks = tasks
        await self._node.runtime.__aenter__()
        self._node.start_kubelet()
