"""Mirror the Endpoints that users write for a Service without a selector into EndpointSlices.

Source: pkg/controller/endpointslicemirroring/{endpointslicemirroring_controller,reconciler,utils}.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import Object, is_terminating, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import ENDPOINTS, ENDPOINTSLICES, SERVICES
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.kube.controllers.informers import CONTROLLER, Informers
from lastcall.kube.controllers.services.endpoints.decide import repack
from lastcall.kube.controllers.services.endpointslice.decide import (
    LABEL_MANAGED_BY,
    LABEL_SERVICE_NAME,
    TRIGGER_TIME,
    Family,
    Plan,
)
from lastcall.kube.controllers.worker import Retry, Worker, split_key
from lastcall.records.record import Recorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.endpoints import EndpointAddress
    from lastcall.kube.api.types.meta import ObjectMeta
    from lastcall.kube.api.types.service import Endpoint, EndpointPort, EndpointSlice

COMPONENT = "endpointslice-mirroring-controller"
EVENT_SOURCE = "endpoint-slice-mirroring-controller"
MIRRORED_BY = "endpointslicemirroring-controller.k8s.io"
LEADER = "control-plane.alpha.kubernetes.io/leader"
"""The annotation of Endpoints that serve as a lock."""
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ENDPOINTS_PER_SUBSET = 1000


def should_mirror(endpoints: Object) -> bool:
    """Return False for Endpoints that ask to be left out, and for those that serve as a lock (`shouldMirror`)."""
    skip = labels_of(endpoints).get(SKIP_MIRROR, "").lower() in ("1", "t", "true")
    return not skip and LEADER not in (endpoints["metadata"].get("annotations") or {})


def mirror(endpoints: Object, existing: Sequence[EndpointSlice]) -> Plan:
    """Plan the writes that make `existing`, the slices owned by `endpoints`, show what those say.

    A slice that would go is written over rather than deleted where another would be created. (`recycleSlices`)
    """
    plan = Plan()
    left = list(existing)
    missing: list[tuple[Family, list[EndpointPort], list[Endpoint]]] = []
    for family, ports, listed in _desired(endpoints):
        slice_ = next((each for each in left if each["addressType"] == family and _ports(each) == _key(ports)), None)
        if slice_ is None:
            missing.append((family, ports, listed))
            continue
        left.remove(slice_)
        new = _slice(endpoints, family, ports, listed, slice_)
        if any(slice_.get(key) != new.get(key) for key in ("endpoints", "ports")) or _marks(slice_) != _marks(new):
            plan.updates.append(new)
    for family, ports, listed in missing:
        over = next((each for each in left if each["addressType"] == family), None)
        new = _slice(endpoints, family, ports, listed, over)
        if over is None:
            plan.creates.append(new)
        else:
            left.remove(over)
            plan.updates.append(new)
    plan.deletes = left
    return plan


def _desired(endpoints: Object) -> list[tuple[Family, list[EndpointPort], list[Endpoint]]]:
    """(family, ports, endpoints) of every slice."""
    found: list[tuple[Family, list[EndpointPort], list[Endpoint]]] = []
    for subset in repack(endpoints.get("subsets") or ()):
        ports: list[EndpointPort] = [
            cast("EndpointPort", {**port, "name": port.get("name", ""), "protocol": port.get("protocol", "TCP")})
            for port in subset.get("ports") or ()
        ]
        addresses = [(address, True) for address in subset.get("addresses") or ()]
        addresses += [(address, False) for address in subset.get("notReadyAddresses") or ()]
        families: dict[Family, list[Endpoint]] = {}
        for address, ready in addresses[:MAX_ENDPOINTS_PER_SUBSET]:
            family = _family(address.get("ip", ""))
            if family is not None:
                families.setdefault(family, []).append(_endpoint(address, ready))
        found += [(family, ports, listed) for family, listed in sorted(families.items())]
    return found


def skipped_addresses(endpoints: Object) -> int:
    """Count the addresses left out because their subset has more than may be mirrored."""
    counts = (
        len(subset.get("addresses") or ()) + len(subset.get("notReadyAddresses") or ())
        for subset in repack(endpoints.get("subsets") or ())
    )
    return sum(max(0, count - MAX_ENDPOINTS_PER_SUBSET) for count in counts)


def _family(address: str) -> Family | None:
    try:
        return "IPv6" if ipaddress.ip_address(address).version == 6 else "IPv4"
    except ValueError:
        return None


def _endpoint(address: EndpointAddress, ready: bool) -> Endpoint:
    endpoint: Endpoint = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
    if address.get("hostname"):
        endpoint["hostname"] = address["hostname"]
    if address.get("targetRef"):
        endpoint["targetRef"] = address["targetRef"]
    if address.get("nodeName"):
        endpoint["nodeName"] = address["nodeName"]
    return endpoint


def _slice(
    endpoints: Object, family: Family, ports: list[EndpointPort], listed: list[Endpoint], existing: EndpointSlice | None
) -> EndpointSlice:
    name = name_of(endpoints)
    meta: ObjectMeta = {"generateName": f"{name}-", "namespace": namespace_of(endpoints)}
    if existing is not None:
        meta = existing["metadata"].copy()
    meta["labels"] = {**labels_of(endpoints), LABEL_SERVICE_NAME: name, LABEL_MANAGED_BY: MIRRORED_BY}
    annotations = {
        key: value
        for key, value in (endpoints["metadata"].get("annotations") or {}).items()
        if key not in (LAST_APPLIED, TRIGGER_TIME)
    }
    meta.pop("annotations", None)
    if annotations:
        meta["annotations"] = annotations
    meta["ownerReferences"] = [
        {
            "apiVersion": ENDPOINTS.api_version,
            "kind": ENDPOINTS.kind,
            "name": name,
            "uid": uid_of(endpoints),
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return {
        "kind": ENDPOINTSLICES.kind,
        "apiVersion": ENDPOINTSLICES.api_version,
        "metadata": meta,
        "addressType": family,
        "endpoints": listed or None,
        "ports": ports or None,
    }


def _marks(slice_: EndpointSlice) -> tuple[Any, ...]:
    return labels_of(slice_), slice_["metadata"].get("annotations") or {}


def _ports(slice_: EndpointSlice) -> list[Any]:
    return _key(slice_.get("ports") or ())


def _key(ports: Sequence[EndpointPort]) -> list[Any]:
    return sorted((p.get("name") or "", p.get("protocol") or "TCP", p.get("port") or 0) for p in ports)


class EndpointSliceMirroringController:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._client = client
        self._events = EventRecorder(client, world, EVENT_SOURCE)
        self._services, self._endpoints = informers.get(SERVICES), informers.get(ENDPOINTS)
        self._slices: Informer[EndpointSlice] = informers.get(ENDPOINTSLICES)
        self._worker = Worker(world, COMPONENT, self._sync, events=self._events)
        for informer in (self._services, self._endpoints):
            informer.add_handler(self._look_at, lambda _, obj: self._look_at(obj), self._look_at)
        self._slices.add_handler(self._slice, lambda _, slice_: self._slice(slice_), self._slice)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            await self._worker.run([self._services, self._endpoints, self._slices])

    def _look_at(self, obj: Object) -> None:
        self._worker.queue.add(f"{namespace_of(obj)}/{name_of(obj)}")

    def _slice(self, slice_: EndpointSlice) -> None:
        labels = labels_of(slice_)
        if labels.get(LABEL_MANAGED_BY) == MIRRORED_BY and labels.get(LABEL_SERVICE_NAME):
            self._worker.queue.add(f"{namespace_of(slice_)}/{labels[LABEL_SERVICE_NAME]}")

    async def _sync(self, key: str) -> None:
        namespace, name = split_key(key)
        service, endpoints = self._services.get(namespace, name), self._endpoints.get(namespace, name)
        if endpoints is None or is_terminating(endpoints):
            return  # its slices go with it: they are its dependents
        existing = [
            slice_
            for slice_ in self._slices.by_index(CONTROLLER, uid_of(endpoints))
            if labels_of(slice_).get(LABEL_MANAGED_BY) == MIRRORED_BY and not is_terminating(slice_)
        ]
        wanted = service is not None and not service["spec"].get("selector") and should_mirror(endpoints)
        if wanted and (skipped := skipped_addresses(endpoints)):
            text = f"A max of {MAX_ENDPOINTS_PER_SUBSET} addresses can be mirrored to EndpointSlices per Endpoints "
            text += f"subset. {skipped} addresses were skipped"
            self._events.event(endpoints, "Warning", "TooManyAddressesToMirror", text)
        await self._perform(namespace, mirror(endpoints, existing) if wanted else Plan(deletes=existing))

    async def _perform(self, namespace: str, plan: Plan) -> None:
        try:
            for slice_ in plan.creates:
                await self._client.create(ENDPOINTSLICES, slice_, namespace)
            for slice_ in plan.updates:
                await self._client.update(ENDPOINTSLICES, slice_, namespace)
            for slice_ in plan.deletes:
                await self._client.delete(ENDPOINTSLICES, name_of(slice_), namespace, uid=uid_of(slice_))
        except StatusError as error:
            if namespace_is_terminating(error) or is_not_found(error):
                return
            if is_conflict(error):
                raise Retry(error.message) from error
            raise
