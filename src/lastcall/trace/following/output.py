"""What containers print from the DELETE on: a stream of the log for each, as many at once as `logs` allows."""

from collections import Counter
from collections.abc import Callable

from lastcall.kube.api import StatusError, name_of, namespace_of
from lastcall.kube.client import Client, ConnectionLost
from lastcall.trace import logs, pods
from lastcall.trace.following.state import SharedState
from lastcall.trace.pod_timeline import Moment, PodTimeline
from lastcall.trace.stamps import SECOND


class LogReader:
    """`on_refused` hears of a request that is not allowed. A client without `pod_log` is not asked."""

    def __init__(self, shared: SharedState, client: Client, on_refused: Callable[[StatusError], None]) -> None:
        self._shared = shared
        self._client = client
        self._on_refused = on_refused
        self._streams: Counter[str] = Counter()

    def listens(self, uid: str) -> bool:
        """Return whether a container of the Pod is being listened to."""
        return self._streams[uid] > 0

    def begin(self, timeline: PodTimeline, now: Moment) -> None:
        """Listen to its containers that run, if it was deleted."""
        if not hasattr(self._client, "pod_log") or timeline.deleted_ns is None:
            return
        running = [n for n, s in pods.statuses_of(timeline.pod).items() if (s.get("state") or {}).get("running")]
        if self._streams.total() + len(running) > logs.MAX_STREAMS:
            if running:
                timeline.not_shown.setdefault(
                    "What it printed is not known: too many Pods end at the same time.", "api"
                )
            return
        since = max(1, (now.at_ns - timeline.deleted_ns) // SECOND + 1)
        for name in running:
            self._streams[timeline.uid] += 1
            self._shared.spawn(self._read(timeline, name, since), f"log of {name_of(timeline.pod)} {name}")

    async def _read(self, timeline: PodTimeline, container: str, since: int) -> None:
        pod, clocks = timeline.pod, self._shared.clocks
        attempt = int((pods.statuses_of(pod).get(container) or {}).get("restartCount") or 0)
        assert timeline.deleted_ns is not None
        try:
            stream = logs.lines(self._client, namespace_of(pod), name_of(pod), container, since)  # type: ignore[arg-type]  # `begin` has looked
            async for raw in stream:
                now = self._shared.now()
                stamp, text = logs.split(raw)
                clocks.saw(timeline.node, stamp, now.wall_ns)
                wall = clocks.ours(timeline.node, stamp)
                at = now.at_ns if wall is None else min(now.at_ns, now.at_ns - (now.wall_ns - wall))
                if at >= timeline.deleted_ns:
                    timeline.line(container, at, now, text, attempt)
        except StatusError as error:
            if error.code in (401, 403):
                self._on_refused(error)
        except ConnectionLost:
            pass
        finally:
            self._streams[timeline.uid] -= 1
            if self._streams[timeline.uid] <= 0:
                del self._streams[timeline.uid]
