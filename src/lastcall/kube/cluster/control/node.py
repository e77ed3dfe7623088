"""What front asks a node's process: to shut down gracefully, and to go on after all.

Packets over a socket pair that was made before the clone. A question has a number (`call`); answers with it are any
number of `text`, and then `end` or `error`. A node that was started again reads on.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from lastcall.kube.cluster.errors import ControlError
from lastcall.world import crash_guard
from lastcall.world.messages import Fields, Message, Verbs, WrongMessage
from lastcall.world.tasks import Tasks
from lastcall.world.wire import Packets, packets_pair

if TYPE_CHECKING:
    from lastcall.kube.node.shutdown.decide import ShutdownGracePeriod


class ShutDown(Message, verb="shutdown"):
    """`periods`: [priority, seconds] each."""

    periods: list[list[int]]


class Cancel(Message, verb="cancel"):
    pass


class Answer(Message):
    text: str = ""


def node_control_pair() -> tuple[socket.socket, socket.socket]:
    """Create a pair of sockets: (front's end, the node's end)."""
    return packets_pair()


class Shutdown(Protocol):
    """What is needed of `lastcall.kube.node.shutdown.manager.NodeShutdown`."""

    async def shut_down(self, periods: Sequence[ShutdownGracePeriod], progress: Callable[[str], None]) -> None: ...
    def cancel(self) -> None: ...


class NodeControlServer:
    """The node's end. `start` inside asyncio."""

    def __init__(self, sock: socket.socket, shutdown: Shutdown, tasks: Tasks) -> None:
        self._packets = Packets(sock)
        self._shutdown = shutdown
        self._tasks = tasks
        self._verbs = Verbs({ShutDown: self._shut_down, Cancel: self._cancel})

    def start(self) -> None:
        self._packets.socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._packets.socket.fileno(), self._read)

    def _read(self) -> None:
        for fields, _ in self._packets.read():
            with crash_guard.Turn("node control", ""):
                self._tasks.spawn(self._guarded(fields), name=f"asked to {fields.get('verb')}")
        if self._packets.closed:
            asyncio.get_running_loop().remove_reader(self._packets.socket.fileno())

    async def _guarded(self, fields: Fields) -> None:
        call = fields.get("call")
        with crash_guard.Turn("node control", str(fields.get("verb"))) as turn:
            try:
                do, asked = self._verbs.read(fields)
            except WrongMessage as error:
                self._say(call, error=str(error))
            else:
                await do(call, asked)
        if turn.error is not None:
            self._say(call, error=crash_guard.text_of(turn.error))

    async def _cancel(self, call: object, asked: Cancel) -> None:
        self._shutdown.cancel()
        self._say(call, end=True)

    async def _shut_down(self, call: object, asked: ShutDown) -> None:
        # late: 49 ms of the start of `rollout`
        from lastcall.kube.node.shutdown.decide import ShutdownGracePeriod, ShutdownNotSupported  # front does without

        if any(len(each) != 2 or not all(type(number) is int for number in each) for each in asked.periods):
            self._say(call, error="periods must be a list of [priority, seconds]")
            return
        periods = [ShutdownGracePeriod(priority, seconds) for priority, seconds in asked.periods]
        try:
            await self._shutdown.shut_down(periods, lambda text: self._say(call, **Answer(text=text).to_wire()))
        except ShutdownNotSupported as error:
            self._say(call, error=str(error))
        else:
            self._say(call, end=True)

    def _say(self, call: object, **fields: Any) -> None:
        with suppress(OSError):  # a front that does not read is not waited for
            self._packets.send({"answer": call, **fields})


class NodeControlClient:
    """Front's end. `start` inside asyncio; `failed` when the node's process died."""

    def __init__(self, sock: socket.socket) -> None:
        self._packets = Packets(sock)
        self._last = 0
        self._waiting: dict[int, asyncio.Queue[Fields]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._packets.socket.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._packets.socket.fileno(), self._read)

    def close(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._packets.socket.fileno())
        self._loop = None
        self._packets.close()

    def failed(self, why: str) -> None:
        """Fail all open questions: nobody will answer them."""
        for queue in self._waiting.values():
            queue.put_nowait({"error": why})

    async def ask(self, message: Message) -> AsyncIterator[str]:
        """Ask the node, and yield its lines until it is done. Raises ControlError."""
        self._last = call = self._last + 1
        queue = self._waiting[call] = asyncio.Queue()
        try:
            try:
                self._packets.send({**message.to_wire(), "call": call})
            except OSError as error:
                raise ControlError(f"the node does not listen: {error.strerror}") from error
            while True:
                fields = await queue.get()
                if "error" in fields:
                    raise ControlError(str(fields["error"]))
                if fields.get("end"):
                    return
                try:
                    yield Answer.read(fields).text
                except WrongMessage as error:
                    raise ControlError(f"the node's answer cannot be read: {error}") from error
        finally:
            self._waiting.pop(call, None)

    def _read(self) -> None:
        for fields, _ in self._packets.read():
            call = fields.get("answer")
            if type(call) is int and call in self._waiting:
                self._waiting[call].put_nowait(fields)
        if self._packets.closed and self._loop is not None:
            self._loop.remove_reader(self._packets.socket.fileno())
