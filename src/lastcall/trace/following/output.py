"""What containers print from the DELETE on: a stream of the log for each, as many at once as `logs` allows."""

from collections import Counter
from collections.abc import Callable

from lastcall.kube.api import StatusError, name_of, namespace_of
from lastcall.kube.client import Client, ConnectionLost
from lastcall.trace import logs, pods
from lastcall.trace.book import Book, Moment
from lastcall.trace.following.shelf import Shelf
from lastcall.trace.stamps import SECOND


class Output:
    """`on_refused` hears of a request that is not allowed. A client without `pod_log` is not asked."""

    def __init__(self, shelf: Shelf, client: Client, on_refused: Callable[[StatusError], None]) -> None:
        self._shelf = shelf
        self._client = client
        self._on_refused = on_refused
        self._streams: Counter[str] = Counter()

    def listens(self, uid: str) -> bool:
        """Whether a container of the Pod is being listened to."""
        return self._streams[uid] > 0

    def begin(self, book: Book, now: Moment) -> None:
        """Listen to its containers that run, if it was deleted."""
        if not hasattr(self._client, "pod_log") or book.deleted_ns is None:
            return
        running = [n for n, s in pods.statuses_of(book.pod).items() if (s.get("state") or {}).get("running")]
        if self._streams.total() + len(running) > logs.MAX_STREAMS:
            if running:
                book.not_shown.setdefault("What it printed is not known: too many Pods end at the same time.", "api")
            return
        since = max(1, (now.at_ns - book.deleted_ns) // SECOND + 1)
        for name in running:
            self._streams[book.uid] += 1
            self._shelf.spawn(self._read(book, name, since), f"log of {name_of(book.pod)} {name}")

    async def _read(self, book: Book, container: str, since: int) -> None:
        pod, clocks = book.pod, self._shelf.clocks
        attempt = int((pods.statuses_of(pod).get(container) or {}).get("restartCount") or 0)
        assert book.deleted_ns is not None
        try:
            stream = logs.lines(self._client, namespace_of(pod), name_of(pod), container, since)  # type: ignore[arg-type]  # `begin` has looked
            async for raw in stream:
                now = self._shelf.now()
                stamp, text = logs.split(raw)
                clocks.saw(book.node, stamp, now.wall_ns)
                wall = clocks.ours(book.node, stamp)
                at = now.at_ns if wall is None else min(now.at_ns, now.at_ns - (now.wall_ns - wall))
                if at >= book.deleted_ns:
                    book.line(container, at, now, text, attempt)
        except StatusError as error:
            if error.code in (401, 403):
                self._on_refused(error)
        except ConnectionLost:
            pass
        finally:
            self._streams[book.uid] -= 1
            if self._streams[book.uid] <= 0:
                del self._streams[book.uid]
