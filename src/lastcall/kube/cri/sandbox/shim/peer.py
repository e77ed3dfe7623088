"""One connected node: its calls come in, answers and events go out. What a call does is `server.py`'s."""

from __future__ import annotations

import os
import socket

from lastcall.kube.cri.sandbox.shim.loop import READ, WRITE
from lastcall.kube.cri.sandbox.shim.messages import CallError
from lastcall.kube.cri.sandbox.shim.streams.ends import Streams
from lastcall.world import crash_guard
from lastcall.world.messages import WrongMessage
from lastcall.world.wire import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from lastcall.kube.cri.sandbox.shim.containers import Context
    from lastcall.kube.cri.sandbox.shim.execs import Exec
    from lastcall.world.messages import Fields, Message
    from lastcall.world.wire import Frames

    class Server(Protocol):
        """What a peer needs of the server."""

        def do(self, call: Call, fields: Fields) -> None:
            """Execute one call. Raises CallError, WrongMessage, OSError, KeyError, TypeError and ValueError."""

        def forget(self, fd: int) -> None: ...
        def answer_hellos(self) -> None: ...


_MOST_UNSENT = 128 << 20
_LAST_READS = 16


class Call:
    """A question of one node that waits for its answer."""

    def __init__(self, peer: Peer, number: int) -> None:
        self.peer = peer
        self._number = number

    def answer(self, message: Message | None = None, blobs: tuple[bytes, ...] = (), fds: tuple[int, ...] = ()) -> None:
        self.peer.send(self._fields(message), blobs, fds)

    def give(self, message: Message | None, fds: tuple[int, ...]) -> None:
        """Answer with descriptors that are the other side's from now on."""
        self.peer.send(self._fields(message), given=fds)

    def fail(self, text: str, reason: str = "") -> None:
        self.peer.send({"answer": self._number, "error": text, "reason": reason})

    def _fields(self, message: Message | None) -> Fields:
        return {"answer": self._number, **(message.to_wire() if message is not None else {})}


class Peer:
    """One connected node."""

    def __init__(self, server: Server, connection: Frames, context: Context) -> None:
        self._server = server
        self._connection = connection
        self._loop = context.loop
        self._fd = connection.socket.fileno()
        self._closed = False
        self._writing = False
        self.execs: dict[str, Exec] = {}
        self.streams = Streams()
        context.loop.watch(self._fd, self._ready)

    def send(
        self, message: Fields, blobs: tuple[bytes, ...] = (), fds: tuple[int, ...] = (), given: tuple[int, ...] = ()
    ) -> None:
        if self._closed:
            for fd in given:
                os.close(fd)
            return
        try:
            done = self._connection.send(message, blobs, fds, given)
        except OSError:
            self._close()
            return
        if self._connection.unsent > _MOST_UNSENT:
            self._close()
        else:
            self._want_write(not done)

    def notice_hang_up(self) -> None:
        """Notice a hang-up that the kernel may know before the loop; the peer's last calls come first."""
        for _ in range(_LAST_READS):
            try:
                self._connection.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                self._close()
            if self._closed:
                return
            self._ready(READ)

    def exec_ended(self, exec_id: str) -> None:
        self.execs.pop(exec_id, None)
        if self._closed:
            self._server.answer_hellos()

    def cancel(self, exec_id: str) -> None:
        process = self.execs.get(exec_id)
        if process is not None:
            process.kill("caller gone")

    def _want_write(self, writing: bool) -> None:
        if writing != self._writing and not self._closed:
            self._writing = writing
            self._loop.modify(self._fd, READ | WRITE if writing else READ)

    def _ready(self, events: int) -> None:
        try:
            if events & WRITE:
                self._want_write(not self._connection.flush())
            if not events & ~WRITE:
                return
            messages = self._connection.receive()
        except (OSError, WireError):
            messages = None
        except Exception as error:
            crash_guard.caught("shim", "what a node sent", error)
            messages = None
        if messages is None:
            self._close()
            return
        for fields, _, fds in messages:
            for fd in fds:
                os.close(fd)  # no verb takes any
            self._call(fields)

    def _call(self, fields: Fields) -> None:
        number = fields.get("call")
        if type(number) is not int:
            self._close()
            return
        call = Call(self, number)
        try:
            self._server.do(call, fields)
        except CallError as error:
            call.fail(str(error), error.reason)
        except WrongMessage as error:
            call.fail(str(error))
        except OSError as error:
            call.fail(error.strerror or str(error))
        except (KeyError, TypeError, ValueError) as error:
            call.fail(f"{fields.get('verb')}: {type(error).__name__}: {error}")
        except Exception as error:
            crash_guard.caught("shim", f"{fields.get('verb')} {fields.get('id', '')}".strip(), error)
            call.fail(f"{fields.get('verb')}: {type(error).__name__}: {error}")

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.unwatch(self._fd)
        self._server.forget(self._fd)
        self._connection.close()
        for process in list(self.execs.values()):
            process.kill("caller gone")
