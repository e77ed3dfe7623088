"""Record the end of a container from outside: its sockets and its processes, from the stop signal to the exit.

Everything here is said of a moment, and the record has its age. Before the signal counters are read (some 40 µs), and
each process beside PID 1 (some 100 µs), for a few milliseconds at most; what takes longer comes after the signal, after
the exit is reported, or from a timer. Looking is bounded:
a few looks in the first tenth of a second, ten a second after that, fewer when many containers end at once. Nothing
that fails here may disturb an end: a fact that could not be read is left out.
"""

# check: allow time.monotonic_ns because the shim has a loop of its own
# check: many attributes Witness because it is what one look at an end compares with the look before

from __future__ import annotations

import contextlib
import os
import time

from lastcall.kube.cri.sandbox.shim import dispositions, procfs, waits
from lastcall.kube.cri.sandbox.shim.family import DEAD, MOST_WATCHED, Family, processes_at_stop
from lastcall.kube.cri.sandbox.shim.procfs import signal_name, signal_number
from lastcall.kube.cri.sandbox.shim.sockets import Counters, Sockets, facts_of, open_diag_in, peers_of
from lastcall.records import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Protocol

    from lastcall.kube.cri.sandbox.shim.loop import Loop, Timer
    from lastcall.kube.cri.sandbox.shim.sockets import Socket
    from lastcall.records.definitions.parts import BetweenLooks, ProcessLeft, ProcessWaiting
    from lastcall.records.definitions.witness import (
        ConnectionsClosed,
        ListenerClosed,
        ProcessesLeft,
        SocketsAtExit,
        SocketsAtStop,
        WaitsAtKill,
    )
    from lastcall.records.record import Evidence, Facts, Kind

    class Records(Protocol):
        """Writes a record about the container."""

        def __call__(self, kind: Kind[Facts], facts: Facts, evidence: Evidence) -> None: ...


_FIRST_LOOKS = (0.005, 0.01, 0.02, 0.05)
_LOOK_SECONDS, _LATE_LOOK_SECONDS, _LATE_AFTER = 0.1, 1.0, 60.0
_SECONDS_EACH = 0.005
"""How many times the number of containers that end at the moment is the least time between two looks at one."""
_DETAIL_SECONDS = 1.0
"""Single connections are listed no oftener than this, or when their number changes."""
_BEFORE_SIGNAL_SECONDS = 0.002
"""After this time no further process is looked at before the signal, which must not wait."""
_MOST_RECORDED = 16
"""Processes and listeners in one record."""
_MOST_PEERS = 64
"""Connections in one record."""

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

_UNREADABLE = (OSError, ValueError, IndexError, KeyError, OverflowError)


class Watched:
    """Where to look. `network`: the Pod's network namespace and the shim's own, None for the node's."""

    def __init__(
        self,
        loop: Loop,
        pid: int,
        network: tuple[int, int] | None,
        alone: Callable[[], bool],
        record: Records,
    ) -> None:
        """`alone`: whether no other container of the Pod runs; `record(kind, facts, evidence)`."""
        self.loop, self.pid, self.network, self.alone, self.record = loop, pid, network, alone, record


class Witness:
    """Of one container's end: `before_signal`, `after_signal`, `before_kill` where it comes to that, `after_exit`."""

    _active = 0

    def __init__(self, watched: Watched, *, exact: bool = True) -> None:
        """`exact` False: when the signal is sent is not known but to some milliseconds."""
        self._watched, self._exact = watched, exact
        self._sockets: Sockets | None = None
        self._shared = False
        self._signal = "SIGTERM"
        self._signalled = self._signal_tick = 0
        self._stop_sent = False
        self._watching = False
        self._looks = 0
        self._looked = self._detailed = 0
        self._first = self._last = Counters()
        self._before: list[Socket] = []
        """Who listened in the Pod right before the signal."""
        self._listening: dict[int, Socket] = {}
        self._open: list[Socket] = []
        self._family = Family(watched.loop, watched.pid, lambda end: watched.record(kinds.CHILD_ENDED, end, "observed"))
        self._at_signal: set[int] | None = None
        self._children: set[int] | None = None
        self._older: dict[int, dict[str, Any]] = {}
        """The processes beside PID 1 right before the signal, by pid."""
        self._not_described: set[int] = set()
        """Those that there was no time for then."""
        self._switches: int | None = None
        self._seen = 0
        self._killed = False
        self._drained = False
        self._cpu_at_signal = self._cpu = 0.0
        self._used_cpu = 0
        """When CPU time was last used, as the looks saw it."""
        self._timer: Timer | None = None

    def before_signal(self, number: int) -> None:
        """Read the counters, the listeners and the processes below PID 1, before the signal.

        PID 1 adopts those whom the signal makes orphans. A program may close its listener, or end with its children,
        before the first look.
        """
        self._signal = signal_name(number)
        self._children = procfs.children(self._watched.pid)
        if self._children != set():
            with contextlib.suppress(*_UNREADABLE):
                self._look_before_signal(number)
        self._switches = procfs.voluntary_switches(self._watched.pid)
        if self._watched.network is not None:
            with contextlib.suppress(*_UNREADABLE):
                sockets = Sockets(self._watched.pid)
                if sockets.any:
                    self._sockets = sockets
                    self._first = self._last = sockets.count(unread=True)
                    sockets.keep(open_diag_in(*self._watched.network))
                    self._before = sockets.listeners()
                else:
                    sockets.close()
        self._signalled = self._looked = time.monotonic_ns()
        self._signal_tick = time.clock_gettime_ns(time.CLOCK_BOOTTIME) * _TICKS_PER_SECOND // 1_000_000_000

    def after_signal(self) -> None:
        """Read who listens and which processes exist; from now on look now and then."""
        Witness._active += 1
        self._watching = self._stop_sent = True
        with contextlib.suppress(*_UNREADABLE):
            self._look_at_processes()
            if self._exact:
                # A look comes a moment after the signal, and a handler may have begun something by then.
                found = {pid for pid in self._family.processes if procfs.start_time(pid) < self._signal_tick}
                self._at_signal = found | self._older.keys()
                self._tell_processes_at_stop()
            self._cpu_at_signal = self._cpu
            self._first_look_at_sockets()
        self._plan()

    def before_kill(self) -> None:
        """Read who still exists when SIGKILL comes."""
        if self._killed:
            return
        if not self._watching:
            Witness._active += 1
            self._watching = True
            with contextlib.suppress(*_UNREADABLE):
                self._first_look_at_sockets()
        self._killed = True
        with contextlib.suppress(*_UNREADABLE):
            self._look_at_processes()
            self._tell_waits()
            self._tell_processes("SIGKILL", list(self._family.processes.values()))
            self._look_at_sockets(details=True)

    def outlived(self) -> None:
        """Note that PID 1 ended by itself before the SIGKILL that was about to come."""
        self._killed = False

    def stop_signal_pending(self) -> bool | None:
        """Return whether the stop signal that was sent is still pending; None if none was sent."""
        return dispositions.is_pending(self._watched.pid, signal_number(self._signal)) if self._stop_sent else None

    def after_exit(self, *, killed: bool) -> None:
        """Report what the end did to the connections, and who died with PID 1 (with one that was `killed` all do)."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._watching:
            Witness._active -= 1
            self._watching = False
            if not self._killed and not killed:
                self._tell_processes("exit", self._family.died_with_main())
            with contextlib.suppress(*_UNREADABLE):
                self._tell_sockets()
        self._family.close()
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None

    # -- looking -----------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        if self._looks < len(_FIRST_LOOKS):
            seconds = _FIRST_LOOKS[self._looks]
        else:
            seconds = _LOOK_SECONDS if self._since() < _LATE_AFTER else _LATE_LOOK_SECONDS
        self._looks += 1
        seconds = max(seconds, Witness._active * _SECONDS_EACH)
        self._timer = self._watched.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        with contextlib.suppress(*_UNREADABLE):
            self._look_at_processes()
            self._look_at_sockets(details=True)
        self._plan()

    def _since(self, moment: int = 0) -> float:
        """Seconds from the signal to a moment, or to now."""
        return ((moment or time.monotonic_ns()) - self._signalled) / 1e9

    def _look_at_processes(self) -> None:
        seen, number = time.monotonic_ns(), signal_number(self._signal)
        found = [dispositions.describe(pid, number) for pid in procfs.descendants(self._watched.pid)]
        if procfs.exiting(self._watched.pid):
            return  # who is not there any more may have ended with it
        self._seen = seen
        self._family.look(each for each in found if each is not None)
        used = waits.cpu_seconds([self._watched.pid, *list(self._family.processes)[:MOST_WATCHED]])
        if used > self._cpu or not self._used_cpu:
            self._cpu, self._used_cpu = used, seen

    def _look_before_signal(self, number: int) -> None:
        """Describe the processes beside PID 1, as far as there is time: with PID 1 they may be gone in a moment."""
        begun = self._seen = time.monotonic_ns()
        there = procfs.descendants(self._watched.pid, MOST_WATCHED, first=self._children)
        for index, pid in enumerate(there):
            described = dispositions.describe(pid, number)
            if described is not None and described["state"] not in DEAD:
                self._older[pid] = described
            if time.monotonic_ns() - begun > _BEFORE_SIGNAL_SECONDS * 1e9:
                self._not_described = {*there[index + 1 :]}
                break
        self._family.look(self._older.values())

    def _first_look_at_sockets(self) -> None:
        sockets, watched = self._sockets, self._watched
        if sockets is None:
            return
        self._shared = not watched.alone()
        there = sockets.listeners()
        self._listening = {each.inode: each for each in self._of_this_container(there)}
        closed: list[Socket] = []
        if not self._shared and not procfs.exiting(watched.pid):
            closed = [each for each in self._before if each.inode not in self._listening]
        if self._listening or closed or self._first.established:
            facts: SocketsAtStop = {
                "signal": self._signal,
                "listeners": facts_of([*closed, *self._listening.values()][:_MOST_RECORDED]),
                "connections": self._first.established,
                "scope": self._scope,
            }
            watched.record(kinds.SOCKETS_AT_STOP, facts, "observed")
        for each in closed:
            self._tell_closed(each, self._signalled)

    @property
    def _scope(self) -> Literal["container", "pod"]:
        """Whose connections the counters count: all containers of a Pod have one network namespace."""
        return "pod" if self._shared else "container"

    def _of_this_container(self, found: list[Socket]) -> list[Socket]:
        if not self._shared or not found:
            return found
        own = procfs.socket_inodes([self._watched.pid, *self._family.processes])
        ports = {each.port for each in self._listening.values()}
        return [each for each in found if each.inode in own or (not each.inode and each.port in ports)]

    def _look_at_sockets(self, *, details: bool) -> None:
        """What has changed since the last look. With `details` also how much of what came was read."""
        sockets = self._sockets
        if sockets is None:
            return
        now, count = time.monotonic_ns(), sockets.count()
        there = {each.inode: each for each in sockets.listeners()} if self._listening else {}
        if procfs.exiting(self._watched.pid):
            return  # what is closed by now the kernel may have closed
        before, self._looked = self._looked, now
        last, self._last = self._last, count
        if self._listening:
            for inode, listener in list(self._listening.items()):
                if inode in there:
                    self._listening[inode] = there[inode]
                else:
                    del self._listening[inode]
                    self._tell_closed(listener, before)
        if self._last.established and details:
            changed = self._last.established != last.established
            if changed or (self._looked - self._detailed) / 1e9 >= _DETAIL_SECONDS:
                self._detailed = self._looked
                self._open = self._of_this_container(sockets.connections())
        if not self._last.established:
            self._open = []
            if last.established and not self._listening and not self._drained:
                self._drained = True
                drained: ConnectionsClosed = {"scope": self._scope, **self._between(before)}
                self._watched.record(kinds.CONNECTIONS_CLOSED, drained, "observed")

    # -- telling -----------------------------------------------------------------------------------------------------

    def _tell_closed(self, listener: Socket, before: int) -> None:
        """It was there at the look `before`, and is not any more."""
        closed: ListenerClosed = {"address": listener.address, "port": listener.port, **self._between(before)}
        self._watched.record(kinds.LISTENER_CLOSED, closed, "observed")

    def _between(self, before: int) -> BetweenLooks:
        """It happened between two looks: `notBefore` and `seconds` after the signal."""
        return {"seconds": self._since(), "notBefore": max(0.0, self._since(before))}

    def _tell_processes_at_stop(self) -> None:
        at_signal = self._at_signal or ()
        those = {**self._family.processes, **self._older}
        older = [each for pid, each in those.items() if pid in at_signal]
        missed = len(self._not_described - those.keys())
        if facts := processes_at_stop(self._watched.pid, self._signal, older, missed):
            self._watched.record(kinds.PROCESSES_AT_STOP, facts, "observed")

    def _tell_waits(self) -> None:
        """What it waits for when SIGKILL comes, PID 1 first. Without a stop signal before it nothing was to be done."""
        main = dispositions.describe(self._watched.pid, signal_number(self._signal)) if self._stop_sent else None
        if main is None:
            return
        alive = [each for each in self._family.processes.values() if each["state"] not in DEAD]
        facts: WaitsAtKill = {
            "signal": self._signal,
            "seconds": self._since(),
            "cpuSeconds": max(0.0, self._cpu - self._cpu_at_signal),
            "idleSeconds": (time.monotonic_ns() - max(self._used_cpu, self._signalled)) / 1e9,
            "processes": [self._waiting(each) for each in [main, *alive][:MOST_WATCHED]],
        }
        switches = procfs.voluntary_switches(self._watched.pid)
        if switches is not None and self._switches is not None:
            facts["switches"] = switches - self._switches
        self._watched.record(kinds.WAITS_AT_KILL, facts, "observed")

    def _waiting(self, process: dict[str, Any]) -> ProcessWaiting:
        pid = process["pid"]
        waiting: ProcessWaiting = {
            "containerPid": process["containerPid"],
            "name": process["name"],
            "waits": waits.waits_of(pid),
        }
        if (caught := dispositions.caught(pid)) is not None:
            waiting["caught"] = caught
        if pid != self._watched.pid and self._at_signal is not None and pid not in self._at_signal:
            waiting["afterSignal"] = True
        return waiting

    def _tell_processes(self, when: Literal["SIGKILL", "exit"], family: list[dict[str, Any]]) -> None:
        if not family:
            return
        alive = [each for each in family if each["state"] not in DEAD]
        facts: ProcessesLeft = {
            "when": when,
            "signal": self._signal,
            "processes": [self._describe(each) for each in alive[:_MOST_RECORDED]],
            "more": max(0, len(alive) - _MOST_RECORDED),
            "zombies": sum(each["state"] in DEAD and each["parent"] == self._watched.pid for each in family),
            "secondsBefore": (time.monotonic_ns() - self._seen) / 1e9,
        }
        self._watched.record(kinds.PROCESSES_LEFT, facts, "observed")

    def _describe(self, process: dict[str, Any]) -> ProcessLeft:
        described: ProcessLeft = {
            "pid": process["pid"],
            "containerPid": process["containerPid"],
            "name": process["name"],
            "state": process["state"],
            "disposition": process["disposition"],
            "child": self._is_child(process),
        }
        if self._at_signal is not None and process["pid"] not in self._at_signal:
            described["afterSignal"] = True
        return described

    def _is_child(self, process: dict[str, Any]) -> bool:
        """Whether PID 1 has it as a child; of one that lived at the signal, whether it had it then."""
        if self._children is not None and self._at_signal is not None and process["pid"] in self._at_signal:
            return process["pid"] in self._children
        return bool(process["parent"] == self._watched.pid)

    def _tell_sockets(self) -> None:
        sockets, last = self._sockets, self._last
        if sockets is None:
            return
        after = sockets.count(unread=True)
        backlog = sum(each.rx for each in self._listening.values())
        unread = [each for each in self._open if each.rx]
        resets, aborted = after.resets - last.resets, after.unread - self._first.unread
        if not (self._listening or last.established or resets or aborted):
            return
        facts: SocketsAtExit = {
            "listeners": facts_of(list(self._listening.values())[:_MOST_RECORDED]),
            "connections": last.established,
            "unread": len(unread),
            "unreadBytes": sum(each.rx for each in unread),
            "backlog": backlog,
            "resets": max(0, resets),
            "closedUnread": max(0, aborted),
            "secondsBefore": (time.monotonic_ns() - self._looked) / 1e9,
            "scope": self._scope,
        }
        if self._open:
            facts["peers"] = peers_of(self._open[:_MOST_PEERS])
        self._watched.record(kinds.SOCKETS_AT_EXIT, facts, "observed")
