"""The verbs of the shim, on a Unix socket. See `wire.py` for the framing.

| verb | asks | answers |
|---|---|---|
| hello | | pid, machine, sandboxes, containers (as `list`), when no exec of a connection that has closed lives any more |
| create_sandbox | id, network, ipc, pid, hostname, sysctls, users | fds: the network namespace (none for NODE) |
| remove_sandbox | id | |
| start | a container spec (`spec_fields` of shim_client) | pid, startedAt |
| signal | id, signal (number), why | sent |
| exec | id, execId, argv, timeout (seconds, 0 none) | exitCode, signal, killedBecause; blobs: stdout, stderr |
| cancel_exec | execId | |
| remove | id of an ended container | |
| reopen_log | id | when a new file is at its logPath |
| stats | id | stats: CPU ns, memory bytes, working set bytes, pids; None when nobody counts |
| list | | containers [{id, sandboxId, pid, startTime, state, startedAt, finishedAt, exitCode, signal, message, stopSignalSent}] |

Events go to every connection: `started`, `changed` (its `info`) and `exited`, with the fields of `list`, `start_failed` (id, message),
and `log_full` (id: its log has grown to the spec's logMax). An
exec belongs to the connection that asked for it and is killed when that closes. Times are nanoseconds since the epoch.
A `state` is starting, running, exited or failed (it could not be started: `message`). `stopSignalSent`: it was sent
another signal than SIGKILL. Containers of a shim that died before this one are told as exited, or unknown when nobody
saw their end, until `remove`.
"""  # noqa: E501

from __future__ import annotations

import contextlib
import errno
import gc
import os
import socket

from lastcall.cri.sandbox.shim import limits, namespaces
from lastcall.cri.sandbox.shim.containers import Container, Context
from lastcall.cri.sandbox.shim.execs import Exec
from lastcall.cri.sandbox.shim.loop import READ, WRITE
from lastcall.cri.sandbox.shim.namespaces import Sandbox
from lastcall.cri.sandbox.shim.past import PastProcess, read_journals
from lastcall.cri.sandbox.shim.process import Exit
from lastcall.cri.sandbox.shim.streams import verbs as streaming
from lastcall.cri.sandbox.shim.streams.verbs import CallError
from lastcall.cri.sandbox.shim.wire import Connection, WireError
from lastcall.world import linux, walls
from lastcall.world.id_maps import why_not_id_mapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.cri.sandbox.shim.wire import Message

_MOST_UNSENT = 128 << 20
_LAST_READS = 16
_ALL_PODS = "kubepods"
_MAKER_SECONDS = 0.05
_EXECS_END_SECONDS = 5.0
"""How long a killed exec may hold a new node up: one in an uninterruptible sleep ends when the kernel lets it."""


COLLECT_EVERY = 64
"""Containers: what one was made of refers to itself, and Python's own collector comes after thousands of them. A
collection takes 1 to 2 ms here."""


class Server:
    """Listens on `socket_path`, keeps the sandboxes and containers."""

    def __init__(self, context: Context, socket_path: str, state: str) -> None:
        self.context = self._context = context
        self._state = state
        self.sandboxes = self._sandboxes = dict[str, Sandbox]()
        self.containers = self._containers = dict[str, Container]()
        self._past = _recover(context.directory, os.path.join(state, "sandboxes"))
        # Of a shim that died, with all its containers.
        context.cgroups.remove(_ALL_PODS)
        for container in self._past:
            context.cgroups.remove_container(container)
        self._owners_unmapped = why_not_id_mapped(state)
        self._removed = 0
        self._peers: dict[int, Peer] = {}
        self._hung_up: list[Peer] = []
        self._hellos: list[tuple[Peer, Message]] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket_path)  # of a shim that died
        with_mask = os.umask(0o177)
        try:
            self._listener.bind(socket_path)
        finally:
            os.umask(with_mask)
        self._listener.listen(16)
        self._listener.setblocking(False)
        context.loop.watch(self._listener.fileno(), self._accept)

    def _accept(self, events: int) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        self._peers[sock.fileno()] = Peer(self, Connection(sock), self._context)

    def forget(self, fd: int) -> None:
        peer = self._peers.pop(fd)
        if peer.execs:
            self._hung_up.append(peer)

    def _hello(self, peer: Peer, message: Message) -> None:
        """A hook of the node before must be over when the next one learns what there is, and delivers it again."""
        for other in list(self._peers.values()):
            if other is not peer:
                other.notice_hang_up()
        self._hellos.append((peer, message))
        self.answer_hellos()
        if self._hellos:
            self._context.loop.call_later(_EXECS_END_SECONDS, lambda: self.answer_hellos(late=True))

    def answer_hellos(self, *, late: bool = False) -> None:
        """Answer who waits, once every exec of a node that is gone has ended, or when it is `late`."""
        self._hung_up = [peer for peer in self._hung_up if peer.execs and not late]
        if self._hung_up:
            return
        hellos, self._hellos = self._hellos, []
        for peer, message in hellos:
            peer.answer(message, self._all())

    def _all(self) -> Message:
        containers = [self._facts(container) for container in self._containers.values()]
        containers += [_past_facts(past) for past in self._past.values()]
        return {
            "pid": os.getpid(),
            "sandboxes": list(self._sandboxes),
            "containers": containers,
            "machine": self._machine(),
        }

    def _announce(self, event: str, container: Container) -> None:
        self._tell_all({"event": event, **self._facts(container)})

    def _tell_all(self, message: Message) -> None:
        for peer in list(self._peers.values()):
            peer.send(message)

    def call(self, peer: Peer, message: Message) -> None:
        """Do one call. Its answer is sent now or when the thing has happened. Raises CallError, OSError, KeyError."""
        verb = message["verb"]
        if verb == "hello":
            self._hello(peer, message)
        elif verb == "list":
            peer.answer(message, self._all())
        elif verb == "create_sandbox":
            self._create_sandbox(peer, message)
        elif verb == "remove_sandbox":
            self._remove_sandbox(peer, message)
        elif verb == "start":
            self._start(peer, message)
        elif verb == "signal":
            container = self._containers.get(message["id"])
            sent = container is not None and container.send_signal(message["signal"], message["why"])
            peer.answer(message, {"sent": sent})
        elif verb == "exec":
            self._exec(peer, message)
        elif verb == "cancel_exec":
            peer.cancel(message["execId"])
            peer.answer(message)
        elif verb == "reopen_log":
            container = self._containers.get(message["id"])
            if container is None or not container.running:
                raise CallError("container is not running")
            container.reopen_log()
            peer.answer(message)
        elif verb == "stats":
            self._stats(peer, message)
        elif verb == "remove":
            self._remove(message["id"])
            peer.answer(message)
        elif verb in streaming.VERBS:
            streaming.VERBS[verb](self, peer, message)
        else:
            raise CallError(f"unknown verb {verb!r}")

    # -- sandboxes ---------------------------------------------------------------------------------------------------

    def _create_sandbox(self, peer: Peer, message: Message) -> None:
        identity = message["id"]
        if identity in self._sandboxes:
            raise CallError(f"sandbox {identity!r} exists")
        directory = os.path.join(self._state, "sandboxes", identity)
        sandbox = namespaces.create(identity, message, self._context.own, directory)
        try:
            limits.start_pod(self._context.cgroups, message.get("cgroupParent", ""), message.get("resources") or {})
        except OSError:
            namespaces.release(sandbox)
            raise
        self._sandboxes[identity] = sandbox
        network = sandbox.namespaces.get(linux.CLONE_NEWNET)
        peer.answer(message, fds=() if network is None else (network,))
        if sandbox.maker:
            self._context.loop.call_later(_MAKER_SECONDS, lambda: self._end_maker(sandbox))

    def _end_maker(self, sandbox: Sandbox) -> None:
        if not namespaces.end_maker(sandbox, wait=False):
            self._context.loop.call_later(_MAKER_SECONDS, lambda: self._end_maker(sandbox))

    def _remove_sandbox(self, peer: Peer, message: Message) -> None:
        identity = message["id"]
        if any(c.sandbox.id == identity and not c.over for c in self._containers.values()):
            raise CallError(f"sandbox {identity!r} has running containers")
        sandbox = self._sandboxes.pop(identity, None)
        if sandbox is None:
            peer.answer(message)
            return

        def ended(events: int = 0) -> None:
            if sandbox.pause_pidfd >= 0:
                self._context.loop.unwatch(sandbox.pause_pidfd)
            namespaces.release(sandbox)
            limits.remove_pod(self._context.cgroups, sandbox.spec.get("cgroupParent", ""))
            peer.answer(message)

        if sandbox.pause_pidfd < 0:
            ended()
            return
        # The kernel lets the first process of a PID namespace go when all others there were waited for, and an exec
        # that was still running is waited for by this loop.
        namespaces.kill_pause(sandbox)
        self._context.loop.watch(sandbox.pause_pidfd, ended)

    # -- containers --------------------------------------------------------------------------------------------------

    def _start(self, peer: Peer, message: Message) -> None:
        spec = message["container"]
        sandbox = self._sandboxes.get(spec["sandboxId"])
        if sandbox is None:
            raise CallError(f"sandbox {spec['sandboxId']!r} is not there", "NotFound")
        if spec["id"] in self._containers:
            raise CallError(f"container {spec['id']!r} has been started")
        container = Container(self._context, spec, sandbox)
        container.alone = lambda: (
            not any(
                other.running and other is not container and other.sandbox is sandbox
                for other in self._containers.values()
            )
        )

        def started() -> None:
            assert container.process is not None
            self._announce("started", container)
            peer.answer(message, {"pid": container.process.pid, "startedAt": container.started_at})

        def failed(text: str) -> None:
            self._tell_all({"event": "start_failed", "id": container.id, "message": text})
            peer.answer_error(message, text, "StartError")

        container.on_started = started
        container.on_start_failed = failed
        container.on_changed = lambda: self._announce("changed", container)
        container.on_log_full = lambda: self._tell_all({"event": "log_full", "id": container.id})
        container.on_exited = lambda: self._announce("exited", container)
        container.start(self._pid_target(sandbox, spec))
        self._containers[container.id] = container

    def _pid_target(self, sandbox: Sandbox, spec: dict[str, Any]) -> int:
        if spec["pid"] == "POD":
            return sandbox.pause_pidfd
        if spec["pid"] == "TARGET":
            target = self._containers.get(spec["pidTarget"])
            if target is None or target.process is None or not target.running:
                raise CallError(f"target container {spec['pidTarget']!r} is not running", "NotFound")
            return target.process.pidfd
        return -1

    def _stats(self, peer: Peer, message: Message) -> None:
        container = self._containers.get(message["id"])
        usage = container.limits.usage() if container is not None else None
        stats = (usage.cpu_ns, usage.memory_bytes, usage.working_set_bytes, usage.pids) if usage else None
        peer.answer(message, {"stats": stats})

    def _machine(self) -> Message:
        cgroups, (uids, gids) = self._context.cgroups, self._context.maps
        return {
            "uids": sum(count for _, count in uids),
            "gids": sum(count for _, count in gids),
            "cgroups": cgroups.mode,
            "cgroupsWhy": getattr(cgroups, "why", ""),
            "ownersUnmapped": self._owners_unmapped,
        }

    def _remove(self, identity: str) -> None:
        container = self._containers.get(identity)
        if container is None:
            if (past := self._past.pop(identity, None)) is not None:
                past.remove()
            return
        if not container.over:
            raise CallError(f"container {identity!r} is running")
        del self._containers[identity]
        container.forget()
        self._removed += 1
        if self._removed % COLLECT_EVERY == 0:
            gc.collect()

    def _facts(self, container: Container) -> Message:
        process = container.process
        status = process.exit if process is not None else None
        return {
            "id": container.id,
            "sandboxId": container.sandbox.id,
            "pid": process.pid if process else 0,
            "startTime": process.start_time if process else 0,
            "state": _state(container),
            "startedAt": container.started_at,
            "finishedAt": container.finished_at,
            "exitCode": status.code if status else 0,
            "signal": status.signal if status else "",
            "message": container.failure,
            "stopSignalSent": container.stop_signal_sent,
            "oomKilled": container.out_of_memory,
            "info": container.info,
        }

    # -- execs -------------------------------------------------------------------------------------------------------

    def _exec(self, peer: Peer, message: Message) -> None:
        container = self._containers.get(message["id"])
        if container is None or not container.running:
            raise CallError(f"container {message['id']!r} is not running", "NotFound")
        process = Exec(self._context, container, message["execId"], message["argv"])
        peer.execs[process.id] = process

        def done(status: Exit, stdout: bytes, stderr: bytes, because: str) -> None:
            peer.exec_ended(process.id)
            facts = {"exitCode": status.code, "signal": status.signal, "killedBecause": because}
            peer.answer(message, facts, blobs=(stdout, stderr))

        def failed(text: str) -> None:
            peer.exec_ended(process.id)
            peer.answer_error(message, text, "StartError")

        process.on_done = done
        process.on_start_failed = failed
        try:
            process.start(message["timeout"])
        except OSError as error:
            del peer.execs[process.id]
            if error.errno in (errno.ESRCH, errno.ENOMEM):  # its PID 1 has ended: nobody can enter any more
                raise CallError(f"container {message['id']!r} is not running", "NotFound") from error
            raise


def _state(container: Container) -> str:
    if container.failure:
        return "failed"
    if container.process is not None and container.process.exit is not None:
        return "exited"
    return "running" if container.running else "starting"


def _recover(journals: str, sandboxes: str) -> dict[str, PastProcess]:
    """What a shim before this one left: how its containers ended; its mounts and the journals of its execs go."""
    found: dict[str, PastProcess] = {}
    for past in read_journals(journals):
        if past.exec_id:
            past.remove()
        else:
            found[past.container_id] = past
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(sandboxes):
            namespaces.remove_shared_memory(os.path.join(sandboxes, name, "shm"))
    return found


def _past_facts(past: PastProcess) -> Message:
    """As `Server._facts`. Nobody knows any more when it was started."""
    return {
        "id": past.container_id,
        "sandboxId": past.sandbox_id,
        "pid": past.pid,
        "startTime": past.start_time,
        "state": "exited" if past.over else "unknown",
        "startedAt": 0,
        "finishedAt": past.finished_at,
        "exitCode": past.exit_code or 0,
        "signal": past.signal,
        "message": "",
        "stopSignalSent": False,
    }


class Peer:
    """One connected node."""

    def __init__(self, server: Server, connection: Connection, context: Context) -> None:
        self._server = server
        self._connection = connection
        self._loop = context.loop
        self._fd = connection.socket.fileno()
        self._closed = False
        self._writing = False
        self.execs: dict[str, Exec] = {}
        self.streams = streaming.Streams()
        context.loop.watch(self._fd, self._ready)

    def answer(
        self, call: Message, facts: Message | None = None, blobs: tuple[bytes, ...] = (), fds: tuple[int, ...] = ()
    ) -> None:
        self.send({"answer": call["call"], **(facts or {})}, blobs, fds)

    def give(self, call: Message, facts: Message, fds: tuple[int, ...]) -> None:
        """Answer with descriptors that are the other side's from now on."""
        self.send({"answer": call["call"], **facts}, given=fds)

    def answer_error(self, call: Message, text: str, reason: str = "") -> None:
        self.send({"answer": call.get("call"), "error": {"message": text, "reason": reason}})

    def send(
        self, message: Message, blobs: tuple[bytes, ...] = (), fds: tuple[int, ...] = (), given: tuple[int, ...] = ()
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
        """Its end may be known to the kernel and not yet to the loop; its last calls come before that."""
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
            walls.caught("shim", "what a node sent", error)
            messages = None
        if messages is None:
            self._close()
            return
        for message, _, fds in messages:
            for fd in fds:
                os.close(fd)  # no verb takes any
            self._call(message)

    def _call(self, message: Message) -> None:
        if not isinstance(message.get("call"), int):
            self._close()
            return
        try:
            self._server.call(self, message)
        except CallError as error:
            self.answer_error(message, str(error), error.reason)
        except OSError as error:
            self.answer_error(message, error.strerror or str(error))
        except (KeyError, TypeError, ValueError) as error:
            self.answer_error(message, f"{message.get('verb')}: {type(error).__name__}: {error}")
        except Exception as error:
            walls.caught("shim", f"{message.get('verb')} {message.get('id', '')}".strip(), error)
            self.answer_error(message, f"{message.get('verb')}: {type(error).__name__}: {error}")

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.unwatch(self._fd)
        self._server.forget(self._fd)
        self._connection.close()
        for process in list(self.execs.values()):
            process.kill("caller gone")
