"""The service-lb-controller: gives Services of type LoadBalancer an address, as a cloud's would.

Source: staging/src/k8s.io/cloud-provider/controllers/service/controller.go. The "cloud" is this machine: addresses come
from a range that no interface has, and the proxy of every node answers for them. There is nothing to clean up when a
Service goes, so it gets no finalizer.
"""

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network

from lastcall.kube.api.meta import Object, is_terminating, name_of, namespace_of
from lastcall.kube.api.resources import SERVICES
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.workqueue import RateLimit
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.worker import Retry, Worker, split_key
from lastcall.records.record import Recorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

COMPONENT = "service-lb-controller"
ADDRESSES = IPv4Network("172.18.255.0/24")
"""The cluster's load balancers; as `cluster.options.LOAD_BALANCER_CIDR`."""
RETRIES = RateLimit(base_delay=5.0, max_delay=300.0, per_second=10.0, burst=100)
"""minRetryDelay and maxRetryDelay."""


class NoAddress(Exception):
    """The Service cannot have what it asks for; the text says why."""


def wants_load_balancer(service: Object) -> bool:
    """Return whether the Service needs an address from us. A Service with a class is another controller's."""
    spec = service["spec"]
    return spec.get("type") == "LoadBalancer" and not spec.get("loadBalancerClass") and not is_terminating(service)


def ingress_addresses(service: Object) -> list[str]:
    """Return the addresses of its status; "" for a host name."""
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [entry.get("ip") or "" for entry in ingress]


def ours(address: str) -> bool:
    try:
        return IPv4Address(address) in ADDRESSES
    except ValueError:
        return False


def decide_address(service: Object, taken: Collection[str]) -> str | None:
    """Return the address that the status is to name; "" for none, None when it is right as it is.

    `taken` are other Services' addresses. An existing address stays, `loadBalancerIP` is granted if possible, else it
    is the lowest free one. Raises NoAddress.
    """
    now = ingress_addresses(service)
    if not wants_load_balancer(service):
        return "" if any(ours(address) for address in now) else None
    asked = service["spec"].get("loadBalancerIP") or ""
    if any(ours(address) and address not in taken and asked in ("", address) for address in now):
        return None
    if now and not any(ours(address) for address in now):
        return None  # another controller has given it one
    if asked:
        if not ours(asked):
            raise NoAddress(f"loadBalancerIP {asked} is not in {ADDRESSES}")
        if asked in taken:
            raise NoAddress(f"loadBalancerIP {asked} is another Service's")
        return asked
    free = next((str(address) for address in ADDRESSES.hosts() if str(address) not in taken), None)
    if free is None:
        raise NoAddress(f"all addresses of {ADDRESSES} are taken")
    return free


class LoadBalancerController:
    """One worker: of two Services that come at once each gets its own address."""

    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._client = client
        self._services = informers.get(SERVICES)
        self._events = EventRecorder(client, world, COMPONENT)
        self._worker = Worker(world, COMPONENT, self._sync, workers=1, rate_limit=RETRIES, events=self._events)
        self._given: dict[str, str] = {}
        """By key, what we wrote and the cache may not show yet."""
        self._waiting: dict[str, None] = {}
        """Services for which there was no address."""
        self._services.add_handler(self._enqueue, lambda _, new: self._enqueue(new), self._gone)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run([self._services]), name=COMPONENT)

    def _enqueue(self, service: Object) -> None:
        if wants_load_balancer(service) or ingress_addresses(service):
            self._worker.queue.add(_key(service))

    def _gone(self, service: Object) -> None:
        self._given.pop(_key(service), None)
        self._let_others_try()

    def _let_others_try(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for key in waiting:
            self._worker.queue.forget(key)
            self._worker.queue.add(key)

    async def _sync(self, key: str) -> None:
        service = self._services.get(*split_key(key))
        if service is None:
            return
        if self._given.get(key) in ingress_addresses(service):
            del self._given[key]
        try:
            address = decide_address(service, self._taken(key))
        except NoAddress as error:
            message = f"Error syncing load balancer: failed to ensure load balancer: {error}"
            self._events.event(service, "Warning", "SyncLoadBalancerFailed", message)
            self._waiting[key] = None
            raise Retry(message) from None
        if address is None or (address and self._given.get(key) == address):
            return
        if address:
            self._events.event(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer")
        ingress = [{"ip": address, "ipMode": "VIP"}] if address else None
        # A map with null inside would be kept by nobody: the whole of `ingress` goes when there is no address.
        patch = {"status": {"loadBalancer": {"ingress": ingress}}}
        await self._client.patch(SERVICES, name_of(service), patch, namespace_of(service), subresource="status")
        if address:
            self._given[key] = address
            self._events.event(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")
        else:
            self._given.pop(key, None)
            self._let_others_try()

    def _taken(self, key: str) -> set[str]:
        taken = {address for other, address in self._given.items() if other != key}
        for service in self._services.items():
            if _key(service) != key and wants_load_balancer(service):
                taken.update(ingress_addresses(service))
        return taken


def _key(service: Object) -> str:
    return f"{namespace_of(service)}/{name_of(service)}"
