"""Exec, Attach and PortForward: the shim hands descriptors over, and the data takes no way through it.

The shim keeps the reading ends (or the terminal) of an exec until the command has ended: as with containerd, a command
whose client is gone is neither killed nor hung up; it waits when its output is full.
Source: containerd internal/cri/server/container_execsync.go, container_attach.go, sandbox_portforward_linux.go.
"""

from __future__ import annotations

import os
import socket
from functools import partial

from lastcall.kube.cri.sandbox.shim import messages
from lastcall.kube.cri.sandbox.shim.messages import CallError
from lastcall.kube.cri.sandbox.shim.process import Exit
from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from lastcall.kube.cri.sandbox.shim.containers import Container, Context
    from lastcall.kube.cri.sandbox.shim.namespaces import Sandbox
    from lastcall.kube.cri.sandbox.shim.peer import Call
    from lastcall.world.messages import Message

    class Server(Protocol):
        """What the verbs of this module need of the server."""

        context: Context
        sandboxes: dict[str, Sandbox]
        containers: dict[str, Container]


_FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}


def _exec_stream(server: Server, call: Call, asked: messages.ExecStream) -> None:
    # late: the module of terminals is built on this package
    from lastcall.kube.cri.sandbox.shim.terminal import ExecStream

    container, peer = _running(server, asked.id), call.peer
    process = ExecStream(server.context, container, asked.exec_id, asked.argv, asked.tty, asked.stdin)

    def connected(streams: dict[str, int]) -> None:
        peer.streams.opened(process.id)
        call.give(messages.Streams(streams=list(streams)), tuple(streams.values()))

    def failed(text: str) -> None:
        peer.exec_ended(process.id)
        call.fail(text, "StartError")

    def done(status: Exit, stdout: bytes, stderr: bytes, because: str) -> None:
        peer.exec_ended(process.id)
        ended = messages.Ended(exit_code=status.code, signal=status.signal, killed_because=because)
        peer.streams.ended(process.id, ended)

    process.on_connected = connected
    process.on_start_failed = failed
    process.on_done = done
    peer.execs[process.id] = process
    try:
        process.start(0)
    except OSError as error:
        del peer.execs[process.id]
        raise CallError(f"container {asked.id!r} is not running", "NotFound") from error


def _exec_wait(server: Server, call: Call, asked: messages.ExecWait) -> None:
    call.peer.streams.wait(asked.exec_id, call.answer)


def _exec_release(server: Server, call: Call, asked: messages.ExecRelease) -> None:
    call.peer.streams.release(asked.exec_id)
    call.answer()


def _attach(server: Server, call: Call, asked: messages.Attach) -> None:
    container = _running(server, asked.id)
    streams: dict[str, int] = {}
    try:
        if container.terminal >= 0:
            streams["terminal"] = os.dup(container.terminal)
        elif asked.stdin and container.stdin >= 0:
            streams["stdin"] = os.dup(container.stdin)
        for name, wanted in (("stdout", asked.stdout), ("stderr", asked.stderr)):
            if wanted:
                streams[name] = container.taps.attach(name)
    except OSError:
        for fd in streams.values():
            os.close(fd)
        raise
    call.give(messages.Streams(streams=list(streams)), tuple(streams.values()))


def _close_stdin(server: Server, call: Call, asked: messages.CloseStdin) -> None:
    container = server.containers.get(asked.id)
    if container is not None:
        container.close_stdin()
    call.answer()


def _socket(server: Server, call: Call, asked: messages.Socket) -> None:
    sandbox = server.sandboxes.get(asked.id)
    if sandbox is None:
        raise CallError(f"sandbox {asked.id!r} is not there", "NotFound")
    if asked.family not in _FAMILIES:
        raise CallError(f"unknown family {asked.family!r}: {', '.join(_FAMILIES)}")
    network = sandbox.namespaces.get(linux.CLONE_NEWNET)
    if network is not None:
        linux.setns(network, linux.CLONE_NEWNET)
    try:
        sock = socket.socket(_FAMILIES[asked.family], socket.SOCK_STREAM)
    finally:
        if network is not None:
            linux.setns(server.context.own.fds[linux.CLONE_NEWNET], linux.CLONE_NEWNET)
    call.give(None, (sock.detach(),))


def _running(server: Server, identity: str) -> Container:
    container = server.containers.get(identity)
    if container is None or not container.running:
        raise CallError(f"container {identity!r} is not running", "NotFound")
    return container


def table(server: Server) -> dict[type[Message], Callable[..., None]]:
    """Return the verbs of this module, for one server."""
    verbs_here: dict[type[Message], Callable[..., None]] = {
        messages.ExecStream: _exec_stream,
        messages.ExecWait: _exec_wait,
        messages.ExecRelease: _exec_release,
        messages.Attach: _attach,
        messages.CloseStdin: _close_stdin,
        messages.Socket: _socket,
    }
    return {kind: partial(do, server) for kind, do in verbs_here.items()}
