"""The endpoints of a Service, put together from its EndpointSlices.

Source: pkg/proxy/endpointslicecache.go (endpointInfoByServicePort, addEndpoints).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import labels_of, name_of, namespace_of
from lastcall.kube.proxy.services import LABEL_PROXY_NAME, ServiceKey, is_port
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.service import EndpointSlice

LABEL_SERVICE_NAME = "kubernetes.io/service-name"
LABEL_HEADLESS = "service.kubernetes.io/headless"

PortKey = tuple[str, str]
"""(port name, protocol): how a port of a Service and one of a slice find each other."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`node` is "" when unknown; hints are names."""

    address: str
    port: int
    ready: bool = True
    serving: bool = True
    terminating: bool = False
    node: str = ""
    zone_hints: tuple[str, ...] = ()
    node_hints: tuple[str, ...] = ()


@lru_cache(16384)
def is_ipv4(text: str) -> bool:
    """Return whether it is an address: anybody may write slices, and the kernel takes addresses only."""
    try:
        return bool(IPv4Address(text))
    except ValueError:
        return False


def service_of(slice_: EndpointSlice) -> ServiceKey | None:
    """Return the Service of a slice; None for slices that no proxy serves (headless, another proxy's, not IPv4)."""
    labels = labels_of(slice_)
    name = labels.get(LABEL_SERVICE_NAME)
    if not name or LABEL_HEADLESS in labels or LABEL_PROXY_NAME in labels or slice_.get("addressType") != "IPv4":
        return None
    return (namespace_of(slice_), name)


def endpoints_of(slices: Iterable[EndpointSlice], node: str = "") -> Mapping[PortKey, tuple[Endpoint, ...]]:
    """Return the endpoints by port, sorted by address and port. An endpoint of two slices counts once.

    What a condition does not say: ready and serving are true, terminating is false.
    """
    found: dict[PortKey, dict[tuple[str, int], Endpoint]] = {}
    for slice_ in sorted(slices, key=name_of):
        ports = [port for port in slice_.get("ports") or () if is_port(port.get("port"))]
        for raw in slice_.get("endpoints") or ():
            if not raw.get("addresses") or not is_ipv4(raw["addresses"][0]):
                continue
            conditions = raw.get("conditions") or {}
            hints = raw.get("hints") or {}
            for port in ports:
                endpoint = Endpoint(
                    address=raw["addresses"][0],
                    port=port["port"],
                    ready=conditions.get("ready") is not False,
                    serving=conditions.get("serving") is not False,
                    terminating=bool(conditions.get("terminating")),
                    node=raw.get("nodeName") or "",
                    zone_hints=tuple(zone.get("name", "") for zone in hints.get("forZones") or ()),
                    node_hints=tuple(each.get("name", "") for each in hints.get("forNodes") or ()),
                )
                of_port = found.setdefault((port.get("name") or "", port.get("protocol") or "TCP"), {})
                known = of_port.get((endpoint.address, endpoint.port))
                if known is None or (endpoint.node == node and known.node != node):
                    of_port[endpoint.address, endpoint.port] = endpoint
    return {port: tuple(each[key] for key in sorted(each)) for port, each in found.items()}
