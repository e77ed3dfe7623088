"""NetworkPolicies, Pods and namespaces as the decisions read them. Pure.

Source: staging/src/k8s.io/api/networking/v1/types.go; defaults of pkg/apis/networking/v1/defaults.go.
"""

# check: pure

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import Object, labels_of, name_of, namespace_of
from lastcall.kube.api.selectors import LabelSelector, selector_of_expressions
from lastcall.kube.proxy.endpoints import is_ipv4
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod as APIPod

PodKey = tuple[str, str]
"""(namespace, name)."""
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Block:
    """Addresses of a network (CIDR), but for those of `excepts`.

    A block is combined with each port of its rule, and each time looked up: its hash is made once.
    """

    network: str
    excepts: tuple[str, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.network, self.excepts)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class PodPeer:
    """Pods by their labels, of one namespace or of those that `namespaces` selects."""

    namespace: str
    namespaces: LabelSelector | None
    pods: LabelSelector


Peer = Block | PodPeer

ALL_PODS = PodPeer("", LabelSelector(), LabelSelector())


@dataclass(frozen=True, slots=True)
class PolicyPort:
    """`port` None is every port of the protocol; a name is that of a container's port at the destination."""

    protocol: str = "TCP"
    port: int | str | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """What is allowed: one of `peers`, by one of `ports`. None is everybody, and every port of every protocol."""

    peers: tuple[Peer, ...] | None
    ports: tuple[PolicyPort, ...] | None


@dataclass(frozen=True, slots=True)
class Policy:
    """`ingress` and `egress` are None where the policy does not isolate the Pods it selects; () allows nothing."""

    namespace: str
    name: str
    pods: LabelSelector
    ingress: tuple[PolicyRule, ...] | None
    egress: tuple[PolicyRule, ...] | None

    def selects(self, pod: PolicyPod) -> bool:
        return pod.namespace == self.namespace and self.pods.matches(pod.labels)


@dataclass(frozen=True, slots=True)
class PolicyPod:
    """A Pod with an address of its own. `ports` are those with a name: (name, protocol, number)."""

    namespace: str
    name: str
    address: str
    labels: Mapping[str, str]
    ports: tuple[tuple[str, str, int], ...] = ()
    node: str = ""

    @property
    def key(self) -> PodKey:
        return self.namespace, self.name


def parse_policy(obj: Object) -> Policy:
    """Parse a NetworkPolicy. Raises ValueError, TypeError or KeyError for one that validation would have refused."""
    spec = obj.get("spec") or {}
    namespace = namespace_of(obj)
    is_ingress, is_egress = _directions(spec)
    ingress = tuple(
        PolicyRule(_peers(rule.get("from"), namespace), _ports(rule.get("ports"))) for rule in spec.get("ingress") or ()
    )
    egress = tuple(
        PolicyRule(_peers(rule.get("to"), namespace), _ports(rule.get("ports"))) for rule in spec.get("egress") or ()
    )
    return Policy(
        namespace,
        name_of(obj),
        selector_of_expressions(spec.get("podSelector") or {}),
        ingress if is_ingress else None,
        egress if is_egress else None,
    )


def closed_policy(obj: Object) -> Policy:
    """Return a policy that allows nothing, in place of one that cannot be read.

    It selects the same Pods in the same directions; all of the namespace, in both, if these cannot be read either.
    """
    pods, directions = LabelSelector(), (True, True)
    with suppress(Exception):
        spec = obj.get("spec") or {}
        directions = _directions(spec)
        pods = selector_of_expressions(spec.get("podSelector") or {})
    is_ingress, is_egress = directions
    return Policy(namespace_of(obj), name_of(obj), pods, () if is_ingress else None, () if is_egress else None)


def _directions(spec: Object) -> tuple[bool, bool]:
    """Return whether a policy is about ingress, and about egress."""
    types = spec.get("policyTypes") or (["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
    return "Ingress" in types, "Egress" in types


def _peers(peers: list[Object] | None, namespace: str) -> tuple[Peer, ...] | None:
    """None and an empty list are everybody."""
    return tuple(peer for each in peers if (peer := _peer(each, namespace)) is not None) if peers else None


def _peer(peer: Object, namespace: str) -> Peer | None:
    """None for a block of IPv6 addresses, which no Pod has."""
    block = peer.get("ipBlock")
    if block is not None:
        cidr = block["cidr"]
        if ":" in cidr:
            return None
        excepts = tuple(str(IPv4Network(each, strict=False)) for each in block.get("except") or () if ":" not in each)
        return Block(str(IPv4Network(cidr, strict=False)), excepts)
    namespaces = peer.get("namespaceSelector")
    return PodPeer(
        namespace if namespaces is None else "",
        None if namespaces is None else selector_of_expressions(namespaces),
        selector_of_expressions(peer.get("podSelector") or {}),
    )


def _ports(ports: list[Object] | None) -> tuple[PolicyPort, ...] | None:
    if not ports:
        return None
    return tuple(PolicyPort(each.get("protocol") or "TCP", each.get("port"), each.get("endPort")) for each in ports)


def parse_pod(obj: APIPod, address: str = "") -> PolicyPod | None:
    """Parse a Pod; None if it has ended, has no IPv4 address yet, or has the node's: policies do not apply to those.

    `address` may be known before the API server has it.
    """
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    address = address or status.get("podIP") or ""
    if spec.get("hostNetwork") or status.get("phase") in _ENDED or not is_ipv4(address):
        return None
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    ports = tuple(
        (port["name"], port.get("protocol") or "TCP", port["containerPort"])
        for container in (*(spec.get("containers") or ()), *sidecars)
        for port in container.get("ports") or ()
        if port.get("name")
    )
    return PolicyPod(namespace_of(obj), name_of(obj), address, dict(labels_of(obj)), ports, spec.get("nodeName") or "")
