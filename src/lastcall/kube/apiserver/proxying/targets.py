"""Where a proxied request goes. Pure.

Sources: pkg/registry/core/pod/strategy.go, service/storage/storage.go and node/strategy.go (ResourceLocation),
apimachinery pkg/util/net/port_split.go, pkg/proxy/util/utils.go:IsProxyableIP. The texts are those of a real 1.36.2
(tests/unit/kube/apiserver/proxying/recorded.json).
"""

import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, NamedTuple

from lastcall.kube.api.errors import StatusError, bad_request, service_unavailable
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object

ADDRESS_NOT_ALLOWED = "address not allowed"
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")


class Asked(NamedTuple):
    """`[SCHEME:]NAME[:PORT]` of a URL. `scheme` is "", `http` or `https`; `port` is "", a number or a name."""

    scheme: str
    name: str
    port: str


class Target(NamedTuple):
    """`port` is as it was asked for, perhaps no number that TCP knows. `kubelet`: it is asked with the API server's
    certificate and its own is verified; that of another https target is not looked at."""

    scheme: str
    host: str
    port: str
    kubelet: bool = False


def asked_for(kind: str, text: str) -> Asked:
    """Parse the target's name. Raises the 400 StatusError; `kind` is `pod`, `service` or `node`."""
    parts = text.split(":")
    if len(parts) == 3:
        asked = Asked(*parts)
    elif len(parts) < 3:
        asked = Asked("", parts[0], parts[1] if len(parts) == 2 else "")
    else:
        asked = Asked("", "", "")
    if not asked.name or asked.scheme not in ("", "http", "https"):
        raise bad_request(f"invalid {kind} request {go_quote(text)}")
    return asked


def pod_target(asked: Asked, text: str, pod: Object) -> Target:
    """Return the Pod's primary address, and without a port the first that a container declares. Raises StatusError."""
    port = asked.port
    if not port:
        containers = pod.get("spec", {}).get("containers") or []
        port = next((str(each["ports"][0]["containerPort"]) for each in containers if each.get("ports")), "")
    addresses = (pod.get("status") or {}).get("podIPs") or []
    address = addresses[0].get("ip", "") if addresses else ""
    if not is_global_unicast(address):
        raise bad_request(ADDRESS_NOT_ALLOWED)
    return Target(asked.scheme or "http", address, _number(asked, port, "pod", text))


def node_target(asked: Asked, text: str, address: str, kubelet_port: int) -> Target:
    """Return the target on a node. Raises StatusError."""
    if not is_proxyable(address):
        raise bad_request(ADDRESS_NOT_ALLOWED)
    if asked.port in ("", str(kubelet_port)):
        return Target("https", address, str(kubelet_port), kubelet=True)
    return Target(asked.scheme or "http", address, _number(asked, asked.port, "node", text))


def _number(asked: Asked, port: str, kind: str, text: str) -> str:
    """kube-apiserver breaks off the connection where the port is a name: it stops at the URL that it made itself."""
    if port and not port.isascii():
        raise bad_request(f"invalid {kind} request {go_quote(text)}")
    if port and not port.isdigit():
        raise bad_request(f"invalid {kind} request {go_quote(text)}: the port of a {kind} is a number here")
    return port or ("443" if asked.scheme == "https" else "80")


def is_port_number(asked: Asked) -> bool:
    """Return False for the name of a Service's port: only Endpoints know which port that is."""
    return _NUMBER.fullmatch(asked.port) is not None


def port_name(asked: Asked, service: Object) -> str:
    """Return the name of the Service's port with the number that is asked for. Raises the 503 StatusError."""
    number = int(asked.port)
    for port in service.get("spec", {}).get("ports") or []:
        if port.get("port") == number:
            name: str = port.get("name") or ""
            return name
    raise service_unavailable(f"no service port {number} found for service {go_quote(asked.name)}")


class Endpoint(NamedTuple):
    """An address with the Pod that it is said to be of."""

    address: str
    port: int
    pod: str


def endpoints_of(endpoints: Object, namespace: str, port: str, start: Callable[[int], int]) -> list[Endpoint]:
    """Return ready addresses that have a port of this name and a Pod of the namespace, from a random one on.

    `start(n)` is below n.
    """
    found = []
    for subset in _from(endpoints.get("subsets") or [], start):
        addresses = subset.get("addresses") or []
        for each in subset.get("ports") or []:
            if (each.get("name") or "") == port:
                for address in _from(addresses, start):
                    reference = address.get("targetRef") or {}
                    if reference.get("namespace") == namespace and reference.get("name"):
                        found.append(Endpoint(address["ip"], each["port"], reference["name"]))
    return found


def has_address(pod: Object | None, address: str) -> bool:
    """Return whether an endpoint's Pod has the address: a user who may write Endpoints can send nobody elsewhere."""
    addresses = ((pod or {}).get("status") or {}).get("podIPs") or []
    return any(each.get("ip") == address for each in addresses)


def no_endpoints(shown: str) -> StatusError:
    return service_unavailable(f"no endpoints available for service {go_quote(shown)}")


def is_global_unicast(address: str) -> bool:
    """Return whether an address is global unicast (net.IP.IsGlobalUnicast; private addresses are)."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(ip, "ipv4_mapped", None)
    ip = mapped or ip
    return not (
        ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified or str(ip) == "255.255.255.255"
    )


is_proxyable = is_global_unicast
"""Nodes: the same but for names, which a node of ours has not (IsProxyableHostname)."""


def _from(items: list[Any], start: Callable[[int], int]) -> list[Any]:
    first = start(len(items)) if items else 0
    return [*items[first:], *items[:first]]
