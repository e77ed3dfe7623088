"""node-ipam-controller: a Node without `spec.podCIDR` gets a range of the Pod network.

What a Node has stays its own until the Node is deleted; ranges that Nodes bring along are never given away.
Source: pkg/controller/nodeipam/ipam/range_allocator.go.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from lastcall.api.errors import StatusError, is_conflict, is_not_found
from lastcall.api.meta import name_of, uid_of
from lastcall.api.resources import NODES
from lastcall.client.api import Client
from lastcall.client.events import EventRecorder
from lastcall.client.informer import Informer
from lastcall.controllers.informers import Informers
from lastcall.controllers.nodes.ipam.ranges import NodeRanges, pod_cidrs, range_for
from lastcall.controllers.worker import Retry, Worker
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.api.types.node import Node

NAME = "node-ipam-controller"


class NodeIPAMController:
    """One sync at a time: no range is given twice."""

    def __init__(self, world: World, client: Client, informers: Informers, ranges: NodeRanges) -> None:
        self._client, self._ranges = client, ranges
        self._nodes: Informer[Node] = informers.get(NODES)
        self._events = EventRecorder(client, world, "cidrAllocator")
        self._worker = Worker(world, NAME, self._sync, workers=1, events=self._events)
        self._given: dict[str, tuple[str, str]] = {}
        """Name → (uid, range) of what was given, until the cache shows it."""
        self._start = 0
        self._nodes.add_handler(self._changed, lambda _, node: self._changed(node), self._deleted)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{NAME} events")
            await self._worker.run([self._nodes])

    def _changed(self, node: Node) -> None:
        if pod_cidrs(node):
            self._given.pop(name_of(node), None)
        else:
            self._worker.queue.add(name_of(node))

    def _deleted(self, node: Node) -> None:
        """A range is free again, for those that got none."""
        self._given.pop(name_of(node), None)
        for each in self._nodes.items():
            if not pod_cidrs(each):
                self._worker.queue.add(name_of(each))

    async def _sync(self, name: str) -> None:
        """(`AllocateOrOccupyCIDR`, `updateCIDRsAllocation`)"""
        node = self._nodes.get("", name)
        if node is None or pod_cidrs(node) or "deletionTimestamp" in node["metadata"]:
            return
        uid, given = self._given.get(name, ("", ""))
        if uid != uid_of(node):
            taken = [cidr for each in self._nodes.items() for cidr in pod_cidrs(each)]
            taken += [cidr for other, (_, cidr) in self._given.items() if other != name]
            found = range_for(name, self._ranges, taken, self._start)
            if found is None:
                self._say(node, "CIDRNotAvailable")
                raise Retry(f"no range of {self._ranges.cluster_cidr} is free for node {name}")
            given, self._start = found
            self._given[name] = (uid_of(node), given)
        try:
            # With its uid: another Node of this name is another one.
            patch = {"metadata": {"uid": uid_of(node)}, "spec": {"podCIDR": given, "podCIDRs": [given]}}
            await self._client.patch(NODES, name, patch)
        except StatusError as error:
            if is_not_found(error) or is_conflict(error) or error.code == HTTPStatus.UNPROCESSABLE_ENTITY:
                self._given.pop(name, None)  # gone, another one, or it has a range meanwhile: the cache tells
                return
            self._say(node, "CIDRAssignmentFailed")
            raise

    def _say(self, node: Node, status: str) -> None:
        """(`RecordNodeStatusChange`)"""
        name = name_of(node)
        found = {"kind": "Node", "apiVersion": "", "metadata": {"name": name, "uid": uid_of(node)}}
        self._events.event(found, "Normal", status, f"Node {name} status is now: {status}")
