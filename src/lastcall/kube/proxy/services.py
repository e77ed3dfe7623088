"""A Service as the proxy reads it.

Source: pkg/proxy/serviceport.go:newBaseServiceInfo, pkg/proxy/util/utils.go:ShouldSkipService.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network

from lastcall.kube.api.meta import Object, labels_of, name_of, namespace_of
from lastcall.world.dataclass import dataclass

LABEL_PROXY_NAME = "service.kubernetes.io/service-proxy-name"
"""A Service with this label is another proxy's."""

PROTOCOLS = ("TCP", "UDP", "SCTP")

ServiceKey = tuple[str, str]
"""(namespace, name)."""


@dataclass(frozen=True, slots=True)
class ServicePort:
    """`protocol` is TCP, UDP or SCTP; `node_port` 0 for none."""

    name: str
    protocol: str
    port: int
    node_port: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    """What of a Service decides about packets. Addresses are IPv4 texts.

    `affinity_seconds` is the timeout of sessionAffinity ClientIP, 0 without affinity. `source_ranges` are networks,
    and bind the load balancer's addresses only. `health_check_node_port` is 0 for none.
    """

    namespace: str
    name: str
    ports: tuple[ServicePort, ...]
    cluster_ips: tuple[str, ...] = ()
    external_ips: tuple[str, ...] = ()
    load_balancer_ips: tuple[str, ...] = ()
    source_ranges: tuple[str, ...] = ()
    affinity_seconds: int = 0
    internal_local: bool = False
    external_local: bool = False
    health_check_node_port: int = 0

    @property
    def key(self) -> ServiceKey:
        return (self.namespace, self.name)


def parse_service(obj: Object) -> Service | None:
    """Parse a Service; None if no proxy serves it: headless, ExternalName, another proxy's, without an IPv4 address."""
    spec = obj.get("spec") or {}
    if spec.get("type") == "ExternalName" or labels_of(obj).get(LABEL_PROXY_NAME) is not None:
        return None
    cluster_ip = spec.get("clusterIP")
    if not cluster_ip or cluster_ip == "None":
        return None
    cluster_ips = _ipv4(spec.get("clusterIPs") or [cluster_ip])
    if not cluster_ips:
        return None
    affinity = 0
    if spec.get("sessionAffinity") == "ClientIP":
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        affinity = config.get("timeoutSeconds") or 10800
    is_balanced = spec.get("type") == "LoadBalancer"
    ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    external_local = spec.get("externalTrafficPolicy") == "Local"
    return Service(
        namespace=namespace_of(obj),
        name=name_of(obj),
        ports=tuple(
            ServicePort(port.get("name") or "", port.get("protocol") or "TCP", port["port"], port.get("nodePort") or 0)
            for port in spec.get("ports") or ()
            if is_port(port.get("port")) and (port.get("protocol") or "TCP") in PROTOCOLS
        ),
        cluster_ips=cluster_ips,
        external_ips=_ipv4(spec.get("externalIPs") or ()),
        # ipMode Proxy: the balancer hands on to the node's own address, so its address is not ours.
        load_balancer_ips=_ipv4(i.get("ip") or "" for i in ingress if i.get("ipMode") != "Proxy")
        if is_balanced
        else (),
        source_ranges=_networks(spec.get("loadBalancerSourceRanges") or ()) if is_balanced else (),
        affinity_seconds=affinity,
        internal_local=spec.get("internalTrafficPolicy") == "Local",
        external_local=external_local,
        health_check_node_port=(spec.get("healthCheckNodePort") or 0) if is_balanced and external_local else 0,
    )


def is_port(number: object) -> bool:
    return isinstance(number, int) and 0 < number < 65536


def _ipv4(texts: Iterable[str]) -> tuple[str, ...]:
    found: list[str] = []
    for text in texts:
        try:
            found.append(str(IPv4Address(text)))
        except ValueError:
            continue  # IPv6, or nothing
    return tuple(dict.fromkeys(found))


def _networks(texts: Iterable[str]) -> tuple[str, ...]:
    found: list[str] = []
    for text in texts:
        try:
            found.append(str(IPv4Network(text.strip(), strict=False)))
        except ValueError:
            continue
    return tuple(dict.fromkeys(found))
