"""Annotate each Node with how long its kubelet may keep Secrets and ConfigMaps (the ttl controller).

The more nodes, the longer. Source: pkg/controller/ttl/ttl_controller.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import annotations_of, name_of
from lastcall.kube.api.resources import NODES
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.worker import Worker
from lastcall.records.record import Recorder
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node

ANNOTATION = "node.alpha.kubernetes.io/ttl"

BOUNDARIES: tuple[tuple[int, float, int], ...] = (
    (0, 100, 0),
    (90, 500, 15),
    (450, 1000, 30),
    (900, 2000, 60),
    (1800, 10000, 300),
    (9000, float("inf"), 600),
)
"""(fewest nodes, most nodes, seconds); they overlap, so that one node more or less does not go to and fro."""


def step_for(step: int, nodes: int) -> int:
    """Return the row of `BOUNDARIES` for so many nodes, coming from row `step`."""
    while nodes > BOUNDARIES[step][1]:
        step += 1
    while nodes < BOUNDARIES[step][0]:
        step -= 1
    return step


class NodeTTLController:
    """A Node gets the annotation when it comes, and a new value at its next change."""

    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._client = client
        self._nodes: Informer[Node] = informers.get(NODES)
        self._count = 0
        self._step = 0
        self._worker = Worker(world, "ttl-controller", self._sync, client=client)
        self._nodes.add_handler(self._added, lambda _, node: self._enqueue(node), self._deleted)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._worker.run([self._nodes])

    def _added(self, node: Node) -> None:
        self._counted(1)
        self._enqueue(node)

    def _deleted(self, node: Node) -> None:
        self._counted(-1)

    def _counted(self, by: int) -> None:
        self._count += by
        self._step = step_for(self._step, self._count)

    def _enqueue(self, node: Node) -> None:
        if annotations_of(node).get(ANNOTATION) != self._value:
            self._worker.queue.add(name_of(node))

    @property
    def _value(self) -> str:
        return str(BOUNDARIES[self._step][2])

    async def _sync(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is not None and annotations_of(node).get(ANNOTATION) != self._value:
            await self._client.patch(NODES, name, {"metadata": {"annotations": {ANNOTATION: self._value}}})
