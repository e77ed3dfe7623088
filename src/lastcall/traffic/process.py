"""The load generator's process, and front's side of it.

A process of its own: a generator that shares a loop with other work measures that work. Lines over a stream
socket pair that was made before the clone (`world/wire.py`): `Enter`, `Start`, `Targets` and `Stop` to it, `Outcomes`
back, the last of them with `done`. What it does not understand is answered with an `error`, which ends the outcomes.
One on the host says `Ready` first.
"""

# check: starts processes because the load generator on the host is a Python without a shell

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Self

import uvloop

from lastcall.kube.cluster import ControlError
from lastcall.traffic.generator import Generator
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import Outcome
from lastcall.world import linux, wire
from lastcall.world.conntrack import Connections, connections
from lastcall.world.messages import Fields, Message, Verbs, WrongMessage
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

REPORT_SECONDS = 0.1
_LINE = 1 << 24


class Enter(Message, verb="enter"):
    """Send from the network namespace of this process."""

    pid: int


class Start(Message, verb="start"):
    """`load`: the fields of `Load`."""

    load: dict[str, Any]


class Targets(Message, verb="targets"):
    """Be a load balancer for these: [address, port] each."""

    targets: list[list[Any]]


class Stop(Message, verb="stop"):
    pass


class Ready(Message, verb="ready"):
    pass


class Outcomes(Message):
    """`begun`: how many requests were sent in all, with the last outcomes."""

    outcomes: list[list[Any]]
    done: bool = False
    begun: int = 0


def main(sock: socket.socket, runs: Callable[[asyncio.AbstractEventLoop], None]) -> None:
    """Run until killed, in the cluster's first node. `runs` gets the loop once it turns."""
    uvloop.run(_serve(sock, runs))


def main_on_host(fd: int) -> None:
    """Run as a process of its own on the host: `fd` is its end of the socket pair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is for front, whose end is this one's
    uvloop.run(_serve(socket.socket(fileno=fd)))


async def _serve(sock: socket.socket, runs: Callable[[asyncio.AbstractEventLoop], None] | None = None) -> None:
    if runs is not None:
        runs(asyncio.get_running_loop())
    reader, writer = await asyncio.open_connection(sock=sock, limit=_LINE)
    # The node's, wherever this process goes: that is where addresses are translated.
    tracking = connections() if runs is not None else None
    if runs is None:
        writer.write(_line(Ready().to_wire()))
    await _Served(reader, writer, tracking).hold()


class _Served:
    """One end's orders, in their order. A load that runs hears `Targets`, and ends with `Stop`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tracking: Connections | None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._tracking = tracking
        self._running: Generator | None = None
        self._verbs = Verbs({Enter: self._enter, Start: self._start, Targets: self._targets, Stop: self._stop})

    async def hold(self) -> None:
        """Until the other end is gone."""
        async with Tasks() as tasks:
            self._tasks = tasks
            while line := await self._reader.readline():
                try:
                    do, asked = self._verbs.read(wire.decode(line))
                    do(asked)
                except (WrongMessage, wire.WireError, OSError, TypeError, ValueError) as error:
                    self._writer.write(_line({"error": str(error)}))
            self._stop(Stop())  # a front that is gone says it, too

    def _enter(self, asked: Enter) -> None:
        netns = os.open(f"/proc/{asked.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            linux.setns(netns, linux.CLONE_NEWNET)
        finally:
            os.close(netns)

    def _targets(self, asked: Targets) -> None:
        if self._running is not None:
            self._running.targets([(address, port) for address, port in asked.targets])

    def _stop(self, asked: Stop) -> None:
        if self._running is not None:
            self._running.stop()

    def _start(self, asked: Start) -> None:
        if self._running is not None:
            raise WrongMessage("a load is running")
        load = Load(**{**asked.load, "target": tuple(asked.load["target"])})
        waiting: list[list[Any]] = []
        generator = Generator(World(), load, lambda outcome: waiting.append(outcome.to_wire()), self._tracking)
        self._running = generator
        self._tasks.spawn(self._run(generator, waiting), name="load")

    async def _run(self, generator: Generator, waiting: list[list[Any]]) -> None:
        clock = World().clock

        async def report() -> None:
            while True:
                await clock.sleep(REPORT_SECONDS)
                if waiting:
                    self._writer.write(_line(Outcomes(outcomes=waiting).to_wire()))
                    waiting.clear()

        async with Tasks() as tasks:
            tasks.spawn(report(), name="reports")
            await generator.run()
            tasks.cancel()
        self._running = None
        self._writer.write(_line(Outcomes(outcomes=waiting, done=True, begun=generator.begun).to_wire()))


def _line(fields: Fields) -> bytes:
    return wire.encode(fields) + b"\n"


class LoadClient:
    """`start`, then follow `outcomes` until they end, which they do after `stop`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._process: subprocess.Popen[bytes] | None = None
        self.begun: int | None = None
        """How many requests the generator began: known when the outcomes have ended."""

    @classmethod
    async def over(cls, sock: socket.socket) -> Self:
        return cls(*await asyncio.open_connection(sock=sock, limit=_LINE))

    @classmethod
    async def on_host(cls) -> Self:
        """Start a generator on the host, outside of the cluster: a process that ends when this is closed."""
        ours, theirs = socket.socketpair()
        program = f"from lastcall.traffic.process import main_on_host; main_on_host({theirs.fileno()})"
        process = subprocess.Popen([sys.executable, "-c", program], pass_fds=[theirs.fileno()])  # noqa: ASYNC220, S603
        theirs.close()
        client = await cls.over(ours)
        client._process = process
        if not await client._reader.readline():
            client.close()
            raise ControlError("the load generator's process cannot be started")
        return client

    def enter(self, pid: int) -> None:
        """Send from the network namespace of a process of the cluster (its pid as the cluster sees it)."""
        self._say(Enter(pid=pid))

    def start(self, load: Load) -> None:
        """Send requests from now on."""
        self._say(Start(load=asdict(load)))

    def targets(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Be a load balancer for these from now on."""
        self._say(Targets(targets=[list(each) for each in addresses]))

    def stop(self) -> None:
        """Send no more; answers under way are waited for."""
        self._say(Stop())

    async def outcomes(self) -> AsyncIterator[Outcome]:
        """Yield every outcome. Raises ControlError when the process died."""
        while line := await self._reader.readline():
            fields = wire.decode(line)
            if "error" in fields:
                raise ControlError(f"the load generator: {fields['error']}")
            answer = Outcomes.read(fields)
            for values in answer.outcomes:
                yield Outcome.from_wire(values)
            if answer.done:
                self.begun = answer.begun
                return
        raise ControlError("the load generator's process ended")

    def close(self) -> None:
        self._writer.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _say(self, message: Message) -> None:
        with suppress(ConnectionError):
            self._writer.write(_line(message.to_wire()))
