"""What the threads of a process wait for, by the system call in which they sleep, and how much CPU time it has used.

/proc/<pid>/task/<tid>/syscall has the number of the call and its arguments (proc_pid_syscall(5)). A time limit is one
of them, and so is the address of a futex: only threads of the same process can wake a waiter on memory that no other
process shares.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time

from lastcall.kube.cri.sandbox.shim import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lastcall.records.definitions.parts import ThreadsWaiting

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_CALLS: dict[str, tuple[int | None, int | None, str]] = {
    "futex": (202, 98, "pointer 3"),
    "poll": (7, None, "int 2"),
    "ppoll": (271, 73, "pointer 2"),
    "select": (23, None, "pointer 4"),
    "pselect6": (270, 72, "pointer 4"),
    "epoll_wait": (232, None, "int 3"),
    "epoll_pwait": (281, 22, "int 3"),
    "epoll_pwait2": (441, 441, "pointer 3"),
    "nanosleep": (35, 101, "always"),
    "clock_nanosleep": (230, 115, "always"),
    "rt_sigtimedwait": (128, 137, "pointer 2"),
    "rt_sigsuspend": (130, 133, "never"),
    "pause": (34, None, "never"),
    "wait4": (61, 260, "never"),
    "waitid": (247, 95, "never"),
    "accept": (43, 202, "unknown"),
    "accept4": (288, 242, "unknown"),
    "read": (0, 63, "unknown"),
    "write": (1, 64, "unknown"),
    "recvfrom": (45, 207, "unknown"),
    "recvmsg": (47, 212, "unknown"),
    "fsync": (74, 82, "unknown"),
    "fdatasync": (75, 83, "unknown"),
    "flock": (73, 32, "never"),
    "restart_syscall": (219, 128, "always"),
}
"""Name → its number on x86_64 and on aarch64, and where its time limit is: an argument (from 0) that is a pointer, none
if it is 0, or a number of milliseconds, none if it is negative. restart_syscall goes on with a wait that has one."""

_COLUMN = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine)
_BY_NUMBER = {} if _COLUMN is None else {row[_COLUMN]: (name, row[2]) for name, row in _CALLS.items()}
_FUTEX_PRIVATE, _TIMER_ABSTIME = 128, 1
_CLOCKS = (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME)
"""Those that show every process the same time; a clock of CPU time belongs to one."""
_TIMESPEC = struct.Struct("@ll")


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time that these processes have used, with that of their children that were waited for."""
    return sum(procfs.cpu_ticks(pid) for pid in pids) / _TICKS_PER_SECOND


def waits_of(pid: int) -> list[ThreadsWaiting]:
    """Return in which calls the threads of a process sleep, the most frequent first; `call` is "" for a thread that
    runs, and for one of whose call nothing is known: a 32-bit program's is another. Empty when the process is gone."""
    found: dict[tuple[object, ...], ThreadsWaiting] = {}
    calls = _BY_NUMBER if procfs.word_bits(pid) == 64 else {}
    looked_at = [_wait_of(pid, thread, calls) for thread in procfs.threads(pid)]
    if more := procfs.more_threads(pid):
        looked_at.append({"call": "", "threads": more, "limited": None, "own": False})
    for wait in looked_at:
        key = (wait["call"], wait["limited"], wait["own"])
        if (there := found.get(key)) is None:
            found[key] = wait
            continue
        there["threads"] += wait["threads"]
        if "wakesIn" in wait:
            there["wakesIn"] = max(wait["wakesIn"], there.get("wakesIn", 0.0))
    return sorted(found.values(), key=lambda each: -each["threads"])


def _wait_of(pid: int, thread: int, calls: Mapping[int | str | None, tuple[str, str]]) -> ThreadsWaiting:
    text = procfs.read(f"/proc/{pid}/task/{thread}/syscall").split()
    name, limit = calls.get(int(text[0]), ("", "unknown")) if len(text) > 6 else ("", "unknown")
    wait: ThreadsWaiting = {"call": name, "threads": 1, "limited": None, "own": False}
    if name:
        arguments = [int(each, 16) for each in text[1:7]]
        wait["limited"] = _is_limited(limit, arguments)
        wait["own"] = name == "futex" and not _may_be_shared(pid, arguments[0], arguments[1])
        if name == "clock_nanosleep" and (seconds := _wakes_in(pid, arguments)) is not None:
            wait["wakesIn"] = seconds
    return wait


def _is_limited(limit: str, arguments: list[int]) -> bool | None:
    """Return whether a wait ends after some time by itself; None if that is not known."""
    kind, _, index = limit.partition(" ")
    if kind == "pointer":
        return arguments[int(index)] != 0
    if kind == "int":
        return ctypes.c_int(arguments[int(index)] & 0xFFFFFFFF).value >= 0
    return {"always": True, "never": False}.get(kind)


def _may_be_shared(pid: int, address: int, operation: int) -> bool:
    """Return whether another process may wake who waits on a futex: not on one that is private, or in memory of this
    process alone. glibc waits for the end of a thread without the private flag."""
    if operation & _FUTEX_PRIVATE:
        return False
    for line in procfs.read_all(f"/proc/{pid}/maps").splitlines():
        span, permissions = line.split(maxsplit=2)[:2]
        first, _, last = span.partition("-")
        if int(first, 16) <= address < int(last, 16):
            return permissions.endswith("s")
    return True


def _wakes_in(pid: int, arguments: list[int]) -> float | None:
    """Return the seconds until a sleep with an absolute time ends; None where it has another one, or another clock."""
    clock, flags, request = arguments[:3]
    if clock not in _CLOCKS or not flags & _TIMER_ABSTIME:
        return None
    found = procfs.memory_at(pid, request, _TIMESPEC.size)
    if len(found) != _TIMESPEC.size:
        return None
    seconds, nanoseconds = _TIMESPEC.unpack(found)
    return max(0.0, float(seconds + nanoseconds / 1e9 - time.clock_gettime(clock)))
