"""The load generator's process, and front's side of it.

A process of its own: a generator that shares a loop with somebody else measures that somebody. Over a stream socket
pair made before the clone go JSON objects, a line each: `{"enter": pid}` (send from that process's network namespace),
`{"start": …}`, `{"targets": [[address, port], …]}` (be a load
balancer for these) and `{"stop": true}` to it; `{"outcomes": [[…], …]}` back, at the end with
`"done": true, "begun": n`. One on the host says `{"ready": true}` first.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Self

import uvloop

from lastcall.cluster.errors import ControlError
from lastcall.cluster.health.heartbeat import Heartbeat
from lastcall.cluster.layout import LOAD
from lastcall.cluster.plan import Plan
from lastcall.traffic.conntrack import Connections, connections
from lastcall.traffic.generator import Generator, Load
from lastcall.traffic.outcome import Outcome
from lastcall.world import linux
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

REPORT_SECONDS = 0.1
_LINE = 1 << 24


def main(plan: Plan) -> None:
    """Run until killed."""
    assert plan.load is not None
    uvloop.run(_serve(plan.load[1], heart=plan.hearts[LOAD]))


def main_on_host(fd: int) -> None:
    """A process of its own on the host: `fd` is its end of the socket pair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is for front, whose end is this one's
    uvloop.run(_serve(socket.socket(fileno=fd), in_cluster=False))


async def _serve(sock: socket.socket, *, in_cluster: bool = True, heart: Heartbeat | None = None) -> None:
    if heart is not None:
        heart.start(asyncio.get_running_loop())
        heart.as_usual()
    reader, writer = await asyncio.open_connection(sock=sock, limit=_LINE)
    # The node's, wherever this process goes: that is where addresses are translated.
    tracking = connections() if in_cluster else None
    if not in_cluster:
        writer.write(b'{"ready": true}\n')
    while line := await reader.readline():
        message = json.loads(line)
        if "enter" in message:
            _enter(message["enter"])
        if "start" in message:
            start = message["start"]
            await _run(Load(**{**start, "target": tuple(start["target"])}), tracking, reader, writer)


def _enter(pid: int) -> None:
    netns = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        linux.setns(netns, linux.CLONE_NEWNET)
    finally:
        os.close(netns)


async def _run(
    load: Load, tracking: Connections | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    world = World()
    waiting: list[list[Any]] = []
    generator = Generator(world, load, lambda outcome: waiting.append(outcome.to_wire()), tracking)

    async def obey() -> None:
        while line := await reader.readline():
            message = json.loads(line)
            if "targets" not in message:
                break
            generator.targets([(address, port) for address, port in message["targets"]])
        generator.stop()  # a front that is gone says it, too

    async def report() -> None:
        while True:
            await world.clock.sleep(REPORT_SECONDS)
            if waiting:
                writer.write(json.dumps({"outcomes": waiting}).encode() + b"\n")
                waiting.clear()

    async with Tasks() as tasks:
        tasks.spawn(report(), name="reports")
        tasks.spawn(obey(), name="orders")
        await generator.run()
        tasks.cancel()
    writer.write(json.dumps({"outcomes": waiting, "done": True, "begun": generator.begun}).encode() + b"\n")


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
        """With a generator on the host, outside of the cluster: a process that ends when this is closed."""
        ours, theirs = socket.socketpair()
        program = f"from lastcall.cluster.load import main_on_host; main_on_host({theirs.fileno()})"
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
        self._say({"enter": pid})

    def start(self, load: Load) -> None:
        """Send requests from now on."""
        self._say({"start": asdict(load)})

    def targets(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Be a load balancer for these from now on."""
        self._say({"targets": [list(each) for each in addresses]})

    def stop(self) -> None:
        """Send no more; answers under way are waited for."""
        self._say({"stop": True})

    async def outcomes(self) -> AsyncIterator[Outcome]:
        """Every outcome. Raises ControlError when the process died."""
        while line := await self._reader.readline():
            message = json.loads(line)
            for values in message["outcomes"]:
                yield Outcome.from_wire(values)
            if message.get("done"):
                self.begun = message["begun"]
                return
        raise ControlError("the load generator's process ended")

    def close(self) -> None:
        self._writer.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _say(self, message: dict[str, Any]) -> None:
        with suppress(ConnectionError):
            self._writer.write(json.dumps(message).encode() + b"\n")
