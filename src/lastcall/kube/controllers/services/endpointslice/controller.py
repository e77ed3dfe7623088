"""The EndpointSlice controller: keeps the slices of every Service with a selector in step with its Pods.

Source: pkg/controller/endpointslice/endpointslice_controller.go. The rules are in `decide`; this is
the loop around them. Two things differ, the outcome does not: a cache of our own writes takes the place of waiting for
the informer to catch up (the original fails the sync and retries), and the slices of a Service that is gone are
deleted here, as the garbage collector would by their ownerReference.
"""

# check: observes because it wrote the slices
# check: many attributes EndpointSliceController because it joins four caches and times each batch

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import (
    AnyObject,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from lastcall.kube.api.resources import ENDPOINTSLICES
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.events import EventRecorder, tell_of_fault
from lastcall.kube.client.informer import Informer
from lastcall.kube.client.workqueue import RateLimit, WorkQueue
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.kube.controllers.informers import SELECTING, is_managed
from lastcall.kube.controllers.services.endpointslice.decide import (
    LABEL_MANAGED_BY,
    LABEL_SERVICE_NAME,
    MANAGED_BY,
    Memo,
    Plan,
    reconcile,
)
from lastcall.kube.controllers.services.endpointslice.triggers import (
    TriggerTimeTracker,
    pod_endpoints_changed,
    pod_membership_changed,
    selector_matches,
)
from lastcall.kube.controllers.worker import Retry, split_key
from lastcall.records import rules
from lastcall.records.kinds import ENDPOINT_CHANGED, ENDPOINT_REMOVED
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.service import Endpoint, EndpointSlice, Service
    from lastcall.records.definitions.endpointslice_controller import EndpointChanged, EndpointRemoved
    from lastcall.records.definitions.parts import InSlice

EVENT_SOURCE = "endpoint-slice-controller"
WORKERS = 5
MAX_RETRIES = 15
RETRIES = RateLimit(base_delay=1.0, max_delay=1000.0, per_second=10.0, burst=100)
SLICE_CHANGE_DELAY = 1.0
"""Seconds before another client's write to a slice is looked at."""
ASSUMED_SECONDS = 10.0
"""How long our own write replaces the cache; long after any watch has delivered it."""


EndpointId = tuple[str, str]
"""(Pod uid, address)."""


def index_by_service(slice_: EndpointSlice) -> tuple[str, ...]:
    """Return `namespace/service` of the slices this controller manages."""
    labels = labels_of(slice_)
    if labels.get(LABEL_MANAGED_BY) != MANAGED_BY or not labels.get(LABEL_SERVICE_NAME):
        return ()
    return (f"{namespace_of(slice_)}/{labels[LABEL_SERVICE_NAME]}",)


@dataclass(frozen=True, slots=True)
class _Assumed:
    """A slice as the server stored our write (None: we deleted it), and when (seconds, monotonic)."""

    uid: str
    slice: EndpointSlice | None
    at: float


class EndpointSliceController:
    """`pods` and `services` need the index "namespace", `slices` the index "service"; their maker runs them."""

    def __init__(
        self,
        *,
        world: World,
        client: Client,
        recorder: Recorder,
        pods: Informer[Pod],
        services: Informer[Service],
        slices: Informer[EndpointSlice],
        nodes: Informer[Node],
        batch_period: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`batch_period` (seconds, asked for each change of a Pod) is --endpoint-updates-batch-period."""
        self._batch_period = batch_period
        self._world = world
        self._client = client
        self._recorder = recorder
        self._events = EventRecorder(client, world, EVENT_SOURCE)
        self._pods = pods
        self._services = services
        self._slices = slices
        self._nodes = nodes
        self._queue: WorkQueue[str] = WorkQueue(world, RETRIES, "endpoint_slice")
        self._triggers = TriggerTimeTracker()
        self._assumed: dict[str, dict[str, _Assumed]] = {}
        self._memos: dict[str, Memo] = {}
        self._missing_nodes: dict[str, None] = {}
        self._gone_versions: dict[str, dict[str, str]] = {}
        services.add_handler(
            lambda service: self._queue.add(_key(service)),
            lambda _, service: self._queue.add(_key(service)),
            lambda service: self._queue.add(_key(service)),
        )
        pods.add_handler(self._pod_added, self._pod_updated, self._pod_deleted)
        slices.add_handler(None, lambda _, slice_: self._slice_changed(slice_), self._slice_deleted)
        nodes.add_handler(self._node_added)

    async def run(self) -> None:
        """Work until cancelled; starts when the four caches are filled."""
        for informer in (self._services, self._pods, self._slices, self._nodes):
            await informer.synced()
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name="endpointslice events")
            for number in range(WORKERS):
                tasks.spawn(self._work(), name=f"endpointslice worker {number}")

    # What happened -> which Services to look at

    def _services_of(self, pod: Pod) -> list[str]:
        labels = labels_of(pod)
        return [
            _key(service)
            for service in self._services.by_index(SELECTING, namespace_of(pod))
            if selector_matches(service["spec"].get("selector"), labels)
        ]

    def _pod_added(self, pod: Pod) -> None:
        for key in self._services_of(pod):
            self._queue.add_after(key, self._batch_period())

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if not self._services.has_any(SELECTING, namespace_of(new)):
            return
        changed = pod_endpoints_changed(old, new)
        moved = pod_membership_changed(old, new)
        if not changed and not moved:
            return
        after = self._services_of(new)
        before = self._services_of(old) if moved else after
        for key in dict.fromkeys((*before, *after)):
            if changed or (key in before) != (key in after):
                self._queue.add_after(key, self._batch_period())

    def _pod_deleted(self, pod: Pod) -> None:
        for key in self._services_of(pod):
            self._gone_versions.setdefault(key, {})[uid_of(pod)] = resource_version_of(pod)
            self._queue.add_after(key, self._batch_period())

    def _node_added(self, node: Node) -> None:
        waiting, self._missing_nodes = self._missing_nodes, {}
        for key in waiting:
            self._queue.add(key)

    def _slice_changed(self, slice_: EndpointSlice) -> None:
        for key in index_by_service(slice_):
            assumed = self._assumed.get(key, {}).get(name_of(slice_))
            if assumed is not None and (assumed.slice is None or not _is_newer(slice_, assumed.slice)):
                continue  # our own write comes back
            self._queue.add_after(key, SLICE_CHANGE_DELAY)

    def _slice_deleted(self, slice_: EndpointSlice) -> None:
        """Drop what we assumed of this slice. One that another client deleted is made again."""
        for key in index_by_service(slice_):
            assumed = self._assumed.get(key, {}).get(name_of(slice_))
            if assumed is not None and assumed.uid == uid_of(slice_):
                del self._assumed[key][name_of(slice_)]
                if assumed.slice is None:
                    continue  # we deleted it
            self._queue.add_after(key, SLICE_CHANGE_DELAY)

    # The work

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            if crash_guard.on_turn is not None:
                crash_guard.on_turn(EVENT_SOURCE, key)
            try:
                await self._sync(key)
            except (StatusError, ConnectionLost, Retry):
                self._again(key)
            except Exception as error:
                crash_guard.caught(EVENT_SOURCE, key, error)
                self._again(key)
                if (service := self._services.get(*split_key(key))) is not None:
                    tell_of_fault(self._events, service, error)
            else:
                self._queue.forget(key)
            finally:
                self._queue.done(key)

    def _again(self, key: str) -> None:
        if self._queue.num_requeues(key) < MAX_RETRIES:
            self._queue.add_rate_limited(key)
        else:
            self._queue.forget(key)

    async def _sync(self, key: str) -> None:
        namespace, name = key.split("/", 1)
        service = self._services.get(namespace, name)
        existing = self._existing(key)
        gone = dict(self._gone_versions.get(key, {}))
        if service is None:
            self._triggers.forget(key)
            self._memos.pop(key, None)
            orphans = [slice_ for slice_ in existing if _is_of_service(slice_, name)]
            await self._perform(key, Plan(deletes=orphans), orphans, gone)
            self._forget_gone(key, gone)
            return
        if not is_managed(service):
            return
        selector = service["spec"]["selector"]
        pods = [
            pod for pod in self._pods.by_index("namespace", namespace) if selector_matches(selector, labels_of(pod))
        ]
        trigger_time = self._triggers.compute(key, service, pods)
        live = [slice_ for slice_ in existing if not is_terminating(slice_)]
        memo = self._memos.setdefault(key, {})
        plan = reconcile(service, pods, live, lambda node: self._nodes.get("", node), trigger_time, memo)
        await self._perform(key, plan, live, gone)
        self._forget_gone(key, gone)
        if plan.missing_nodes:
            self._missing_nodes[key] = None
            self._tell_of_missing_nodes(service, plan.missing_nodes)

    def _tell_of_missing_nodes(self, service: Service, pods: list[str]) -> None:
        """The Node may come late, or be gone for good. Raises Retry."""
        where = f"{namespace_of(service)}/{name_of(service)}"
        errors = []
        for name in pods:
            pod = self._pods.get(namespace_of(service), name)
            node = "" if pod is None else pod["spec"].get("nodeName", "")
            errors.append(f"skipping Pod {name} for Service {where}: Node {node} Not Found")
        text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        message = f"Error updating Endpoint Slices for Service {where}: {text}"
        self._events.event(service, "Warning", "FailedToUpdateEndpointSlices", message)
        raise Retry(message)

    def _forget_gone(self, key: str, written: dict[str, str]) -> None:
        """Forget the removals in `written`; Pods that went meanwhile stay noted for the next sync."""
        left = {uid: version for uid, version in self._gone_versions.pop(key, {}).items() if uid not in written}
        if left:
            self._gone_versions[key] = left

    async def _perform(self, key: str, plan: Plan, existing: list[EndpointSlice], gone: dict[str, str]) -> None:
        if not (plan.creates or plan.updates or plan.deletes):
            return
        namespace, service_name = key.split("/", 1)
        versions = self._versions(namespace, plan, existing, gone)
        before = {uid_of(slice_): _endpoints(slice_) for slice_ in existing}
        touched = {uid_of(slice_) for slice_ in (*plan.updates, *plan.deletes)}
        after: dict[EndpointId, Endpoint] = {}
        for slice_ in (*plan.creates, *plan.updates, *(s for s in existing if uid_of(s) not in touched)):
            after.update(_endpoints(slice_))
        for slice_ in plan.creates:
            try:
                stored = cast("EndpointSlice", await self._client.create(ENDPOINTSLICES, slice_, namespace))
            except StatusError as error:
                if namespace_is_terminating(error):
                    return
                raise
            self._assume(key, name_of(stored), uid_of(stored), stored)
            self._record(service_name, stored, {}, after, versions)
        for slice_ in plan.updates:
            try:
                stored = cast("EndpointSlice", await self._client.update(ENDPOINTSLICES, slice_, namespace))
            except StatusError:
                # Another client has changed it: our picture of this slice is worth nothing any more.
                self._assumed.get(key, {}).pop(name_of(slice_), None)
                raise
            self._assume(key, name_of(stored), uid_of(stored), stored)
            self._record(service_name, stored, before.get(uid_of(slice_), {}), after, versions)
        for slice_ in plan.deletes:
            try:
                await self._client.delete(ENDPOINTSLICES, name_of(slice_), namespace, uid=uid_of(slice_))
            except StatusError as error:
                if not is_not_found(error) and error.code != 409:
                    raise
            self._assume(key, name_of(slice_), uid_of(slice_), None)
            self._record(service_name, {**slice_, "endpoints": None}, before.get(uid_of(slice_), {}), after, versions)

    def _versions(
        self, namespace: str, plan: Plan, existing: list[EndpointSlice], gone: dict[str, str]
    ) -> dict[str, str]:
        """By Pod uid, the version each Pod has that this plan reacts to; taken before the writes let others in."""
        versions: dict[str, str] = {}
        for slice_ in (*existing, *plan.creates, *plan.updates):
            for endpoint in slice_.get("endpoints") or ():
                reference = endpoint.get("targetRef") or {}
                pod = self._pods.get(namespace, reference.get("name", ""))
                if pod is not None:
                    versions[uid_of(pod)] = resource_version_of(pod)
        return versions | gone

    def _record(
        self,
        service: str,
        stored: EndpointSlice,
        before: dict[EndpointId, Endpoint],
        after: dict[EndpointId, Endpoint],
        versions: dict[str, str],
    ) -> None:
        """One record for each endpoint that this write changed or removed."""
        common: InSlice = {"service": service, "slice": name_of(stored), "resourceVersion": resource_version_of(stored)}
        written = _endpoints(stored)
        for (uid, address), endpoint in written.items():
            conditions = endpoint["conditions"]
            if before.get((uid, address), {}).get("conditions") != conditions:
                changed: EndpointChanged = {
                    **common,
                    "address": address,
                    "ready": conditions["ready"],
                    "serving": conditions["serving"],
                    "terminating": conditions["terminating"],
                    "observedResourceVersion": versions.get(uid, ""),
                }
                self._recorder.record(ENDPOINT_CHANGED, pod_uid=uid, rule=rules.POD_TO_ENDPOINT, facts=changed)
        for uid, address in before:
            if (uid, address) not in written and (uid, address) not in after:
                removed: EndpointRemoved = {
                    **common,
                    "address": address,
                    "observedResourceVersion": versions.get(uid, ""),
                }
                self._recorder.record(
                    ENDPOINT_REMOVED, pod_uid=uid, rule=rules.SHOULD_POD_BE_IN_ENDPOINTS, facts=removed
                )

    # Our own writes, until the cache has them

    def _assume(self, key: str, name: str, uid: str, stored: EndpointSlice | None) -> None:
        self._assumed.setdefault(key, {})[name] = _Assumed(uid, stored, monotonic(self._world.clock))

    def _existing(self, key: str) -> list[EndpointSlice]:
        """The managed slices of a Service: the cache, overlaid with what we wrote and it does not show yet."""
        horizon = monotonic(self._world.clock) - ASSUMED_SECONDS
        cached = {name_of(slice_): slice_ for slice_ in self._slices.by_index("service", key)}
        assumed = self._assumed.get(key, {})
        for name, entry in list(assumed.items()):
            shown = cached.get(name)
            caught_up = (
                shown is None if entry.slice is None else shown is not None and not _is_newer(entry.slice, shown)
            )
            if entry.at < horizon or caught_up:
                del assumed[name]
            elif entry.slice is not None:
                cached[name] = entry.slice
                if shown is None:  # or gone before the answer to our create came: then nothing else will tell
                    self._queue.add_after(key, ASSUMED_SECONDS)
            elif shown is not None and uid_of(shown) == entry.uid:
                del cached[name]
        if not assumed:
            self._assumed.pop(key, None)
        return list(cached.values())


def _key(obj: AnyObject) -> str:
    return f"{namespace_of(obj)}/{name_of(obj)}"


def _endpoints(slice_: EndpointSlice) -> dict[EndpointId, Endpoint]:
    found: dict[EndpointId, Endpoint] = {}
    for endpoint in slice_.get("endpoints") or ():
        uid = (endpoint.get("targetRef") or {}).get("uid", "")
        found[(uid, endpoint["addresses"][0])] = endpoint
    return found


def _is_of_service(slice_: EndpointSlice, service: str) -> bool:
    references = slice_["metadata"].get("ownerReferences") or ()
    return any(r.get("controller") and r.get("kind") == "Service" and r.get("name") == service for r in references)


def _is_newer(one: AnyObject, other: AnyObject) -> bool:
    try:
        return int(resource_version_of(one)) > int(resource_version_of(other))
    except ValueError:
        return resource_version_of(one) != resource_version_of(other)
