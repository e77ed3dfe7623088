"""Follows Pods of any cluster through its API, and yields the story of each end.

    follower = Follower(client, Scope(namespace="shop"), world=world)
    async with Tasks() as tasks:
        tasks.spawn(follower.run(), name="trace")
        async for ending in follower.endings():
            …                          # a lastcall.timeline.story.Ending, finished
        tasks.cancel()

`client` is a `lastcall.client.api.Client`; one with `request` (HTTPClient) is asked for lists in pages, one with
`pod_log` for logs. A Pod that does not end keeps a few words; its records begin when its end does. See
docs/any-cluster.md.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from lastcall.api.errors import StatusError, is_not_found
from lastcall.api.meta import Object, name_of, namespace_of, resource_version_of, uid_of
from lastcall.api.resources import (
    DAEMONSETS,
    DEPLOYMENTS,
    ENDPOINTSLICES,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODDISRUPTIONBUDGETS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from lastcall.client.access.rights import commands_for
from lastcall.client.api import Client, ConnectionLost
from lastcall.timeline import kinds
from lastcall.timeline.facts.pod import pod_facts
from lastcall.timeline.record import Record
from lastcall.timeline.story import Ending, PodFacts
from lastcall.tracing import endpoints, logs, pods
from lastcall.tracing.book import Book, Moment
from lastcall.tracing.drafts import Draft
from lastcall.tracing.events import Told, names_pod, steps_of, told_of
from lastcall.tracing.ledger import Ledger
from lastcall.tracing.node_agent.job import is_agents_own
from lastcall.tracing.rights import MissingRight, missing
from lastcall.tracing.scope import Scope
from lastcall.tracing.sources import Gap, Source
from lastcall.tracing.stamps import SECOND, Clocks, stamp_ns
from lastcall.tracing.tale import Surroundings, tell
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

OWNERS = (REPLICASETS, DEPLOYMENTS, STATEFULSETS, DAEMONSETS, JOBS)
TICK_SECONDS = 0.25
LINGER_NS = SECOND
"""After the object is gone: Events, slices and the last lines come by other ways, a little late."""
SETTLE_NS = 2 * SECOND
"""A Pod that ended by itself is told after this time, so that what follows at once belongs to it."""
STREAMS_NS = 10 * SECOND
"""How long containers that outlive their object are listened to."""
EARLY_NS = 3 * SECOND
MOST_REMEMBERED = 4096
"""Pods and owners of which Events and records from elsewhere are kept before their end begins."""
MOST_EVENTS = 32
OWNERS_WAIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Options:
    """`logs`: read what containers print from the DELETE on. `count`: end after so many stories, 0 for never.
    `past`: tell also Pods that had ended by themselves before (they are still there)."""

    logs: bool = True
    count: int = 0
    past: bool = False


class NodeSide(Protocol):
    """Whoever looks at nodes for us: `lastcall.tracing.node_agent.agents.NodeAgents`."""

    def pod(self, pod: Object) -> None: ...

    def gone(self, uid: str) -> None: ...


class Living(NamedTuple):
    """All that is kept of a Pod that does not end."""

    namespace: str
    name: str
    facts: PodFacts | None


class Follower:
    """`run` until cancelled; `endings` yields each finished story, in the order of the ends."""

    def __init__(
        self,
        client: Client,
        scope: Scope,
        *,
        world: World | None = None,
        kubernetes_version: str = "",
        options: Options = Options(),
        on_record: Callable[[Record], None] | None = None,
        on_begin: Callable[[PodFacts], None] | None = None,
        on_note: Callable[[str], None] | None = None,
        node_side: NodeSide | None = None,
    ) -> None:
        """`on_record` hears of every record when it is made, `on_begin` of a Pod whose end begins, before its first
        record; `on_note` of what somebody who waits should know: a gap, a right that is missing. `node_side` hears of
        each state of a Pod that is wanted, and of its end: what it learns comes back by `add`."""
        self.client = client
        self.scope = scope
        self.missing: dict[tuple[str, str], MissingRight] = {}
        """What may not be read, by (resource, namespace)."""
        self.told = 0
        """How many stories were yielded."""
        self.failure: Exception | None = None
        """Why Pods cannot be followed at all; `endings` has ended then."""
        self._world = world or World()
        self._version = kubernetes_version
        self._options = options
        self._on_record = on_record or (lambda record: None)
        self._on_begin = on_begin or (lambda pod: None)
        self._on_note = on_note or (lambda text: None)
        self._node_side = node_side
        self._clocks = Clocks()
        self._ledger = Ledger(self._new_id, self._on_record)
        self._books: dict[str, Book] = {}
        self._living: dict[str, Living] = {}
        self._natural: set[str] = set()
        self._listed: set[str] | None = None
        self._closing: dict[str, int] = {}
        self._events: OrderedDict[str, list[tuple[Told, Moment]]] = OrderedDict()
        self._early: OrderedDict[str, list[tuple[Draft, Moment]]] = OrderedDict()
        self._foreign: OrderedDict[str, list[Record]] = OrderedDict()
        self._slices: dict[tuple[str, str], tuple[str, dict[str, endpoints.Endpoint]]] = {}
        self._slices_listed: set[tuple[str, str]] = set()
        self._events_since: int | None = None
        self._sequence = 0
        self._streams: dict[str, int] = {}
        self._asked: set[str] = set()
        self._boot = self._world.new_uid()[:8]
        self._finished: asyncio.Queue[Ending | None] = asyncio.Queue()
        self._tasks: Tasks | None = None
        self._sources: list[Source] = []
        self._synced = asyncio.Event()
        self._over = asyncio.Event()

    # -- what others use ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow until cancelled or `stop` is called, or, where only Pods were named, until the last has ended."""
        try:
            async with Tasks() as tasks:
                self._tasks = tasks
                await self._start(tasks)
                await self._over.wait()
                tasks.cancel()
        finally:
            self._finished.put_nowait(None)

    async def synced(self) -> None:
        """Return when the first list of Pods is known, or is not available."""
        await self._synced.wait()

    def stop(self) -> None:
        """End `run`. What is still going on is told by `ongoing`."""
        self._over.set()

    async def endings(self) -> AsyncIterator[Ending]:
        """Each finished story. Ends with `run`."""
        while (ending := await self._finished.get()) is not None:
            yield ending

    def ongoing(self) -> list[Ending]:
        """The stories so far of Pods that are ending now."""
        return [self._ending(book) for book in self._books.values()]

    def commands(self) -> list[str]:
        """For an administrator's shell: what gives all the rights that are missing."""
        return commands_for(right for each in self.missing.values() for right in each.rights)

    def following(self) -> int:
        """How many Pods are there that are followed."""
        return len(self._living) + len(self._books)

    def ending(self) -> int:
        """How many of them are ending now."""
        return len(self._books)

    def waiting(self) -> int:
        """How many finished stories nobody has taken yet."""
        return self._finished.qsize()

    def sources(self) -> Sequence[Source]:
        """What is watched, and how that goes."""
        return self._sources

    def add(self, record: Record) -> None:
        """A record from elsewhere (a node's agent): with a Pod's uid, on the monotonic clock of this machine.

        Until its end begins, the last MOST_EVENTS of it are kept. What was observed goes before what was inferred.
        """
        book = self._books.get(record.pod_uid)
        if book is not None:
            book.add(record)
        else:
            _remember(self._foreign, record.pod_uid, record)

    def place(self, node: str, stamp: str) -> Moment | None:
        """A time by a node's clock ("": the API server's) on ours; None for another text."""
        wall = self._clocks.ours(node, stamp)
        now = self._now()
        return None if wall is None else Moment(now.at_ns - (now.wall_ns - wall), wall)

    def requests(self) -> int:
        """How many requests were sent for lists and watches."""
        return sum(each.requests for each in self._sources)

    # -- sources ------------------------------------------------------------------------------------------------------

    async def _start(self, tasks: Tasks) -> None:
        namespace = self.scope.namespace
        owners = [self._source(each, namespace, self._on_owner(each), self._owners_listed(each)) for each in OWNERS]
        self._sources += owners
        only = f"metadata.name={namespace}" if namespace else ""
        self._sources += [
            self._source(NAMESPACES, "", self._namespace, self._on_namespaces, field_selector=only),
            self._source(NODES, "", self._node, self._on_nodes),
            self._source(PODDISRUPTIONBUDGETS, namespace, self._budget, self._on_budgets),
            self._source(ENDPOINTSLICES, namespace, self._slice, self._on_slices),
            self._source(EVENTS, namespace, self._event, None),
        ]
        for source in self._sources:
            tasks.spawn(source.run(), name=f"trace {source.resource.plural}")
        waited = 0.0
        while waited < OWNERS_WAIT_SECONDS and not all(self._is_settled(each) for each in self._sources):
            await self._world.clock.sleep(0.05)
            waited += 0.05
        names = [each.name for each in self.scope.targets] if self.scope.only_pods else []
        source = self._source(
            PODS,
            namespace,
            self._pod,
            self._on_pods,
            label_selector=self.scope.selector,
            field_selector=f"metadata.name={names[0]}" if len(names) == 1 else "",
        )
        self._sources.append(source)
        tasks.spawn(source.run(), name="trace pods")
        tasks.spawn(self._tick(), name="trace clock")

    def _source(
        self,
        resource: Resource,
        namespace: str,
        on_event: Callable[[str, Object], None],
        on_list: Callable[[list[Object] | None], None] | None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Source:
        def on_synced() -> None:
            if resource is EVENTS:
                self._events_since = self._now().at_ns

        return Source(
            self.client,
            resource,
            namespace,
            self._world,
            on_event,
            on_list,
            on_gap=lambda gap: self._gap(resource, gap),
            on_refused=lambda error: self._refused(resource, namespace, error),
            on_synced=on_synced,
            label_selector=label_selector,
            field_selector=field_selector,
        )

    def _is_settled(self, source: Source) -> bool:
        return source.synced or (source.resource.plural, source.namespace) in self.missing

    def _gap(self, resource: Resource, gap: Gap) -> None:
        self._on_note(gap.sentence)
        if resource is EVENTS and gap.lost:
            self._events_since = self._now().at_ns
        for book in self._books.values():
            book.not_shown.setdefault(gap.sentence, "gap")

    def _refused(self, resource: Resource, namespace: str, error: StatusError, subresource: str = "") -> None:
        right = missing(resource, error, subresource=subresource)
        if (right.resource, namespace) in self.missing:
            return
        self.missing[(right.resource, namespace)] = right
        if resource is PODS and not subresource:
            self.failure = error
            self._synced.set()
            self._over.set()
            return
        self._on_note(right.sentence)

    # -- Pods ---------------------------------------------------------------------------------------------------------

    def _on_pods(self, items: list[Object] | None) -> None:
        first = not self._synced.is_set()
        if items is None:
            there, self._listed = self._listed or set(), None
            for uid in [each for each in (*self._living, *self._books) if each not in there]:
                self._vanished(uid)
            self._natural &= there
            self._synced.set()
            self._check_over()
            return
        if self._listed is None:
            self._listed = set()
        for pod in items:
            self._listed.add(uid_of(pod))
            self._put(pod, first=first)

    def _pod(self, type_: str, pod: Object) -> None:
        if type_ == "DELETED":
            self._deleted(pod)
            return
        if type_ == "ADDED":
            self._clocks.saw("", str(pod["metadata"].get("creationTimestamp") or ""), self._now().wall_ns)
        self._put(pod, first=False)

    def _put(self, pod: Object, *, first: bool) -> None:
        if is_agents_own(pod):
            return
        uid, now = uid_of(pod), self._now()
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
            if first and not is_deleted and not (self._options.past or self.scope.only_pods):
                self._natural.add(uid)
            elif not is_deleted or uid not in self._natural:
                self._begin(pod, now, late=first and is_deleted)
                return
        if uid not in self._natural:
            self._living[uid] = Living(namespace_of(pod), name_of(pod), None)

    def _begin(self, pod: Object, now: Moment, *, late: bool) -> Book:
        uid = uid_of(pod)
        self._living.pop(uid, None)
        book = Book(pod, self._clocks, self._new_id, self._on_record, now, first=pod, late=late)
        book.explained_from_ns = self._events_since
        self._books[uid] = book
        self._on_begin(pod_facts(pod))
        timestamp, grace = pods.deletion_of(pod)
        if timestamp:
            accepted = pods.deleted(pod)
            if late:
                accepted = replace(accepted, evidence="inferred", at_ns=self._deleted_at(timestamp, grace, now))
            else:
                made = stamp_ns(timestamp)
                if made is not None:
                    self._clocks.saw_ns("", made - (grace or 0) * SECOND, now.wall_ns)
            book.write(accepted, now)
        for record in self._foreign.pop(uid, ()):
            book.add(record)
        for told, at in self._events.pop(uid, ()):
            self._tell_event(book, told, at)
        for early, at in self._early.pop(uid, ()):
            if now.at_ns - at.at_ns < EARLY_NS:
                book.write(replace(early, at_ns=max(at.at_ns, (book.deleted_ns or 0) + 1)), now)
        self._node_of(book, now)
        if grace == 0 and timestamp and pod["metadata"].get("finalizers"):
            for each in pods.changes({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": None}}, pod):
                if each.kind == kinds.HELD_BY_FINALIZERS:
                    book.write(each, now)
        if pods.is_terminal(pod) and not timestamp:
            book.write(pods.status_written(pod), now)
        self._settle(book, now)
        if late or any(int(each.get("restartCount") or 0) for each in pods.statuses_of(pod).values()):
            self._spawn(self._ask_events(book), f"events of {name_of(pod)}")
        self._read_logs(book, now)
        return book

    def _deleted_at(self, timestamp: str, grace: int | None, now: Moment) -> int:
        """When the DELETE of a deletionTimestamp was accepted, on our monotonic clock."""
        wall = self._clocks.ours("", timestamp)
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
        uid, now = uid_of(pod), self._now()
        was_natural = uid in self._natural
        self._natural.discard(uid)
        book = self._books.get(uid)
        if book is None:
            self._living.pop(uid, None)
            if was_natural or not self._is_wanted(pod):
                self._leave(uid)
                return
            if self.scope.selector and not pods.deletion_of(pod)[0]:
                self._spawn(self._check_gone(pod), f"look for {name_of(pod)}")
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
            there = await self.client.get(PODS, name_of(pod), namespace_of(pod))
        except StatusError as error:
            if not is_not_found(error):
                return
        except ConnectionLost:
            return
        else:
            if uid_of(there) == uid_of(pod):
                return
        now = self._now()
        self._gone(self._begin_at_once(pod, now), now, seen=True)

    def _vanished(self, uid: str) -> None:
        """A list does not have it any more: it went while no watch was open."""
        now = self._now()
        book = self._books.get(uid)
        if book is not None:
            self._gone(book, now, seen=False)
            return
        self._leave(uid)
        living = self._living.pop(uid)
        self._on_note(
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
        runs_on = not pods.all_ended(book.pod) and self._streams.get(book.uid)
        self._closing[book.uid] = now.at_ns + (STREAMS_NS if runs_on else LINGER_NS)

    async def _tick(self) -> None:
        while True:
            await self._world.clock.sleep(TICK_SECONDS)
            now = self._now()
            for book in list(self._books.values()):
                if any(stop.sleep is not None and stop.exited is None for stop in book.stops.values()):
                    book.advance(now)
            due = [uid for uid, at in self._closing.items() if at <= now.at_ns or self._is_quiet(uid, now)]
            for uid in due:
                del self._closing[uid]
                self._finish(self._books.pop(uid))

    def _is_quiet(self, uid: str, now: Moment) -> bool:
        book = self._books[uid]
        return bool(book.gone) and not self._streams.get(uid) and now.at_ns - book.gone.at_ns >= LINGER_NS  # type: ignore[union-attr]

    def _leave(self, uid: str) -> None:
        if self._node_side is not None:
            self._node_side.gone(uid)

    def _finish(self, book: Book) -> None:
        self._leave(book.uid)
        if book.gone is None:
            self._natural.add(book.uid)
        self._asked.discard(book.uid)
        self._finished.put_nowait(self._ending(book))
        self.told += 1
        self._check_over()

    def _check_over(self) -> None:
        if (self._options.count and self.told >= self._options.count) or (
            self.scope.only_pods and self.told >= len(self.scope.targets) and not self._books
        ):
            self._over.set()

    def _ending(self, book: Book) -> Ending:
        pod = book.pod
        around = Surroundings(
            ledger=self._ledger,
            events=[*book.history, *self._of_owner(pod)],
            missing=tuple(self.missing.values()),
            streams_refused=("pods/log", self.scope.namespace) in self.missing,
        )
        return tell(book, self._now(), around, kubernetes_version=self._version)

    def _is_wanted(self, pod: Object) -> bool:
        if not self.scope.targets:
            return True
        names = {("Pod", name_of(pod)), ("Node", str((pod.get("spec") or {}).get("nodeName") or ""))}
        owner = pods.controller_of(pod)
        names.add((str(owner.get("kind")), str(owner.get("name"))))
        names |= {(each.kind, each.name) for each in self._ledger.chain(str(owner.get("uid") or ""))}
        return any((each.kind, each.name) in names for each in self.scope.targets)

    # -- Events -------------------------------------------------------------------------------------------------------

    def _event(self, type_: str, obj: Object) -> None:
        told = told_of(obj) if type_ != "DELETED" else None
        if told is None:
            return
        now = self._now()
        if told.node:
            self._clocks.saw(told.node, told.stamp, now.wall_ns)
        if named := names_pod(told):
            _remember(self._events, f"{told.of_uid}/{named}", (told, now))
            return
        book = self._books.get(told.of_uid)
        if book is None:
            _remember(self._events, told.of_uid, (told, now))
        else:
            self._tell_event(book, told, now)

    def _tell_event(self, book: Book, told: Told, at: Moment) -> None:
        if book.is_past(told, at):
            book.history.append(told)
            return
        book.event(told, at)
        for each in steps_of(told):
            if book.is_news(each):
                book.write(replace(each, at_ns=at.at_ns), at)

    async def _ask_events(self, book: Book) -> None:
        """Events of before: of a Pod that was followed late, or had been restarted."""
        try:
            found = await self.client.list(
                EVENTS, namespace_of(book.pod), field_selector=f"involvedObject.uid={book.uid}"
            )
        except StatusError as error:
            if error.code in (401, 403):
                self._refused(EVENTS, self.scope.namespace, error)
            return
        except ConnectionLost:
            return
        book.explained_from_ns = 0
        now = self._now()
        known = sorted(filter(None, map(told_of, found.items)), key=lambda each: each.stamp)
        for told in known:
            if told.of_kind == "Pod":
                self._tell_event(book, told, now)

    def _of_owner(self, pod: Object) -> list[Told]:
        key = f"{pods.controller_of(pod).get('uid')}/{name_of(pod)}"
        mine = [told for told, _ in self._events.get(uid_of(pod), ())]
        return [*mine, *(told for told, _ in self._events.get(key, ()))]

    # -- what is around -----------------------------------------------------------------------------------------------

    def _on_owner(self, resource: Resource) -> Callable[[str, Object], None]:
        return lambda type_, obj: self._ledger.owner(resource.kind, type_, obj, self._now())

    def _owners_listed(self, resource: Resource) -> Callable[[list[Object] | None], None]:
        return lambda items: self._ledger.owners_listed(resource.kind, items, self._now())

    def _namespace(self, type_: str, obj: Object) -> None:
        self._ledger.namespace(obj, self._now(), gone=type_ == "DELETED")

    def _on_namespaces(self, items: list[Object] | None) -> None:
        for obj in items or ():
            self._ledger.namespace(obj, self._now(), gone=False)

    def _budget(self, type_: str, obj: Object) -> None:
        self._ledger.budget(obj)

    def _on_budgets(self, items: list[Object] | None) -> None:
        for obj in items or ():
            self._ledger.budget(obj)

    def _node(self, type_: str, obj: Object) -> None:
        if self._ledger.node(obj, gone=type_ == "DELETED"):
            now, name = self._now(), name_of(obj)
            for book in self._books.values():
                if book.node == name:
                    self._node_of(book, now)

    def _on_nodes(self, items: list[Object] | None) -> None:
        for obj in items or ():
            self._node("MODIFIED", obj)

    def _node_of(self, book: Book, now: Moment) -> None:
        state = self._ledger.node_state(book.node)
        if state is None:
            return
        seen = state.told(kinds.NODE_STATE_SEEN)
        if seen["ready"] is not True or seen["gone"]:
            book.write(state, now)

    def _slice(self, type_: str, obj: Object) -> None:
        key, now = (namespace_of(obj), name_of(obj)), self._now()
        service, old = self._slices.get(key, (endpoints.service_of(obj), {}))
        new = {} if type_ == "DELETED" else endpoints.endpoints_of(obj)
        for uid, each in endpoints.changes(service, key[1], resource_version_of(obj), old, new):
            self._endpoint(uid, each, now)
        if type_ == "DELETED":
            self._slices.pop(key, None)
        else:
            self._slices[key] = (service, new)

    def _on_slices(self, items: list[Object] | None) -> None:
        if items is None:
            for key in [each for each in self._slices if each not in self._slices_listed]:
                service, old = self._slices.pop(key)
                for uid, each in endpoints.changes(service, key[1], "", old, {}):
                    self._endpoint(uid, each, self._now())
            self._slices_listed = set()
            return
        for obj in items:
            self._slices_listed.add((namespace_of(obj), name_of(obj)))
            self._slice("MODIFIED", obj)

    def _endpoint(self, uid: str, each: Draft, now: Moment) -> None:
        book = self._books.get(uid)
        if book is not None:
            book.write(each, now)
        elif each.kind == kinds.ENDPOINT_REMOVED or each.told(kinds.ENDPOINT_CHANGED).get("terminating"):
            _remember(self._early, uid, (each, now))  # the Pod's own event comes by another watch

    # -- logs ---------------------------------------------------------------------------------------------------------

    def _read_logs(self, book: Book, now: Moment) -> None:
        if not self._options.logs or not hasattr(self.client, "pod_log") or book.deleted_ns is None:
            return
        running = [n for n, s in pods.statuses_of(book.pod).items() if (s.get("state") or {}).get("running")]
        if sum(self._streams.values()) + len(running) > logs.MAX_STREAMS:
            if running:
                book.not_shown.setdefault("What it printed is not known: too many Pods end at the same time.", "api")
            return
        since = max(1, (now.at_ns - book.deleted_ns) // SECOND + 1)
        for name in running:
            self._streams[book.uid] = self._streams.get(book.uid, 0) + 1
            self._spawn(self._read_log(book, name, since), f"log of {name_of(book.pod)} {name}")

    async def _read_log(self, book: Book, container: str, since: int) -> None:
        pod, client = book.pod, self.client
        attempt = int((pods.statuses_of(pod).get(container) or {}).get("restartCount") or 0)
        assert book.deleted_ns is not None
        try:
            stream = logs.lines(client, namespace_of(pod), name_of(pod), container, since)  # type: ignore[arg-type]
            async for raw in stream:
                now = self._now()
                stamp, text = logs.split(raw)
                self._clocks.saw(book.node, stamp, now.wall_ns)
                wall = self._clocks.ours(book.node, stamp)
                at = now.at_ns if wall is None else min(now.at_ns, now.at_ns - (now.wall_ns - wall))
                if at >= book.deleted_ns:
                    book.line(container, at, now, text, attempt)
        except StatusError as error:
            if error.code in (401, 403):
                self._refused(PODS, self.scope.namespace, error, "log")
        except ConnectionLost:
            pass
        finally:
            left = self._streams.get(book.uid, 1) - 1
            self._streams[book.uid] = left
            if left <= 0:
                self._streams.pop(book.uid, None)

    # -- small things -------------------------------------------------------------------------------------------------

    def _spawn(self, work: Any, name: str) -> None:
        assert self._tasks is not None
        self._tasks.spawn(work, name=name)

    def _now(self) -> Moment:
        return Moment(self._world.clock.monotonic_ns(), self._world.clock.wall_ns())

    def _new_id(self, actor: str) -> str:
        self._sequence += 1
        return f"{actor}-{self._boot}-{self._sequence}"


def _remember(kept: OrderedDict[str, list[Any]], key: str, each: Any) -> None:
    """Keep one more of a key; of too many keys the ones that were longest without news go."""
    found = kept.setdefault(key, [])
    kept.move_to_end(key)
    found.append(each)
    del found[:-MOST_EVENTS]
    while len(kept) > MOST_REMEMBERED:
        kept.popitem(last=False)
