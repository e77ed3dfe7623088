"""What `--publish` says: a port of the host's loopback, and the Service or Pod that gets its connections. Pure."""

# check: pure

import ipaddress
import re
from typing import Literal

from lastcall.kube.api.meta import Object
from lastcall.world.dataclass import dataclass

LOOPBACK = "127.0.0.1"

Target = tuple[str, int]
"""Address and port inside the cluster."""

_NAME = r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?"
_PORT = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_FORM = re.compile(
    rf"(?:(?P<address>\[[^\]]*\]|[^:/\[\]]*):)?(?P<port>[0-9]+):(?P<kind>svc|service|pod)/"
    rf"(?:(?P<namespace>{_NAME})/)?(?P<name>{_NAME}):(?P<target_port>{_PORT})"
)
_EXAMPLES = "8080:svc/web:80, 127.0.0.1:8080:svc/NAMESPACE/web:http or 0:pod/NAMESPACE/NAME:80"


@dataclass(frozen=True, slots=True)
class PublishedPort:
    """`port` 0 is any free one. `target_port` is a number or the name of a port."""

    address: str
    port: int
    kind: Literal["svc", "pod"]
    namespace: str
    name: str
    target_port: str

    @property
    def target(self) -> str:
        """Return the target for people: `svc/default/web:80`."""
        return f"{self.kind}/{self.namespace}/{self.name}:{self.target_port}"


def parse_published_port(text: str) -> PublishedPort:
    """Parse `--publish`. Raises ValueError that names what is wrong."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r}: [ADDRESS:]PORT:svc|pod/[NAMESPACE/]NAME:PORT is needed, such as {_EXAMPLES}")
    port, target_port = int(found["port"]), found["target_port"]
    if port > 65535:
        raise ValueError(f"{text!r}: port {port} is not between 0 and 65535")
    if target_port.isdigit():
        if not 0 < int(target_port) < 65536:
            raise ValueError(f"{text!r}: port {target_port} is not between 1 and 65535")
        target_port = str(int(target_port))
    elif len(target_port) > 15 or not any(character.isalpha() for character in target_port):
        raise ValueError(
            f"{text!r}: {target_port!r} is not a valid port name: at most 15 characters, one of them a letter"
        )
    return PublishedPort(
        address=_checked_address(text, found["address"]),
        port=port,
        kind="pod" if found["kind"] == "pod" else "svc",
        namespace=found["namespace"] or "default",
        name=found["name"],
        target_port=target_port,
    )


def _checked_address(text: str, address: str | None) -> str:
    if address in (None, "localhost"):
        return LOOPBACK
    assert address is not None
    try:
        parsed = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        raise ValueError(f"{text!r}: {address!r} is not an address: leave it out for {LOOPBACK}") from None
    if not parsed.is_loopback:
        raise ValueError(
            f"{text!r}: {parsed} is not a loopback address: ports are published on loopback only, such as {LOOPBACK}"
        )
    return str(parsed)


def shown_address(address: str, port: int) -> str:
    """Return `127.0.0.1:8080`, `[::1]:8080`."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def service_target(service: Object, target_port: str) -> Target | None:
    """Return the ClusterIP and the port; None for a headless or ExternalName Service or without such a TCP port."""
    spec = service.get("spec") or {}
    address = spec.get("clusterIP")
    if spec.get("type") == "ExternalName" or address in (None, "", "None"):
        return None
    for port in spec.get("ports") or ():
        if port.get("protocol", "TCP") == "TCP" and target_port in (port.get("name"), str(port["port"])):
            return address, int(port["port"])
    return None


def pod_target(pod: Object, target_port: str) -> Target | None:
    """Return the Pod's address and the port; None without an address or a port of that name."""
    address = (pod.get("status") or {}).get("podIP")
    if not address:
        return None
    if target_port.isdigit():
        return address, int(target_port)
    spec = pod.get("spec") or {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for port in container.get("ports") or ():
            if port.get("protocol", "TCP") == "TCP" and port.get("name") == target_port:
                return address, int(port["containerPort"])
    return None


def outside_ports(service: Object, node_ip: str) -> list[tuple[int, Target]]:
    """Return the host's port → its target, for node ports and load balancer ports of a Service. TCP only."""
    spec = service.get("spec") or {}
    if spec.get("type") not in ("NodePort", "LoadBalancer"):
        return []
    found: list[tuple[int, Target]] = []
    ports = [port for port in spec.get("ports") or () if port.get("protocol", "TCP") == "TCP"]
    found += [(int(port["nodePort"]), (node_ip, int(port["nodePort"]))) for port in ports if port.get("nodePort")]
    if spec["type"] == "LoadBalancer":
        ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        addresses = [each["ip"] for each in ingress if each.get("ip")]
        found += [(int(port["port"]), (addresses[0], int(port["port"]))) for port in ports if addresses]
    return found
