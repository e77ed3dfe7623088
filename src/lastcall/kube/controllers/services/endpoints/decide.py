"""What the Endpoints of a Service should be: pure functions from Service and Pods.

Source: pkg/controller/endpoint/endpoints_controller.go, staging/src/k8s.io/endpointslice/util, pkg/api/v1/endpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from lastcall.kube.api.meta import is_terminating, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import ENDPOINTS
from lastcall.kube.controllers.services.endpointslice.decide import (
    LABEL_HEADLESS,
    TRIGGER_TIME,
    endpoint_ports,
    pod_ips,
    pod_ready,
)

if TYPE_CHECKING:
    from lastcall.kube.api.types.endpoints import EndpointAddress, Endpoints, EndpointSubset
    from lastcall.kube.api.types.endpoints import EndpointPort as SubsetPort
    from lastcall.kube.api.types.meta import ObjectMeta
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.service import EndpointPort, Service

    _Addresses = dict[tuple[str, str], tuple[EndpointAddress, bool]]

MAX_CAPACITY = 1000
"""How many addresses Endpoints may list; the rest is cut off."""
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
TRUNCATED = "truncated"
LABEL_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
MANAGED_BY = "endpoint-controller"

_Listed = Literal["addresses", "notReadyAddresses"]
_LISTED: tuple[tuple[_Listed, bool], ...] = (("addresses", True), ("notReadyAddresses", False))
"""The lists of a subset, and whether what is in them is ready."""


def desired_endpoints(service: Service, pods: Iterable[Pod], current: Endpoints | None, trigger_time: str) -> Endpoints:
    """Return the Endpoints to write; `current` (None for none) is not changed. `trigger_time` "" clears it."""
    subsets, truncated = truncate(desired_subsets(service, pods))
    meta: ObjectMeta = {"name": name_of(service), "namespace": namespace_of(service)}
    if current is not None:
        meta = current["metadata"].copy()
    meta["labels"] = desired_labels(service)
    annotations = {**(meta.get("annotations") or {})}
    for key, value in ((TRIGGER_TIME, trigger_time), (OVER_CAPACITY, TRUNCATED if truncated else "")):
        annotations.pop(key, None)
        if value:
            annotations[key] = value
    meta.pop("annotations", None)
    if annotations:
        meta["annotations"] = annotations
    new: Endpoints = {"kind": ENDPOINTS.kind, "apiVersion": ENDPOINTS.api_version, "metadata": meta}
    if subsets:
        new["subsets"] = subsets
    return new


def is_up_to_date(current: Endpoints, desired: Endpoints) -> bool:
    """Return whether nothing but the time of the last change would be written."""
    return (
        (current.get("subsets") or []) == (desired.get("subsets") or [])
        and labels_of(current) == labels_of(desired)
        and _over_capacity(current) == _over_capacity(desired)
    )


def _over_capacity(endpoints: Endpoints) -> str:
    return str((endpoints["metadata"].get("annotations") or {}).get(OVER_CAPACITY) or "")


def desired_labels(service: Service) -> dict[str, str]:
    """Return the Service's labels, the name of the managing controller, and the label of a headless Service."""
    labels = {key: value for key, value in labels_of(service).items() if key != LABEL_HEADLESS}
    if is_headless(service):
        labels[LABEL_HEADLESS] = ""
    return {**labels, LABEL_MANAGED_BY: MANAGED_BY}


def is_headless(service: Service) -> bool:
    return service["spec"].get("clusterIP") in (None, "", "None")


def desired_subsets(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """Return one subset for each set of ports, addresses by readiness."""
    found: list[EndpointSubset] = []
    publish = bool(service["spec"].get("publishNotReadyAddresses"))
    for pod in pods:
        if not is_listed(pod, publish):
            continue
        address = address_of(service, pod)
        if address is None:
            continue
        kind: _Listed = "addresses" if publish or pod_ready(pod) else "notReadyAddresses"
        ports: list[SubsetPort | None] = [_port(port) for port in endpoint_ports(service, pod)]
        if not service["spec"].get("ports") and is_headless(service):
            ports.insert(0, None)
        for each in ports:
            subset: EndpointSubset = {}
            subset[kind] = [address]
            if each is not None:
                subset["ports"] = [each]
            found.append(subset)
    return repack(found)


def is_listed(pod: Pod, publish_not_ready: bool) -> bool:
    """Return whether a Pod has an address and has not ended. A terminating one counts if `publish_not_ready`."""
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed") or not pod_ips(pod):
        return False
    return publish_not_ready or not is_terminating(pod)


def address_of(service: Service, pod: Pod) -> EndpointAddress | None:
    """Return the Pod's address in the Service's first family; None when it has none there."""
    families = service["spec"].get("ipFamilies") or []
    wants_6 = families[0] == "IPv6" if families else ":" in (service["spec"].get("clusterIP") or "")
    address = next((ip for ip in pod_ips(pod) if (":" in ip) == wants_6), None)
    if address is None:
        return None
    spec = pod["spec"]
    result: EndpointAddress = {"ip": address}
    if spec.get("hostname") and spec.get("subdomain") == name_of(service):
        result["hostname"] = spec["hostname"]
    if spec.get("nodeName"):
        result["nodeName"] = spec["nodeName"]
    result["targetRef"] = {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}
    return result


def _port(port: EndpointPort) -> SubsetPort:
    """As Endpoints write a port: a name only where there is one."""
    return cast("SubsetPort", {key: value for key, value in port.items() if value or key != "name"})


def repack(subsets: Iterable[EndpointSubset]) -> list[EndpointSubset]:
    """Put addresses with the same ports together, in an order of their own (RepackSubsets).

    First each port gets its addresses, then ports with the same addresses share a subset. An address that is ready
    for a port somewhere is ready for it.
    """
    by_port: dict[Any, tuple[SubsetPort | None, _Addresses]] = {}
    for subset in subsets:
        of: Sequence[SubsetPort | None] = subset.get("ports") or [None]
        for port in of:
            _, addresses = by_port.setdefault(_port_key(port), (port, {}))
            for kind, ready in _LISTED:
                for address in subset.get(kind) or ():
                    key = _address_key(address)
                    addresses[key] = (address, ready or addresses.get(key, (address, False))[1])
    packed: dict[Any, tuple[list[SubsetPort], _Addresses]] = {}
    for key in sorted(by_port):
        port, addresses = by_port[key]
        same = tuple(sorted((address, ready) for address, (_, ready) in addresses.items()))
        ports, _ = packed.setdefault(same, ([], addresses))
        if port is not None:
            ports.append(port)
    return [_subset(ports, addresses) for ports, addresses in packed.values()]


def _subset(ports: list[SubsetPort], addresses: _Addresses) -> EndpointSubset:
    subset: EndpointSubset = {}
    for kind, wanted in _LISTED:
        listed = [address for _, (address, ready) in sorted(addresses.items(), key=lambda e: e[0]) if ready == wanted]
        if listed:
            subset[kind] = listed
    if ports:
        subset["ports"] = ports
    return subset


def _port_key(port: SubsetPort | None) -> tuple[str, int, str, str]:
    if port is None:
        return "", 0, "", ""
    return port.get("name", ""), port.get("port", 0), port.get("protocol", ""), port.get("appProtocol", "")


def _address_key(address: EndpointAddress) -> tuple[str, str]:
    return address["ip"], (address.get("targetRef") or {}).get("uid", "")


def truncate(subsets: Sequence[EndpointSubset]) -> tuple[list[EndpointSubset], bool]:
    """Return (at most 1000 addresses, whether some were cut off): ready ones first, subsets in proportion."""
    ready = sum(len(subset.get("addresses") or ()) for subset in subsets)
    total = ready + sum(len(subset.get("notReadyAddresses") or ()) for subset in subsets)
    if total <= MAX_CAPACITY:
        return list(subsets), False
    kept: tuple[tuple[_Listed, int, int], ...] = (
        ("addresses", min(ready, MAX_CAPACITY), ready),
        ("notReadyAddresses", MAX_CAPACITY - min(ready, MAX_CAPACITY), total - ready),
    )
    result = [subset.copy() for subset in subsets]
    for kind, room, present in kept:
        for index, subset in enumerate(result):
            listed = subset.get(kind) or []
            if not listed:
                continue
            last = not any(other.get(kind) for other in result[index + 1 :])
            share = room if last else -(-room * len(listed) // present)
            share = min(share, room, len(listed))
            room, present = room - share, present - len(listed)
            if share:
                subset[kind] = listed[:share]
            else:
                subset.pop(kind)
    return [subset for subset in result if subset.get("addresses") or subset.get("notReadyAddresses")], True
