"""Answer a node's questions about the containers of a runtime: JSON objects, one a line, in their order."""

from __future__ import annotations

import contextlib
import json

from lastcall.kube.cri.sandbox.shim.loop import Loop
from lastcall.kube.cri.v1.witness import messages
from lastcall.kube.cri.v1.witness.container import Container, Context, tell_missed
from lastcall.world import crash_guard
from lastcall.world.messages import Verbs, WrongMessage
from lastcall.world.wire import listen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from lastcall.world.messages import Message

_READ_SIZE = 1 << 16
_LONGEST = 1 << 20


class Server:
    """Listens at `path`; keeps the containers that it was asked to watch, whoever asked."""

    def __init__(self, context: Context, path: str) -> None:
        """Raises OSError."""
        self._context = context
        self._containers: dict[str, Container] = {}
        self._verbs = Verbs(
            {
                messages.Watch: self._watch,
                messages.Stopping: self._stopping,
                messages.Ended: self._ended,
                messages.Listeners: self._listeners,
                messages.Forget: self._forget,
            }
        )
        self._listener = listen(path)
        context.loop.watch(self._listener.fileno(), self._accept)

    def _accept(self, events: int) -> None:
        with contextlib.suppress(OSError):
            sock, _ = self._listener.accept()
            _Peer(self, self._context.loop, sock)

    def answer(self, line: bytes) -> bytes:
        """Return the answer to one line."""
        try:
            asked = json.loads(line)
            do, message = self._verbs.read(asked if isinstance(asked, dict) else {})
            said: Message = do(message)
            answer = said.to_wire()
        except (WrongMessage, ValueError, RecursionError, OSError) as error:
            answer = {"error": str(error)}
        except Exception as error:
            crash_guard.caught("witness", "a node's question", error)
            answer = {"error": f"{type(error).__name__}: {error}"}
        return json.dumps(answer, separators=(",", ":")).encode() + b"\n"

    # -- what is asked -----------------------------------------------------------------------------------------------

    def _watch(self, asked: messages.Watch) -> messages.Watching:
        known = self._containers.get(asked.id)
        if known is not None and known.pid == asked.pid:
            return messages.Watching(done=True, start=known.start)
        if known is not None:
            known.close()
        try:
            if asked.pid <= 0:
                raise ProcessLookupError
            container = self._containers[asked.id] = Container(self._context, asked, self._beside)
        except ProcessLookupError:
            if not asked.known:
                tell_missed(self._context, asked)
            return messages.Watching(done=True)
        return messages.Watching(done=True, start=container.start)

    def _beside(self, container: Container) -> list[Container]:
        """Return the other containers of its Pod that run."""
        uid = container.watch.pod_uid
        others = [each for each in self._containers.values() if each is not container and not each.exited]
        return [each for each in others if each.watch.pod_uid == uid]

    def _stopping(self, asked: messages.Stopping) -> messages.Done:
        container = self._containers.get(asked.id)
        if container is not None:
            container.stopping(asked.signal, asked.timeout)
        return messages.Done(done=container is not None)

    def _ended(self, asked: messages.Ended) -> messages.Done:
        container = self._containers.get(asked.id)
        if container is not None:
            container.ended(asked.exit_code, oom_killed=asked.oom_killed)
        return messages.Done(done=container is not None and container.recorded)

    def _listeners(self, asked: messages.Listeners) -> messages.Listening:
        container = self._containers.get(asked.id)
        return messages.Listening(listeners=container.listeners() if container is not None else None)

    def _forget(self, asked: messages.Forget) -> messages.Done:
        container = self._containers.pop(asked.id, None)
        if container is not None:
            container.close()
        return messages.Done(done=container is not None)


class _Peer:
    """One connection. Its answers are short: one that does not read them is hung up on."""

    def __init__(self, server: Server, loop: Loop, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._server, self._loop, self._sock = server, loop, sock
        self._rest = b""
        loop.watch(sock.fileno(), self._ready)

    def _ready(self, events: int) -> None:
        try:
            data = self._sock.recv(_READ_SIZE)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                answer = self._server.answer(line)
                if self._sock.send(answer) != len(answer):
                    data = b""
        except OSError:
            data = b""
        if not data or len(self._rest) > _LONGEST:
            self._loop.unwatch(self._sock.fileno())
            self._sock.close()
