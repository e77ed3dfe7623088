"""The Pod lifecycle event generator: what the runtime does, as Pod statuses and events (kubelet pleg/,
container/cache.go).

It is fed by the runtime's event stream; every event has its Pod listed anew at once. Anyone who needs a status newer
than a moment has the Pod listed on demand. So the order of things is the kubelet's (a worker acts on nothing older than
its own last call) without the kubelet's one second of waiting. A full listing every `RELIST_SECONDS` catches what a
lost event would hide.

"Newer" is counted in ticks, not in clock time: a tick is given to every reading when it begins, and to everyone who
asks for `now`. Two things that happen at one instant (in virtual time nearly all do) keep their order.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from enum import StrEnum

from lastcall.kube.cri.api import ContainerState, PodSandboxState, RuntimeService, RuntimeServiceError
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.runtime_pod import make_pod_status, pods_in_runtime
from lastcall.world import crash_guard
from lastcall.world.counting import Family, Histogram
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

RELIST_SECONDS = 300.0
"""Full listing while the event stream works (kubelet.go: 300 s with Evented PLEG)."""
RESUBSCRIBE_SECONDS = 0.1
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""(prometheus.DefBuckets)"""

log = logging.getLogger(__name__)

COMPONENT = "kubelet PLEG"


class PodLifecycleEventType(StrEnum):
    CONTAINER_STARTED = "ContainerStarted"
    CONTAINER_DIED = "ContainerDied"
    CONTAINER_REMOVED = "ContainerRemoved"
    CONTAINER_CHANGED = "ContainerChanged"


@dataclass(frozen=True, slots=True)
class PodLifecycleEvent:
    """`id` is a container or sandbox id."""

    uid: str
    type: PodLifecycleEventType
    id: str


class _Seen(StrEnum):
    """States that matter for events (generic.go:plegContainerState)."""

    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"
    NON_EXISTENT = "non-existent"


_CONTAINER_STATES = {
    ContainerState.CONTAINER_CREATED: _Seen.UNKNOWN,
    ContainerState.CONTAINER_RUNNING: _Seen.RUNNING,
    ContainerState.CONTAINER_EXITED: _Seen.EXITED,
    ContainerState.CONTAINER_UNKNOWN: _Seen.UNKNOWN,
}
_SANDBOX_STATES = {
    PodSandboxState.SANDBOX_READY: _Seen.RUNNING,
    PodSandboxState.SANDBOX_NOTREADY: _Seen.EXITED,
}


def generate_events(uid: str, old: PodStatus | None, new: PodStatus | None) -> list[PodLifecycleEvent]:
    """Return what changed between two listings of a Pod (generic.go:generateEvents); containers, then sandboxes."""
    before, after = _states(old), _states(new)
    earlier_notes, notes = _info(old), _info(new)
    events: list[PodLifecycleEvent] = []
    for each in dict.fromkeys((*before, *after)):
        was, state = before.get(each, _Seen.NON_EXISTENT), after.get(each, _Seen.NON_EXISTENT)
        if was is state:
            if notes.get(each) != earlier_notes.get(each):
                events.append(PodLifecycleEvent(uid, PodLifecycleEventType.CONTAINER_CHANGED, each))
            continue
        if state is _Seen.RUNNING:
            events.append(PodLifecycleEvent(uid, PodLifecycleEventType.CONTAINER_STARTED, each))
        elif state is _Seen.EXITED:
            events.append(PodLifecycleEvent(uid, PodLifecycleEventType.CONTAINER_DIED, each))
        elif state is _Seen.UNKNOWN:
            events.append(PodLifecycleEvent(uid, PodLifecycleEventType.CONTAINER_CHANGED, each))
        else:
            if was is not _Seen.EXITED:
                events.append(PodLifecycleEvent(uid, PodLifecycleEventType.CONTAINER_DIED, each))
            events.append(PodLifecycleEvent(uid, PodLifecycleEventType.CONTAINER_REMOVED, each))
    return events


def _states(status: PodStatus | None) -> dict[str, _Seen]:
    if status is None:
        return {}
    states = {c.id: _CONTAINER_STATES[c.state] for c in status.container_statuses}
    return states | {s.id: _SANDBOX_STATES[s.state] for s in status.sandbox_statuses}


def _info(status: PodStatus | None) -> dict[str, dict[str, str]]:
    return {} if status is None else {c.id: c.info for c in status.container_statuses}


@dataclass(slots=True)
class _Entry:
    status: PodStatus
    read_at: int


class PodLifecycleEventGenerator:
    """The cache of Pod statuses and the one who keeps it. `on_events` is called with the events of one Pod."""

    def __init__(
        self, world: World, runtime: RuntimeService, on_events: Callable[[list[PodLifecycleEvent]], None]
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._on_events = on_events
        self._entries: dict[str, _Entry] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._tick = 0
        self._relists, self._intervals = Histogram(SECONDS), Histogram(SECONDS)
        self._relisted_ns = 0

    # -- the cache ------------------------------------------------------------------------------------------------

    def get(self, uid: str) -> PodStatus | None:
        """Return what was last read; None for a Pod the runtime does not have."""
        entry = self._entries.get(uid)
        return entry.status if entry else None

    def now(self) -> int:
        """Return a tick later than every reading begun so far and earlier than every later one."""
        self._tick += 1
        return self._tick

    def refreshed_at(self, uid: str) -> int:
        """Return the tick at which the last reading began, 0 for none."""
        entry = self._entries.get(uid)
        return entry.read_at if entry else 0

    def known_uids(self) -> list[str]:
        return list(self._entries)

    async def get_newer_than(self, uid: str, name: str, namespace: str, minimum: int) -> PodStatus:
        """Return a status whose reading began at or after `minimum`. Raises RuntimeServiceError."""
        entry = self._entries.get(uid)
        if entry is not None and entry.read_at >= minimum:
            return entry.status
        return await self.refresh(uid, name, namespace, minimum)

    async def refresh(self, uid: str, name: str, namespace: str, minimum: int | None = None) -> PodStatus:
        """Ask the runtime about one Pod (generic.go:updateCache). Raises RuntimeServiceError.

        Readings of one Pod do not overlap; callers that waited for a reading that began late enough share its answer.
        """
        wanted = self.now() if minimum is None else minimum
        async with self._locks.setdefault(uid, asyncio.Lock()):
            entry = self._entries.get(uid)
            if entry is not None and entry.read_at >= wanted:
                return entry.status
            read_at = self.now()
            sandboxes = await self._runtime.list_pod_sandbox(uid)
            containers = await self._runtime.list_containers(uid)
            previous = entry.status if entry else None
            if not name and sandboxes:
                name, namespace = sandboxes[0].metadata.name, sandboxes[0].metadata.namespace
            status = make_pod_status(uid, name, namespace, sandboxes, containers, previous.ips if previous else ())
            self._entries[uid] = _Entry(status, read_at)
        self._tell(generate_events(uid, previous, status))
        return status

    def forget(self, uid: str) -> None:
        """Forget a Pod that is gone from configuration and runtime."""
        self._entries.pop(uid, None)
        self._locks.pop(uid, None)

    # -- listing --------------------------------------------------------------------------------------------------

    async def relist(self) -> None:
        """Read all Pods of the runtime (generic.go:Relist). Raises RuntimeServiceError."""
        read_at = self.now()
        began = self._world.clock.monotonic_ns()
        if self._relisted_ns:
            self._intervals.observe((began - self._relisted_ns) / 1e9)
        self._relisted_ns = began
        found = pods_in_runtime(await self._runtime.list_pod_sandbox(), await self._runtime.list_containers())
        for uid in dict.fromkeys((*self._entries, *found)):
            with crash_guard.Turn(COMPONENT, uid):
                self._listed(uid, found.get(uid), read_at)
        self._relists.observe((self._world.clock.monotonic_ns() - began) / 1e9)

    def families(self) -> Iterator[Family]:
        """Yield the counts (pkg/kubelet/metrics/metrics.go)."""
        yield "kubelet_pleg_relist_duration_seconds", [({}, self._relists)]
        yield "kubelet_pleg_relist_interval_seconds", [({}, self._intervals)]
        since = (self._world.clock.monotonic_ns() - self._relisted_ns) / 1e9
        yield "kubelet_pleg_last_seen_seconds", [({}, int(self._world.clock.wall_ns() / 1e9 - since))]

    def _listed(self, uid: str, status: PodStatus | None, read_at: int) -> None:
        entry = self._entries.get(uid)
        if entry is not None and entry.read_at > read_at:
            return
        previous = entry.status if entry else None
        if status is not None:
            status = make_pod_status(
                uid,
                status.name,
                status.namespace,
                list(status.sandbox_statuses),
                list(status.container_statuses),
                previous.ips if previous else (),
            )
            self._entries[uid] = _Entry(status, read_at)
        elif previous is not None:
            self._entries[uid] = _Entry(PodStatus(uid, previous.name, previous.namespace, previous.ips), read_at)
        self._tell(generate_events(uid, previous, status))

    async def run(self) -> None:
        """Follow the runtime until cancelled."""
        async with Tasks() as tasks:
            events = crash_guard.keep_running(COMPONENT, lambda: self._follow_events(tasks), self._world.clock)
            tasks.spawn(events, name="pleg events")
            tasks.spawn(
                crash_guard.keep_running(COMPONENT, self._relist_regularly, self._world.clock), name="pleg relist"
            )

    async def _follow_events(self, tasks: Tasks) -> None:
        while True:
            try:
                async for event in self._runtime.get_container_events():
                    look = crash_guard.guarded(COMPONENT, event.pod_uid, self._on_container_event(event.pod_uid))
                    tasks.spawn(look, name=f"pleg {event.pod_uid}")
            except RuntimeServiceError as error:
                log.warning("the stream of container events broke: %s", error)
            await self._world.clock.sleep(RESUBSCRIBE_SECONDS)
            await self._try_relist()

    async def _on_container_event(self, uid: str) -> None:
        entry = self._entries.get(uid)
        name, namespace = (entry.status.name, entry.status.namespace) if entry else ("", "")
        try:
            await self.refresh(uid, name, namespace)
        except RuntimeServiceError as error:
            log.warning("pod %s: reading its status failed: %s", uid, error)

    async def _relist_regularly(self) -> None:
        while True:
            await self._world.clock.sleep(RELIST_SECONDS)
            await self._try_relist()

    async def _try_relist(self) -> None:
        try:
            await self.relist()
        except RuntimeServiceError as error:
            log.warning("listing the runtime's Pods failed: %s", error)

    def _tell(self, events: list[PodLifecycleEvent]) -> None:
        if events:
            with crash_guard.Turn(COMPONENT, events[0].uid):  # the reader of a status is not the one that fails on it
                self._on_events(events)
