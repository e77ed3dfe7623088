"""Simulate the load of a session in virtual time: simulated requests of every kind, to real rules and simulated Pods.

What is new about a connection is where the rules lead it at that moment, whether a program listens there; what is on
one is decided by how the applications end (`Behaviour`). Rates are those that find an edge, not those of the user:
enough connections that one of them meets each tenth of a second in which a Pod could lose it.
"""

import heapq
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import field

from lastcall.kube.cluster import Serving, ServingContainer
from lastcall.kube.proxy import RecordingSink
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import REUSED, Kind, Lost, Outcome
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

KEPT_CONNECTIONS = 32
"""Of the kinds that keep theirs: many, because what is sought is what can be lost, whatever the chance."""
_AT_ONCE = 0.02
"""An answer that takes no longer is there at once."""


@dataclass(frozen=True, slots=True)
class KindBehaviour:
    """An answer takes so many seconds; `finished`: the application answers, or says goodbye to, what it has when it is
    asked to stop, and goes on until it has."""

    took: float = 0.0
    finished: bool = True


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How every container that serves ends: `accepts` new connections for so many seconds after its stop signal, exits
    `drains` seconds after it (`ignores`: only when it is killed). A preStop command takes `hook` seconds. `kinds` are
    the kinds of requests that are not answered at once."""

    accepts: float
    drains: float
    ignores: bool = False
    hook: float = 0.0
    kinds: Mapping[Kind, KindBehaviour] = field(default_factory=dict)


@dataclass(slots=True)
class _Connection:
    number: int
    opened: float
    ip: str
    containers: Sequence[ServingContainer]
    leaving: bool
    """The Pod had its stop signal already: it closes this one after the answer."""


@dataclass(slots=True)
class _UnderWay:
    number: int
    kind: Kind
    sent: float
    connection: _Connection


class VirtualLoad:
    """Send requests at a fixed rate for each kind. `serving` returns the running containers behind an address."""

    def __init__(
        self,
        world: World,
        sink: RecordingSink,
        behaviour: Behaviour,
        serving: Serving,
    ) -> None:
        self._world = world
        self._sink = sink
        self._behaviour = behaviour
        self._serving = serving
        self._targets: Sequence[tuple[str, int]] | None = None
        self._load: Load | None = None
        self._stopped = False
        self._kept: dict[tuple[Kind, int], _Connection] = {}
        self._connections = 0
        self.begun: int | None = None

    @classmethod
    def to(cls, behaviour: Behaviour) -> "Callable[[World, RecordingSink, Serving], VirtualLoad]":
        """Return what a virtual cluster makes its load with, to Pods that end so."""
        return lambda world, sink, serving: cls(world, sink, behaviour, serving)

    def start(self, load: Load) -> None:
        self._load = load

    def enter(self, pid: int) -> None:
        """Do nothing: a Pod of the node sends as the node does."""

    def targets(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Be a load balancer for these from now on. Kept connections to others take no more requests."""
        self._targets = addresses
        there = {ip for ip, _ in addresses}
        self._kept = {slot: each for slot, each in self._kept.items() if each.ip in there}

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        return None

    async def outcomes(self) -> AsyncIterator[Outcome]:
        """Yield outcomes until `stop`, and until what is under way then has ended."""
        load, clock = self._load, self._world.clock
        assert load is not None
        began, number, order = monotonic(clock), 0, 0
        kinds = [(kind, rate) for kind, rate in load.rates.items() if rate > 0]
        times: list[tuple[float, int, Kind, float, int, _UnderWay | None]] = [
            (began, index, kind, 1.0 / rate, 0, None) for index, (kind, rate) in enumerate(kinds)
        ]
        order = len(times)
        while times:
            at, _, kind, every, count, under_way = heapq.heappop(times)
            await clock.sleep(at - monotonic(clock))
            if under_way is not None:
                yield self._ended(under_way)
                continue
            if self._stopped:
                continue
            number += 1
            self.begun = number
            order += 2
            heapq.heappush(times, (began + (count + 1) * every, order, kind, every, count + 1, None))
            begun = self._begin(number, kind, count)
            if isinstance(begun, Outcome):
                yield begun
            else:
                end = begun.sent + self._of(kind).took
                heapq.heappush(times, (end, order + 1, kind, every, count, begun))

    def _of(self, kind: Kind) -> KindBehaviour:
        return self._behaviour.kinds.get(kind, KindBehaviour())

    def _begin(self, number: int, kind: Kind, count: int) -> Outcome | _UnderWay:
        """A request that lasts, or what became of it at once."""
        at = monotonic(self._world.clock)
        slot = (kind, count % KEPT_CONNECTIONS)
        connection = self._kept.pop(slot, None)
        if connection is not None and self._is_closed(connection):
            if not self._of(kind).finished:  # nobody said goodbye
                return self._outcome(_UnderWay(number, kind, at, connection), "closed before bytes")
            connection = None
        if connection is None:
            opened = self._open(at)
            if isinstance(opened, str):
                return self._outcome(_UnderWay(number, kind, at, _Connection(0, at, opened, (), False)), "refused")
            connection = opened
        if kind in REUSED and not connection.leaving:
            self._kept[slot] = connection
        request = _UnderWay(number, kind, at, connection)
        return self._outcome(request) if self._of(kind).took <= _AT_ONCE else request

    def _open(self, at: float) -> _Connection | str:
        """A connection; the address that refused it, "" where the rules lead nowhere."""
        assert self._load is not None
        endpoints = self._targets
        if endpoints is None:
            target = self._sink.target(self._load.target[0], "TCP", self._load.target[1])
            endpoints = [] if target is None else target.backends
        ip = self._world.random.choice(endpoints)[0] if endpoints else ""
        containers = self._serving(ip) if ip else ()
        if not any(each.term is None or at < each.term + self._behaviour.accepts for each in containers):
            return ip
        self._connections += 1
        leaving = all(each.term is not None for each in containers)
        return _Connection(self._connections, at, ip, containers, leaving)

    def _is_closed(self, connection: _Connection) -> bool:
        """Return whether the Pod was asked to stop since it was opened."""
        return _is_gone(connection) or all(each.term is not None for each in self._serving(connection.ip))

    def _ended(self, request: _UnderWay) -> Outcome:
        """The answer, if the container is still there for it, or finished it."""
        if _is_gone(request.connection):
            return self._outcome(request, "reset before bytes")
        if not self._of(request.kind).finished and self._is_closed(request.connection):
            return self._outcome(request, "reset before bytes")
        return self._outcome(request)

    def _outcome(self, request: _UnderWay, lost: Lost | None = None) -> Outcome:
        at, connection = monotonic(self._world.clock), request.connection
        age = max(0.0, request.sent - connection.opened)
        values = [request.number, request.kind, request.sent, request.sent, at, connection.number, age]
        return Outcome.from_wire([*values, 0 if lost else 200, connection.ip, lost or ""])


def _is_gone(connection: _Connection) -> bool:
    """Whether all containers have exited that were there when it was opened."""
    return all(each.exited.is_set() for each in connection.containers)
