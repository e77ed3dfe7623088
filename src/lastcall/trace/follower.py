"""Follows Pods of any cluster through its API, and yields the story of each end.

    follower = Follower(client, Scope(namespace="shop"), world=world)
    async with Tasks() as tasks:
        tasks.spawn(follower.run(), name="trace")
        async for ending in follower.endings():
            …                          # a lastcall.endings.story.Ending, finished
        tasks.cancel()

`client` is a `lastcall.kube.client.api.Client`; one with `request` (HTTPClient) is asked for lists in pages, one with
`pod_log` for logs. A Pod that does not end keeps a few words; its records begin when its end does. See
docs/any-cluster.md.
"""

# check: many attributes Follower because it waits for the one session of all commands

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from lastcall.endings import Ending, PodFacts
from lastcall.kube.api import EVENTS, PODS, StatusError
from lastcall.kube.client import Client
from lastcall.records.record import Record
from lastcall.trace.following.around import RelatedObjects
from lastcall.trace.following.events import EventIndex
from lastcall.trace.following.lives import Handlers, Listeners, NodeSide, PodTracker
from lastcall.trace.following.output import LogReader
from lastcall.trace.following.restarts import RestartWatch
from lastcall.trace.following.slices import EndpointTracker
from lastcall.trace.following.state import Remembered, SharedState
from lastcall.trace.following.watching import OnObject, Watches
from lastcall.trace.pod_timeline import Moment, PodTimeline
from lastcall.trace.rights import MissingRight
from lastcall.trace.scope import Scope
from lastcall.trace.sources import Source
from lastcall.trace.stamps import SECOND
from lastcall.trace.story import StoryContext, build_story
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.trace.auditing.index import AuditIndex


@dataclass(frozen=True, slots=True)
class Options:
    """`logs`: read what containers print from the DELETE on. `count`: end after so many stories, 0 for never.
    `past`: tell also Pods that had ended by themselves before (they are still there). `restarts`: yield a story, too,
    when a container of a Pod that lives on was restarted. `audit_wait`: seconds after a Pod is gone in which the audit
    event of its DELETE may come."""

    logs: bool = True
    count: int = 0
    past: bool = False
    restarts: bool = False
    audit_wait: float = 2.0


class Follower:
    """`run` until cancelled; `endings` yields each finished story, in the order of the ends."""

    def __init__(
        self,
        client: Client,
        scope: Scope,
        *,
        world: World | None = None,
        kubernetes_version: str = "",
        options: Options = Options(),  # noqa: B008
        on_record: Callable[[Record], None] | None = None,
        on_begin: Callable[[PodFacts], None] | None = None,
        on_note: Callable[[str], None] | None = None,
        node_side: NodeSide | None = None,
        on_object: OnObject | None = None,
        audit: "AuditIndex | None" = None,
    ) -> None:
        """`on_record` hears of every record when it is made, `on_begin` of a Pod whose end begins, before its first
        record; `on_note` of what a waiting user should know: a gap, a missing permission. `node_side` hears of
        each state of a Pod that is wanted, and of its end: what it learns comes back by `add`. `on_object` hears of
        each object that is seen, but for Events and EndpointSlices. `audit` has the requests of an audit log; a story
        waits for the one that deleted its Pod, for `Options.audit_wait` at most."""
        self.scope = scope
        self.yielded = 0
        """How many stories were yielded."""
        self.failure: Exception | None = None
        """Why Pods cannot be followed at all; `endings` has ended then."""
        self._version = kubernetes_version
        self._options = options
        self._shared = shared = SharedState(world or World(), on_record or (lambda record: None))
        if audit is not None:
            # late: only with an audit log
            from lastcall.trace.auditing.applying import AuditTrail

            shared.audit = AuditTrail(audit, shared.clocks)
            shared.audit_wait_ns = int(options.audit_wait * SECOND)
        note = on_note or (lambda text: None)
        self._watches = Watches(shared, client, scope, note, self._blind, on_object)
        self._event_index = EventIndex(
            shared, client, lambda error: self._watches.refused(EVENTS, scope.namespace, error), note
        )
        self._slices, self._around = EndpointTracker(shared), RelatedObjects(shared)
        output = LogReader(shared, client, lambda error: self._watches.refused(PODS, scope.namespace, error, "log"))
        self._foreign: Remembered[Record] = Remembered()
        restarts = RestartWatch(shared, client, self._event_index, self._restarted, logs=options.logs)
        self._tracker = PodTracker(
            shared,
            client,
            scope,
            Handlers(
                self._event_index,
                self._slices,
                self._around,
                output if options.logs else None,
                restarts if options.restarts else None,
                self._foreign,
            ),
            Listeners(on_begin or (lambda pod: None), self._finish, self._first_list, note),
            past=options.past,
            node_side=node_side,
        )
        self._finished: asyncio.Queue[Ending | None] = asyncio.Queue()
        self._synced = asyncio.Event()
        self._over = asyncio.Event()

    @property
    def missing(self) -> dict[tuple[str, str], MissingRight]:
        """Return what may not be read, by (resource, namespace)."""
        return self._watches.missing

    async def run(self) -> None:
        """Follow until cancelled or `stop` is called, or, where only Pods were named, until the last has ended."""
        try:
            async with Tasks() as tasks:
                self._shared.tasks = tasks
                await self._watches.start_around(self._around, self._slices, self._event_index, self._over)
                self._watches.start_pods(self._tracker.event, self._tracker.listed)
                tasks.spawn(self._tracker.tick(), name="trace clock")
                await self._over.wait()
                tasks.cancel()
        finally:
            self._finished.put_nowait(None)

    async def synced(self) -> None:
        """Return when the first list of Pods is known, or is not available."""
        await self._synced.wait()

    @property
    def is_synced(self) -> bool:
        """Return whether the first list of Pods is known, or is not available."""
        return self._synced.is_set()

    def stop(self) -> None:
        """End `run`. What is still going on is in `ongoing`."""
        self._over.set()

    async def endings(self) -> AsyncIterator[Ending]:
        """Yield each finished story. Ends with `run`."""
        while (ending := await self._finished.get()) is not None:
            yield ending

    def ongoing(self) -> list[Ending]:
        """Return the stories so far of Pods that are ending now."""
        return [self._ending(timeline) for timeline in self._shared.timelines.values()]

    def story_of(self, uid: str) -> Ending | None:
        """Return the story so far of a Pod that is ending now, None for others."""
        timeline = self._shared.timelines.get(uid)
        return None if timeline is None else self._ending(timeline)

    def commands(self) -> list[str]:
        """Return commands for an administrator's shell that grant all missing permissions."""
        return self._watches.commands()

    def following(self) -> int:
        """Return how many Pods are there that are followed."""
        return self._tracker.following()

    def ending(self) -> int:
        """Return how many of them are ending now."""
        return len(self._shared.timelines)

    def waiting(self) -> int:
        """Return how many finished stories nobody has taken yet."""
        return self._finished.qsize()

    def sources(self) -> Sequence[Source]:
        """Return what is watched, and how that goes."""
        return self._watches.sources

    def add(self, record: Record) -> None:
        """Add a record from elsewhere (a node's agent): with a Pod's uid, on the monotonic clock of this machine.

        Until its end begins, the last MOST_OF_EACH of it are kept. What was observed goes before what was inferred.
        """
        timeline = self._shared.timelines.get(record.pod_uid)
        if timeline is not None:
            timeline.add(record)
        else:
            self._foreign.remember(record.pod_uid, record)

    def place(self, node: str, stamp: str) -> Moment | None:
        """Return a time by a node's clock ("": the API server's) on ours; None for another text."""
        wall = self._shared.clocks.ours(node, stamp)
        now = self._shared.now()
        return None if wall is None else Moment(now.at_ns - (now.wall_ns - wall), wall)

    def requests(self) -> int:
        """Return how many requests were sent for lists and watches."""
        return sum(each.requests for each in self._watches.sources)

    def _blind(self, error: StatusError) -> None:
        self.failure = error
        self._synced.set()
        self._over.set()

    def _first_list(self) -> None:
        self._synced.set()
        self._check_over()

    def _finish(self, timeline: PodTimeline) -> None:
        self._finished.put_nowait(self._ending(timeline))
        self.yielded += 1
        self._check_over()

    def _restarted(self, timeline: PodTimeline) -> None:
        """A Pod lives on, and a run of a container of it has ended: a story, but no end of a Pod."""
        self._finished.put_nowait(self._ending(timeline))

    def _check_over(self) -> None:
        if (self._options.count and self.yielded >= self._options.count) or (
            self.scope.only_pods and self.yielded >= len(self.scope.targets) and not self._shared.timelines
        ):
            self._over.set()

    def _ending(self, timeline: PodTimeline) -> Ending:
        around = StoryContext(
            cluster=self._shared.cluster,
            events=[*(event for event, _ in timeline.history), *self._event_index.of_owner(timeline.pod)],
            missing=tuple(self.missing.values()),
            pod_name=self._tracker.name_of,
            audit=self._shared.audit,
        )
        return build_story(timeline, self._shared.now(), around, kubernetes_version=self._version)
