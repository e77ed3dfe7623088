"""One container of another runtime: its start, its stop and its end, as the kernel shows them."""

# check: allow time.monotonic because the shim's loop has no other clock
# check: observes because it sees processes by /proc, wait statuses and sockets
# check: many attributes Container because it is all that is known of a container, in one thread

from __future__ import annotations

import contextlib
import os
import signal
import time

from lastcall.kube.cri.sandbox.cgroups import memory
from lastcall.kube.cri.sandbox.cgroups.v2 import limit_reached_in
from lastcall.kube.cri.sandbox.shim import dispositions, procfs
from lastcall.kube.cri.sandbox.shim.family import how_it_ended
from lastcall.kube.cri.sandbox.shim.listening import listeners_of_container, listeners_of_pod
from lastcall.kube.cri.sandbox.shim.witness import Watched, Witness
from lastcall.records import kinds, rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from lastcall.kube.cri.sandbox.shim.loop import Loop, Timer
    from lastcall.kube.cri.v1.witness.messages import Watch
    from lastcall.kube.cri.v1.witness.tails import OnLine, Tail, Tails
    from lastcall.records.definitions.parts import Listener, PodListener
    from lastcall.records.definitions.runtime import Output, ProcessExited, ProcessStarted, SignalSent
    from lastcall.records.record import Evidence, Facts, Kind, Recorder
    from lastcall.records.rules import Rule

GROUPS = "/sys/fs/cgroup"
SIGKILL_EXIT = 137
_REAPED = (0.001, 0.002, 0.005, 0.02, 0.05, 0.2, 0.5, 2.0)
"""Seconds between looks at whether a process that has ended was reaped: before that its status is not known.

A kernel that does not show it leaves the time to the runtime."""
_LAST_OUTPUT_SECONDS = 1.0
"""A runtime copies the last output into the log after the end."""
_UNREADABLE = (OSError, ValueError, IndexError, KeyError)


class Context:
    """What all containers share. `network` is a descriptor of this process's own network namespace."""

    def __init__(self, loop: Loop, recorder: Recorder, tails: Tails) -> None:
        self.loop, self.recorder, self.tails = loop, recorder, tails
        self.network = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Container:
    """From `Watch` to its end. `exited` and then `recorded` become True."""

    def __init__(self, context: Context, watch: Watch, beside: Callable[[Container], list[Container]]) -> None:
        """`beside` returns the other containers of its Pod that run. Raises OSError when it has ended."""
        self.watch, self.pid = watch, watch.pid
        self.exited = self.recorded = False
        self._context, self._beside = context, beside
        self._pidfd = os.pidfd_open(self.pid)
        self._network: int | None = None
        self._witness: Witness | None = None
        self._stop_sent = False
        self._kill_at: float | None = None
        """When its runtime sends SIGKILL, by the timeout of StopContainer."""
        self._kill_timer: Timer | None = None
        self._kill: SignalSent | None = None
        """SIGKILL is due: what was seen right before it, with the records that belong to it in `_held`."""
        self._held: list[Callable[[], object]] = []
        self._holding = False
        self._kills: int | None = None
        self._pod_listeners: list[PodListener] | None = None
        self._tail: Tail | None = None
        try:
            self.start = procfs.start_time(self.pid)
            if procfs.exiting(self.pid) or watch.start not in (0, self.start):
                raise ProcessLookupError(f"process {self.pid} has ended")
            self._open_network()
        except OSError:
            os.close(self._pidfd)
            raise
        self._events, self._limit_file = memory.files_of(procfs.read(f"/proc/{self.pid}/cgroup"))
        self._limit: int | None = None
        self._limit_reached: bool | None = None
        if not watch.known:
            self._tell_start()
        context.loop.watch(self._pidfd, lambda events: self._ended())
        if watch.log:
            with contextlib.suppress(OSError):
                self._tail = context.tails.follow(watch.log, printed(context, watch), from_end=watch.known)

    def _open_network(self) -> None:
        network = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        if os.fstat(network).st_ino == os.fstat(self._context.network).st_ino:
            os.close(network)  # the node's: its sockets are not the container's
        else:
            self._network = network

    @property
    def network(self) -> tuple[int, int] | None:
        """Return the Pod's network namespace and this process's own; None in the node's."""
        return None if self._network is None else (self._network, self._context.network)

    def record(
        self, kind: Kind[Facts], facts: Facts, evidence: Evidence = "observed", rule: Rule | Literal[""] = ""
    ) -> None:
        uid, name, recorder = self.watch.pod_uid, self.watch.name, self._context.recorder

        def write() -> object:
            return recorder.record(kind, pod_uid=uid, container=name, facts=facts, evidence=evidence, rule=rule)

        if self._holding:
            self._held.append(write)
        else:
            write()

    def _tell_start(self) -> None:
        status = procfs.read(f"/proc/{self.pid}/status")
        uid, gid = procfs.real_id(self.pid, status, "uid"), procfs.real_id(self.pid, status, "gid")
        facts: ProcessStarted = {
            "containerId": self.watch.id,
            "pid": self.pid,
            "containerPid": dispositions.container_pid(self.pid),
            "exe": procfs.executable(self.pid) or None,
            "argv": [word for word in procfs.read(f"/proc/{self.pid}/cmdline").split("\0") if word],
        }
        if uid is not None and gid is not None:
            facts["uid"], facts["gid"] = uid, gid
        self.record(kinds.PROCESS_STARTED, facts)

    # -- the stop ----------------------------------------------------------------------------------------------------

    def stopping(self, number: int, timeout: int) -> None:
        """Note that StopContainer is about to be called.

        The stop signal is sent once in a container's life; a later call can only bring SIGKILL nearer.
        """
        if self.exited:
            return
        if timeout > 0 and not self._stop_sent:
            self._send(number)
        if timeout <= 0 and self._kill is None:
            self._before_kill("StopContainer")
        at = time.monotonic() + timeout
        if timeout > 0 and (self._kill_at is None or at < self._kill_at):
            self._kill_at = at
            if self._kill_timer is not None:
                self._kill_timer.cancel()
            self._kill_timer = self._context.loop.call_later(timeout, lambda: self._before_kill("grace over"))

    def _send(self, number: int) -> None:
        """Look at what the signal will meet. When exactly the runtime sends it is not known: soon after the call."""
        self._stop_sent = True
        facts: SignalSent = {
            "signal": procfs.signal_name(number),
            "pid": self.pid,
            "containerPid": dispositions.container_pid(self.pid),
            "why": "StopContainer",
        }
        if procfs.exiting(self.pid) and len(procfs.threads(self.pid)) <= 1:
            facts["exiting"] = True
            self.record(kinds.SIGNAL_SENT, facts, "inferred", rules.STOP_CONTAINER)
            return
        witness = self._watched(number)
        state = dispositions.signal_state(self.pid, number)
        if state is not None:
            self.record(kinds.PROCESS_SIGNAL_STATE, state)
        self.record(kinds.SIGNAL_SENT, facts, "inferred", rules.STOP_CONTAINER)
        witness.after_signal()

    def _watched(self, number: int) -> Witness:
        watched = Watched(self._context.loop, self.pid, self.network, lambda: not self._beside(self), self.record)
        # A process that begins now may be older than the signal, whose moment is not known.
        self._witness = Witness(watched, exact=False)
        self._witness.before_signal(number)
        return self._witness

    def _before_kill(self, why: str) -> None:
        """The runtime sends SIGKILL some milliseconds from now. Whether it came the end shows: until then what is seen
        here is held back."""
        if self.exited or self._kill is not None:
            return
        witness = self._witness or self._watched(int(signal.SIGKILL))
        self._kill = {
            "signal": "SIGKILL",
            "pid": self.pid,
            "containerPid": dispositions.container_pid(self.pid),
            "why": why,
            "oomKills": self._oom_kills(),
        }
        if self._stop_sent:
            self._kill["stopSignalPending"] = witness.stop_signal_pending()
        self._holding = True
        try:
            witness.before_kill()
        finally:
            self._holding = False

    # -- the end -----------------------------------------------------------------------------------------------------

    def _ended(self) -> None:
        """PID 1 has ended; its status is known once its parent has asked (kernel/exit.c:release_task)."""
        if self.exited:
            return
        self.exited = True
        self._context.loop.unwatch(self._pidfd)
        if self._kill_timer is not None:
            self._kill_timer.cancel()
        self._kills = self._oom_kills()
        self._look_at_limit()
        self._pod_listeners = self._who_listens()
        self._when_reaped(0)

    def _when_reaped(self, tries: int) -> None:
        if self.recorded or self._settle():
            return
        if tries < len(_REAPED):
            self._context.loop.call_later(_REAPED[tries], lambda: self._when_reaped(tries + 1))
        elif self._pidfd >= 0:
            self._finish(killed=self._kill is not None)

    def _settle(self) -> bool:
        """Record the end if the kernel shows it: since Linux 6.15. Return whether it is on record."""
        status = procfs.wait_status(self._pidfd) if self._pidfd >= 0 else None
        if status is None:
            return False
        code, name = how_it_ended(status)
        assert code is not None
        self._tell_end(code, name)
        self._finish(killed=name == "SIGKILL")
        return True

    def ended(self, exit_code: int, *, oom_killed: bool) -> None:
        """Record the end with what its runtime says, if the kernel does not show it."""
        self._ended()
        if not self.recorded and not self._settle():
            killed = exit_code == SIGKILL_EXIT
            kills = self._kills if self._kills or not oom_killed else 1
            self._kills = kills
            self._tell_end(exit_code, "SIGKILL" if killed else None, "inferred")
            if self._pidfd >= 0:
                self._finish(killed=killed)

    def _tell_end(
        self, code: int, name: str | None, evidence: Evidence = "observed", rule: Rule | Literal[""] = ""
    ) -> None:
        kill, kills = self._kill, self._kills
        if kill is not None and name == "SIGKILL":
            for write in self._held:
                write()
            self.record(kinds.SIGNAL_SENT, kill, "inferred", rules.STOP_CONTAINER)
        elif kill is not None and self._witness is not None:
            self._witness.outlived()
        facts: ProcessExited = {
            "containerId": self.watch.id,
            "pid": self.pid,
            "exitCode": code,
            "signal": name,
            "oomKilled": None if kills is None else kills > 0,
            "oomKills": kills,
            "memoryLimit": self._limit,
        }
        if kills:
            facts["limitReached"] = self._limit_reached
        if code and not self._stop_sent and kill is None and self._pod_listeners is not None:
            facts["podListeners"] = self._pod_listeners
        self.record(kinds.PROCESS_EXITED, facts, evidence)
        self.recorded = True

    def _finish(self, *, killed: bool) -> None:
        if self._witness is not None:
            self._witness.after_exit(killed=killed)
            self._witness = None
        self._close_descriptors()
        self._context.loop.call_later(_LAST_OUTPUT_SECONDS, self._close_tail)

    def _oom_kills(self) -> int | None:
        return memory.oom_kills(procfs.read(f"{GROUPS}/{self._events}")) if self._events else None

    def _look_at_limit(self) -> None:
        """Read the limit while its group is there: it may have been another one at the start."""
        if not self._limit_file:
            return
        path = f"{GROUPS}/{self._limit_file}"
        self._limit = memory.limit(procfs.read(path))
        if self._kills and path.endswith("/memory.max"):  # version 1 counts kills alone
            self._limit_reached = limit_reached_in(os.path.dirname(path))

    def _who_listens(self) -> list[PodListener] | None:
        with contextlib.suppress(*_UNREADABLE):
            if self.network is not None and not self._stop_sent:
                return listeners_of_pod(self.network, [(each.pid, each.watch.name) for each in self._beside(self)])
        return None

    def listeners(self) -> list[Listener] | None:
        """Return who of it listens now; None when nobody can look."""
        if self.exited or self.network is None:
            return None
        return listeners_of_container(self.network, self.pid, lambda: not self._beside(self))

    def close(self) -> None:
        """Close everything. Idempotent."""
        if not self.exited:
            self._context.loop.unwatch(self._pidfd)
            self.exited = True
        if self._kill_timer is not None:
            self._kill_timer.cancel()
        if self._witness is not None:
            self._witness.after_exit(killed=True)
            self._witness = None
        self._close_descriptors()
        self._close_tail()

    def _close_descriptors(self) -> None:
        for fd in (self._pidfd, self._network):
            if fd is not None and fd >= 0:
                os.close(fd)
        self._pidfd, self._network = -1, None

    def _close_tail(self) -> None:
        if self._tail is not None:
            self._tail.close()
            self._tail = None


def printed(context: Context, watch: Watch) -> OnLine:
    """Return a function that writes a line of a container's log to the records."""

    def line(stream: str, text: str, dropped: int) -> None:
        facts: Output = {"stream": "stderr" if stream == "stderr" else "stdout", "text": text, "attempt": watch.attempt}
        if dropped:
            facts["dropped"] = dropped
        context.recorder.record(kinds.OUTPUT, pod_uid=watch.pod_uid, container=watch.name, facts=facts)

    return line


def tell_missed(context: Context, watch: Watch) -> None:
    """Record the start of a container that has ended before anybody could look, and what it printed."""
    facts: ProcessStarted = {"containerId": watch.id, "exe": None, "argv": watch.argv}
    context.recorder.record(
        kinds.PROCESS_STARTED, pod_uid=watch.pod_uid, container=watch.name, facts=facts, evidence="inferred"
    )
    if watch.log:
        with contextlib.suppress(OSError):
            tail = context.tails.follow(watch.log, printed(context, watch), from_end=False)
            context.loop.call_later(_LAST_OUTPUT_SECONDS, tail.close)
