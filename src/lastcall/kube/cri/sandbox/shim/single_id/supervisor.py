"""The shim's answers for containers with a single user id (see `filter.py`), in the words of seccomp_unotify(2).

chown and its like succeed without being done: every file has the one owner anyway. setuid and its like succeed and are
remembered; getuid goes on to say 0, until the process executes something. That execve is turned into one of our small
program, which makes a user namespace in which the one id is the id that was asked for, and executes what was meant. So
gosu, su-exec, setpriv, su or chpst work and `id -u` says what it should, the files are the new user's, and the
capabilities are gone. A process that never executes anything (nginx's workers) stays root with the same rights.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import struct

from lastcall.kube.cri.sandbox.seccomp.syscalls import system_calls
from lastcall.kube.cri.sandbox.shim.procfs import read as read_proc
from lastcall.kube.cri.sandbox.shim.single_id.filter import BUFFER_SIZE, HELPER_CALL, HELPER_PATH
from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lastcall.kube.cri.sandbox.shim.loop import Loop

_RECEIVE, _SEND, _ID_VALID = 0xC050_2100, 0xC018_2101, 0x4008_2102
_CONTINUE = 1
_NOTIFICATION = struct.Struct("=QII iI7Q")  # struct seccomp_notif
_RESPONSE = struct.Struct("=QqiI")  # struct seccomp_notif_resp
_UNCHANGED = 0xFFFF_FFFF
_MOST_ARGUMENTS = 4096
_LONGEST_PATH = 4096
_HELPER = HELPER_PATH.encode() + b"\0"


class _Wanted:
    """Who a process asked to be."""

    def __init__(self) -> None:
        self.uid = self.gid = 0


class _Execve:
    """An execve that became one of the helper: what was meant, and which arguments lay where in the path it had."""

    def __init__(self, path: bytes, arguments: dict[int, int], who: _Wanted) -> None:
        self.path, self.arguments, self.who = path, arguments, who


class Supervisor:
    """Answers one filter. `on_first(call, uid or None)` hears of each call's name once. It ends with the filter's last
    process. `map_ids` is False where the container is in a user namespace of its own, whose children others must map.
    """

    def __init__(self, loop: Loop, listener: int, map_ids: bool, on_first: Callable[[str, int | None], None]) -> None:
        self._loop, self._listener, self._map_ids, self._on_first = loop, listener, map_ids, on_first
        self._names = {number: name for name, number in system_calls(os.uname().machine).items()}
        self._wanted: dict[int, _Wanted] = {}
        self._executing: dict[int, _Execve] = {}
        self._reported: dict[str, None] = {}
        self._own_map = read_proc("/proc/self/uid_map")
        loop.watch(listener, self._ready)

    @property
    def closed(self) -> bool:
        return self._listener < 0

    def close(self) -> None:
        """Close it; idempotent. What still runs under the filter gets ENOSYS from here on."""
        if self._listener >= 0:
            self._loop.unwatch(self._listener)
            os.close(self._listener)
            self._listener = -1

    def _ready(self, events: int) -> None:
        if not events & select.EPOLLIN:
            self.close()  # nobody has the filter any more
            return
        request = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, request)
        except OSError:
            return  # the caller was killed meanwhile
        identity, thread, _, number, _, _, *arguments = _NOTIFICATION.unpack(request)
        try:
            value, error, flags = self._answer(identity, thread, number, arguments)
        except OSError as failure:
            # The caller is gone, or its memory cannot be read: the kernel answers.
            value, error, flags = 0, 0, _CONTINUE
            if number == HELPER_CALL:
                value, error, flags = 0, -(failure.errno or errno.EPERM), 0
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._listener, _SEND, _RESPONSE.pack(identity, value, error, flags))

    def _answer(self, identity: int, thread: int, number: int, arguments: list[int]) -> tuple[int, int, int]:
        """(value, errno as the kernel writes it, flags)."""
        name = self._names.get(number, "")
        if number == HELPER_CALL:
            self._become(_process(thread), thread, arguments)
            return 0, 0, 0
        if name == "execve":
            if self._wanted:
                self._execve(identity, thread, arguments)
            return 0, 0, _CONTINUE
        if read_proc(f"/proc/{thread}/uid_map") != self._own_map and self._map_ids:
            return 0, 0, _CONTINUE  # it has become someone: the kernel knows what that one may do
        self._remember(name, thread, arguments)
        return 0, 0, 0

    def _remember(self, name: str, thread: int, arguments: list[int]) -> None:
        ids = [argument & _UNCHANGED for argument in arguments]
        asked: int | None = None
        if name in ("setuid", "setreuid", "setresuid", "setgid", "setregid", "setresgid"):
            # The effective one counts, for files and for whatever is executed.
            asked = ids[0] if name in ("setuid", "setgid") or ids[1] == _UNCHANGED else ids[1]
            who = self._wanted.setdefault(_process(thread), _Wanted())
            if asked != _UNCHANGED:
                if name.endswith("uid"):
                    who.uid = asked
                else:
                    who.gid = asked
        if name not in self._reported:
            self._reported[name] = None
            self._on_first(name, asked)

    # -- execve ------------------------------------------------------------------------------------------------------

    def _execve(self, identity: int, thread: int, arguments: list[int]) -> None:
        """Turn the execve of a process that asked to be someone into one of the helper. Raises OSError."""
        process = _process(thread)
        who = self._wanted.get(process) or self._wanted.get(_field(thread, "PPid"))
        if who is None or not self._map_ids or not (who.uid or who.gid):
            return
        path_at, argv_at = arguments[0], arguments[1]
        memory = os.open(f"/proc/{thread}/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            path = _text(memory, path_at)
            if len(path) + 1 < len(_HELPER) or not _executable(thread, path):
                return  # the kernel says what is wrong with it; a path too short stays root's
            # Often the first argument is the path itself, or its last part: it lies where the helper's is written.
            offsets = {at: pointer - path_at for at, pointer in enumerate(_pointers(memory, argv_at))}
            shown = {at: offset for at, offset in offsets.items() if 0 <= offset <= len(path)}
            # Still the same caller, or else this is someone else's memory.
            fcntl.ioctl(self._listener, _ID_VALID, struct.pack("=Q", identity))
            os.pwrite(memory, _HELPER, path_at)
            self._executing[process] = _Execve(path, shown, who)
        finally:
            os.close(memory)

    def _become(self, process: int, thread: int, arguments: list[int]) -> None:
        """The helper runs, in its new user namespace: map the id, give it the path. Raises OSError."""
        meant = self._executing.pop(process, None)
        if meant is None:
            raise OSError(errno.EPERM, "nobody turned an execve into this")
        self._wanted.pop(process, None)
        _write(f"/proc/{thread}/setgroups", "deny")
        _write(f"/proc/{thread}/uid_map", f"{meant.who.uid} 0 1")
        _write(f"/proc/{thread}/gid_map", f"{meant.who.gid} 0 1")
        buffer, stack = arguments[0], arguments[1]
        memory = os.open(f"/proc/{thread}/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            os.pwrite(memory, (meant.path + b"\0")[:BUFFER_SIZE], buffer)
            for at, offset in meant.arguments.items():
                os.pwrite(memory, struct.pack("=Q", buffer + offset), stack + 8 * (1 + at))
        finally:
            os.close(memory)


def _process(thread: int) -> int:
    return _field(thread, "Tgid")


def _field(thread: int, name: str) -> int:
    """A number of /proc/<pid>/status; 0 when the thread is gone."""
    for line in read_proc(f"/proc/{thread}/status").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0])
    return 0


def _text(memory: int, address: int) -> bytes:
    """Bytes up to the first zero, page by page: the next one may not be there. Raises OSError."""
    found = b""
    while len(found) < _LONGEST_PATH:
        part = os.pread(memory, 4096 - (address + len(found)) % 4096, address + len(found))
        text, end, _ = part.partition(b"\0")
        found += text
        if end or not part:
            break
    return found


def _pointers(memory: int, address: int) -> list[int]:
    """The addresses in an argv, without the zero at its end. Raises OSError."""
    found: list[int] = []
    while address and len(found) < _MOST_ARGUMENTS:
        (pointer,) = struct.unpack("=Q", os.pread(memory, 8, address + 8 * len(found)))
        if not pointer:
            break
        found.append(pointer)
    return found


def _executable(thread: int, path: bytes) -> bool:
    """Whether there is something to execute at `path`, as the caller sees it."""
    start = "root" if path.startswith(b"/") else "cwd"
    directory = os.open(f"/proc/{thread}/{start}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if start == "root":
            name = os.fsdecode(path).lstrip("/")
            file = linux.openat2(directory, name, os.O_PATH, linux.RESOLVE_IN_ROOT | linux.RESOLVE_NO_MAGICLINKS)
        else:
            file = os.open(path, os.O_PATH | os.O_CLOEXEC, dir_fd=directory)
        try:
            return bool(os.stat(file).st_mode & 0o111)
        finally:
            os.close(file)
    except OSError:
        return False
    finally:
        os.close(directory)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
