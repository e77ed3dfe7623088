"""The processes beside PID 1 of a container, and when each of them ended.

A pidfd becomes readable when its process ends. Whether that was before PID 1 began to end is looked up at that moment:
who ended while PID 1 lived was not killed with it.
"""

# check: allow time.monotonic_ns because the shim has a loop of its own

from __future__ import annotations

import contextlib
import os
import signal
import time

from lastcall.kube.cri.sandbox.shim import dispositions, procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from lastcall.kube.cri.sandbox.shim.loop import Loop, Timer
    from lastcall.records.definitions.parts import ProcessAtStop
    from lastcall.records.definitions.witness import ChildEnded, ProcessesAtStop

MOST_WATCHED = 16
"""Processes that are watched at once."""
_MOST_REPORTED = 32
"""Ends that are reported of one container: a program may start and end processes all the time."""
_REAPED = (0.002, 0.005, 0.02, 0.05, 0.2, 0.5, 1.0)
"""Seconds between looks at whether a process that has ended was reaped: before that its status is not known."""
DEAD = ("Z", "X")


class Family:
    """`look` names the processes that there are; `report` gets each that ends while PID 1 (`main`) lives."""

    def __init__(self, loop: Loop, main: int, report: Callable[[ChildEnded], None]) -> None:
        self._loop, self._main, self._report = loop, main, report
        self._reported = 0
        self._pidfds: dict[int, int] = {}
        self._waiting: dict[int, tuple[Timer, Callable[[], None]]] = {}
        self.processes: dict[int, dict[str, Any]] = {}
        """By pid, as described at the last look, without those that have ended since."""

    def look(self, described: Iterable[dict[str, Any]]) -> None:
        """Replace what is known of the processes."""
        found = {each["pid"]: each for each in described}
        alive = {pid for pid, each in found.items() if each["state"] not in DEAD}
        for pid in [pid for pid in self._pidfds if pid not in alive]:
            self._ended(pid)
        self.processes = found
        for pid in sorted(alive - self._pidfds.keys())[: MOST_WATCHED - len(self._pidfds)]:
            with contextlib.suppress(OSError):
                self._pidfds[pid] = os.pidfd_open(pid)
                self._loop.watch(self._pidfds[pid], self._watcher(pid))

    def _watcher(self, pid: int) -> Callable[[int], None]:
        return lambda events: self._ended(pid)

    def died_with_main(self) -> list[dict[str, Any]]:
        """Return, when PID 1 has ended, who died with it: those whose wait status says SIGKILL, and zombies.

        Who lived at the last look may have ended before PID 1, by itself and well; so a kernel that does not show wait
        statuses (before Linux 6.15) leaves this unsaid.
        """
        killed = {pid for pid, fd in self._pidfds.items() if procfs.wait_status(fd) == signal.SIGKILL}
        return [each for pid, each in self.processes.items() if each["state"] in DEAD or pid in killed]

    def close(self) -> None:
        """Close the family: report what still waits for its status, and release everything."""
        for timer, report in list(self._waiting.values()):
            timer.cancel()
            report()
        for fd in self._pidfds.values():
            self._loop.unwatch(fd)
            os.close(fd)
        self._pidfds = {}

    def _ended(self, pid: int) -> None:
        fd, at = self._pidfds[pid], time.monotonic_ns()
        self._loop.unwatch(fd)
        if procfs.exiting(self._main):
            return  # it may have ended with PID 1: `died_with_main` looks at its status
        del self._pidfds[pid]
        process = self.processes.pop(pid, None)
        if process is None or self._reported >= _MOST_REPORTED:
            os.close(fd)
            return
        self._reported += 1
        self._when_reaped(fd, at, process, 0)

    def _when_reaped(self, fd: int, at: int, process: dict[str, Any], tries: int) -> None:
        """The kernel shows how a process ended once its parent has asked (kernel/exit.c:release_task, pidfs_exit)."""
        status = procfs.wait_status(fd)

        def report() -> None:
            self._waiting.pop(fd, None)
            self._tell(procfs.wait_status(fd), at, process)
            os.close(fd)

        if status is not None or tries == len(_REAPED):
            report()
            return
        timer = self._loop.call_later(_REAPED[tries], lambda: self._when_reaped(fd, at, process, tries + 1))
        self._waiting[fd] = (timer, report)

    def _tell(self, status: int | None, at: int, process: dict[str, Any]) -> None:
        code, name = how_it_ended(status)
        self._report(
            {
                "pid": process["pid"],
                "containerPid": process["containerPid"],
                "name": process["name"],
                "disposition": process["disposition"],
                "exitCode": code,
                "signal": name,
                "secondsBefore": (time.monotonic_ns() - at) / 1e9,
            }
        )


def processes_at_stop(
    main: int, signal: str, described: Sequence[dict[str, Any]], missed: int = 0
) -> ProcessesAtStop | None:
    """Return who runs beside PID 1 (`main`), with parents by their numbers inside; None if nobody does.

    `missed` more were there and had ended before they could be described.
    """
    alive = [each for each in described if each["state"] not in DEAD]
    if not alive:
        return None
    numbers = {each["pid"]: each["containerPid"] for each in described} | {main: dispositions.container_pid(main)}
    listed: list[ProcessAtStop] = [
        {
            "pid": each["pid"],
            "containerPid": each["containerPid"],
            "parent": numbers.get(each["parent"], 0),
            "name": each["name"],
            "state": each["state"],
            "disposition": each["disposition"],
        }
        for each in alive[:MOST_WATCHED]
    ]
    return {"signal": signal, "processes": listed, "more": len(alive) - len(listed) + missed}


def how_it_ended(status: int | None) -> tuple[int | None, str | None]:
    """Return (exit code, signal) of a wait status; None twice where the kernel does not show it (before Linux 6.15)."""
    if status is None:
        return None, None
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return 128 + number, procfs.signal_name(number)
    return os.WEXITSTATUS(status), None
