"""Events: what nodes and controllers say of Pods that are ending, and what they had said before."""

from collections.abc import Callable
from dataclasses import replace

from lastcall.endings import fix
from lastcall.kube.api import EVENTS, Object, StatusError, name_of, namespace_of, uid_of
from lastcall.kube.client import Client, ConnectionLost
from lastcall.trace import pods
from lastcall.trace.events import PodEvent, names_job, names_pod, pod_event_of, refusing_webhook, rescaled, steps_of
from lastcall.trace.following.state import Remembered, SharedState
from lastcall.trace.pod_timeline import Moment, PodTimeline


class EventIndex:
    """`on_refused` hears of a request that is not allowed, `on_note` of what a waiting user should know."""

    def __init__(
        self,
        shared: SharedState,
        client: Client,
        on_refused: Callable[[StatusError], None],
        on_note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._shared = shared
        self._client = client
        self._on_refused = on_refused
        self._on_note = on_note
        self._noted: set[tuple[str, str]] = set()
        self._before: Remembered[tuple[PodEvent, Moment]] = Remembered()
        self._since: int | None = None

    def whole_from_now(self) -> None:
        """Note that every Event from now on is known: the watch has begun, or has begun again after a gap."""
        self._since = self._shared.now().at_ns

    def event(self, type_: str, obj: Object) -> None:
        """Take an event of the watch."""
        event = pod_event_of(obj) if type_ != "DELETED" else None
        if event is None:
            return
        now = self._shared.now()
        if event.node:
            self._shared.clocks.saw(event.node, event.stamp, now.wall_ns)
        if webhook := refusing_webhook(event):
            self._note_refusal(event, webhook)
            return
        if job := names_job(event):
            self._shared.cluster.job_replaced(event.of_uid, event.name, job, now)
        elif scaled := rescaled(event):
            self._shared.cluster.autoscalers.said(event.of_uid, *scaled, now)
            return
        elif named := names_pod(event):
            self._before.remember(f"{event.of_uid}/{named}", (event, now))
            return
        timeline = self._shared.timelines.get(event.of_uid)
        if timeline is None:
            self._before.remember(event.of_uid, (event, now))
        else:
            self._write(timeline, event, now)

    def _note_refusal(self, event: PodEvent, webhook: str) -> None:
        """Once for each owner and webhook: the controller tries again and again."""
        if (event.of_uid, webhook) in self._noted:
            return
        self._noted.add((event.of_uid, webhook))
        owner = f"{event.of_kind} {event.namespace}/{event.name}"
        self._on_note(f"{owner} cannot delete its Pods: {event.message}")
        self._on_note(f"fix: {fix('deleteRefused', 'webhook', webhook=webhook)}")

    def begin(self, timeline: PodTimeline) -> None:
        """Begin the end of a Pod: what was said of it until now is written, before anything else is written."""
        for event, at in self._before.pop(timeline.uid, ()):
            self._write(timeline, event, at)

    def explain(self, timeline: PodTimeline) -> None:
        timeline.explained_from_ns = self._since

    def ask(self, timeline: PodTimeline) -> None:
        """Ask for the Events of before: of a Pod that was followed late, or had been restarted."""
        self._shared.spawn(self.recall(timeline), f"events of {name_of(timeline.pod)}")

    def of_owner(self, pod: Object) -> list[PodEvent]:
        """Return what was said of it and, by its owner, about it."""
        key = f"{pods.controller_of(pod).get('uid')}/{name_of(pod)}"
        mine = [event for event, _ in self._before.get(uid_of(pod), ())]
        return [*mine, *(event for event, _ in self._before.get(key, ()))]

    async def recall(self, timeline: PodTimeline) -> None:
        """Ask for the Events of a Pod, and write them down."""
        try:
            found = await self._client.list(
                EVENTS, namespace_of(timeline.pod), field_selector=f"involvedObject.uid={timeline.uid}"
            )
        except StatusError as error:
            if error.code in (401, 403):
                self._on_refused(error)
            return
        except ConnectionLost:
            return
        timeline.explained_from_ns = 0
        now = self._shared.now()
        known = sorted(filter(None, map(pod_event_of, found.items)), key=lambda each: each.stamp)
        for event in known:
            if event.of_kind == "Pod":
                self._write(timeline, event, now)

    def _write(self, timeline: PodTimeline, event: PodEvent, at: Moment) -> None:
        if timeline.is_past(event, at):
            timeline.history.append((event, at))
            return
        timeline.event(event, at)
        for each in steps_of(event):
            if timeline.is_new(each):
                timeline.write(replace(each, at_ns=at.at_ns), at)
