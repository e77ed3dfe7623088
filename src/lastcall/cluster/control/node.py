"""What front asks a node's process: to shut down gracefully, and to go on after all.

One SEQPACKET socket pair, made before the clone, carries a JSON object a message: `{"id": …, "action": "shutdown",
"periods": [[priority, seconds], …]}` or `{"id": …, "action": "cancel"}`, answered with any number of `{"id": …, "text":
…}` and then `{"id": …, "end": true}` or `{"id": …, "error": …}`. A node that was started again reads on.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from lastcall.cluster.errors import ControlError
from lastcall.world import walls
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    from lastcall.node.shutdown.decide import ShutdownGracePeriod

Message = dict[str, Any]

_MAX_MESSAGE = 64 * 1024


def node_control_pair() -> tuple[socket.socket, socket.socket]:
    """(front's end, the node's end)."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Shutdown(Protocol):
    """What is needed of `lastcall.node.shutdown.manager.NodeShutdown`."""

    async def shut_down(self, periods: "Sequence[ShutdownGracePeriod]", progress: Callable[[str], None]) -> None: ...
    def cancel(self) -> None: ...


class NodeControlServer:
    """The node's end. `start` inside asyncio."""

    def __init__(self, sock: socket.socket, shutdown: Shutdown, tasks: Tasks) -> None:
        self._sock = sock
        self._shutdown = shutdown
        self._tasks = tasks

    def start(self) -> None:
        self._sock.setblocking(False)
        asyncio.get_running_loop().add_reader(self._sock.fileno(), self._read)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            while data := self._sock.recv(_MAX_MESSAGE):
                with walls.Turn("node control", ""):
                    message = json.loads(data)
                    self._tasks.spawn(self._guarded(message), name=f"asked to {message['action']}")
            asyncio.get_running_loop().remove_reader(self._sock.fileno())

    async def _guarded(self, message: Message) -> None:
        with walls.Turn("node control", str(message["action"])) as turn:
            await self._answer(message)
        if turn.error is not None:
            self._say({"id": message["id"], "error": walls.text_of(turn.error)})

    async def _answer(self, message: Message) -> None:
        identity = message["id"]
        if message["action"] == "cancel":
            self._shutdown.cancel()
        else:
            from lastcall.node.shutdown.decide import ShutdownGracePeriod, ShutdownNotSupported  # front does without

            periods = [ShutdownGracePeriod(priority, seconds) for priority, seconds in message["periods"]]
            try:
                await self._shutdown.shut_down(periods, lambda text: self._say({"id": identity, "text": text}))
            except ShutdownNotSupported as error:
                self._say({"id": identity, "error": str(error)})
                return
        self._say({"id": identity, "end": True})

    def _say(self, message: Message) -> None:
        with suppress(OSError):  # a front that does not read is not waited for
            self._sock.send(json.dumps(message).encode())


class NodeControlClient:
    """Front's end. `start` inside asyncio; `failed` when the node's process died."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._last = 0
        self._waiting: dict[int, asyncio.Queue[Message]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._sock.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._sock.fileno(), self._read)

    def close(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._sock.fileno())
        self._loop = None
        self._sock.close()

    def failed(self, why: str) -> None:
        """Nobody will answer what was asked so far."""
        for queue in self._waiting.values():
            queue.put_nowait({"error": why})

    async def ask(self, action: str, **arguments: Any) -> AsyncIterator[str]:
        """The node's words until it is done. Raises ControlError."""
        self._last += 1
        identity = self._last
        queue = self._waiting[identity] = asyncio.Queue()
        try:
            try:
                self._sock.send(json.dumps({"id": identity, "action": action, **arguments}).encode())
            except OSError as error:
                raise ControlError(f"the node does not listen: {error.strerror}") from error
            while True:
                message = await queue.get()
                if "error" in message:
                    raise ControlError(message["error"])
                if message.get("end"):
                    return
                yield message["text"]
        finally:
            self._waiting.pop(identity, None)

    def _read(self) -> None:
        with suppress(BlockingIOError, ConnectionResetError):
            while data := self._sock.recv(_MAX_MESSAGE):
                message = json.loads(data)
                if message["id"] in self._waiting:
                    self._waiting[message["id"]].put_nowait(message)
            if self._loop is not None:
                self._loop.remove_reader(self._sock.fileno())
