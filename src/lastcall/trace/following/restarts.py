"""Pods that live on while their containers are restarted: each restart is the end of a run, with a story of its own."""

from collections.abc import Callable

from lastcall.kube.api import Object, StatusError, name_of, namespace_of, uid_of
from lastcall.kube.client import Client, ConnectionLost
from lastcall.records import kinds
from lastcall.trace import pods
from lastcall.trace.drafts import Draft
from lastcall.trace.following.events import EventIndex
from lastcall.trace.following.state import SharedState
from lastcall.trace.logs import MAX_LINE
from lastcall.trace.pod_timeline import PodTimeline

SETTLE_SECONDS = 2.0
"""The Events about a restart come a little after the status that shows it."""
LAST_LINES = 10


class RestartWatch:
    """`over` hears of the story of a Pod that lives on after a restart. `logs`: read what the run before printed."""

    def __init__(
        self,
        shared: SharedState,
        client: Client,
        events: EventIndex,
        over: Callable[[PodTimeline], None],
        *,
        logs: bool,
    ) -> None:
        self._shared, self._client, self._events, self._over = shared, client, events, over
        self._logs = logs and hasattr(client, "pod_log")
        self._counts: dict[str, dict[str, int]] = {}
        """Uid of a Pod → restarts of each container."""

    def look(self, pod: Object) -> None:
        """Compare a state of a Pod that lives with the one before."""
        uid = uid_of(pod)
        counts = {name: int(each.get("restartCount") or 0) for name, each in pods.statuses_of(pod).items()}
        before, self._counts[uid] = self._counts.get(uid), counts
        restarted = [name for name, count in counts.items() if count > (before or counts).get(name, 0)]
        if restarted:
            self._shared.spawn(self._tell(pod, restarted), f"restart in {name_of(pod)}")

    def forget(self, uid: str) -> None:
        self._counts.pop(uid, None)

    async def _tell(self, pod: Object, restarted: list[str]) -> None:
        shared = self._shared
        timeline = PodTimeline(pod, shared.clocks, shared.new_id, lambda record: None, shared.now(), first=pod)
        await shared.world.clock.sleep(SETTLE_SECONDS)
        await self._events.recall(timeline)
        for name in restarted if self._logs else ():
            await self._last_lines(timeline, name)
        if timeline.uid not in shared.timelines:  # else its own end has begun, and its story has this
            self._over(timeline)

    async def _last_lines(self, timeline: PodTimeline, container: str) -> None:
        """Add what the run before printed last, right before its end."""
        now, pod, text = self._shared.now(), timeline.pod, b""
        ends = [r.at_ns for r in timeline.past(now) if r.kind == kinds.PROCESS_EXITED and r.container == container]
        if not ends:
            return
        try:
            stream = self._client.pod_log(  # type: ignore[attr-defined]  # __init__ has looked
                namespace_of(pod), name_of(pod), container, previous=True, tail_lines=LAST_LINES, limit_bytes=1 << 16
            )
            async for chunk in stream:
                text += chunk
        except (StatusError, ConnectionLost):
            return
        lines = text.decode("utf-8", "replace").splitlines()[-LAST_LINES:]
        for place, line in enumerate(lines):
            facts = {"stream": "stdout", "text": line[:MAX_LINE], "attempt": 0}
            at_ns = max(ends) - len(lines) + place
            timeline.write(Draft(kinds.OUTPUT, facts, "container", container, at_ns=at_ns), now)
