"""A node with what its Pods take of it; sums are kept, never counted anew.

Source: pkg/scheduler/framework/types.go:NodeInfo.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import labels_of
from lastcall.kube.api.scheduling import taints_of
from lastcall.kube.scheduler.pod_info import HostPort, PodInfo
from lastcall.kube.scheduler.pod_resources import PODS, amounts
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.scheduling import Taint

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (a value compared with, nothing listens)


@dataclass(slots=True, eq=False)
class NodeInfo:
    """`node` is None while only its Pods are known. `generation` is another one after every change."""

    name: str
    node: Node | None = None
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[Taint] = field(default_factory=list)
    unschedulable: bool = False
    allocatable: dict[str, int] = field(default_factory=dict)
    max_pods: int = 0
    pods: dict[str, PodInfo] = field(default_factory=dict)
    requested: dict[str, int] = field(default_factory=dict)
    scored_cpu: int = 0
    scored_memory: int = 0
    ports: dict[HostPort, int] = field(default_factory=dict)
    generation: int = 0

    def set_node(self, node: Node | None) -> None:
        self.node = node
        self.generation += 1
        known = node or {"metadata": {}}
        self.labels = labels_of(known)
        self.taints = taints_of(known)
        self.unschedulable = bool((known.get("spec") or {}).get("unschedulable"))
        self.allocatable = amounts((known.get("status") or {}).get("allocatable"))
        self.max_pods = self.allocatable.get(PODS, 0)

    def add(self, pod: PodInfo) -> None:
        self.pods[pod.uid] = pod
        self._count(pod, 1)

    def replace(self, pod: PodInfo) -> None:
        """Replace a Pod by another state of it that asks for the same."""
        del self.pods[pod.uid]
        self.pods[pod.uid] = pod
        self.generation += 1

    def remove(self, pod: PodInfo) -> None:
        del self.pods[pod.uid]
        self._count(pod, -1)

    def _count(self, pod: PodInfo, sign: int) -> None:
        self.generation += 1
        asked = pod.requirements
        for name, value in asked.requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * value
        self.scored_cpu += sign * asked.scored_cpu
        self.scored_memory += sign * asked.scored_memory
        for port in asked.ports:
            left = self.ports.get(port, 0) + sign
            if left:
                self.ports[port] = left
            else:
                del self.ports[port]

    def copy(self) -> NodeInfo:
        """Return a copy whose Pods can be taken away without changing this one."""
        made = NodeInfo(self.name)
        for each in self.__slots__:
            setattr(made, each, getattr(self, each))
        made.pods, made.requested, made.ports = dict(self.pods), dict(self.requested), dict(self.ports)
        return made

    def port_taken(self, port: HostPort) -> bool:
        """Return whether the protocol and number are taken on the same address; 0.0.0.0 is every address.

        (`HostPortInfo.CheckConflict`)
        """
        if not self.ports:
            return False
        address, protocol, number = port
        return any(
            (taken_protocol, taken_number) == (protocol, number)
            and (_ANY_ADDRESS in (address, taken) or taken == address)
            for taken, taken_protocol, taken_number in self.ports
        )
