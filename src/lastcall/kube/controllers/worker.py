"""The loop that every controller has around its decision: take a key, sync it, retry with back-off.

What a sync does not expect is caught by a wall: it is counted and reported as an Event on the object, and the key backs
off as after any other failure.

Source: the `runWorker` / `processNextWorkItem` of every controller in pkg/controller.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from lastcall.kube.api.errors import StatusError
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.events import EventRecorder, tell_of_fault
from lastcall.kube.client.informer import Informer
from lastcall.kube.client.workqueue import RateLimit, WorkQueue
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

log = logging.getLogger(__name__)


class Synced(Protocol):
    """What has to be known before work begins: an Informer."""

    async def synced(self) -> None: ...


class Retry(Exception):
    """A sync that could not finish; it is tried again with back-off. The message goes to the log."""


QUEUES = {
    "certificatesigningrequest-signing-controller": "certificate",
    "clusterrole-aggregation-controller": "ClusterRoleAggregator",
    "disruption-controller stale": "stale_pod_disruption",
    "endpointslice-mirroring-controller": "endpoint_slice_mirroring",
    "ephemeral-volume-controller": "ephemeral_volume",
    "garbage-collector-controller delete": "garbage_collector_attempt_to_delete",
    "garbage-collector-controller orphan": "garbage_collector_attempt_to_orphan",
    "horizontal-pod-autoscaler": "horizontalpodautoscaler",
    "job-controller orphans": "job_orphan_pod",
    "node-lifecycle pods": "node_lifecycle_controller_pods",
    "node-lifecycle taints": "node_lifecycle_controller",
    "persistentvolume-binder-controller": "claims",
    "persistentvolume-protection-controller": "pvprotection",
    "persistentvolumeclaim-protection-controller": "pvcprotection",
    "replication-controller": "replicationmanager",
    "resourcequota-controller": "resourcequota_primary",
    "serviceaccount-token-controller": "serviceaccount_tokens_service",
    "service-lb-controller": "service",
    "ttl-after-finished-controller": "ttl_jobs_to_delete",
    "ttl-controller": "ttlcontroller",
    "volumeattributesclass-protection-controller": "vacprotection",
}
"""What Kubernetes names the queues of controllers whose own names say it otherwise."""


def queue_name(component: str) -> str:
    """Return the `name` under which the queue of a controller is counted."""
    return QUEUES.get(component) or component.removesuffix("-controller").replace(" ", "_")


class Worker:
    """`queue` holds keys (`namespace/name`); `run` hands each to `sync` and retries what fails.

    `sync` may raise StatusError, ConnectionLost and Retry. `workers` syncs run at once, never two for one key.
    `events` reports an unexpected failure on the object: the one with this key in the first informer of `run`. A
    controller that writes no Events of its own gives its `client` instead.
    """

    def __init__(
        self,
        world: World,
        name: str,
        sync: Callable[[str], Awaitable[None]],
        *,
        workers: int = 5,
        rate_limit: RateLimit | None = None,
        max_retries: int | None = None,
        events: EventRecorder | None = None,
        client: Client | None = None,
    ) -> None:
        self._world = world
        self._client = client
        self._tasks: Tasks | None = None
        self.queue: WorkQueue[str] = WorkQueue(world, rate_limit, queue_name(name))
        self._name = name
        self._sync = sync
        self._workers = workers
        self._max_retries = max_retries
        self._events = events
        self._objects: Informer | None = None

    async def run(self, informers: Sequence[Synced]) -> None:
        """Work until cancelled; starts when the caches of `informers` are filled."""
        first = informers[0] if informers else None
        self._objects = first if isinstance(first, Informer) else None
        for informer in informers:
            await informer.synced()
        async with Tasks() as tasks:
            self._tasks = tasks
            for number in range(self._workers):
                tasks.spawn(self._work(), name=f"{self._name} {number}")

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            if crash_guard.on_turn is not None:
                crash_guard.on_turn(self._name, key)
            try:
                await self._sync(key)
            except (StatusError, ConnectionLost, Retry) as error:
                log.debug("%s: %s: %s", self._name, key, error)
                self._again(key, error)
            except Exception as error:
                crash_guard.caught(self._name, key, error)
                self._again(key, error)
                self._tell(key, error)
            else:
                self.queue.forget(key)
            finally:
                self.queue.done(key)

    def _again(self, key: str, error: Exception) -> None:
        if self._max_retries is not None and self.queue.num_requeues(key) >= self._max_retries:
            log.warning("%s: dropping %s out of the queue: %s", self._name, key, crash_guard.text_of(error))
            self.queue.forget(key)
        else:
            self.queue.add_rate_limited(key)

    def _tell(self, key: str, error: Exception) -> None:
        obj = self._objects.get(*split_key(key) if "/" in key else ("", key)) if self._objects is not None else None
        if obj is not None and (events := self._recorder()) is not None:
            tell_of_fault(events, obj, error)

    def _recorder(self) -> EventRecorder | None:
        """What Events are written by; that of a controller without any is made with its first fault."""
        if self._events is None and self._client is not None and self._tasks is not None:
            self._events = EventRecorder(self._client, self._world, self._name)
            self._tasks.spawn(self._events.run(), name=f"{self._name} events")
        return self._events


def split_key(key: str) -> tuple[str, str]:
    """Split `namespace/name` into (namespace, name)."""
    namespace, _, name = key.partition("/")
    return namespace, name
