"""The Pods that are followed: when the end of one begins, how it goes on, and when its story is over."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from lastcall.endings.facts.pod import pod_facts
from lastcall.endings.story import PodFacts
from lastcall.kube.api import PODS, Object, StatusError, is_not_found, name_of, namespace_of, uid_of
from lastcall.kube.client import Client, ConnectionLost
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace import pods
from lastcall.trace.book import Book, Moment
from lastcall.trace.following.around import AroundPods
from lastcall.trace.following.news import News
from lastcall.trace.following.output import Output
from lastcall.trace.following.shelf import Remembered, Shelf
from lastcall.trace.following.slices import Slices
from lastcall.trace.node_agent.job import is_agents_own
from lastcall.trace.scope import Scope
from lastcall.trace.stamps import SECOND, stamp_ns
from lastcall.trace.stops import waits_for_time

TICK_SECONDS = 0.25
LINGER_NS = SECOND
"""After the object is gone: Events, slices and the last lines come by other ways, a little late."""
SETTLE_NS = 2 * SECOND
"""A Pod that ended by itself is told after this time, so that what follows at once belongs to it."""
STREAMS_NS = 10 * SECOND
"""How long containers that outlive their object are listened to."""


class NodeSide(Protocol):
    """Whoever looks at nodes for us: `lastcall.trace.node_agent.agents.NodeAgents`."""

    def pod(self, pod: Object) -> None: ...

    def gone(self, uid: str) -> None: ...


class Living(NamedTuple):
    """All that is kept of a Pod that does not end."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Rooms:
    """What comes of a Pod by other ways than its own watch. `foreign` are records from elsewhere."""

    news: News
    slices: Slices
    around: AroundPods
    output: Output | None
    foreign: Remembered[Record]

    def begin(self, book: Book, now: Moment) -> None:
        """The end of a Pod has begun: what came before it, and is of it, is written down."""
        for record in self.foreign.pop(book.uid, ()):
            book.add(record)
        self.news.begin(book)
        self.slices.begin(book, now)
        self.around.begin(book, now)


@dataclass(frozen=True, slots=True)
class Listeners:
    """`begins` hears of a Pod before the first record of its end, `over` of a story that is complete, `listed` that a
    list was complete; `note` of what somebody who waits should know."""

    begins: Callable[[PodFacts], None]
    over: Callable[[Book], None]
    listed: Callable[[], None]
    note: Callable[[str], None]


class Lives:
    """`past`: tell also Pods that had ended by themselves before (they are still there)."""

    def __init__(
        self,
        shelf: Shelf,
        client: Client,
        scope: Scope,
        rooms: Rooms,
        tell: Listeners,
        *,
        past: bool,
        node_side: NodeSide | None,
    ) -> None:
        self._shelf = shelf
        self._client = client
        self._scope = scope
        self._rooms = rooms
        self._tell = tell
        self._past = past
        self._node_side = node_side
        self._books = shelf.books
        self._living: dict[str, Living] = {}
        self._natural: set[str] = set()
        """Pods that are there and whose story was told, or is of before."""
        self._is_synced = False
        self._closing: dict[str, int] = {}

    def following(self) -> int:
        """How many Pods are there that are followed."""
        return len(self._living) + len(self._books)

    def listed(self, items: Iterable[Object]) -> None:
        """All Pods that are there."""
        there = set()
        for pod in items:
            there.add(uid_of(pod))
            self._put(pod, first=not self._is_synced)
        for uid in [each for each in (*self._living, *self._books) if each not in there]:
            self._vanished(uid)
        self._natural &= there
        self._is_synced = True
        self._tell.listed()

    def event(self, type_: str, pod: Object) -> None:
        """An event of the watch."""
        if type_ == "DELETED":
            self._deleted(pod)
            return
        if type_ == "ADDED":
            created = str(pod["metadata"].get("creationTimestamp") or "")
            self._shelf.clocks.saw("", created, self._shelf.now().wall_ns)
        self._put(pod, first=False)

    async def tick(self) -> None:
        """Go on with what time alone brings: the end of a hook that sleeps, the end of a story."""
        while True:
            await self._shelf.world.clock.sleep(TICK_SECONDS)
            now = self._shelf.now()
            for book in list(self._books.values()):
                if any(waits_for_time(stop) for stop in book.stops.values()):
                    book.advance(now)
            due = [uid for uid, at in self._closing.items() if at <= now.at_ns or self._is_quiet(uid, now)]
            for uid in due:
                del self._closing[uid]
                self._finish(self._books.pop(uid))

    def _put(self, pod: Object, *, first: bool) -> None:
        if is_agents_own(pod):
            return
        uid, now = uid_of(pod), self._shelf.now()
        if self._node_side is not None and self._is_wanted(pod):
            self._node_side.pod(pod)
        book = self._books.get(uid)
        if book is not None:
            self._changed(book, pod, now)
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
            self._living[uid] = Living(namespace_of(pod), name_of(pod))

    def _begin(self, pod: Object, now: Moment, *, late: bool) -> Book:
        uid, shelf = uid_of(pod), self._shelf
        self._living.pop(uid, None)
        book = Book(pod, shelf.clocks, shelf.new_id, shelf.on_record, now, first=pod, late=late)
        self._rooms.news.explain(book)
        self._books[uid] = book
        self._tell.begins(pod_facts(pod))
        timestamp, grace = pods.deletion_of(pod)
        if timestamp:
            accepted = pods.deleted(pod)
            if late:
                accepted = replace(accepted, evidence="inferred", at_ns=self._deleted_at(timestamp, grace, now))
            else:
                made = stamp_ns(timestamp)
                if made is not None:
                    shelf.clocks.saw_ns("", made - (grace or 0) * SECOND, now.wall_ns)
            book.write(accepted, now)
        self._rooms.begin(book, now)
        if grace == 0 and timestamp and pod["metadata"].get("finalizers"):
            for each in pods.changes({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": None}}, pod):
                if each.kind == kinds.HELD_BY_FINALIZERS:
                    book.write(each, now)
        if pods.is_terminal(pod) and not timestamp:
            book.write(pods.status_written(pod), now)
        self._settle(book, now)
        if late or any(int(each.get("restartCount") or 0) for each in pods.statuses_of(pod).values()):
            self._rooms.news.ask(book)
        if self._rooms.output is not None:
            self._rooms.output.begin(book, now)
        return book

    def _deleted_at(self, timestamp: str, grace: int | None, now: Moment) -> int:
        """When the DELETE of a deletionTimestamp was accepted, on our monotonic clock."""
        wall = self._shelf.clocks.ours("", timestamp)
        if wall is None:
            return now.at_ns
        return min(now.at_ns, now.at_ns - (now.wall_ns - (wall - (grace or 0) * SECOND)))

    def _changed(self, book: Book, pod: Object, now: Moment) -> None:
        old, book.pod = book.pod, pod
        for each in pods.changes(old, pod):
            if each.kind == kinds.DELETE_ACCEPTED:
                self._closing.pop(book.uid, None)
            book.write(each, now)
        self._settle(book, now)

    def _settle(self, book: Book, now: Moment) -> None:
        """A Pod that ended by itself is over, unless somebody deletes it right then."""
        if pods.is_terminal(book.pod) and book.deleted_ns is None:
            self._closing.setdefault(book.uid, now.at_ns + SETTLE_NS)

    def _deleted(self, pod: Object) -> None:
        if is_agents_own(pod):
            return
        uid, now = uid_of(pod), self._shelf.now()
        was_natural = uid in self._natural
        self._natural.discard(uid)
        book = self._books.get(uid)
        if book is None:
            self._living.pop(uid, None)
            if was_natural or not self._is_wanted(pod):
                self._leave(uid)
                return
            if self._scope.selector and not pods.deletion_of(pod)[0]:
                self._shelf.spawn(self._check_gone(pod), f"look for {name_of(pod)}")
                return
            book = self._begin_at_once(pod, now)
        else:
            self._changed(book, pod, now)
        self._gone(book, now, seen=True)

    def _begin_at_once(self, pod: Object, now: Moment) -> Book:
        """Deleted with grace period 0: the watch shows nothing but the end of the object."""
        if not pods.deletion_of(pod)[0]:
            meta = {**pod["metadata"], "deletionTimestamp": "", "deletionGracePeriodSeconds": 0}
            book = self._begin({**pod, "metadata": meta}, now, late=False)
            book.write(pods.deleted(book.pod), now)
            return book
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
        now = self._shelf.now()
        self._gone(self._begin_at_once(pod, now), now, seen=True)

    def _vanished(self, uid: str) -> None:
        """A list does not have it any more: it went while no watch was open."""
        now = self._shelf.now()
        book = self._books.get(uid)
        if book is not None:
            self._gone(book, now, seen=False)
            return
        self._leave(uid)
        living = self._living.pop(uid)
        self._tell.note(
            f"Pod {living.namespace}/{living.name} went while the watch was interrupted: its end was not seen."
        )

    def _gone(self, book: Book, now: Moment, *, seen: bool) -> None:
        for each in pods.removed(book.pod, seen=seen):
            book.write(each, now)
        book.gone = now
        if not seen:
            book.not_shown.setdefault(
                "It went while the watch was interrupted: how its end went on was not seen.", "gap"
            )
        runs_on = not pods.all_ended(book.pod) and self._is_heard(book.uid)
        self._closing[book.uid] = now.at_ns + (STREAMS_NS if runs_on else LINGER_NS)

    def _is_quiet(self, uid: str, now: Moment) -> bool:
        book = self._books[uid]
        return bool(book.gone) and not self._is_heard(uid) and now.at_ns - book.gone.at_ns >= LINGER_NS  # type: ignore[union-attr]

    def _is_heard(self, uid: str) -> bool:
        return self._rooms.output is not None and self._rooms.output.listens(uid)

    def _leave(self, uid: str) -> None:
        if self._node_side is not None:
            self._node_side.gone(uid)

    def _finish(self, book: Book) -> None:
        self._leave(book.uid)
        if book.gone is None:
            self._natural.add(book.uid)
        self._tell.over(book)

    def _is_wanted(self, pod: Object) -> bool:
        if not self._scope.targets:
            return True
        names = {("Pod", name_of(pod)), ("Node", str((pod.get("spec") or {}).get("nodeName") or ""))}
        owner = pods.controller_of(pod)
        names.add((str(owner.get("kind")), str(owner.get("name"))))
        names |= {(each.kind, each.name) for each in self._shelf.ledger.chain(str(owner.get("uid") or ""))}
        return any((each.kind, each.name) in names for each in self._scope.targets)
