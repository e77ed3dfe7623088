"""The Pods that are followed: when the end of one begins, how it goes on, and when its story is over."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple, Protocol

from lastcall.endings import PodFacts, pod_facts
from lastcall.kube.api import PODS, Object, StatusError, is_not_found, name_of, namespace_of, uid_of
from lastcall.kube.client import Client, ConnectionLost
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace import pods
from lastcall.trace.following.around import RelatedObjects
from lastcall.trace.following.events import EventIndex
from lastcall.trace.following.output import LogReader
from lastcall.trace.following.restarts import RestartWatch
from lastcall.trace.following.slices import EndpointTracker
from lastcall.trace.following.state import Remembered, SharedState
from lastcall.trace.node_agent.job import is_agents_own
from lastcall.trace.pod_timeline import Moment, PodTimeline
from lastcall.trace.scope import Scope
from lastcall.trace.stamps import SECOND, stamp_ns
from lastcall.trace.stops import waits_for_time
from lastcall.world.dataclass import dataclass

TICK_SECONDS = 0.25
LINGER_NS = SECOND
"""After the object is gone: Events, slices and the last lines come by other ways, a little late."""
SETTLE_NS = 2 * SECOND
"""A Pod that ended by itself is reported after this time, so that what follows at once belongs to it."""
STREAMS_NS = 10 * SECOND
"""How long containers that outlive their object are listened to."""


class NodeSide(Protocol):
    """What looks at nodes for us: `lastcall.trace.node_agent.agents.NodeAgents`."""

    def pod(self, pod: Object) -> None: ...

    def gone(self, uid: str) -> None: ...


class TrackedPod(NamedTuple):
    """All that is kept of a Pod that does not end."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Handlers:
    """What comes of a Pod by other ways than its own watch. `foreign` are records from elsewhere."""

    event_index: EventIndex
    slices: EndpointTracker
    around: RelatedObjects
    output: LogReader | None
    restarts: RestartWatch | None
    foreign: Remembered[Record]

    def begin(self, timeline: PodTimeline, now: Moment) -> None:
        """Begin the end of a Pod: what came before it, and is of it, is written down."""
        for record in self.foreign.pop(timeline.uid, ()):
            timeline.add(record)
        self.event_index.begin(timeline)
        self.slices.begin(timeline, now)
        self.around.begin(timeline, now)


@dataclass(frozen=True, slots=True)
class Listeners:
    """`begins` hears of a Pod before the first record of its end, `over` of a story that is complete, `listed` that a
    list was complete; `note` of what a waiting user should know."""

    begins: Callable[[PodFacts], None]
    over: Callable[[PodTimeline], None]
    listed: Callable[[], None]
    note: Callable[[str], None]


class PodTracker:
    """`past`: tell also Pods that had ended by themselves before (they are still there)."""

    def __init__(
        self,
        shared: SharedState,
        client: Client,
        scope: Scope,
        handlers: Handlers,
        listeners: Listeners,
        *,
        past: bool,
        node_side: NodeSide | None,
    ) -> None:
        self._shared = shared
        self._client = client
        self._scope = scope
        self._handlers = handlers
        self._listeners = listeners
        self._past = past
        self._node_side = node_side
        self._timelines = shared.timelines
        self._living: dict[str, TrackedPod] = {}
        self._natural: set[str] = set()
        """Pods that are there and whose story was reported, or is of before."""
        self._is_synced = False
        self._closing: dict[str, int] = {}

    def following(self) -> int:
        """Return how many Pods are there that are followed."""
        return len(self._living) + len(self._timelines)

    def name_of(self, uid: str) -> str:
        """Return `namespace/name` of a Pod that is there and followed, "" for another."""
        if (timeline := self._timelines.get(uid)) is not None:
            return f"{namespace_of(timeline.pod)}/{name_of(timeline.pod)}"
        pod = self._living.get(uid)
        return f"{pod.namespace}/{pod.name}" if pod is not None else ""

    def listed(self, items: Iterable[Object]) -> None:
        """Take all Pods that are there."""
        there = set()
        for pod in items:
            there.add(uid_of(pod))
            self._put(pod, first=not self._is_synced)
        for uid in [each for each in (*self._living, *self._timelines) if each not in there]:
            self._vanished(uid)
        self._natural &= there
        self._is_synced = True
        self._listeners.listed()

    def event(self, type_: str, pod: Object) -> None:
        """Take an event of the watch."""
        if type_ == "DELETED":
            self._deleted(pod)
            return
        if type_ == "ADDED":
            created = str(pod["metadata"].get("creationTimestamp") or "")
            self._shared.clocks.saw("", created, self._shared.now().wall_ns)
        self._put(pod, first=False)

    async def tick(self) -> None:
        """Go on with what time alone brings: the end of a hook that sleeps, the end of a story."""
        while True:
            await self._shared.world.clock.sleep(TICK_SECONDS)
            now = self._shared.now()
            for timeline in list(self._timelines.values()):
                if any(waits_for_time(stop) for stop in timeline.stops.values()):
                    timeline.advance(now)
            due = [uid for uid, at in self._closing.items() if at <= now.at_ns or self._is_quiet(uid, now)]
            for uid in due:
                del self._closing[uid]
                self._finish(self._timelines.pop(uid))

    def _put(self, pod: Object, *, first: bool) -> None:
        if is_agents_own(pod):
            return
        uid, now = uid_of(pod), self._shared.now()
        if self._node_side is not None and self._is_wanted(pod):
            self._node_side.pod(pod)
        timeline = self._timelines.get(uid)
        if timeline is not None:
            self._changed(timeline, pod, now)
            return
        is_deleted = bool(pods.deletion_of(pod)[0])
        if is_deleted or (pods.is_terminal(pod) and uid not in self._natural):
            if not self._is_wanted(pod):
                return
            if first and not is_deleted and not (self._past or self._scope.only_pods):
                self._natural.add(uid)
            elif not is_deleted or uid not in self._natural:
                self._begin(pod, now, late=first and is_deleted)
                return
        if uid not in self._natural:
            self._living[uid] = TrackedPod(namespace_of(pod), name_of(pod))
            if self._handlers.restarts is not None and self._is_wanted(pod):
                self._handlers.restarts.look(pod)

    def _begin(self, pod: Object, now: Moment, *, late: bool) -> PodTimeline:
        uid, shared = uid_of(pod), self._shared
        self._living.pop(uid, None)
        if self._handlers.restarts is not None:
            self._handlers.restarts.forget(uid)
        timeline = PodTimeline(pod, shared.clocks, shared.new_id, shared.on_record, now, first=pod, late=late)
        self._handlers.event_index.explain(timeline)
        self._timelines[uid] = timeline
        self._listeners.begins(pod_facts(pod))
        timestamp, grace = pods.deletion_of(pod)
        if timestamp:
            accepted = pods.deleted(pod)
            if late:
                accepted = replace(accepted, evidence="inferred", at_ns=self._deleted_at(timestamp, grace, now))
            else:
                made = stamp_ns(timestamp)
                if made is not None:
                    shared.clocks.saw_ns("", made - (grace or 0) * SECOND, now.wall_ns)
            timeline.write(accepted, now)
        self._handlers.begin(timeline, now)
        if grace == 0 and timestamp and pod["metadata"].get("finalizers"):
            for each in pods.changes({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": None}}, pod):
                if each.kind == kinds.HELD_BY_FINALIZERS:
                    timeline.write(each, now)
        if pods.is_terminal(pod) and not timestamp:
            timeline.write(pods.status_written(pod), now)
        self._settle(timeline, now)
        if late or any(int(each.get("restartCount") or 0) for each in pods.statuses_of(pod).values()):
            self._handlers.event_index.ask(timeline)
        if self._handlers.output is not None:
            self._handlers.output.begin(timeline, now)
        return timeline

    def _deleted_at(self, timestamp: str, grace: int | None, now: Moment) -> int:
        """When the DELETE of a deletionTimestamp was accepted, on our monotonic clock."""
        wall = self._shared.clocks.ours("", timestamp)
        if wall is None:
            return now.at_ns
        return min(now.at_ns, now.at_ns - (now.wall_ns - (wall - (grace or 0) * SECOND)))

    def _changed(self, timeline: PodTimeline, pod: Object, now: Moment) -> None:
        old, timeline.pod = timeline.pod, pod
        for each in pods.changes(old, pod):
            if each.kind == kinds.DELETE_ACCEPTED:
                self._closing.pop(timeline.uid, None)
            timeline.write(each, now)
        self._settle(timeline, now)

    def _settle(self, timeline: PodTimeline, now: Moment) -> None:
        """A Pod that ended by itself is over, unless it is deleted right then."""
        if pods.is_terminal(timeline.pod) and timeline.deleted_ns is None:
            self._closing.setdefault(timeline.uid, now.at_ns + SETTLE_NS)

    def _deleted(self, pod: Object) -> None:
        if is_agents_own(pod):
            return
        uid, now = uid_of(pod), self._shared.now()
        was_natural = uid in self._natural
        self._natural.discard(uid)
        timeline = self._timelines.get(uid)
        if timeline is None:
            self._living.pop(uid, None)
            if was_natural or not self._is_wanted(pod):
                self._leave(uid)
                return
            if self._scope.selector and not pods.deletion_of(pod)[0]:
                self._shared.spawn(self._check_gone(pod), f"look for {name_of(pod)}")
                return
            timeline = self._begin_at_once(pod, now)
        else:
            self._changed(timeline, pod, now)
        self._gone(timeline, now, seen=True)

    def _begin_at_once(self, pod: Object, now: Moment) -> PodTimeline:
        """Deleted with grace period 0: the watch shows nothing but the end of the object."""
        if not pods.deletion_of(pod)[0]:
            meta = {**pod["metadata"], "deletionTimestamp": "", "deletionGracePeriodSeconds": 0}
            timeline = self._begin({**pod, "metadata": meta}, now, late=False)
            timeline.write(pods.deleted(timeline.pod), now)
            return timeline
        return self._begin(pod, now, late=False)

    async def _check_gone(self, pod: Object) -> None:
        """With a selector DELETED may mean that the labels do not match any more."""
        try:
            there = await self._client.get(PODS, name_of(pod), namespace_of(pod))
        except StatusError as error:
            if not is_not_found(error):
                return
        except ConnectionLost:
            return
        else:
            if uid_of(there) == uid_of(pod):
                return
        now = self._shared.now()
        self._gone(self._begin_at_once(pod, now), now, seen=True)

    def _vanished(self, uid: str) -> None:
        """A list does not have it any more: it went while no watch was open."""
        now = self._shared.now()
        timeline = self._timelines.get(uid)
        if timeline is not None:
            self._gone(timeline, now, seen=False)
            return
        self._leave(uid)
        living = self._living.pop(uid)
        self._listeners.note(
            f"Pod {living.namespace}/{living.name} disappeared while the watch was interrupted: its end was not seen."
        )

    def _gone(self, timeline: PodTimeline, now: Moment, *, seen: bool) -> None:
        for each in pods.removed(timeline.pod, seen=seen):
            timeline.write(each, now)
        timeline.gone = now
        if not seen:
            timeline.not_shown.setdefault(
                "It went while the watch was interrupted: how its end went on was not seen.", "gap"
            )
        runs_on = not pods.all_ended(timeline.pod) and self._is_heard(timeline.uid)
        wait = 0 if self._is_audited(timeline) else self._shared.audit_wait_ns
        self._closing[timeline.uid] = now.at_ns + max(STREAMS_NS if runs_on else LINGER_NS, wait)

    def _is_quiet(self, uid: str, now: Moment) -> bool:
        timeline = self._timelines[uid]
        if timeline.gone is None or self._is_heard(uid) or now.at_ns - timeline.gone.at_ns < LINGER_NS:
            return False
        return self._is_audited(timeline)

    def _is_audited(self, timeline: PodTimeline) -> bool:
        """Whether the audit log has the request that deleted a Pod, or none is read."""
        audit = self._shared.audit
        accepted = next((each for each in timeline.records if each.kind == kinds.DELETE_ACCEPTED), None)
        return audit is None or accepted is None or audit.deletion(timeline.pod, accepted) is not None

    def _is_heard(self, uid: str) -> bool:
        return self._handlers.output is not None and self._handlers.output.listens(uid)

    def _leave(self, uid: str) -> None:
        if self._handlers.restarts is not None:
            self._handlers.restarts.forget(uid)
        if self._node_side is not None:
            self._node_side.gone(uid)

    def _finish(self, timeline: PodTimeline) -> None:
        self._leave(timeline.uid)
        if timeline.gone is None:
            self._natural.add(timeline.uid)
        self._listeners.over(timeline)

    def _is_wanted(self, pod: Object) -> bool:
        if not self._scope.targets:
            return True
        names = {("Pod", name_of(pod)), ("Node", str((pod.get("spec") or {}).get("nodeName") or ""))}
        owner = pods.controller_of(pod)
        names.add((str(owner.get("kind")), str(owner.get("name"))))
        names |= {(each.kind, each.name) for each in self._shared.cluster.chain(str(owner.get("uid") or ""))}
        return any((each.kind, each.name) in names for each in self._scope.targets)
