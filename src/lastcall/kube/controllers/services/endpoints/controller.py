"""The Endpoints controller: keeps v1 Endpoints of every Service with a selector in step with its Pods.

Source: pkg/controller/endpoint/endpoints_controller.go. Nothing here reads Endpoints any more, so they may come a
moment after the EndpointSlices, and one write covers all that happened in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import AnyObject, labels_of, name_of, namespace_of
from lastcall.kube.api.resources import ENDPOINTS, PODS, SERVICES
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.client.workqueue import RateLimit
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.kube.controllers.informers import NAMESPACE, SELECTING, Informers, is_managed
from lastcall.kube.controllers.services.endpoints.decide import (
    LABEL_MANAGED_BY,
    MANAGED_BY,
    desired_endpoints,
    is_up_to_date,
)
from lastcall.kube.controllers.services.endpointslice.triggers import (
    TriggerTimeTracker,
    pod_endpoints_changed,
    pod_membership_changed,
    selector_matches,
)
from lastcall.kube.controllers.worker import Retry, Worker, split_key
from lastcall.records.record import Recorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.endpoints import Endpoints
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.service import Service

COMPONENT = "endpoint-controller"
BATCH_SECONDS = 0.02
"""How long changes of Pods are gathered (--endpoint-updates-batch-period, 0 there)."""
RETRIES = RateLimit(base_delay=1.0, max_delay=1000.0, per_second=10.0, burst=100)
MAX_RETRIES = 15


class EndpointsController:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._client = client
        self._events = EventRecorder(client, world, COMPONENT)
        self._pods: Informer[Pod] = informers.get(PODS)
        self._services: Informer[Service] = informers.get(SERVICES)
        self._endpoints: Informer[Endpoints] = informers.get(ENDPOINTS)
        self._triggers = TriggerTimeTracker()
        self._worker = Worker(
            world, COMPONENT, self._sync, rate_limit=RETRIES, max_retries=MAX_RETRIES, events=self._events
        )
        self._deleted: dict[str, None] = {}
        self._services.add_handler(self._look_at, lambda _, service: self._look_at(service), self._service_deleted)
        self._pods.add_handler(self._pod, self._pod_updated, self._pod)
        self._endpoints.add_handler(self._look_at, None, self._look_at)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            await self._worker.run([self._services, self._pods, self._endpoints])

    def _look_at(self, obj: AnyObject) -> None:
        """At a Service, or at Endpoints: those that are there at the start may have lost their Service meanwhile."""
        self._worker.queue.add(_key(obj))

    def _service_deleted(self, service: Service) -> None:
        self._deleted[_key(service)] = None
        self._worker.queue.add(_key(service))

    def _pod(self, pod: Pod) -> None:
        for service in self._services_of(pod):
            self._worker.queue.add_after(_key(service), BATCH_SECONDS)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if not self._services.has_any(SELECTING, namespace_of(new)):
            return
        changed, moved = pod_endpoints_changed(old, new), pod_membership_changed(old, new)
        if changed or moved:
            self._pod(new)
        if moved:
            self._pod(old)

    def _services_of(self, pod: Pod) -> list[Service]:
        labels = labels_of(pod)
        return [
            service
            for service in self._services.by_index(SELECTING, namespace_of(pod))
            if selector_matches(service["spec"].get("selector"), labels)
        ]

    async def _sync(self, key: str) -> None:
        namespace, name = split_key(key)
        service = self._services.get(namespace, name)
        current = self._endpoints.get(namespace, name)
        if service is None:
            self._triggers.forget(key)
            # Endpoints go with their Service; those that a user made for no Service are left alone.
            ours = current is not None and labels_of(current).get(LABEL_MANAGED_BY) == MANAGED_BY
            if ours or key in self._deleted:
                await self._delete(namespace, name)
            self._deleted.pop(key, None)
            return
        self._deleted.pop(key, None)
        if not is_managed(service):
            return
        selector = service["spec"]["selector"]
        pods = [pod for pod in self._pods.by_index(NAMESPACE, namespace) if selector_matches(selector, labels_of(pod))]
        new = desired_endpoints(service, pods, current, self._triggers.compute(key, service, pods))
        if current is not None and is_up_to_date(current, new):
            return
        await self._write(service, new, current)

    async def _write(self, service: Service, new: Endpoints, current: Endpoints | None) -> None:
        namespace = namespace_of(service)
        try:
            if current is None:
                await self._client.create(ENDPOINTS, new, namespace)
            else:
                await self._client.update(ENDPOINTS, new, namespace)
        except StatusError as error:
            if namespace_is_terminating(error):
                return
            if is_conflict(error) or error.reason == "AlreadyExists":
                raise Retry(error.message) from error  # the cache is behind
            verb, reason = (
                ("create", "FailedToCreateEndpoint") if current is None else ("update", "FailedToUpdateEndpoint")
            )
            where = f"{namespace}/{name_of(service)}"
            text = f"Failed to {verb} endpoint {where}: {error.message}"
            if current is None:
                text = f"Failed to create endpoint for service {where}: {error.message}"
            self._events.event(service, "Warning", reason, text)
            raise

    async def _delete(self, namespace: str, name: str) -> None:
        try:
            await self._client.delete(ENDPOINTS, name, namespace)
        except StatusError as error:
            if not is_not_found(error):
                raise


def _key(obj: AnyObject) -> str:
    return f"{namespace_of(obj)}/{name_of(obj)}"
