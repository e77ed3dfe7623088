"""The node's end of the connection to its shim, on the running event loop."""

import asyncio
import errno
import os
import socket
from typing import Protocol, TypeVar

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.shim import messages
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.messages import Fields, Message, Verbs, WrongMessage
from lastcall.world.wire import Frames, WireError
from lastcall.world.world import World

M = TypeVar("M", bound=Message)

CONNECT_SECONDS = 10.0
"""How long the shim may take to listen; it starts beside the node."""


class ShimLost(RuntimeServiceError):
    """The connection broke: whether the call was done is not known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`fds` belong to the receiver."""

    fields: Fields
    blobs: tuple[bytes, ...]
    fds: tuple[int, ...]

    def read(self, kind: type[M]) -> M:
        """Read the answer. Raises RuntimeServiceError, and closes `fds`, for something else."""
        try:
            return kind.read(self.fields)
        except WrongMessage as error:
            for fd in self.fds:
                os.close(fd)
            raise RuntimeServiceError(f"the shim's answer cannot be read: {error}") from error


class Listener(Protocol):
    """Who hears the shim. Every event comes before any later answer is delivered."""

    def on_connected(self, hello: messages.Everything) -> None:
        """Handle the shim's answer to `hello`, before any later event and before the first call."""

    def on_started(self, event: messages.Started) -> None: ...
    def on_start_failed(self, event: messages.StartFailed) -> None: ...
    def on_changed(self, event: messages.Changed) -> None: ...
    def on_log_full(self, event: messages.LogFull) -> None: ...
    def on_exited(self, event: messages.Exited) -> None: ...
    def on_sandbox_ended(self, event: messages.SandboxEnded) -> None: ...
    def on_lost(self) -> None:
        """Handle a lost connection: every pending call has failed; the next call connects again."""


class ShimClient:
    """Calls what `shim/messages.py` has; answers and events arrive in the shim's order."""

    def __init__(self, world: World, path: str, listener: Listener) -> None:
        self._world = world
        self._path = path
        self._listener = listener
        self._events = Verbs(
            {
                messages.Started: listener.on_started,
                messages.StartFailed: listener.on_start_failed,
                messages.Changed: listener.on_changed,
                messages.LogFull: listener.on_log_full,
                messages.Exited: listener.on_exited,
                messages.SandboxEnded: listener.on_sandbox_ended,
            }
        )
        self._connection: Frames | None = None
        self._ready = False
        self._hello = 0
        self._connecting = asyncio.Lock()
        self._closed = False
        self._next = 0
        self._pending: dict[int, asyncio.Future[Answer]] = {}
        self._writing = False

    async def connect(self) -> None:
        """Connect unless connected, and wait for a shim that is still starting. Raises RuntimeServiceError."""
        async with self._connecting:
            if self._closed:
                raise _lost()
            if self._ready:
                return
            deadline = monotonic(self._world.clock) + CONNECT_SECONDS
            while True:
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    sock.connect(self._path)
                    break
                except OSError as error:
                    sock.close()
                    if error.errno not in (errno.ENOENT, errno.ECONNREFUSED, errno.EAGAIN):
                        raise RuntimeServiceError(f"cannot reach the shim at {self._path}: {error}") from error
                    if monotonic(self._world.clock) > deadline:
                        raise RuntimeServiceError(f"no shim listens at {self._path}") from error
                await self._world.clock.sleep(0.002)
            self._connection = Frames(sock)
            asyncio.get_running_loop().add_reader(sock, self._readable)
            self._hello = self._next + 1
            try:
                await self._call(messages.Hello())
            except asyncio.CancelledError:
                self._lose()
                raise

    async def call(self, message: Message) -> Answer:
        """Call the shim once. Raises RuntimeServiceError with its message and reason, or if it is gone."""
        if not self._ready:
            await self.connect()
        return await self._call(message)

    async def _call(self, message: Message) -> Answer:
        self._next += 1
        number = self._next
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        try:
            self._send({**message.to_wire(), "call": number})
            return await future
        finally:
            # Cancelled: the answer will find nobody, and its fds are closed there.
            self._pending.pop(number, None)

    def post(self, message: Message) -> None:
        """Send a call whose answer nobody waits for. A shim that is gone is no error.

        Between the end of one connection and the start of the next it does nothing: `on_connected` gets what is left.
        """
        self._next += 1
        try:
            self._send({**message.to_wire(), "call": self._next})
        except RuntimeServiceError:
            return

    def _send(self, fields: Fields) -> None:
        connection = self._connection
        if connection is None or self._closed:
            raise _lost()
        try:
            done = connection.send(fields)
        except OSError as error:
            self._lose()
            raise _lost() from error
        if not done and not self._writing:
            self._writing = True
            asyncio.get_running_loop().add_writer(connection.socket, self._writable)

    def _writable(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            done = connection.flush()
        except OSError:
            self._lose()
            return
        if done:
            self._writing = False
            asyncio.get_running_loop().remove_writer(connection.socket)

    def _readable(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            received = connection.receive()
        except (OSError, WireError):
            received = None
        if received is None:
            self._lose()
            return
        for fields, blobs, fds in received:
            key = str(fields.get("verb") or fields.get("answer"))
            with crash_guard.Turn("node's shim connection", key):  # one message may not cost the ones after it
                if "verb" in fields:
                    do, event = self._events.read(fields)
                    do(event)
                else:
                    self._answer(Answer(fields, blobs, fds))

    def _answer(self, answer: Answer) -> None:
        number = answer.fields.get("answer", 0)
        if number == self._hello and not self._ready:
            self._ready = True
            with crash_guard.Turn("node's shim connection", "hello"):
                self._listener.on_connected(answer.read(messages.Everything))
        future = self._pending.pop(number, None)
        if future is None or future.done():
            for fd in answer.fds:
                os.close(fd)
        elif "error" in answer.fields:
            reason = str(answer.fields.get("reason") or "")
            future.set_exception(RuntimeServiceError(str(answer.fields["error"]), reason))
        else:
            future.set_result(answer)

    def _lose(self) -> None:
        if self._connection is not None:
            self._hang_up()
            self._listener.on_lost()

    def close(self) -> None:
        """Close the connection for good; the shim ends this node's execs and keeps its containers."""
        self._closed = True
        self._hang_up()

    def _hang_up(self) -> None:
        self._ready = False
        connection, self._connection = self._connection, None
        if connection is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(connection.socket)
            if self._writing:
                loop.remove_writer(connection.socket)
                self._writing = False
            connection.close()
        pending, self._pending = self._pending, {}
        for future in pending.values():
            if not future.done():
                future.set_exception(_lost())


def _lost() -> ShimLost:
    return ShimLost("the connection to the shim is gone")
