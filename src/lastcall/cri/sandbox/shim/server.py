"""The shim's end of the connection to a node, on a Unix socket. `messages.py` has what is asked, answered and told."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import socket

from lastcall.cri.sandbox.shim import limits, messages, namespaces
from lastcall.cri.sandbox.shim.containers import Container, Context
from lastcall.cri.sandbox.shim.execs import Exec
from lastcall.cri.sandbox.shim.loop import READ, WRITE
from lastcall.cri.sandbox.shim.namespaces import Sandbox
from lastcall.cri.sandbox.shim.past import PastProcess, read_journals
from lastcall.cri.sandbox.shim.process import Exit
from lastcall.cri.sandbox.shim.streams import descriptors as streaming
from lastcall.cri.sandbox.shim.streams.descriptors import CallError
from lastcall.world import linux, walls
from lastcall.world.id_maps import why_not_id_mapped
from lastcall.world.messages import Verbs, WrongMessage
from lastcall.world.wire import Frames, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lastcall.world.messages import Fields, Message

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
        self._hellos: list[Call] = []
        self._verbs = Verbs(self._table())
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
        self._peers[sock.fileno()] = Peer(self, Frames(sock), self._context)

    def forget(self, fd: int) -> None:
        peer = self._peers.pop(fd)
        if peer.execs:
            self._hung_up.append(peer)

    def _hello(self, call: Call, asked: messages.Hello) -> None:
        """A hook of the node before must be over when the next one learns what there is, and delivers it again."""
        for other in list(self._peers.values()):
            if other is not call.peer:
                other.notice_hang_up()
        self._hellos.append(call)
        self.answer_hellos()
        if self._hellos:
            self._context.loop.call_later(_EXECS_END_SECONDS, lambda: self.answer_hellos(late=True))

    def answer_hellos(self, *, late: bool = False) -> None:
        """Answer who waits, once every exec of a node that is gone has ended, or when it is `late`."""
        self._hung_up = [peer for peer in self._hung_up if peer.execs and not late]
        if self._hung_up:
            return
        hellos, self._hellos = self._hellos, []
        for call in hellos:
            call.answer(self._all())

    def _list(self, call: Call, asked: messages.ListAll) -> None:
        call.answer(self._all())

    def _all(self) -> messages.Everything:
        containers = [_facts(container) for container in self._containers.values()]
        containers += [_past_facts(past) for past in self._past.values()]
        return messages.Everything(
            pid=os.getpid(), sandboxes=list(self._sandboxes), containers=containers, machine=self._machine()
        )

    def tell(self, event: Message) -> None:
        """Every node that is connected."""
        fields = event.to_wire()
        for peer in list(self._peers.values()):
            peer.send(fields)

    def do(self, call: Call, fields: Fields) -> None:
        """Do one call. Its answer is sent now or when the thing has happened.

        Raises CallError, WrongMessage, OSError; KeyError, TypeError and ValueError for a container's spec.
        """
        do, asked = self._verbs.read(fields)
        do(call, asked)

    def _table(self) -> dict[type[Message], Callable[..., None]]:
        return {
            messages.Hello: self._hello,
            messages.ListAll: self._list,
            messages.CreateSandbox: self._create_sandbox,
            messages.RemoveSandbox: self._remove_sandbox,
            messages.Start: self._start,
            messages.Signal: self._signal,
            messages.Exec: self._exec,
            messages.UpdateSandbox: self._update_sandbox,
            messages.UpdateContainer: self._update_container,
            messages.CancelExec: self._cancel_exec,
            messages.Remove: self._remove,
            messages.ReopenLog: self._reopen_log,
            messages.Stats: self._stats,
            **streaming.table(self),
        }

    # -- sandboxes ---------------------------------------------------------------------------------------------------

    def _create_sandbox(self, call: Call, asked: messages.CreateSandbox) -> None:
        identity = asked.id
        if identity in self._sandboxes:
            raise CallError(f"sandbox {identity!r} exists")
        directory = os.path.join(self._state, "sandboxes", identity)
        sandbox = namespaces.create(identity, asked.to_wire(), self._context.own, directory)
        try:
            limits.start_pod(self._context.cgroups, asked.cgroup_parent, asked.resources or {})
        except OSError:
            namespaces.release(sandbox)
            raise
        self._sandboxes[identity] = sandbox
        network = sandbox.namespaces.get(linux.CLONE_NEWNET)
        call.answer(fds=() if network is None else (network,))
        if sandbox.maker:
            self._context.loop.call_later(_MAKER_SECONDS, lambda: self._end_maker(sandbox))

    def _update_sandbox(self, call: Call, asked: messages.UpdateSandbox) -> None:
        sandbox = self._sandboxes.get(asked.id)
        if sandbox is None:
            raise CallError(f"sandbox {asked.id!r} is not there", "NotFound")
        limits.update_pod(self._context.cgroups, sandbox.spec.get("cgroupParent", ""), asked.resources)
        call.answer()

    def _update_container(self, call: Call, asked: messages.UpdateContainer) -> None:
        container = self._containers.get(asked.id)
        if container is None or not container.running:
            raise CallError("container is not running")
        container.limits.update(asked.resources)
        call.answer()

    def _end_maker(self, sandbox: Sandbox) -> None:
        if not namespaces.end_maker(sandbox, wait=False):
            self._context.loop.call_later(_MAKER_SECONDS, lambda: self._end_maker(sandbox))

    def _remove_sandbox(self, call: Call, asked: messages.RemoveSandbox) -> None:
        identity = asked.id
        if any(c.sandbox.id == identity and not c.over for c in self._containers.values()):
            raise CallError(f"sandbox {identity!r} has running containers")
        sandbox = self._sandboxes.pop(identity, None)
        if sandbox is None:
            call.answer()
            return

        def ended(events: int = 0) -> None:
            if sandbox.pause_pidfd >= 0:
                self._context.loop.unwatch(sandbox.pause_pidfd)
            namespaces.release(sandbox)
            limits.remove_pod(self._context.cgroups, sandbox.spec.get("cgroupParent", ""))
            call.answer()

        if sandbox.pause_pidfd < 0:
            ended()
            return
        # The kernel lets the first process of a PID namespace go when all others there were waited for, and an exec
        # that was still running is waited for by this loop.
        namespaces.kill_pause(sandbox)
        self._context.loop.watch(sandbox.pause_pidfd, ended)

    # -- containers --------------------------------------------------------------------------------------------------

    def _start(self, call: Call, asked: messages.Start) -> None:
        spec = asked.container
        sandbox = self._sandboxes.get(spec["sandboxId"])
        if sandbox is None:
            raise CallError(f"sandbox {spec['sandboxId']!r} is not there", "NotFound")
        if spec["id"] in self._containers:
            raise CallError(f"container {spec['id']!r} has been started")
        container = Container(self._context, spec, sandbox, Announcer(self, call))
        container.start(self._pid_target(sandbox, spec))
        self._containers[container.id] = container

    def alone(self, container: Container) -> bool:
        """Whether no other container of its Pod runs."""
        return not any(
            other.running and other is not container and other.sandbox is container.sandbox
            for other in self._containers.values()
        )

    def _signal(self, call: Call, asked: messages.Signal) -> None:
        container = self._containers.get(asked.id)
        call.answer(messages.Sent(sent=container is not None and container.send_signal(asked.signal, asked.why)))

    def _reopen_log(self, call: Call, asked: messages.ReopenLog) -> None:
        container = self._containers.get(asked.id)
        if container is None or not container.running:
            raise CallError("container is not running")
        container.reopen_log()
        call.answer()

    def _pid_target(self, sandbox: Sandbox, spec: dict[str, Any]) -> int:
        if spec["pid"] == "POD":
            return sandbox.pause_pidfd
        if spec["pid"] == "TARGET":
            target = self._containers.get(spec["pidTarget"])
            if target is None or target.process is None or not target.running:
                raise CallError(f"target container {spec['pidTarget']!r} is not running", "NotFound")
            return target.process.pidfd
        return -1

    def _stats(self, call: Call, asked: messages.Stats) -> None:
        container = self._containers.get(asked.id)
        usage = container.limits.usage() if container is not None else None
        stats = [usage.cpu_ns, usage.memory_bytes, usage.working_set_bytes, usage.pids] if usage else None
        call.answer(messages.Usage(stats=stats))

    def _machine(self) -> messages.Machine:
        cgroups, (uids, gids) = self._context.cgroups, self._context.maps
        return messages.Machine(
            uids=sum(count for _, count in uids),
            gids=sum(count for _, count in gids),
            cgroups=cgroups.mode,
            cgroups_why=getattr(cgroups, "why", ""),
            owners_unmapped=self._owners_unmapped,
        )

    def _remove(self, call: Call, asked: messages.Remove) -> None:
        container = self._containers.get(asked.id)
        if container is None:
            if (past := self._past.pop(asked.id, None)) is not None:
                past.remove()
            call.answer()
            return
        if not container.over:
            raise CallError(f"container {asked.id!r} is running")
        del self._containers[asked.id]
        container.forget()
        self._removed += 1
        if self._removed % COLLECT_EVERY == 0:
            gc.collect()
        call.answer()

    # -- execs -------------------------------------------------------------------------------------------------------

    def _exec(self, call: Call, asked: messages.Exec) -> None:
        container, peer = self._containers.get(asked.id), call.peer
        if container is None or not container.running:
            raise CallError(f"container {asked.id!r} is not running", "NotFound")
        process = Exec(self._context, container, asked.exec_id, asked.argv)
        peer.execs[process.id] = process

        def done(status: Exit, stdout: bytes, stderr: bytes, because: str) -> None:
            peer.exec_ended(process.id)
            ended = messages.Ended(exit_code=status.code, signal=status.signal, killed_because=because)
            call.answer(ended, blobs=(stdout, stderr))

        def failed(text: str) -> None:
            peer.exec_ended(process.id)
            call.fail(text, "StartError")

        process.on_done = done
        process.on_start_failed = failed
        try:
            process.start(asked.timeout)
        except OSError as error:
            del peer.execs[process.id]
            if error.errno in (errno.ESRCH, errno.ENOMEM):  # its PID 1 has ended: nobody can enter any more
                raise CallError(f"container {asked.id!r} is not running", "NotFound") from error
            raise

    def _cancel_exec(self, call: Call, asked: messages.CancelExec) -> None:
        call.peer.cancel(asked.exec_id)
        call.answer()


class Announcer:
    """What is said of one container: to the caller that started it, and to every node. A `containers.Listener`."""

    def __init__(self, server: Server, call: Call) -> None:
        self._server = server
        self._call = call

    def started(self, container: Container) -> None:
        assert container.process is not None
        self._server.tell(messages.Started(container=_facts(container)))
        self._call.answer(messages.Running(pid=container.process.pid, started_at=container.started_at))

    def start_failed(self, container: Container, text: str) -> None:
        self._server.tell(messages.StartFailed(id=container.id, message=text))
        self._call.fail(text, "StartError")

    def changed(self, container: Container) -> None:
        self._server.tell(messages.Changed(container=_facts(container)))

    def log_full(self, container: Container) -> None:
        self._server.tell(messages.LogFull(id=container.id))

    def exited(self, container: Container) -> None:
        self._server.tell(messages.Exited(container=_facts(container)))

    def alone(self, container: Container) -> bool:
        return self._server.alone(container)


def _facts(container: Container) -> messages.Facts:
    process = container.process
    status = process.exit if process is not None else None
    return messages.Facts(
        id=container.id,
        sandbox_id=container.sandbox.id,
        pid=process.pid if process else 0,
        start_time=process.start_time if process else 0,
        state=_state(container),
        started_at=container.started_at,
        finished_at=container.finished_at,
        exit_code=status.code if status else 0,
        signal=status.signal if status else "",
        message=container.failure,
        stop_signal_sent=container.stop_signal_sent,
        oom_killed=container.out_of_memory,
        info=container.info,
    )


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


def _past_facts(past: PastProcess) -> messages.Facts:
    """As `_facts`. Nobody knows any more when it was started."""
    return messages.Facts(
        id=past.container_id,
        sandbox_id=past.sandbox_id,
        pid=past.pid,
        start_time=past.start_time,
        state="exited" if past.over else "unknown",
        started_at=0,
        finished_at=past.finished_at,
        exit_code=past.exit_code or 0,
        signal=past.signal,
        message="",
        stop_signal_sent=False,
    )


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
        self.streams = streaming.Streams()
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
            walls.caught("shim", f"{fields.get('verb')} {fields.get('id', '')}".strip(), error)
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
