"""Exec, Attach and PortForward: the shim hands descriptors over, and the data takes no way through it.

| verb | asks | answers |
|---|---|---|
| exec_stream | id, execId, argv, tty, stdin | fds, named by `streams`: terminal, or [stdin] stdout stderr |
| exec_wait | execId | exitCode, signal, killedBecause; once |
| exec_release | execId | nobody waits any more; a command that runs goes on |
| attach | id, stdin, stdout, stderr | fds, named by `streams`: [terminal or stdin] [stdout] [stderr] |
| close_stdin | id | the container's input ends with its last writer |
| socket | id of a sandbox, family | fds: a TCP socket of the sandbox's network namespace |

The shim keeps the reading ends (or the terminal) of an exec until the command has ended: as with containerd, a command
whose client is gone is neither killed nor hung up; it waits when its output is full.
Source: containerd internal/cri/server/container_execsync.go, container_attach.go, sandbox_portforward_linux.go.
"""

from __future__ import annotations

import os
import socket

from lastcall.cri.sandbox.shim.process import Exit
from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lastcall.cri.sandbox.shim.containers import Container
    from lastcall.cri.sandbox.shim.server import Peer, Server
    from lastcall.cri.sandbox.shim.wire import Message

_FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}


class CallError(Exception):
    """The verb cannot be done; `reason` is CRI's."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Streams:
    """The exec streams of one connection: how they ended, and who wants to know."""

    def __init__(self) -> None:
        self._ended: dict[str, Message] = {}
        self._waiting: dict[str, Callable[[Message], None]] = {}
        self._open: dict[str, None] = {}

    def opened(self, identity: str) -> None:
        self._open[identity] = None

    def ended(self, identity: str, facts: Message) -> None:
        waiter = self._waiting.pop(identity, None)
        if waiter is not None:
            self._open.pop(identity, None)
            waiter(facts)
        elif identity in self._open:
            self._ended[identity] = facts

    def wait(self, identity: str, waiter: Callable[[Message], None]) -> None:
        if identity not in self._open or identity in self._waiting:
            raise CallError(f"no exec {identity!r} to wait for", "NotFound")
        if identity in self._ended:
            del self._open[identity]
            waiter(self._ended.pop(identity))
        else:
            self._waiting[identity] = waiter

    def release(self, identity: str) -> None:
        for table in (self._open, self._ended, self._waiting):
            table.pop(identity, None)


def _exec_stream(server: Server, peer: Peer, message: Message) -> None:
    from lastcall.cri.sandbox.shim.terminal import ExecStream

    container = _running(server, message["id"])
    process = ExecStream(
        server.context, container, message["execId"], message["argv"], message["tty"], message["stdin"]
    )

    def connected(streams: dict[str, int]) -> None:
        peer.streams.opened(process.id)
        peer.give(message, {"streams": list(streams)}, tuple(streams.values()))

    def failed(text: str) -> None:
        peer.exec_ended(process.id)
        peer.answer_error(message, text, "StartError")

    def done(status: Exit, stdout: bytes, stderr: bytes, because: str) -> None:
        peer.exec_ended(process.id)
        facts = {"exitCode": status.code, "signal": status.signal, "killedBecause": because}
        peer.streams.ended(process.id, facts)

    process.on_connected = connected
    process.on_start_failed = failed
    process.on_done = done
    peer.execs[process.id] = process
    try:
        process.start(0)
    except OSError as error:
        del peer.execs[process.id]
        raise CallError(f"container {message['id']!r} is not running", "NotFound") from error


def _exec_wait(server: Server, peer: Peer, message: Message) -> None:
    peer.streams.wait(message["execId"], lambda facts: peer.answer(message, facts))


def _exec_release(server: Server, peer: Peer, message: Message) -> None:
    peer.streams.release(message["execId"])
    peer.answer(message)


def _attach(server: Server, peer: Peer, message: Message) -> None:
    container = _running(server, message["id"])
    streams: dict[str, int] = {}
    try:
        if container.terminal >= 0:
            streams["terminal"] = os.dup(container.terminal)
        elif message["stdin"] and container.stdin >= 0:
            streams["stdin"] = os.dup(container.stdin)
        for name in ("stdout", "stderr"):
            if message[name]:
                streams[name] = container.taps.attach(name)
    except OSError:
        for fd in streams.values():
            os.close(fd)
        raise
    peer.give(message, {"streams": list(streams)}, tuple(streams.values()))


def _close_stdin(server: Server, peer: Peer, message: Message) -> None:
    container = server.containers.get(message["id"])
    if container is not None:
        container.close_stdin()
    peer.answer(message)


def _socket(server: Server, peer: Peer, message: Message) -> None:
    sandbox = server.sandboxes.get(message["id"])
    if sandbox is None:
        raise CallError(f"sandbox {message['id']!r} is not there", "NotFound")
    network = sandbox.namespaces.get(linux.CLONE_NEWNET)
    if network is not None:
        linux.setns(network, linux.CLONE_NEWNET)
    try:
        sock = socket.socket(_FAMILIES[message["family"]], socket.SOCK_STREAM)
    finally:
        if network is not None:
            linux.setns(server.context.own.fds[linux.CLONE_NEWNET], linux.CLONE_NEWNET)
    peer.give(message, {}, (sock.detach(),))


def _running(server: Server, identity: str) -> Container:
    container = server.containers.get(identity)
    if container is None or not container.running:
        raise CallError(f"container {identity!r} is not running", "NotFound")
    return container


VERBS: dict[str, Callable[[Server, Peer, Message], None]] = {
    "exec_stream": _exec_stream,
    "exec_wait": _exec_wait,
    "exec_release": _exec_release,
    "attach": _attach,
    "close_stdin": _close_stdin,
    "socket": _socket,
}
