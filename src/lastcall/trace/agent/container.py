"""One container of a Pod: its PID 1, what else runs in it, and how they end."""

# check: reaches inside because the node agent reads /proc as the shim does

# check: observes because it sees processes of a Pod as the kernel of their node shows them
# check: many attributes Container because it is what one look at a process compares with the look before

from __future__ import annotations

import contextlib
import os
import signal

from lastcall.kube.cri.sandbox.shim import dispositions, procfs
from lastcall.kube.cri.sandbox.shim.family import DEAD, Family, how_it_ended, processes_at_stop
from lastcall.records import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lastcall.kube.cri.sandbox.shim.loop import Loop
    from lastcall.records.record import Kind
    from lastcall.trace.agent.groups import Groups
    from lastcall.trace.agent.lines import Recorder
    from lastcall.world.clock import Clock

_STOP = int(signal.SIGTERM)
_MOST_PROCESSES = 16
"""Processes in one record, and pidfds held for one container."""
_REAPED = (0.002, 0.005, 0.02, 0.05, 0.2, 0.5, 1.0)
"""Seconds between looks at whether a process that has ended was reaped."""
_UNREADABLE = (OSError, ValueError, IndexError, KeyError)


class Container:
    """Of the container `id` of Pod `uid`, whose group is `group`. `traces`: whether this process may read what another
    one waits for (CAP_SYS_PTRACE): without it a program that takes signals by sigwait looks as if it had no handler.
    """

    def __init__(
        self,
        uid: str,
        id: str,
        group: str,
        groups: Groups,
        loop: Loop,
        recorder: Recorder,
        clock: Clock,
        *,
        traces: bool,
    ) -> None:
        self.uid, self.id, self.group = uid, id, group
        self._groups, self._loop, self._recorder, self._clock, self._traces = groups, loop, recorder, clock, traces
        self.pid = 0
        self.ended = False
        self._pidfd = -1
        self._met: tuple[str, tuple[str, ...]] | None = None
        self._kills: int | None = None
        self._limit: int | None = None
        self._execs: dict[int, int] = {}
        self._family: Family | None = None
        self._looked = 0
        self._listed = False

    def look(self, *, ending: bool) -> None:
        """Find PID 1; count what the kernel killed; when the Pod is `ending`, also how PID 1 would meet the stop
        signal, which execs run and who else is there."""
        if self.ended:
            return
        pids = [pid for pid in self._groups.processes(self.group) if pid > 0]
        if not self.pid:
            self._find_main(pids)
        if self.pid and not self.ended:
            kills = self._groups.oom_kills(self.group)
            self._kills = self._kills if kills is None else kills
            if ending:
                self._look_at_signals()
                self._look_at_others(pids)

    def close(self) -> None:
        """Let go of everything."""
        for fd in [self._pidfd, *self._execs.values()]:
            if fd >= 0:
                self._loop.unwatch(fd)
                os.close(fd)
        self._pidfd, self._execs = -1, {}
        if self._family is not None:
            self._family.close()

    def _find_main(self, pids: list[int]) -> None:
        pid = main_process([(each, *_birth(each)) for each in pids])
        if not pid or is_runtime(procfs.read(f"/proc/{pid}/comm")):
            return
        try:
            self._pidfd = os.pidfd_open(pid)
        except OSError:
            return  # it has ended; the next look finds another one, or none
        self.pid = pid
        self._family = Family(self._loop, pid, lambda end: self._record(kinds.CHILD_ENDED, {**end}))
        self._limit = self._groups.memory_limit(self.group)
        self._loop.watch(self._pidfd, self._exited)

    # -- while it lives ----------------------------------------------------------------------------------------------

    def _look_at_signals(self) -> None:
        state = dispositions.signal_state(self.pid, _STOP)
        if state is None:
            return
        met = (state["disposition"], tuple(state["caught"]))
        if met == self._met:
            return
        self._met = met
        facts: dict[str, Any] = {**state}
        if not self._traces and state["disposition"] in ("default", "blocked"):
            # sigwait(3) and signalfd(2) look the same from here.
            facts["disposition"] = None
        self._record(kinds.PROCESS_SIGNAL_STATE, facts)

    def _look_at_others(self, pids: list[int]) -> None:
        """Who began outside of the container is an exec: of a hook, a probe or a user."""
        self._looked = self._clock.monotonic_ns()
        inside = set(pids)
        described = {pid: dispositions.describe(pid, _STOP) for pid in pids if pid != self.pid}
        others = {pid: each for pid, each in described.items() if each is not None}
        for pid, each in others.items():
            is_exec = each["parent"] not in inside and pid not in self._execs and each["state"] not in DEAD
            if is_exec and len(self._execs) < _MOST_PROCESSES and not is_runtime(each["name"]):
                self._exec_began(pid)
        if procfs.exiting(self.pid):
            return  # who is not there any more may have ended with it
        if self._family is not None:
            own = [each for pid, each in others.items() if pid not in self._execs and not is_runtime(each["name"])]
            self._family.look(own)
            self._list_processes(own)

    def _list_processes(self, others: list[dict[str, Any]]) -> None:
        """Record, once, who ran beside PID 1 when the end began."""
        if not self._listed and (facts := processes_at_stop(self.pid, "SIGTERM", others)):
            self._record(kinds.PROCESSES_AT_STOP, {**facts})
        self._listed = True

    def _exec_began(self, pid: int) -> None:
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return
        argv = [word for word in procfs.read(f"/proc/{pid}/cmdline").split("\0") if word]
        self._execs[pid] = fd
        self._loop.watch(fd, lambda events: self._exec_ended(pid))
        self._record(kinds.EXEC_STARTED, {"execId": f"{self.id[:12]}-{pid}", "pid": pid, "argv": argv})

    # -- ends --------------------------------------------------------------------------------------------------------

    def _exec_ended(self, pid: int) -> None:
        fd = self._execs.pop(pid)
        self._loop.unwatch(fd)
        at = self._clock.monotonic_ns()

        def tell(code: int | None, name: str | None) -> None:
            os.close(fd)
            exec_id = f"{self.id[:12]}-{pid}"
            facts = {"execId": exec_id, "pid": pid, "exitCode": code, "signal": name, "killedBecause": ""}
            self._record(kinds.EXEC_EXITED, facts, at_ns=at)

        self._when_reaped(fd, tell)

    def _exited(self, events: int) -> None:
        at, fd = self._clock.monotonic_ns(), self._pidfd
        self._loop.unwatch(fd)
        self.ended, self._pidfd = True, -1
        kills = self._groups.oom_kills(self.group)
        self._kills = self._kills if kills is None else kills
        reached = self._groups.limit_reached(self.group) if self._kills else None
        with contextlib.suppress(*_UNREADABLE):
            self._tell_who_died_with_it(at)
        for pid in list(self._execs):
            self._exec_ended(pid)
        self.close()

        def tell(code: int | None, name: str | None) -> None:
            os.close(fd)
            facts = {
                "containerId": self.id,
                "pid": self.pid,
                "exitCode": code,
                "signal": name,
                "oomKilled": None if self._kills is None else self._kills > 0,
                "oomKills": self._kills,
                "memoryLimit": self._limit,
                "limitReached": reached,
            }
            self._record(kinds.PROCESS_EXITED, facts, at_ns=at)

        self._when_reaped(fd, tell)

    def _when_reaped(self, fd: int, tell: Callable[[int | None, str | None], None], tries: int = 0) -> None:
        """Read how a process ended: known once its parent has asked (kernel/exit.c:release_task, pidfs_exit)."""
        status = procfs.wait_status(fd)
        if status is not None or tries == len(_REAPED):
            tell(*how_it_ended(status))
        else:
            self._loop.call_later(_REAPED[tries], lambda: self._when_reaped(fd, tell, tries + 1))

    def _tell_who_died_with_it(self, now: int) -> None:
        family = self._family.died_with_main() if self._family is not None else []
        left = [each for each in family if each["state"] not in DEAD]
        zombies = sum(each["state"] in DEAD and each["parent"] == self.pid for each in family)
        if left or zombies:
            names = ("pid", "containerPid", "name", "state", "disposition")
            facts = {
                "when": "exit",
                "signal": "SIGTERM",
                "processes": [{n: each[n] for n in names} | {"child": each["parent"] == self.pid} for each in left],
                "more": 0,
                "zombies": zombies,
                "secondsBefore": (now - self._looked) / 1e9,
            }
            self._record(kinds.PROCESSES_LEFT, facts, at_ns=now)

    def _record(self, kind: Kind[Any], facts: dict[str, Any], at_ns: int | None = None) -> None:
        self._recorder.record(kind, pod_uid=self.uid, container=self.id, facts=facts, at_ns=at_ns)


def is_runtime(name: str) -> bool:
    """Return whether a process is still the runtime's, on its way to be what it has to start: runc's `runc:[2:INIT]`,
    crun's own name."""
    return name.startswith("runc") or name == "crun"


def main_process(processes: list[tuple[int, int, int]]) -> int:
    """Return the pid of the process that the container was started with; 0 for none.

    `processes` are (pid, its number in its own namespace, start time). It is PID 1 of its own namespace, or, where that
    is shared with the Pod or the node, the one that began first.
    """
    there = [each for each in processes if each[2]]
    first = [each for each in there if each[1] == 1] or there
    return min(first, key=lambda each: each[2])[0] if first else 0


def _birth(pid: int) -> tuple[int, int]:
    """A process's number in its own PID namespace, and when it began (0: it is gone)."""
    own = procfs.field(procfs.read(f"/proc/{pid}/status"), "NSpid").split()
    return int(own[-1]) if own else 0, procfs.start_time(pid)
