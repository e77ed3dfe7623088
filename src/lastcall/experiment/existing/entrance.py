"""Find where requests from outside enter an existing cluster: the address of a URL, or what a Service offers. Pure."""

# check: pure

from collections.abc import Sequence
from urllib.parse import urlsplit

from lastcall.errors import UserError
from lastcall.kube.api import Object, name_of
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Entrance:
    """`host` is the name that requests carry, `address` what is resolved and connected to, `description` for people."""

    address: str
    port: int
    host: str
    description: str
    tls_name: str = ""
    """The name that the certificate is checked for; "" is a server without TLS."""


def of_url(url: str) -> Entrance:
    """Parse `https://shop.example.com:8443`; the path is an option of its own. Raises UserError."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UserError(f"--url {url}: {error}") from error
    secure = parts.scheme == "https"
    if not (secure or parts.scheme == "http") or not parts.hostname or parts.username or parts.password:
        raise UserError(f"--url {url}: not a valid URL: write https://HOST, or http://HOST:PORT")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UserError(f"--url {url}: give the path separately: --path {parts.path}")
    name = parts.hostname if secure else ""
    return Entrance(parts.hostname, port or (443 if secure else 80), parts.netloc, url, name)


def of_inside(service: Object, port: Object) -> Entrance:
    """Return the Service's own address, for clients in the cluster."""
    address = service["spec"].get("clusterIP")
    host = f"{name_of(service)}.{service['metadata']['namespace']}.svc.cluster.local"
    return Entrance(str(address), port["port"], host, f"Service {name_of(service)}")


def of_service(service: Object, port: Object, nodes: Sequence[Object]) -> Entrance:
    """Return the load balancer's address, else a port of a node. Raises UserError where there is neither."""
    host = f"{name_of(service)}.{service['metadata']['namespace']}.svc.cluster.local"
    for each in ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
        if address := each.get("ip") or each.get("hostname"):
            return Entrance(
                address, port["port"], host, f"the load balancer of Service {name_of(service)} at {address}"
            )
    addresses = [_address(node) for node in nodes]
    if port.get("nodePort") and (address := next(filter(None, addresses), "")):
        return Entrance(address, port["nodePort"], host, f"port {port['nodePort']} of the node at {address}")
    raise UserError(
        f"Service {name_of(service)} has no address outside its cluster: its type is "
        f"{service['spec'].get('type', 'ClusterIP')}\n"
        "fix: --url http://HOST:PORT, if something else forwards to it; or --from pod, which sends from inside the "
        "cluster"
    )


def is_own(entrance: Entrance, service: Object, nodes: Sequence[Object]) -> bool:
    """Return whether an address and port are the Service's own: a node port, external address or load balancer's.

    What answers at another one may be a proxy, which has connections of its own to the Pods.
    """
    spec = service["spec"]
    given = {each.get("address") for node in nodes for each in (node.get("status") or {}).get("addresses") or ()}
    ports = {each.get("nodePort") for each in spec.get("ports") or ()} - {None}
    if entrance.port in ports and entrance.address in given:
        return True
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    own = {each.get("ip") or each.get("hostname") for each in ingress}
    own |= {*(spec.get("externalIPs") or ()), spec.get("clusterIP")}
    return entrance.address in own and entrance.port in {each.get("port") for each in spec.get("ports") or ()}


def is_local(service: Object) -> bool:
    """Return whether a node sends only to Pods of its own."""
    spec = service["spec"]
    return "Local" in (spec.get("internalTrafficPolicy"), spec.get("externalTrafficPolicy"))


def is_even(service: Object, inside: bool) -> bool:
    """Return whether each new connection is as likely led to any Pod as to the others.

    That means: no session affinity, no part of the Pods for a node, and one node that chooses, which of a load balancer
    is not known.
    """
    spec = service["spec"]
    if is_local(service) or (spec.get("type") == "LoadBalancer" and not inside):
        return False
    return spec.get("sessionAffinity") != "ClientIP" and not spec.get("trafficDistribution")


def _address(node: Object) -> str:
    """The first one under which a client may reach it: the external before the internal one."""
    found = {each.get("type"): str(each.get("address")) for each in (node.get("status") or {}).get("addresses") or ()}
    return found.get("ExternalIP") or found.get("InternalIP") or ""
