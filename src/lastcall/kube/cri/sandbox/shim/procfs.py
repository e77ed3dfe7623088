"""What /proc says of a process. Every function answers something empty when the process is gone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

_MOST_THREADS = 64
_MOST_DESCENDANTS = 256
_MOST_FILES = 1024
_MOST_READS = 256
_PIDFD_INFO = struct.Struct("=QQ11Ii")  # struct pidfd_info (linux/pidfd.h): mask, cgroupid, …, exit_code
_PF_EXITING = 0x4
_PIDFD_GET_INFO, _PIDFD_INFO_EXIT = 0xC040FF0B, 1 << 3

_NAMES = {int(number): number.name for number in signal.Signals}
_NAMES[32], _NAMES[33] = "SIGCANCEL", "SIGSETXID"  # the C library's own


_OTHER_NAMES = {"SIGCLD": int(signal.SIGCHLD), "SIGPOLL": int(signal.SIGIO), "SIGIOT": int(signal.SIGABRT)}


def signal_name(number: int) -> str:
    """Return `SIGTERM`, `SIGRTMIN+3`, `SIGRTMAX-2`; a number that is not a signal as text."""
    name = _NAMES.get(number)
    if name:
        return name
    if 34 < number < 50:
        return f"SIGRTMIN+{number - 34}"
    return f"SIGRTMAX-{64 - number}" if 50 <= number < 64 else str(number)


def signal_number(text: str) -> int:
    """Return the number of `SIGTERM`, `TERM`, `15`, `SIGRTMIN+3` or `SIGRTMAX-2`. Raises ValueError for others."""
    name = text.strip().upper()
    if name.isdecimal():
        number = int(name)
    else:
        name = name if name.startswith("SIG") else f"SIG{name}"
        base, plus, offset = name.partition("+")
        if base == "SIGRTMIN" and plus and offset.isdecimal():
            number = 34 + int(offset)
        elif (base_minus := name.partition("-"))[0] == "SIGRTMAX" and base_minus[2].isdecimal():
            number = 64 - int(base_minus[2])
        elif name in _OTHER_NAMES:
            number = _OTHER_NAMES[name]
        else:
            number = next((known for known, known_name in _NAMES.items() if known_name == name), 0)
    if not 1 <= number <= 64:
        raise ValueError(f"unknown signal {text!r}")
    return number


def mask_names(mask: int) -> list[str]:
    """Return the signals of a bit mask of /proc/<pid>/status."""
    return [signal_name(bit + 1) for bit in range(64) if mask >> bit & 1]


def start_time(pid: int) -> int:
    """Return field 22 of /proc/<pid>/stat, clock ticks since boot; 0 if gone. Pid and it name a process forever."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the third on: the name before them may hold anything."""
    text = read(f"/proc/{pid}/stat")
    return text[text.rfind(")") + 2 :].split() if text else []


def cpu_ticks(pid: int) -> int:
    """Return the CPU time of a process and its reaped children in clock ticks; 0 when gone."""
    fields = _stat(pid)
    return sum(map(int, fields[11:15])) if fields else 0


def voluntary_switches(pid: int) -> int | None:
    """Return how often the first thread of a process has given up its processor to wait; None when it is gone."""
    count = field(read(f"/proc/{pid}/status"), "voluntary_ctxt_switches")
    return int(count) if count else None


def exiting(pid: int) -> bool:
    """Return whether a process has begun to end: the kernel then takes its files, before it reports the end."""
    fields = _stat(pid)
    return not fields or bool(int(fields[6]) & _PF_EXITING)


def executable(pid: int) -> str:
    """Return the path of the program, as its own root sees it; "" if the process is gone."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def word_bits(pid: int) -> int:
    """Return 64 or 32, of the program that a process runs (elf(5), EI_CLASS): system calls of a 32-bit one have numbers
    of their own. 0 where that cannot be read."""
    with contextlib.suppress(OSError):
        fd = os.open(f"/proc/{pid}/exe", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return {b"\x01": 32, b"\x02": 64}.get(os.pread(fd, 1, 4), 0)
        finally:
            os.close(fd)
    return 0


def threads(pid: int) -> list[int]:
    """Return the ids of its threads; of very many only some."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")[:_MOST_THREADS]]
    except OSError:
        return []


def more_threads(pid: int) -> int:
    """Count the threads of a process besides those that `threads` returns."""
    count = field(read(f"/proc/{pid}/status"), "Threads")
    return max(0, int(count) - _MOST_THREADS) if count else 0


def descendants(root: int, most: int = _MOST_DESCENDANTS, *, first: Iterable[int] | None = None) -> list[int]:
    """Return every process below `root`, at most about `most`, without a look at other processes of the machine.

    None where the kernel keeps no lists of children (CONFIG_PROC_CHILDREN). `first` are the children of `root`, where
    they are known.
    """
    found = dict.fromkeys(first or ())
    ahead = [root] if first is None else list(found)
    while ahead and len(found) < most:
        pid = ahead.pop(0)
        for thread in threads(pid):
            for child in map(int, read(f"/proc/{pid}/task/{thread}/children").split()):
                if child not in found:
                    found[child] = None
                    ahead.append(child)
    return list(found)


def children(pid: int) -> set[int] | None:
    """Return whom a process has begun or adopted; None if it has so many threads that only some would be asked."""
    ids = threads(pid)
    if len(ids) == _MOST_THREADS:
        return None
    return {int(child) for thread in ids for child in read(f"/proc/{pid}/task/{thread}/children").split()}


def wait_status(pidfd: int) -> int | None:
    """Return how a process that is not our child ended, as wait(2) has it; None while it lives.

    None, too, if the kernel (before Linux 6.15) does not tell. The pidfd must be older than its end.
    """
    info = bytearray(_PIDFD_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 13))
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:
        return None
    mask, *_, status = _PIDFD_INFO.unpack(info)
    return status if mask & _PIDFD_INFO_EXIT else None


def socket_inodes(pids: list[int]) -> set[int]:
    """Return the sockets that these processes have open, among the first thousand files of each."""
    found = set()
    for pid in pids:
        try:
            files = os.listdir(f"/proc/{pid}/fd")[:_MOST_FILES]
        except OSError:
            continue
        for fd in files:
            with contextlib.suppress(OSError):  # closed meanwhile; others are open
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
                if target.startswith("socket:["):
                    found.add(int(target[8:-1]))
    return found


def field(status: str, name: str) -> str:
    """Return a field of /proc/<pid>/status but the first; "" if it is missing. Of sixty lines four are wanted."""
    head = f"\n{name}:\t"
    start = status.find(head)
    return status[start + len(head) : status.find("\n", start + 1)] if start >= 0 else ""


def real_id(pid: int, status: str, kind: Literal["uid", "gid"]) -> int | None:
    """Return the real user or group of a process, as its own user namespace has it; None when it is gone, and for an id
    that the namespace does not have. `status` is what its /proc/<pid>/status said."""
    ids = field(status, kind.capitalize()).split()
    if not ids:
        return None
    with contextlib.suppress(OSError):
        # /proc shows the reader's ids. A map read from the same namespace is the one to its parent.
        if os.stat(f"/proc/{pid}/ns/user").st_ino == os.stat("/proc/self/ns/user").st_ino:
            return int(ids[0])
        for line in read(f"/proc/{pid}/{kind}_map").splitlines():
            inside, outside, count = map(int, line.split())
            if outside <= int(ids[0]) < outside + count:
                return inside + int(ids[0]) - outside
    return None


def members(root: int) -> list[int]:
    """Return processes below `root` or in its session, `root` first if it lives; they may be gone when used."""
    parents: dict[int, list[int]] = {}
    found: dict[int, None] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal() and (fields := _stat(int(name))):
            pid = int(name)
            parents.setdefault(int(fields[1]), []).append(pid)
            if pid == root or int(fields[3]) == root:
                found[pid] = None
    for pid in list(found):
        _descend(pid, parents, found)
    return sorted(found, key=lambda pid: (pid != root, pid))


def _descend(pid: int, parents: dict[int, list[int]], found: dict[int, None]) -> None:
    for child in parents.get(pid, ()):
        found[child] = None
        _descend(child, parents, found)


def open_mount_namespace(pid: int) -> int:
    """Open a process's mount namespace, which lives as long as the descriptor; -1 if the process is gone."""
    try:
        return os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def in_mount_namespace(fd: int) -> list[int]:
    """Return every process in a mount namespace."""
    identity = os.readlink(f"/proc/self/fd/{fd}")
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _mount_namespace(int(name)) == identity]


def _mount_namespace(pid: int) -> str:
    """The identity of a process's mount namespace; "" when gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


def id_map(path: str) -> list[tuple[int, int]]:
    """Return (first, count) of every id that /proc/self/uid_map or gid_map makes usable here."""
    return [(int(first), int(count)) for first, _, count in (line.split() for line in read(path).splitlines())]


def memory_at(pid: int, address: int, size: int) -> bytes:
    """Return what a process has at an address; b"" where that cannot be read."""
    with contextlib.suppress(OSError, OverflowError):
        fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(fd, size, address)
        finally:
            os.close(fd)
    return b""


def read(path: str) -> str:
    """Read a small file of /proc; "" if it does not exist."""
    return _read(path, 1)


def read_all(path: str) -> str:
    """Read a file of /proc of which one read gives a part, at most some megabytes; "" if it does not exist."""
    return _read(path, _MOST_READS)


def _read(path: str, most: int) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    parts: list[bytes] = []
    try:
        while len(parts) < most and (part := os.read(fd, 65536)):
            parts.append(part)
    except OSError:
        return ""
    finally:
        os.close(fd)
    return b"".join(parts).decode("utf-8", "replace")
