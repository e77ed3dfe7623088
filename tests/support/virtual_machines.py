"""Nodes that come to a virtual cluster and go: `lastcall node add|remove` without its processes."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from virtual_cluster import VirtualCluster

from lastcall.kube.cluster.control.node import ShutDown
from lastcall.kube.cluster.control.socket import AddNode, RemoveNode
from lastcall.kube.cluster.health.nodes_ready import nodes_ready
from lastcall.kube.cluster.node_capacity import NodeCapacity
from lastcall.kube.cluster.staying.kept_nodes import KeptNodes
from lastcall.kube.cluster.staying.nodes import NodeChanges
from lastcall.kube.node.shutdown.decide import ShutdownGracePeriod
from lastcall.world.messages import Message


class VirtualMachines:
    """What `NodeChanges` needs of a cluster. `add` and `remove` answer what is told; `starts` False: no node does."""

    def __init__(self, cluster: VirtualCluster, kept: KeptNodes | None = None) -> None:
        self._cluster = cluster
        self.client = cluster.client
        self.starts = True
        self.log: list[str] = []
        self.kept = kept or KeptNodes()
        self.changes = NodeChanges(
            self, cluster.world.clock, NodeCapacity(), self.kept, self.log.append, changed=lambda: None
        )

    async def add(self, name: str = "", timeout: float = 60.0, **capacity: str) -> list[str]:
        told: list[str] = []
        await self.changes.add(AddNode(node=name, capacity=capacity, timeout=timeout), told.append, told.append)
        return told

    async def remove(self, name: str, **options: Any) -> list[str]:
        told: list[str] = []
        await self.changes.remove(RemoveNode(node=name, **options), told.append)
        return told

    # -- the machines --------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> list[str]:
        return list(self._cluster.nodes)

    def check_size(self, node: str, capacity: Mapping[str, str]) -> str:
        return ""

    def last_words(self, role: str, lines: int = 20) -> str:
        return ""

    async def add_node(self, number: int, capacity: Mapping[str, str]) -> None:
        node = self._cluster.make_node(number, capacity)
        self._cluster.nodes[node.name] = node
        await node.runtime.__aenter__()
        if self.starts:
            node.start_kubelet()

    async def wait_ready(self, node: str) -> None:
        await nodes_ready(self.client, [node], self._cluster.world.clock, controllers=True)

    async def remove_node(self, node: str) -> None:
        if (gone := self._cluster.nodes.get(node)) is not None:
            if gone.task is not None:
                await gone.kill_kubelet()
            await gone.runtime.__aexit__(None, None, None)
            del self._cluster.nodes[node]

    async def ask_node(self, node: str, message: Message) -> AsyncIterator[str]:
        assert isinstance(message, ShutDown)
        told: list[str] = []
        periods = [ShutdownGracePeriod(*each) for each in message.periods]
        await self._cluster.nodes[node].kubelet.shutdown.shut_down(periods, told.append)
        for text in told:
            yield text
