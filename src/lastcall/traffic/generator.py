"""The load: requests at a fixed rate, whatever becomes of those before them (an open loop), one outcome for each.

A closed loop would wait for slow answers and send less just when it matters. Requests that come while all connections
of the keep-alive kind are busy open another one, as the pools of HTTP clients do.
"""

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lastcall.traffic.conntrack import Address, Connections
from lastcall.traffic.http1 import exchange
from lastcall.traffic.outcome import Kind, Lost, Outcome
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

CONNECT_SECONDS = 3.0
"""A first SYN that is lost is sent again after 1 s, then after 2 s."""
PULSE_SECONDS = 0.1
_USUAL_SECONDS = 0.02
"""A pulse no later than this is as good as on time."""
IDLE_SECONDS = 60.0
"""An idle connection older than this is closed by the client, as by most pools (Go 90 s, Java and nginx 60 s)."""

_REFUSED: Mapping[int, Lost] = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.ETIMEDOUT: "connect timeout",
    errno.ECONNRESET: "refused",
}


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the generator. `rates` are requests per second by kind; `timeout` is seconds for one answer."""

    target: Address
    """The Service's; not used once `Generator.targets` was given some."""
    rates: Mapping[Kind, float]
    host: str = ""
    path: str = "/"
    slow_path: str = "/slow"
    timeout: float = 10.0


@dataclass(slots=True)
class _Connection:
    number: int
    opened: float
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    target: Address
    served_by: str = ""
    idle_since: float = 0.0


class Generator:
    """`run` sends until `stop` is called, then waits for the answers that are under way."""

    def __init__(
        self, world: World, load: Load, report: Callable[[Outcome], None], tracking: Connections | None = None
    ) -> None:
        """`report` gets every outcome, in the order in which they are known. `tracking` stays the caller's."""
        self._world = world
        self._clock = world.clock
        self._load = load
        self._report = report
        self._last_id = 0
        self._last_connection = 0
        self._idle: deque[_Connection] = deque()
        self._stopped = asyncio.Event()
        self._targets: Sequence[Address] | None = None
        self._turn = 0
        self._tracking = tracking
        self._pulse = monotonic(world.clock)
        self._held_up = 0.0

    @property
    def begun(self) -> int:
        """How many requests were begun: their ids are 1 to this, and each has one outcome in the end."""
        return self._last_id

    def stop(self) -> None:
        """Send nothing more."""
        self._stopped.set()

    def targets(self, addresses: Sequence[Address]) -> None:
        """From now on be a load balancer: send to these in turn. Kept connections to others take no more requests."""
        self._targets = addresses
        for connection in [each for each in self._idle if each.target not in addresses]:
            self._idle.remove(connection)
            connection.writer.close()

    async def run(self) -> None:
        async with Tasks() as watching:
            watching.spawn(self._watch(), name="pulse")
            async with Tasks() as tasks:
                for kind, rate in self._load.rates.items():
                    if rate > 0:
                        tasks.spawn(self._send(kind, 1.0 / rate, tasks), name=f"load {kind}")
            watching.cancel()
        for connection in self._idle:
            connection.writer.close()

    async def _watch(self) -> None:
        """A pulse: how late it comes is how long this process was held up."""
        while True:
            self._pulse = monotonic(self._clock) + PULSE_SECONDS
            await self._clock.sleep(PULSE_SECONDS)
            late = monotonic(self._clock) - self._pulse
            self._held_up += late if late > _USUAL_SECONDS else 0.0

    def _held_up_so_far(self) -> float:
        """Seconds in all; a pulse that is overdue at this moment counts, for it may come after what asks."""
        return self._held_up + max(0.0, monotonic(self._clock) - self._pulse - _USUAL_SECONDS)

    async def _send(self, kind: Kind, every: float, tasks: Tasks) -> None:
        planned = monotonic(self._clock)
        while not self._stopped.is_set():
            wait = planned - monotonic(self._clock)
            if wait > 0:
                await self._clock.sleep(wait)
            self._last_id += 1
            tasks.spawn(self._one(self._last_id, kind, planned), name=f"request {self._last_id}")
            planned += every

    async def _one(self, number: int, kind: Kind, planned: float) -> None:
        sent, held_up = monotonic(self._clock), self._held_up_so_far()
        connection = self._take_idle() if kind == "keep-alive" else None
        if connection is None:
            target = self._next_target()
            if target is None:  # what a load balancer without a target answers
                self._report(Outcome(number, kind, planned, sent, sent, 0, 0.0, 503, "", "5xx"))
                return
            opened = await self._connect(target)
            if not isinstance(opened, _Connection):
                at = monotonic(self._clock)
                late = self._held_up_so_far() - held_up
                self._report(Outcome(number, kind, planned, sent, at, 0, 0.0, 0, opened[1], opened[0], late))
                return
            connection = opened
        age = monotonic(self._clock) - connection.opened
        status, lost, reusable = await self._ask(number, kind, connection)
        served_by = self._served_by(connection)
        at = monotonic(self._clock)
        if reusable and kind == "keep-alive" and (self._targets is None or connection.target in self._targets):
            connection.idle_since = at
            self._idle.append(connection)
        else:
            connection.writer.close()
        late = self._held_up_so_far() - held_up
        self._report(Outcome(number, kind, planned, sent, at, connection.number, age, status, served_by, lost, late))

    async def _ask(self, number: int, kind: Kind, connection: _Connection) -> tuple[int, Lost | Literal[""], bool]:
        load = self._load
        try:
            async with asyncio.timeout(load.timeout):
                if kind == "tcp":
                    return (0, await _echo(connection, number), False)
                done = await exchange(
                    connection.reader,
                    connection.writer,
                    host=load.host or load.target[0],
                    path=load.slow_path if kind == "slow" else load.path,
                    request_id=f"lc-{number}",
                    close=kind != "keep-alive",
                )
        except TimeoutError:
            return (0, "timeout", False)
        return (done.status, done.lost, done.reusable)

    def _next_target(self) -> Address | None:
        if self._targets is None:
            return self._load.target
        if not self._targets:
            return None
        self._turn += 1
        return self._targets[self._turn % len(self._targets)]

    def _take_idle(self) -> _Connection | None:
        """The connection that was used last, if the server has not closed it meanwhile."""
        now = monotonic(self._clock)
        while self._idle:
            connection = self._idle.pop()
            ended = connection.reader.at_eof() or connection.reader.exception() is not None
            if not ended and not connection.writer.is_closing() and now - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.writer.close()
        return None

    async def _connect(self, target: Address) -> _Connection | tuple[Lost, str]:
        """A connection; or how it was lost, and the endpoint that refused it."""
        local: Address | None = None
        self._last_connection += 1
        number = self._last_connection
        loop = asyncio.get_running_loop()
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                try:
                    await loop.sock_connect(sock, target)
                finally:
                    local = sock.getsockname()
            reader, writer = await asyncio.open_connection(sock=sock)
        except TimeoutError:
            sock.close()
            return "connect timeout", self._endpoint(local, target)
        except OSError as error:
            sock.close()
            return _REFUSED.get(error.errno or 0, "refused"), self._endpoint(local, target)
        return _Connection(number, monotonic(self._clock), reader, writer, target)

    def _served_by(self, connection: _Connection) -> str:
        if not connection.served_by:
            local = connection.writer.get_extra_info("sockname")
            connection.served_by = self._endpoint(local, connection.target)
        return connection.served_by

    def _endpoint(self, local: Address | None, target: Address) -> str:
        if self._targets is not None:
            return target[0]
        if self._tracking is None or local is None:
            return ""
        return self._tracking.endpoint(local, target)


async def _echo(connection: _Connection, number: int) -> Lost | Literal[""]:
    """A line, and the same line back."""
    line = b"lc-%d\n" % number
    try:
        connection.writer.write(line)
        answer = await connection.reader.readline()
    except (ConnectionError, OSError):
        return "reset before bytes"
    if not answer:
        return "closed before bytes"
    return "" if answer.endswith(b"\n") else "truncated"
