"""What the EndpointSlices of a Service should be: pure functions from Service, Pods and slices to writes.

Source: staging/src/k8s.io/endpointslice reconciler.go and utils.go, pkg/controller/endpointslice. The packing keeps
churn small: slices are changed in place, new endpoints fill slices that are written anyway, then the fullest slice that
has room, then a new one; nothing is ever rebalanced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, cast

from lastcall.kube.api.meta import is_terminating, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import ENDPOINTSLICES
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.service import (
        Endpoint,
        EndpointHints,
        EndpointPort,
        EndpointSlice,
        Service,
        ServicePort,
    )

MAX_ENDPOINTS_PER_SLICE = 100
MANAGED_BY = "endpointslice-controller.k8s.io"
LABEL_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
LABEL_SERVICE_NAME = "kubernetes.io/service-name"
LABEL_HEADLESS = "service.kubernetes.io/headless"
LABEL_ZONE = "topology.kubernetes.io/zone"
RESERVED_LABELS = (LABEL_MANAGED_BY, LABEL_SERVICE_NAME, LABEL_HEADLESS)
TOPOLOGY_MODE = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")
"""Annotations that ask for another heuristic than `trafficDistribution`, which then counts for nothing."""
PREFERRING = ("PreferClose", "PreferSameZone", "PreferSameNode")
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"

GetNode = Callable[[str], "Node | None"]
PortKey = tuple[tuple[str, str, int, str], ...]
EndpointKey = tuple[tuple[str, ...], str, str, str]
Endpoints = dict[EndpointKey, "Endpoint"]


@dataclass(frozen=True, slots=True)
class _Described:
    """A Pod as an endpoint, and what it was made of."""

    pod: Pod
    service: Service
    node: Node | None
    ports: list[EndpointPort]
    port_key: PortKey
    endpoint: Endpoint
    key: EndpointKey


Memo = dict[tuple[str, str], _Described]
"""By (Pod uid, family): what the last sync made of each Pod, so that only changed objects are looked at again."""


@dataclass(slots=True)
class Plan:
    """The writes of one sync, in the order to do them. `missing_nodes`: Pods left out since nobody knows their Node."""

    creates: list[EndpointSlice] = field(default_factory=list)
    updates: list[EndpointSlice] = field(default_factory=list)
    deletes: list[EndpointSlice] = field(default_factory=list)
    missing_nodes: list[str] = field(default_factory=list)


def reconcile(
    service: Service,
    pods: Sequence[Pod],
    existing: Sequence[EndpointSlice],
    get_node: GetNode,
    trigger_time: str = "",
    memo: Memo | None = None,
) -> Plan:
    """Plan the writes that bring `existing` (the slices this controller manages for `service`) to what `pods` ask for.

    `pods` are those the selector matches. `trigger_time` goes into the annotation of every slice written; "" clears it.
    `memo` is for the caller to keep from one sync of a Service to the next; it saves work and changes no result.
    """
    plan = Plan()
    families = address_types(service)
    old_memo = dict(memo) if memo else {}
    new_memo: Memo = {} if memo is None else memo
    new_memo.clear()
    for slice_ in existing:
        if slice_["addressType"] not in families:
            plan.deletes.append(slice_)
    for family in families:
        desired, missing = _desired_endpoints(service, pods, family, get_node, old_memo, new_memo)
        part = _reconcile_family(service, desired, [s for s in existing if s["addressType"] == family], family)
        part.missing_nodes += missing
        plan.creates += part.creates
        plan.updates += part.updates
        plan.deletes += part.deletes
        plan.missing_nodes += [name for name in part.missing_nodes if name not in plan.missing_nodes]
    _give_hints(service, existing, plan)
    if is_terminating(service):
        plan.creates.clear()
    for slice_ in (*plan.creates, *plan.updates):
        _set_trigger_time(slice_, trigger_time)
    return plan


Family = Literal["IPv4", "IPv6"]


def address_types(service: Service) -> tuple[Family, ...]:
    """Return `IPv4`, `IPv6` or both, by spec.ipFamilies, else by the form of the cluster IP, else IPv4."""
    spec = service.get("spec", {})
    families = [family for family in spec.get("ipFamilies") or () if family != ""]
    if families:
        return tuple(dict.fromkeys(families))
    return ("IPv6",) if ":" in (spec.get("clusterIP") or "") else ("IPv4",)


def pod_ready(pod: Pod) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def pod_ips(pod: Pod) -> list[str]:
    status = pod.get("status", {})
    ips = [entry.get("ip", "") for entry in status.get("podIPs") or ()]
    if not ips and status.get("podIP"):
        ips = [status["podIP"]]
    return [ip for ip in ips if ip]


def should_be_in_endpoints(pod: Pod) -> bool:
    """Return whether a Pod has an address and has not ended; a terminating Pod stays until its terminal phase.

    Source: endpointslice/util/controller_utils.go:ShouldPodBeInEndpoints.
    """
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") and bool(pod_ips(pod))


def endpoint_of(service: Service, pod: Pod, node: Node | None, family: Family) -> Endpoint | None:
    """Return the endpoint of one Pod in one address family, None when it has no address there.

    `ready` says "take new traffic", `serving` the readiness alone, `terminating` the deletionTimestamp alone.
    Source: endpointslice/utils.go:podToEndpoint.
    """
    addresses = [ip for ip in pod_ips(pod) if (":" in ip) == (family == "IPv6")]
    if not addresses:
        return None
    serving = pod_ready(pod)
    terminating = is_terminating(pod)
    publish = bool(service["spec"].get("publishNotReadyAddresses"))
    endpoint: Endpoint = {
        "addresses": addresses[:1],
        "conditions": {
            "ready": publish or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
    }
    spec = pod["spec"]
    if spec.get("hostname") and spec.get("subdomain") == name_of(service):
        endpoint["hostname"] = spec["hostname"]
    endpoint["targetRef"] = {
        "kind": "Pod",
        "namespace": namespace_of(pod),
        "name": name_of(pod),
        "uid": uid_of(pod),
    }
    if spec.get("nodeName"):
        endpoint["nodeName"] = spec["nodeName"]
    zone = labels_of(node).get(LABEL_ZONE) if node is not None else None
    if zone:
        endpoint["zone"] = zone
    return endpoint


def endpoint_ports(service: Service, pod: Pod) -> list[EndpointPort]:
    """Return the Service's ports as this Pod has them; a named port the Pod lacks is left out.

    Source: endpointslice/utils.go:getEndpointPorts and pkg/controller/…/podutil.FindPort.
    """
    ports: list[EndpointPort] = []
    for port in service["spec"].get("ports") or ():
        number = _find_port(pod, port)
        if number is None:
            continue
        entry: EndpointPort = {"name": port.get("name", ""), "protocol": port.get("protocol", "TCP"), "port": number}
        if port.get("appProtocol"):
            entry["appProtocol"] = port["appProtocol"]
        ports.append(entry)
    return ports


def desired_labels(service: Service) -> dict[str, str]:
    """Return the Service's labels, less the reserved ones, plus those that mark the slice as ours."""
    labels = {key: value for key, value in labels_of(service).items() if key not in RESERVED_LABELS}
    labels[LABEL_MANAGED_BY] = MANAGED_BY
    labels[LABEL_SERVICE_NAME] = name_of(service)
    if service["spec"].get("clusterIP") in (None, "", "None"):
        labels[LABEL_HEADLESS] = ""
    return labels


def owned_by(slice_: EndpointSlice, service: Service) -> bool:
    """Return whether exactly this Service controls the slice, not an earlier one of its name."""
    references = slice_["metadata"].get("ownerReferences") or ()
    return any(reference.get("controller") and reference.get("uid") == uid_of(service) for reference in references)


def _desired_endpoints(
    service: Service, pods: Sequence[Pod], family: Family, get_node: GetNode, old_memo: Memo, new_memo: Memo
) -> tuple[dict[PortKey, tuple[list[EndpointPort], Endpoints]], list[str]]:
    """By set of ports: the ports and the endpoints that should be listed; and the Pods whose Node is not known."""
    desired: dict[PortKey, tuple[list[EndpointPort], Endpoints]] = {}
    missing: list[str] = []
    publish = bool(service["spec"].get("publishNotReadyAddresses"))
    for pod in pods:
        at = (uid_of(pod), family)
        node = get_node(pod["spec"].get("nodeName", ""))
        known = old_memo.get(at)
        if known is None or known.pod is not pod or known.service is not service or known.node is not node:
            if not should_be_in_endpoints(pod):
                continue
            if node is None and not publish:
                # The Pod may have reached us before its Node: leave it out and look again soon.
                missing.append(name_of(pod))
                continue
            endpoint = endpoint_of(service, pod, node, family)
            if endpoint is None:
                continue
            ports = endpoint_ports(service, pod)
            key = _endpoint_key(endpoint)
            known = _Described(pod, service, node, ports, _port_key(ports), endpoint, key)
        new_memo[at] = known
        desired.setdefault(known.port_key, (known.ports, {}))[1][known.key] = known.endpoint
    return desired, missing


def _reconcile_family(
    service: Service,
    desired: dict[PortKey, tuple[list[EndpointPort], Endpoints]],
    existing: Sequence[EndpointSlice],
    family: Family,
) -> Plan:
    plan = Plan()
    groups: dict[PortKey, list[EndpointSlice]] = {}
    for slice_ in existing:
        if owned_by(slice_, service):
            groups.setdefault(_port_key(slice_.get("ports") or ()), []).append(slice_)
        else:
            plan.deletes.append(slice_)
    for key, (ports, endpoints) in desired.items():
        part = _pack(service, groups.get(key, []), endpoints, ports, family)
        plan.creates += part.creates
        plan.updates += part.updates
        plan.deletes += part.deletes
    for key, slices in groups.items():
        if key not in desired:
            plan.deletes += slices
    _keep_placeholder(plan, service, existing, family)
    _turn_creates_into_updates(plan, service)
    return plan


def _pack(
    service: Service,
    existing: Sequence[EndpointSlice],
    desired: Endpoints,
    ports: list[EndpointPort],
    family: Family,
) -> Plan:
    """Slices of one set of ports. Source: endpointslice/reconciler.go:reconcileByPortMapping."""
    plan = Plan()
    left = dict(desired)
    labels = desired_labels(service)
    unchanged: list[EndpointSlice] = []
    for slice_ in existing:
        kept: list[Endpoint] = []
        changed = False
        old: list[Endpoint] = slice_.get("endpoints") or []
        for endpoint in old:
            wanted = left.pop(_endpoint_key(endpoint), None)
            if wanted is not None:
                kept.append(wanted)
                changed = changed or (wanted is not endpoint and not _same_endpoint(wanted, endpoint))
        if not kept and old:
            plan.deletes.append(slice_)
        elif changed or len(kept) != len(old) or labels_of(slice_) != labels:
            plan.updates.append({**_with_labels(slice_, labels), "endpoints": kept})
        else:
            unchanged.append(slice_)
    rest = list(left.values())
    for slice_ in sorted(plan.updates, key=lambda s: -len(s["endpoints"] or ())):
        has = slice_["endpoints"] or []
        room = MAX_ENDPOINTS_PER_SLICE - len(has)
        slice_["endpoints"] = [*has, *rest[:room]]
        rest = rest[room:]
    while rest:
        target = _slice_to_fill(unchanged, len(rest)) if len(rest) < MAX_ENDPOINTS_PER_SLICE else None
        if target is None:
            plan.creates.append(new_slice(service, family, ports, rest[:MAX_ENDPOINTS_PER_SLICE]))
            rest = rest[MAX_ENDPOINTS_PER_SLICE:]
        else:
            unchanged = [slice_ for slice_ in unchanged if slice_ is not target]
            plan.updates.append(
                {**_with_labels(target, labels), "endpoints": [*(target.get("endpoints") or ()), *rest]}
            )
            rest = []
    return plan


def _slice_to_fill(slices: Sequence[EndpointSlice], count: int) -> EndpointSlice | None:
    """The slice that `count` more endpoints fill best without overflowing."""
    fitting = [s for s in slices if len(s.get("endpoints") or ()) + count <= MAX_ENDPOINTS_PER_SLICE]
    return max(fitting, key=lambda s: len(s.get("endpoints") or ()), default=None)


def _keep_placeholder(plan: Plan, service: Service, existing: Sequence[EndpointSlice], family: Family) -> None:
    """A managed Service always has a slice: an empty one when there is nothing to say."""
    if plan.creates or len(plan.deletes) != len(existing):
        return
    if len(plan.deletes) == 1:
        only = plan.deletes[0]
        empty = not (only.get("endpoints") or only.get("ports"))
        if empty and owned_by(only, service) and labels_of(only) == desired_labels(service):
            plan.deletes.clear()
            return
    plan.creates.append(new_slice(service, family, [], []))


def _turn_creates_into_updates(plan: Plan, service: Service) -> None:
    """Write over a slice that would go rather than delete one and create another (reconciler.go:finalize)."""
    deletes: list[EndpointSlice] = []
    for slice_ in plan.deletes:
        if plan.creates and owned_by(slice_, service):
            create = plan.creates.pop()
            updated = _with_labels(slice_, labels_of(create))
            plan.updates.append({**updated, "endpoints": create["endpoints"], "ports": create["ports"]})
        else:
            deletes.append(slice_)
    plan.deletes = deletes


def new_slice(service: Service, family: Family, ports: list[EndpointPort], endpoints: list[Endpoint]) -> EndpointSlice:
    """Make a slice to create. Empty lists are null, as the real API server stores them."""
    return {
        "kind": ENDPOINTSLICES.kind,
        "apiVersion": ENDPOINTSLICES.api_version,
        "metadata": {
            "generateName": f"{name_of(service)}-",
            "namespace": namespace_of(service),
            "labels": desired_labels(service),
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "name": name_of(service),
                    "uid": uid_of(service),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "addressType": family,
        "endpoints": endpoints or None,
        "ports": ports or None,
    }


def wanted_hints(service: Service, endpoint: Endpoint) -> EndpointHints | None:
    """Return who should use a ready endpoint, by `trafficDistribution`; None for everybody. (trafficdist.go)"""
    wish = service["spec"].get("trafficDistribution")
    hints: EndpointHints = {}
    if wish in PREFERRING and endpoint.get("zone"):
        hints["forZones"] = [{"name": endpoint["zone"]}]
    if wish == "PreferSameNode" and endpoint.get("nodeName"):
        hints["forNodes"] = [{"name": endpoint["nodeName"]}]
    return hints or None


def _give_hints(service: Service, existing: Sequence[EndpointSlice], plan: Plan) -> None:
    """Every slice that is written gets its hints, and one that has wrong ones is written. (`ReconcileHints`)"""
    annotations = service["metadata"].get("annotations") or {}
    prefers = service["spec"].get("trafficDistribution") in PREFERRING and not any(
        annotations.get(key) in ("Auto", "auto") for key in TOPOLOGY_MODE
    )

    def hinted(endpoint: Endpoint) -> Endpoint:
        hints = wanted_hints(service, endpoint) if prefers and endpoint["conditions"].get("ready") else None
        if hints == endpoint.get("hints"):
            return endpoint
        new = endpoint.copy()
        if hints:
            new["hints"] = hints
        else:
            new.pop("hints", None)
        return new

    for slice_ in (*plan.creates, *plan.updates):
        if endpoints := slice_.get("endpoints"):
            slice_["endpoints"] = [hinted(endpoint) for endpoint in endpoints]
    touched = {uid_of(slice_) for slice_ in (*plan.updates, *plan.deletes)}
    for slice_ in existing:
        old = slice_.get("endpoints") or ()
        if (prefers or any("hints" in endpoint for endpoint in old)) and uid_of(slice_) not in touched:
            new = [hinted(endpoint) for endpoint in old]
            if any(one is not other for one, other in zip(old, new, strict=True)):
                plan.updates.append({**_with_labels(slice_, labels_of(slice_)), "endpoints": new})


def _with_labels(slice_: EndpointSlice, labels: dict[str, str]) -> EndpointSlice:
    return {**slice_, "metadata": {**slice_["metadata"], "labels": labels}}


def _set_trigger_time(slice_: EndpointSlice, trigger_time: str) -> None:
    """`slice_` is ours (a fresh dict with a fresh metadata); its annotations may still be the cache's."""
    annotations = {k: v for k, v in (slice_["metadata"].get("annotations") or {}).items() if k != TRIGGER_TIME}
    if trigger_time:
        annotations[TRIGGER_TIME] = trigger_time
    if annotations:
        slice_["metadata"]["annotations"] = annotations
    else:
        slice_["metadata"].pop("annotations", None)


def _find_port(pod: Pod, port: ServicePort) -> int | None:
    target = port.get("targetPort") or port.get("port")
    if isinstance(target, int):
        return target
    spec = pod["spec"]
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *sidecars):
        for declared in container.get("ports") or ():
            if declared.get("name") == target and declared.get("protocol", "TCP") == port.get("protocol", "TCP"):
                return cast(int, declared["containerPort"])
    return None


def _port_key(ports: Sequence[EndpointPort]) -> PortKey:
    return tuple(
        sorted(
            (p.get("name") or "", p.get("protocol") or "TCP", p.get("port") or 0, p.get("appProtocol") or "")
            for p in ports
        )
    )


def _endpoint_key(endpoint: Endpoint) -> EndpointKey:
    """What makes two endpoints the same one: address, hostname and Pod name; all else may change in place."""
    reference = endpoint.get("targetRef") or {}
    addresses = endpoint.get("addresses") or ()
    return (
        tuple(addresses if len(addresses) < 2 else sorted(addresses)),
        endpoint.get("hostname") or "",
        reference.get("namespace", ""),
        reference.get("name", ""),
    )


def _same_endpoint(one: Endpoint, other: Endpoint) -> bool:
    """Equal beyond what `_endpoint_key` compares (endpointslice/util: EndpointsEqualBeyondHash)."""
    return (
        (one.get("conditions") or {}) == (other.get("conditions") or {})
        and one.get("nodeName") == other.get("nodeName")
        and one.get("zone") == other.get("zone")
        and (one.get("targetRef") or {}).get("uid") == (other.get("targetRef") or {}).get("uid")
    )
