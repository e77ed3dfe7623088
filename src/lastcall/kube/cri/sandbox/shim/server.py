"""What the shim does for nodes: a method for each call of `messages.py`, on the sandboxes and containers it keeps.

A node's connection is a `Peer` (`peer.py`), messages about a container stand in `telling.py`.
"""

# check: observes because it sees how a Pod's first process ended
# check: many attributes Server because it is the whole program, whose one loop serves all peers

from __future__ import annotations

import contextlib
import errno
import gc
import os

from lastcall.kube.cri.cpu_shares import KUBEPODS
from lastcall.kube.cri.sandbox.shim import messages, namespaces
from lastcall.kube.cri.sandbox.shim.containers import Container, Context
from lastcall.kube.cri.sandbox.shim.execs import Exec
from lastcall.kube.cri.sandbox.shim.messages import CallError
from lastcall.kube.cri.sandbox.shim.namespaces import Sandbox
from lastcall.kube.cri.sandbox.shim.past import PastProcess, read_journals
from lastcall.kube.cri.sandbox.shim.peer import Call, Peer
from lastcall.kube.cri.sandbox.shim.pod_groups import PodGroups
from lastcall.kube.cri.sandbox.shim.process import Exit, exit_of
from lastcall.kube.cri.sandbox.shim.streams import descriptors as streaming
from lastcall.kube.cri.sandbox.shim.telling import Announcer, facts_of, past_facts
from lastcall.records import kinds
from lastcall.world import linux
from lastcall.world.id_maps import why_not_id_mapped
from lastcall.world.messages import Verbs
from lastcall.world.wire import Frames, listen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lastcall.records.definitions.runtime import PauseEnded
    from lastcall.world.messages import Fields, Message

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
        context.cgroups.remove(KUBEPODS)
        self._pod_groups = PodGroups(context.cgroups, context.size)
        for container in self._past:
            context.cgroups.remove_container(container)
        self._owners_unmapped = why_not_id_mapped(state)
        self._removed = 0
        self._peers: dict[int, Peer] = {}
        self._hung_up: list[Peer] = []
        self._hellos: list[Call] = []
        self._verbs = Verbs(self._table())
        self._listener = listen(socket_path)
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
        """Answer those that wait, once every exec of a node that is gone has ended, or if it is `late`."""
        self._hung_up = [peer for peer in self._hung_up if peer.execs and not late]
        if self._hung_up:
            return
        hellos, self._hellos = self._hellos, []
        for call in hellos:
            call.answer(self._all())
        if hellos:
            self._repeat_ends()

    def _list(self, call: Call, asked: messages.ListAll) -> None:
        call.answer(self._all())

    def _all(self) -> messages.Everything:
        containers = [facts_of(container) for container in self._containers.values()]
        containers += [past_facts(past) for past in self._past.values()]
        return messages.Everything(
            pid=os.getpid(),
            sandboxes=list(self._sandboxes),
            containers=containers,
            machine=self._machine(),
        )

    def tell(self, event: Message) -> None:
        """Send an event to every connected node."""
        fields = event.to_wire()
        for peer in list(self._peers.values()):
            peer.send(fields)

    def do(self, call: Call, fields: Fields) -> None:
        """Execute one call. Its answer is sent now or when the thing has happened.

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
            messages.Listeners: self._listeners,
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
            self._pod_groups.start(asked.cgroup_parent, asked.resources or {})
        except OSError:
            namespaces.release(sandbox)
            raise
        self._sandboxes[identity] = sandbox
        if sandbox.pause_pidfd >= 0:
            self._context.loop.watch(sandbox.pause_pidfd, lambda events: self._pause_ended(sandbox))
        network = sandbox.namespaces.get(linux.CLONE_NEWNET)
        call.answer(fds=() if network is None else (network,))
        if sandbox.maker:
            self._context.loop.call_later(_MAKER_SECONDS, lambda: self._end_maker(sandbox))

    def _pause_ended(self, sandbox: Sandbox) -> None:
        """Report that somebody ended the first process of a Pod. The kernel has already ended its containers."""
        result = linux.waitid_pidfd(sandbox.pause_pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if result is not None:
            self._context.loop.unwatch(sandbox.pause_pidfd)
            sandbox.ended, end = True, exit_of(result)
            facts: PauseEnded = {"exitCode": end.code, "signal": end.signal}
            self._context.recorder.record(kinds.PAUSE_ENDED, pod_uid=sandbox.spec["podUid"], facts=facts)
            self.tell(messages.SandboxEnded(id=sandbox.id))

    def _repeat_ends(self) -> None:
        """Report ends again to a node that was not connected when they happened."""
        for sandbox in self._sandboxes.values():
            if sandbox.ended:
                self.tell(messages.SandboxEnded(id=sandbox.id))

    def _update_sandbox(self, call: Call, asked: messages.UpdateSandbox) -> None:
        sandbox = self._sandboxes.get(asked.id)
        if sandbox is None:
            raise CallError(f"sandbox {asked.id!r} is not there", "NotFound")
        self._pod_groups.update(sandbox.spec.get("cgroupParent", ""), asked.resources)
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
            self._pod_groups.remove(sandbox.spec.get("cgroupParent", ""))
            call.answer()

        if sandbox.pause_pidfd < 0 or sandbox.ended:
            ended()
            return
        # The kernel lets the first process of a PID namespace go when all others there were waited for, and an exec
        # that was still running is waited for by this loop.
        namespaces.kill_pause(sandbox)
        self._context.loop.unwatch(sandbox.pause_pidfd)
        self._context.loop.watch(sandbox.pause_pidfd, ended)

    # -- containers --------------------------------------------------------------------------------------------------

    def _start(self, call: Call, asked: messages.Start) -> None:
        spec = asked.container
        sandbox = self._sandboxes.get(spec["sandboxId"])
        if sandbox is None:
            raise CallError(f"sandbox {spec['sandboxId']!r} is not there", "NotFound")
        if spec["id"] in self._containers:
            raise CallError(f"container {spec['id']!r} has been started")
        container = Container(self._context, spec, sandbox, Announcer(self.tell, self._beside, call))
        container.start(self._pid_target(sandbox, spec))
        self._containers[container.id] = container

    def _beside(self, container: Container) -> list[Container]:
        """Return the other containers of its Pod that run."""
        return [
            other
            for other in self._containers.values()
            if other.running and other is not container and other.sandbox is container.sandbox
        ]

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
            if namespaces.pause_is_ending(sandbox):
                self.tell(messages.SandboxEnded(id=sandbox.id))  # again: the node did not know it when it ended
                raise CallError(f"the first process of sandbox {sandbox.id!r} has ended")
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

    def _listeners(self, call: Call, asked: messages.Listeners) -> None:
        container = self._containers.get(asked.id)
        call.answer(messages.Listening(listeners=container.listeners() if container is not None else None))

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
