"""The ServiceCIDR `kubernetes`, and an IPAddress for each cluster IP of a Service.

The allocator gives addresses out (`allocators.py`); the objects follow the Services, late by a moment, where a real
server writes them first (docs/fidelity.md).

Sources: pkg/controlplane/controller/defaultservicecidr, pkg/controller/servicecidrs,
pkg/registry/core/service/ipallocator/{ipallocator.go,controller/repairip.go}.
"""

import logging
from ipaddress import ip_address

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import Object, labels_of, name_of, namespace_of
from lastcall.kube.api.resources import IPADDRESSES, SERVICECIDRS, SERVICES
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.apiserver.postponed import Postponed
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.client.workqueue import WorkQueue
from lastcall.world.clock import now, rfc3339_now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

GRACE_SECONDS = 60.0
"""How long an address may have no Service yet (repairip.go:gracePeriod)."""
START_SECONDS = 1.0
"""After the start, which must not become longer."""
DEFAULT = "kubernetes"
FINALIZER = "networking.k8s.io/service-cidr-finalizer"
FAMILY, MANAGED_BY = "ipaddress.kubernetes.io/ip-family", "ipaddress.kubernetes.io/managed-by"
MANAGER = "ipallocator.k8s.io"
READY = "Kubernetes Service CIDR is ready"

_log = logging.getLogger("lastcall.kube.apiserver")


def addresses_of(service: Object) -> list[str]:
    spec = service.get("spec") or {}
    return [address for address in spec.get("clusterIPs") or [spec.get("clusterIP")] if address and address != "None"]


def address_object(address: str, service: Object) -> Object:
    """Make the IPAddress of a Service's cluster IP."""
    return {
        "metadata": {
            "name": address,
            "labels": {FAMILY: f"IPv{ip_address(address).version}", MANAGED_BY: MANAGER},
        },
        "spec": {
            "parentRef": {"resource": "services", "namespace": namespace_of(service), "name": name_of(service)},
        },
    }


class ServiceAddresses:
    def __init__(self, world: World, client: Client, cidr: str, postponed: Postponed, *, shared: bool = False) -> None:
        """`shared`: other servers use the store, and have an address before they write its Service."""
        self._world, self._client, self._cidr = world, client, cidr
        self._postponed = postponed
        self._grace = GRACE_SECONDS if shared else 0.0
        self._services = Informer(client, SERVICES, indexes={"address": addresses_of}, world=world)
        self._addresses = Informer(client, IPADDRESSES, world=world)
        self._queue: WorkQueue[str] = WorkQueue(world, name="ipaddresses")
        self._services.add_handler(self._service, self._service_changed, self._service)
        self._addresses.add_handler(self._address, lambda _, obj: self._address(obj), self._address)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._world.clock.sleep(START_SECONDS)
        await self._postponed.attempt(f"{SERVICECIDRS.kind} {DEFAULT}", self._default)
        async with Tasks() as tasks:
            tasks.spawn(self._services.run(), name="services")
            tasks.spawn(self._addresses.run(), name="addresses")
            await self._services.synced()
            await self._addresses.synced()
            while True:
                address = await self._queue.get()
                try:
                    await self._sync(address)
                    self._queue.forget(address)
                except StatusError as error:
                    _log.warning("IPAddress %s: %s", address, error)
                    self._queue.add_rate_limited(address)
                finally:
                    self._queue.done(address)

    async def _default(self) -> None:
        """(`createDefaultServiceCIDRIfNotExist`, `syncStatus`)"""
        try:
            made = await self._client.get(SERVICECIDRS, DEFAULT)
        except StatusError as error:
            if not is_not_found(error):
                raise
            wanted = {"metadata": {"name": DEFAULT, "finalizers": [FINALIZER]}, "spec": {"cidrs": [self._cidr]}}
            made = await self._client.create(SERVICECIDRS, wanted)
        if (made.get("status") or {}).get("conditions"):
            return
        condition = {
            "type": "Ready",
            "status": "True",
            "reason": "",
            "message": READY,
            "lastTransitionTime": rfc3339_now(self._world.clock),
        }
        await self._client.update(SERVICECIDRS, {**made, "status": {"conditions": [condition]}}, subresource="status")

    def _age(self, obj: Object) -> float:
        made = parse_rfc3339(obj["metadata"]["creationTimestamp"])
        return (now(self._world.clock) - made).total_seconds()

    def _service(self, service: Object) -> None:
        for address in addresses_of(service):
            self._queue.add(address)

    def _service_changed(self, old: Object, new: Object) -> None:
        before, after = addresses_of(old), addresses_of(new)
        for address in {*before} ^ {*after}:
            self._queue.add(address)

    def _address(self, obj: Object) -> None:
        if labels_of(obj).get(MANAGED_BY) == MANAGER:
            self._queue.add(name_of(obj))

    async def _sync(self, address: str) -> None:
        service = next(iter(self._services.by_index("address", address)), None)
        found = self._addresses.get("", address)
        try:
            if service is not None and found is None:
                await self._client.create(IPADDRESSES, address_object(address, service))
            elif service is None and found is not None and labels_of(found).get(MANAGED_BY) == MANAGER:
                young = self._grace and self._grace - self._age(found)
                if young > 0:
                    self._queue.add_after(address, young)
                    return
                await self._client.delete(IPADDRESSES, address)
        except StatusError as error:
            if error.reason not in ("AlreadyExists", "NotFound"):
                raise
