"""The load: requests at a fixed rate, whatever becomes of those before them (an open loop), one outcome for each.

A closed loop would wait for slow answers and send less just when it matters. Requests that come while all connections
of the keep-alive kind are busy open another one, as the pools of HTTP clients do.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from lastcall.traffic.connection import Connection, Dialler, Failed
from lastcall.traffic.http1 import exchange
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import LONG_LIVED, Answer, Kind, Outcome
from lastcall.traffic.ports import source_ports
from lastcall.traffic.pulse import Pulse
from lastcall.traffic.secured import Secured
from lastcall.traffic.stay import Stay, Stays
from lastcall.traffic.stream import follow
from lastcall.world.clock import monotonic
from lastcall.world.conntrack import Address, Connections
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.traffic.http2_pool import Http2Pool

IDLE_SECONDS = 60.0
"""An idle connection older than this is closed by the client, as by most pools (Go 90 s, Java and nginx 60 s)."""


@dataclass(slots=True)
class _Begun:
    number: int
    kind: Kind
    planned: float
    sent: float


class Generator:
    """`run` sends until `stop` is called, then waits for the answers that are under way."""

    def __init__(
        self, world: World, load: Load, report: Callable[[Outcome], None], tracking: Connections | None = None
    ) -> None:
        """`report` gets every outcome, in the order in which they are known. `tracking` stays the caller's."""
        self._clock = world.clock
        self._load = load
        self._report = report
        self._last_id = 0
        self._idle: deque[Connection] = deque()
        self._stopped = asyncio.Event()
        self._stays = Stays(load.length, load.lasting_every)
        self._targets: Sequence[Address] | None = None
        self._turn = 0
        secured = Secured(load.tls_name, load.ca_pem, load.timeout) if load.tls_name else None
        self._dialler = Dialler(world.clock, tracking, secured, source_ports() if load.own_ports else None)
        self._http2: Http2Pool | None = None
        self._pulse = Pulse(world.clock)

    @property
    def begun(self) -> int:
        """Return how many requests were begun: their ids are 1 to this, and each has one outcome in the end."""
        return self._last_id

    def stop(self) -> None:
        """Send nothing more, and leave the streams that were to be held until now."""
        self._stopped.set()
        self._stays.end()

    def targets(self, addresses: Sequence[Address]) -> None:
        """Be a load balancer from now on: send to these in turn. Kept connections to others take no more requests."""
        self._targets = addresses
        self._dialler.balanced = True
        for connection in [each for each in self._idle if each.target not in addresses]:
            self._idle.remove(connection)
            connection.writer.close()
        if self._http2 is not None:
            self._http2.keep_to(addresses)

    async def run(self) -> None:
        load = self._load
        async with Tasks() as watching, Tasks() as connections:
            # What only these two need is imported before the first request, whose time it would take.
            if load.rates.get("http2"):
                # late: 23 ms of the start of `rollout`
                from lastcall.traffic.http2_pool import Http2Pool

                host, size = load.host or load.target[0], load.http2_connections
                scheme = "https" if load.tls_name else "http"
                self._http2 = Http2Pool(self._clock, size, host, self._dialler, self._next_target, connections, scheme)
            if load.rates.get("websocket"):
                # late: 20 ms of the start of `rollout`
                import lastcall.traffic.websocket  # noqa: F401
            watching.spawn(self._pulse.beat(), name="pulse")
            async with Tasks() as tasks:
                for kind, rate in load.rates.items():
                    if rate > 0:
                        tasks.spawn(self._send(kind, 1.0 / rate, tasks), name=f"load {kind}")
            if self._http2 is not None:
                self._http2.close()
            watching.cancel()
        for connection in self._idle:
            connection.writer.close()

    async def _send(self, kind: Kind, every: float, tasks: Tasks) -> None:
        planned = monotonic(self._clock)
        one = self._multiplexed if kind == "http2" else self._one
        while not self._stopped.is_set():
            wait = planned - monotonic(self._clock)
            if wait > 0:
                await self._clock.sleep(wait)
            self._last_id += 1
            tasks.spawn(one(self._last_id, kind, planned), name=f"request {self._last_id}")
            planned += every

    async def _one(self, number: int, kind: Kind, planned: float) -> None:
        begun = _Begun(number, kind, planned, monotonic(self._clock))
        connection = self._take_idle() if kind == "keep-alive" else None
        if connection is None:
            target = self._next_target()
            if target is None:  # what a load balancer without a target answers
                self._tell(begun, None, 0.0, Answer(503, "5xx"))
                return
            opened = await self._dialler.connect(target)
            if isinstance(opened, Failed):
                self._tell(begun, opened, 0.0, Answer(lost=opened.lost))
                return
            connection = opened
        age = monotonic(self._clock) - connection.opened
        reusable = False
        if kind in LONG_LIVED:
            self._dialler.served_by(connection)  # the kernel may have forgotten it when they end
            with self._stays.next_of(kind) as stay:
                answer = await self._hold(number, kind, connection, stay)
        elif kind == "tcp":
            answer = await self._within(_echo(connection, number))
        else:
            answer, reusable = await self._ask(number, kind, connection)
        self._dialler.served_by(connection)
        if reusable and kind == "keep-alive" and (self._targets is None or connection.target in self._targets):
            connection.idle_since = monotonic(self._clock)
            self._idle.append(connection)
        else:
            connection.writer.close()
        self._tell(begun, connection, age, answer)

    async def _multiplexed(self, number: int, kind: Kind, planned: float) -> None:
        assert self._http2 is not None
        begun = _Begun(number, kind, planned, monotonic(self._clock))
        where, age, answer = await self._http2.request(self._load.path, f"lc-{number}", self._load.timeout)
        self._tell(begun, where, age, answer)

    def _tell(self, begun: _Begun, where: Connection | Failed | None, age: float, answer: Answer) -> None:
        self._report(
            Outcome(
                id=begun.number,
                kind=begun.kind,
                planned=begun.planned,
                sent=begun.sent,
                finished=monotonic(self._clock),
                connection=where.number if isinstance(where, Connection) else 0,
                age=age,
                status=answer.status,
                served_by=where.served_by if where is not None else "",
                lost=answer.lost,
                held_up=self._pulse.held_up(begun.sent),
                moved=answer.moved,
                messages=answer.messages,
                unanswered=answer.unanswered,
                port=where.port if where is not None else 0,
            )
        )

    async def _hold(self, number: int, kind: Kind, connection: Connection, stay: Stay) -> Answer:
        load = self._load
        host, name = load.host or load.target[0], f"lc-{number}"
        reader, writer = connection.reader, connection.writer
        if kind == "stream":
            return await follow(
                reader,
                writer,
                host=host,
                path=load.stream_path,
                request_id=name,
                stay=stay,
                timeout=load.timeout,
                clock=self._clock,
            )
        # late: 20 ms of the start of `rollout`
        from lastcall.traffic.websocket import hold

        return await hold(
            reader,
            writer,
            host=host,
            path=load.websocket_path,
            request_id=name,
            stay=stay,
            every=load.message_every,
            timeout=load.timeout,
            clock=self._clock,
            late=lambda: self._pulse.held_up(monotonic(self._clock) - 1.0),
        )

    async def _ask(self, number: int, kind: Kind, connection: Connection) -> tuple[Answer, bool]:
        """The answer, and whether the connection takes another request."""
        load = self._load
        try:
            async with asyncio.timeout(load.timeout):
                done = await exchange(
                    connection.reader,
                    connection.writer,
                    host=load.host or load.target[0],
                    path=load.slow_path if kind == "slow" else load.path,
                    request_id=f"lc-{number}",
                    close=kind != "keep-alive",
                    clock=self._clock,
                )
        except TimeoutError:
            return Answer(lost="timeout"), False
        return Answer(done.status, done.lost), done.reusable

    async def _within(self, answer: Awaitable[Answer]) -> Answer:
        try:
            async with asyncio.timeout(self._load.timeout):
                return await answer
        except TimeoutError:
            return Answer(lost="timeout")

    def _next_target(self) -> Address | None:
        if self._targets is None:
            return self._load.target
        if not self._targets:
            return None
        self._turn += 1
        return self._targets[self._turn % len(self._targets)]

    def _take_idle(self) -> Connection | None:
        """The connection that was used last, if the server has not closed it meanwhile."""
        now = monotonic(self._clock)
        while self._idle:
            connection = self._idle.pop()
            if connection.is_good() and now - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.writer.close()
        return None


async def _echo(connection: Connection, number: int) -> Answer:
    """Send a line, and read a line back, of at most the 64 KiB that the reader buffers."""
    line = b"lc-%d\n" % number
    try:
        connection.writer.write(line)
        answer = await connection.reader.readline()
    except (ConnectionError, OSError):
        return Answer(lost="reset before bytes")
    except ValueError:  # a line that is longer
        return Answer(lost="truncated")
    if not answer:
        return Answer(lost="closed before bytes")
    return Answer() if answer.endswith(b"\n") else Answer(lost="truncated")
