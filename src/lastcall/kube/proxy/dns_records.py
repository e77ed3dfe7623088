"""What the cluster's DNS answers: names of Services, endpoints and Pods. Pure.

Source: the Kubernetes DNS-based service discovery specification 1.1.0, as CoreDNS's kubernetes plugin implements it
with `pods insecure`: a Pod's name is its address, and nobody looks whether such a Pod exists.
"""

# check: pure

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.meta import labels_of, name_of, namespace_of
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.service import EndpointPort, EndpointSlice, Service

TTL = 5
"""Seconds, for all of the cluster's own records."""
SCHEMA_VERSION = "1.1.0"
LABEL_SERVICE_NAME = "kubernetes.io/service-name"

Type = Literal["A", "CNAME", "SRV", "PTR", "TXT", "SOA", "NS"]
Key = tuple[str, str]
"""(namespace, name)."""


@dataclass(frozen=True, slots=True)
class Record:
    """`data` is the text of a zone file."""

    name: str
    type: Type
    data: str


@dataclass(frozen=True, slots=True)
class Answer:
    """`exists` False: there is no such name (NXDOMAIN). A name without records of the type asked for has none.

    `forward` is a name outside of the cluster that the answer continues with (the target of a CNAME), "" for none.
    """

    records: tuple[Record, ...] = ()
    exists: bool = True
    forward: str = ""
    additional: tuple[Record, ...] = ()


NOT_FOUND = Answer(exists=False)
NO_DATA = Answer()


@dataclass(frozen=True, slots=True)
class _Endpoint:
    address: str
    hostname: str
    ports: tuple[tuple[str, str, int], ...]
    """(name, protocol in small letters, number)."""


@dataclass(slots=True)
class Zone:
    """The Services and EndpointSlices of a cluster, by name. Late and repeated news are fine."""

    domain: str = "cluster.local"
    _services: dict[Key, Service] = field(default_factory=dict)
    _slices: dict[Key, EndpointSlice] = field(default_factory=dict)
    _of_service: dict[Key, dict[Key, None]] = field(default_factory=dict)
    _cluster_ips: dict[str, Key] = field(default_factory=dict)
    _endpoint_ips: dict[str, dict[Key, None]] = field(default_factory=dict)

    def put_service(self, key: Key, service: Service | None) -> None:
        """Store a Service, or remove it (None)."""
        old = self._services.pop(key, None)
        if old is not None:
            self._cluster_ips.pop(old["spec"].get("clusterIP") or "", None)
        if service is not None:
            self._services[key] = service
            if _has_cluster_ip(service):
                self._cluster_ips[service["spec"]["clusterIP"]] = key

    def put_slice(self, key: Key, slice_: EndpointSlice | None) -> None:
        """Store an EndpointSlice, or remove it (None)."""
        old = self._slices.pop(key, None)
        if old is not None:
            self._of_service.get(_service_of(old), {}).pop(key, None)
            for address in _addresses(old):
                self._endpoint_ips.get(address, {}).pop(_service_of(old), None)
        if slice_ is not None:
            self._slices[key] = slice_
            self._of_service.setdefault(_service_of(slice_), {})[key] = None
            for address in _addresses(slice_):
                self._endpoint_ips.setdefault(address, {})[_service_of(slice_)] = None

    def is_ours(self, name: str) -> bool:
        """Return True if this zone alone answers a name (in lower case, without the last dot)."""
        return name == self.domain or name.endswith(f".{self.domain}")

    def look_up(self, name: str, kind: str) -> Answer:
        """Answer a query for a name (in lower case, without the last dot). `kind` is a record type, or ANY."""
        if not self.is_ours(name):
            return NOT_FOUND
        labels = name.removesuffix(self.domain).rstrip(".").split(".") if name != self.domain else []
        match labels:
            case []:
                return _only(Record(name, "NS", f"ns.dns.{self.domain}."), kind)
            case ["dns-version"]:
                return _only(Record(name, "TXT", f'"{SCHEMA_VERSION}"'), kind)
            case ["svc"] | ["pod"]:
                return NO_DATA
            case [namespace, "svc" | "pod"]:
                return NO_DATA if any(key[0] == namespace for key in self._services) else NOT_FOUND
            case [dashed, namespace, "pod"]:
                return _pod(name, dashed, namespace, kind)
            case [*first, service, namespace, "svc"]:
                return self._service(name, tuple(first), (namespace, service), kind)
        return NOT_FOUND

    def look_up_address(self, address: str) -> list[str]:
        """Return the names (PTR) of a Service's or an endpoint's address, with the last dot."""
        key = self._cluster_ips.get(address)
        if key is not None:
            return [self._name_of(key)]
        names = []
        for key in sorted(self._endpoint_ips.get(address, ())):
            for endpoint in self._endpoints(key):
                if endpoint.address == address and key in self._services:
                    names.append(f"{endpoint.hostname}.{self._name_of(key)}")
        return list(dict.fromkeys(names))

    def _name_of(self, key: Key) -> str:
        return f"{key[1]}.{key[0]}.svc.{self.domain}."

    def _service(self, name: str, first: tuple[str, ...], key: Key, kind: str) -> Answer:
        service = self._services.get(key)
        if service is None:
            return NOT_FOUND
        spec = service["spec"]
        if spec.get("type") == "ExternalName":
            target = str(spec.get("externalName", "")).rstrip(".")
            if first or not target:
                return NOT_FOUND
            return Answer((Record(name, "CNAME", f"{target}."),), forward=target)
        headless = not _has_cluster_ip(service)
        match first:
            case ():
                return self._of_whole(name, key, service, headless, kind)
            case (port, protocol) if port.startswith("_") and protocol.startswith("_"):
                return self._ports(name, key, service, headless, port[1:], protocol[1:], kind)
            case (hostname,) if headless:
                found = [each for each in self._endpoints(key) if each.hostname == hostname]
                return _addressed(name, (each.address for each in found), kind) if found else NOT_FOUND
        return NOT_FOUND

    def _of_whole(self, name: str, key: Key, service: Service, headless: bool, kind: str) -> Answer:
        endpoints = self._endpoints(key)
        if headless and not endpoints:
            return NOT_FOUND
        if kind == "SRV":
            ports = [(str(p.get("name") or ""), _protocol(p)) for p in service["spec"].get("ports") or []]
            parts = [self._ports(name, key, service, headless, *port, kind) for port in ports]
            return Answer(
                tuple(r for part in parts for r in part.records), additional=parts[0].additional if parts else ()
            )
        addresses = [each.address for each in endpoints] if headless else [service["spec"]["clusterIP"]]
        return _addressed(name, addresses, kind)

    def _ports(
        self, name: str, key: Key, service: Service, headless: bool, port: str, protocol: str, kind: str
    ) -> Answer:
        """SRV records; they exist for named ports only, and for all of them together."""
        targets: dict[str, tuple[int, str]] = {}
        if headless:
            for endpoint in self._endpoints(key):
                for port_name, its_protocol, number in endpoint.ports:
                    if (port_name, its_protocol) == (port, protocol):
                        targets[f"{endpoint.hostname}.{self._name_of(key)}"] = (number, endpoint.address)
        else:
            for each in service["spec"].get("ports") or []:
                if (str(each.get("name") or ""), _protocol(each)) == (port, protocol):
                    targets[self._name_of(key)] = (each["port"], service["spec"]["clusterIP"])
        if not targets:
            return NOT_FOUND
        if kind not in ("SRV", "ANY"):
            return NO_DATA
        weight = max(1, 100 // len(targets))
        return Answer(
            tuple(Record(name, "SRV", f"0 {weight} {number} {target}") for target, (number, _) in targets.items()),
            additional=tuple(Record(target, "A", address) for target, (_, address) in targets.items()),
        )

    def _endpoints(self, key: Key) -> list[_Endpoint]:
        """The ready ones; the slices of a Service that publishes others too call those ready."""
        found = []
        for slice_key in sorted(self._of_service.get(key, ())):
            slice_ = self._slices[slice_key]
            ports = tuple(
                (str(p.get("name") or ""), _protocol(p), p.get("port") or 0) for p in slice_.get("ports") or []
            )
            for endpoint in slice_.get("endpoints") or []:
                conditions = endpoint.get("conditions") or {}
                if conditions.get("ready", True) is False or slice_.get("addressType") != "IPv4":
                    continue
                for address in endpoint["addresses"]:
                    found.append(_Endpoint(address, endpoint.get("hostname") or address.replace(".", "-"), ports))
        return found


def _service_of(slice_: EndpointSlice) -> Key:
    return namespace_of(slice_), labels_of(slice_).get(LABEL_SERVICE_NAME, name_of(slice_))


def _addresses(slice_: EndpointSlice) -> list[str]:
    return [address for endpoint in slice_.get("endpoints") or [] for address in endpoint["addresses"]]


def _has_cluster_ip(service: Service) -> bool:
    return service["spec"].get("clusterIP") not in (None, "", "None")


def _protocol(port: EndpointPort) -> str:
    return str(port.get("protocol") or "TCP").lower()


def _only(record: Record, kind: str) -> Answer:
    return Answer((record,)) if kind in (record.type, "ANY") else NO_DATA


def _addressed(name: str, addresses: Iterable[str], kind: str) -> Answer:
    if kind not in ("A", "ANY"):
        return NO_DATA
    return Answer(tuple(Record(name, "A", address) for address in addresses))


def _pod(name: str, dashed: str, namespace: str, kind: str) -> Answer:
    try:
        address = IPv4Address(dashed.replace("-", "."))
    except AddressValueError:
        return NOT_FOUND
    return _addressed(name, [str(address)], kind)
