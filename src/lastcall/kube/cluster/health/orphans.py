"""What a dead shim leaves: its containers fall to init, which ends them and learns how each ended.

A container without its shim could never be stopped in order, its output would go nowhere and its wait status would be
lost; so it is killed, as containerd does (core/runtime/v2/shim_manager.go:cleanupAfterDeadShim). The records carry the
Pod they belong to, and the journals on tmpfs the wait statuses: the next shim finds them there.
"""

# check: observes because it sees wait statuses of what a dead shim left

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from lastcall.kube.cri.sandbox.shim.past import PastProcess, read_journals
from lastcall.kube.cri.sandbox.shim.procfs import signal_name
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.clock import Clock

if TYPE_CHECKING:
    from lastcall.records.definitions.runtime import ExecExited, ProcessExited, SignalSent
    from lastcall.records.record import Facts, Kind

WHY = "the shim died"


class Orphans:
    """The processes of one dead shim. `kill` until it answers True, `reaped` for every wait status meanwhile."""

    def __init__(self, journals: str, recorder: Recorder, clock: Clock) -> None:
        self._recorder = recorder
        self._clock = clock
        known = [past for past in read_journals(journals) if not past.over]
        self._processes = {past.pid: past for past in known if past.lives()}
        self._killed: dict[int, None] = {}

    def kill(self, roles: Iterable[int]) -> bool:
        """Send SIGKILL to every process that is neither init nor of a living role; return True if there is none."""
        left = strangers(roles)
        for pid in left:
            past = self._processes.get(pid)
            if past is not None and pid not in self._killed:
                self._killed[pid] = None
                sent: SignalSent = {"signal": "SIGKILL", "pid": pid, "why": WHY}
                self._record(kinds.SIGNAL_SENT, past, sent)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    def reaped(self, pid: int, exit_code: int | None, number: int | None) -> None:
        """Record the wait status of a child of init that is not a role."""
        past = self._processes.pop(pid, None)
        if past is None:
            return
        code, name = (exit_code or 0, "") if number is None else (128 + number, signal_name(number))
        past.ended(code, name, self._clock.wall_ns())
        if past.exec_id:
            exec_exited: ExecExited = {
                "execId": past.exec_id,
                "pid": pid,
                "exitCode": code,
                "signal": name or None,
                "killedBecause": WHY if pid in self._killed else "",
            }
            self._record(kinds.EXEC_EXITED, past, exec_exited)
        else:
            exited: ProcessExited = {
                "containerId": past.container_id,
                "pid": pid,
                "exitCode": code,
                "signal": name or None,
                "oomKilled": None,
            }
            self._record(kinds.PROCESS_EXITED, past, exited)

    def _record(self, kind: "Kind[Facts]", past: PastProcess, facts: "Facts") -> None:
        self._recorder.record(
            kind, pod_uid=past.pod_uid, container=past.container, rule=rules.CLEANUP_AFTER_DEAD_SHIM, facts=facts
        )


def strangers(roles: Iterable[int]) -> list[int]:
    """Return every process of this PID namespace except PID 1, the roles and their descendants."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    kept = {1, *roles}

    def belongs(pid: int) -> bool:
        seen = 0
        while pid not in kept:
            pid, seen = parents.get(pid, 0), seen + 1
            if pid in (0, 1) or seen > len(parents):
                return False
        return True

    return [pid for pid in sorted(parents) if not belongs(pid)]
