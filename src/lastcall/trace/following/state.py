"""What the handlers of a follower share: timelines of Pods that are ending, clocks, related objects, and the time."""

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from lastcall.records.record import Record
from lastcall.trace.ledger import ClusterState
from lastcall.trace.pod_timeline import Moment, PodTimeline
from lastcall.trace.stamps import Clocks
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.trace.auditing.applying import AuditTrail

T = TypeVar("T")

MOST_REMEMBERED = 4096
"""Pods and owners of which Events and records from elsewhere are kept before their end begins."""
MOST_OF_EACH = 32


class SharedState:
    """`tasks` is there while the follower runs."""

    def __init__(self, world: World, on_record: Callable[[Record], None]) -> None:
        self.world = world
        self.on_record = on_record
        self.timelines: dict[str, PodTimeline] = {}
        """By the Pod's uid."""
        self.clocks = Clocks()
        self.tasks: Tasks | None = None
        self._sequence = 0
        self._boot = world.new_uid()[:8]
        self.cluster = ClusterState(self.new_id, on_record)
        self.audit: AuditTrail | None = None
        """What an audit log says, where one is read."""
        self.audit_wait_ns = 0
        """How late its events may come."""

    def now(self) -> Moment:
        return Moment(self.world.clock.monotonic_ns(), self.world.clock.wall_ns())

    def new_id(self, actor: str) -> str:
        self._sequence += 1
        return f"{actor}-{self._boot}-{self._sequence}"

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        assert self.tasks is not None
        self.tasks.spawn(work, name=name)


class Remembered(OrderedDict[str, list[T]]):
    """What came for a key before it was wanted, in bounded memory: MOST_OF_EACH of MOST_REMEMBERED keys."""

    def remember(self, key: str, each: T) -> None:
        """Keep one more of a key; of too many keys the ones that were longest without news go."""
        found = self.setdefault(key, [])
        self.move_to_end(key)
        found.append(each)
        del found[:-MOST_OF_EACH]
        while len(self) > MOST_REMEMBERED:
            self.popitem(last=False)
