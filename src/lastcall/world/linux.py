"""Call Linux system calls that Python's standard library lacks, by thin functions over libc.

Standard library only (`ctypes`): init and the shim use it. What a process may do is in `privileges.py`. Every
failure is an OSError whose text names the call, so that "mount: Operation not permitted" never has to be guessed from
a bare errno.
"""

# check: standard library
# check: starts processes because it calls clone3

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import os
import signal
import socket
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

# clone(2), unshare(2), setns(2)
CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
OWN_NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
"""Those of a first process that is root in all of them."""
_CLONE_VM = 0x0000_0100
_CLONE_PIDFD = 0x0000_1000
_CLONE_INTO_CGROUP = 0x2_0000_0000
_CLONE_CHILD_CLEARTID = 0x0020_0000
_CLONE_CHILD_SETTID = 0x0100_0000

# mount(2), umount2(2)
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_NOATIME = 0x400
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x4_0000
MS_SLAVE = 0x8_0000
MS_RELATIME = 0x20_0000
MNT_DETACH = 0x2
UMOUNT_NOFOLLOW = 0x8

# open_tree(2), move_mount(2), mount_setattr(2), openat2(2)
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 0x1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH = 0x4
MOVE_MOUNT_T_EMPTY_PATH = 0x40
MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
MOUNT_ATTR_NOEXEC = 0x8
MOUNT_ATTR_IDMAP = 0x10_0000
RESOLVE_NO_XDEV = 0x01
RESOLVE_NO_MAGICLINKS = 0x2
RESOLVE_IN_ROOT = 0x10

# prctl(2)
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_GET_TID_ADDRESS = 40

CLOSE_RANGE_CLOEXEC = 0x4

# Numbers that are the same on every architecture with the generic table from Linux 5.x on.
_SYS_PIDFD_SEND_SIGNAL = 424
_SYS_OPEN_TREE = 428
_SYS_MOVE_MOUNT = 429
_SYS_CLONE3 = 435
_SYS_CLOSE_RANGE = 436
_SYS_OPENAT2 = 437
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
_SYS_RT_SIGACTION = {"x86_64": 13, "aarch64": 134, "riscv64": 134, "ppc64le": 173, "s390x": 174}
MACHINE = os.uname().machine

# PyDLL keeps the GIL: none of these calls blocks, and a clone must not let another thread in.
libc = ctypes.PyDLL(None, use_errno=True)
_syscall = libc.syscall
_syscall.restype = ctypes.c_long
_prctl = libc["prctl"]
_prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
_prctl_pointer = libc["prctl"]
_prctl_pointer.argtypes = (ctypes.c_int, ctypes.c_void_p, *[ctypes.c_ulong] * 3)
libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
_clone = getattr(libc, "clone", None)
_fallocate = getattr(libc, "fallocate64", libc.fallocate)  # 64-bit offsets whatever the machine
_before_fork = ctypes.pythonapi.PyOS_BeforeFork
_after_fork_parent = ctypes.pythonapi.PyOS_AfterFork_Parent
_after_fork_child = ctypes.pythonapi.PyOS_AfterFork_Child
for _function in (_before_fork, _after_fork_parent, _after_fork_child):
    _function.argtypes, _function.restype = [], None


def failure(call: str, detail: str = "", number: int | None = None) -> OSError:
    """Return the error of a call that failed, by default with the errno of the last call of the C library."""
    number = ctypes.get_errno() if number is None else number
    text = f"{call}: {os.strerror(number)}"
    return OSError(number, f"{text} ({detail})" if detail else text)


def system_call(name: str, number: int, *arguments: object, detail: str = "") -> int:
    """Make the system call of that number, for which the C library has no function. Raises OSError."""
    result: int = _syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise failure(name, detail)
    return result


def _typed(number: int, *types: type[ctypes._SimpleCData[Any]]) -> Callable[..., int]:
    """Return the system call of that number as a function that takes arguments of these types, and sets errno.

    A container's start makes hundreds of these calls: ctypes converts plain values faster than objects of its own.
    """
    call = libc["syscall"]  # an object of its own each time
    call.restype, call.argtypes = ctypes.c_long, (ctypes.c_long, *types)
    return functools.partial(call, number)


_FD, _PATH, _BYTES, _FLAGS, _SIZE = ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_size_t
_open_tree = _typed(_SYS_OPEN_TREE, _FD, _PATH, _FLAGS)
_move_mount = _typed(_SYS_MOVE_MOUNT, _FD, _PATH, _FD, _PATH, _FLAGS)
_openat2 = _typed(_SYS_OPENAT2, _FD, _PATH, _BYTES, _SIZE)
_mount_setattr = _typed(_SYS_MOUNT_SETATTR, _FD, _PATH, _FLAGS, _BYTES, _SIZE)


def _path(path: str | bytes) -> bytes:
    return path if isinstance(path, bytes) else path.encode(_PATHS, "surrogateescape")


_PATHS = sys.getfilesystemencoding()


# -- processes ---------------------------------------------------------------------------------------------------------


def _thread_id_address() -> int:
    """Where glibc keeps this thread's id. fork(2) lets the kernel refresh it in the child; so must a raw clone."""
    try:
        if not (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
            return 0
    except (ValueError, OSError):
        return 0
    address = ctypes.c_void_p()
    if _prctl_pointer(PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) != 0:
        return 0
    return address.value or 0


def clone3(flags: int) -> int:
    """Fork into new namespaces: return 0 in the child, the child's pid (as the parent sees it) in the parent.

    Python's fork hooks run on both sides. The process must have one thread only, as with any fork.
    Raises OSError (EPERM, ENOSPC, EINVAL, ENOMEM) when the kernel refuses.
    """
    return _clone3(flags, 0)


def clone3_pidfd(flags: int, cgroup: int = -1) -> tuple[int, int]:
    """Fork as `clone3` does, but return (pid, pidfd) in the parent and (0, -1) in the child.

    `cgroup` is the directory of the version 2 control group the child begins in.
    """
    pidfd = ctypes.c_int(-1)
    flags |= _CLONE_PIDFD | (_CLONE_INTO_CGROUP if cgroup >= 0 else 0)
    pid = _clone3(flags, ctypes.addressof(pidfd), max(cgroup, 0))
    return (pid, pidfd.value) if pid else (0, -1)


def _clone3(flags: int, pidfd: int, cgroup: int = 0) -> int:
    thread_id = _thread_id_address()
    if thread_id:
        flags |= _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID
    # struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal (SIGCHLD), stack, stack_size, tls, set_tid,
    # set_tid_size, cgroup
    arguments = struct.pack("=11Q", flags, pidfd, thread_id, 0, 17, 0, 0, 0, 0, 0, cgroup)
    number, size = ctypes.c_long(_SYS_CLONE3), ctypes.c_size_t(len(arguments))
    _before_fork()
    pid: int = _syscall(number, arguments, size)
    if pid == 0:
        _after_fork_child()
        return 0
    code = ctypes.get_errno()
    _after_fork_parent()
    if pid < 0:
        raise failure("clone3", number=code)
    return pid


_PAUSED_STACK = 1 << 15
_SIGNAL_SET = 128
"""The size of sigset_t in bytes. `signal.pthread_sigmask` would make an object of every signal in it."""


def clone_paused(flags: int) -> int:
    """Create a child in new namespaces that waits for SIGKILL; return its pid, which the caller must reap.

    It runs nothing but pause(2) of libc on a stack of its own, in this process's memory: without a copy of the page
    tables, of which a fork of an interpreter takes a millisecond. Signals stay blocked in it. Raises OSError.
    """
    if _clone is None:
        raise OSError(errno.ENOSYS, "this libc has no clone")
    if not _paused_stack:
        _paused_stack.append(ctypes.create_string_buffer(_PAUSED_STACK))
    top = (ctypes.addressof(_paused_stack[0]) + _PAUSED_STACK) & ~63
    before = ctypes.create_string_buffer(_SIGNAL_SET)
    libc.pthread_sigmask(ctypes.c_int(signal.SIG_BLOCK), b"\xff" * _SIGNAL_SET, before)
    try:
        pid: int = _clone(libc.pause, ctypes.c_void_p(top), ctypes.c_int(flags | _CLONE_VM | signal.SIGCHLD), None)
        code = ctypes.get_errno()
    finally:
        libc.pthread_sigmask(ctypes.c_int(signal.SIG_SETMASK), before, None)
    if pid < 0:
        raise failure("clone", number=code)
    return pid


_paused_stack: list[ctypes.Array[ctypes.c_char]] = []


def execv_read_only(path: str, argv: list[str]) -> NoReturn:
    """Execute a file as `os.execv`, but through a read-only mount of its own.

    `/proc/<pid>/exe` then cannot be opened for writing by anybody who gets hold of it: a container's root that tricks a
    runtime into executing itself would otherwise write into the machine's own interpreter (CVE-2019-5736). Raises
    OSError, also before Linux 5.12; the file's own access rights hold as ever.
    """
    fd = open_tree(AT_FDCWD, os.path.realpath(path), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)
    try:
        mount_setattr(fd, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY)
        os.execve(fd, argv, os.environ)  # noqa: S606 - no shell is what this is for
    finally:
        os.close(fd)


def unshare(flags: int) -> None:
    """Move this process into new namespaces (a new PID namespace is for its next children only)."""
    if libc.unshare(ctypes.c_int(flags)) != 0:
        raise failure("unshare")


def setns(fd: int, flags: int = 0) -> None:
    """Join the namespace(s) of `fd`: a namespace file, or a pidfd together with CLONE_NEW* flags."""
    if libc.setns(ctypes.c_int(fd), ctypes.c_int(flags)) != 0:
        raise failure("setns")


def prctl(option: int, *arguments: int) -> int:
    """Call prctl(2) with integer arguments."""
    result: int = _prctl(option, *(*arguments, 0, 0, 0, 0)[:4])
    if result < 0:
        raise failure(f"prctl({option})")
    return result


def set_parent_death_signal(number: int) -> None:
    """Make the kernel send `number` to this process when the thread that made it ends; 0 switches it off."""
    prctl(PR_SET_PDEATHSIG, number)


def set_dumpable(on: bool) -> None:
    """Allow or forbid others of the same user to trace this process and open its /proc files."""
    prctl(PR_SET_DUMPABLE, int(on))


def set_process_name(name: str) -> None:
    """Set the name in /proc/self/comm; the kernel keeps 15 bytes."""
    if _prctl_pointer(PR_SET_NAME, name.encode()[:15], 0, 0, 0) != 0:
        raise failure("prctl(PR_SET_NAME)")


def default_internal_signals() -> None:
    """Put the C library's own signals 32 and 33 back to their defaults, which no library call can.

    glibc's posix_spawn leaves them ignored in the child, and that would be inherited forever.
    """
    for number in (32, 33):
        system_call(
            "rt_sigaction", _SYS_RT_SIGACTION[MACHINE], ctypes.c_long(number), bytes(32), None, ctypes.c_size_t(8)
        )  # an action of zeros is SIG_DFL


def pidfd_open(pid: int) -> int:
    """Return a close-on-exec fd that refers to this very process. Raises ProcessLookupError."""
    return os.pidfd_open(pid)


def pidfd_send_signal(pidfd: int, number: int) -> None:
    """Send a signal to exactly the process behind `pidfd`. Raises ProcessLookupError when it has been reaped."""
    system_call(
        "pidfd_send_signal", _SYS_PIDFD_SEND_SIGNAL, ctypes.c_int(pidfd), ctypes.c_int(number), None, ctypes.c_uint(0)
    )


def waitid_pidfd(pidfd: int, options: int = os.WEXITED | os.WNOHANG) -> os.waitid_result | None:
    """Call waitid(P_PIDFD); return None if the child has not ended (WNOHANG)."""
    return os.waitid(os.P_PIDFD, pidfd, options)


def close_range(first: int, last: int = 0xFFFF_FFFF, flags: int = 0) -> None:
    """Close (or, with CLOSE_RANGE_CLOEXEC, mark) every fd from `first` to `last`."""
    system_call("close_range", _SYS_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(last), ctypes.c_uint(flags))


def punch_hole(fd: int, start: int, length: int) -> None:
    """Free the disk space of a file from `start` on, which then reads as zeros; its size stays."""
    mode = 0x3  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
    if _fallocate(ctypes.c_int(fd), ctypes.c_int(mode), ctypes.c_int64(start), ctypes.c_int64(length)) != 0:
        raise failure("fallocate")


# -- mounts ------------------------------------------------------------------------------------------------------------


def mount(source: str, target: str, fstype: str | None, flags: int = 0, data: str | None = None) -> None:
    """Call mount(2). Raises OSError."""
    result = libc.mount(
        _path(source),
        _path(target),
        None if fstype is None else _path(fstype),
        flags,
        None if data is None else _path(data),
    )
    if result != 0:
        raise failure("mount", f"{fstype or source} on {target}")


def umount2(target: str, flags: int = 0) -> None:
    """Call umount2(2). Raises OSError."""
    if libc.umount2(_path(target), ctypes.c_int(flags)) != 0:
        raise failure("umount2", target)


def file_system_type(fd: int) -> int:
    """Return `f_type` of fstatfs(2): the magic number of the file system that a descriptor is on. Raises OSError."""
    found = ctypes.create_string_buffer(256)
    if libc.fstatfs(ctypes.c_int(fd), found) != 0:
        raise failure("fstatfs")
    size = 4 if MACHINE == "s390x" else ctypes.sizeof(ctypes.c_long)
    return int.from_bytes(found.raw[:size], sys.byteorder)


def pivot_root(new_root: str, put_old: str) -> None:
    """Call pivot_root(2). With (".", ".") it stacks the old root on the new one; detach it with `umount2(".")`."""
    system_call("pivot_root", _SYS_PIVOT_ROOT[MACHINE], _path(new_root), _path(put_old), detail=new_root)


def open_tree(dirfd: int, path: str, flags: int) -> int:
    """Call open_tree(2): return a detached bind mount as an fd with OPEN_TREE_CLONE, else an O_PATH fd."""
    tree = _open_tree(dirfd, _path(path), flags)
    if tree < 0:
        raise failure("open_tree", path)
    return tree


def move_mount(from_fd: int, to_fd: int) -> None:
    """Attach the detached mount `from_fd` on the file or directory behind `to_fd` (no path is looked up)."""
    flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH
    if _move_mount(from_fd, b"", to_fd, b"", flags) < 0:
        raise failure("move_mount")


def mount_setattr(
    dirfd: int, path: str, flags: int, attr_set: int, attr_clear: int = 0, propagation: int = 0, userns_fd: int = 0
) -> None:
    """Call mount_setattr(2), Linux 5.12; `userns_fd` is for MOUNT_ATTR_IDMAP. Raises OSError ENOSYS before."""
    attributes = struct.pack("=4Q", attr_set, attr_clear, propagation, userns_fd)
    if _mount_setattr(dirfd, _path(path), flags, attributes, len(attributes)) < 0:
        raise failure("mount_setattr", path)


def openat2(dirfd: int, path: str, flags: int, resolve: int, mode: int = 0) -> int:
    """Call openat2(2): an open whose path resolution is confined by RESOLVE_* (close-on-exec is added)."""
    how = struct.pack("=3Q", flags | os.O_CLOEXEC, mode, resolve)
    name = _path(path)
    while (fd := _openat2(dirfd, name, how, len(how))) < 0:
        if ctypes.get_errno() != errno.EAGAIN:  # a rename raced with a confined lookup: the kernel asks to try again
            raise failure("openat2", path)
    return fd


# -- changes of files -------------------------------------------------------------------------------------------------

IN_MODIFY, IN_MOVE_SELF = 0x2, 0x800


def inotify_init() -> int:
    """Return a descriptor that becomes readable when a watched file changes; it never blocks. Raises OSError."""
    fd: int = libc.inotify_init1(ctypes.c_int(os.O_CLOEXEC | os.O_NONBLOCK))
    if fd < 0:
        raise failure("inotify_init1")
    return fd


def inotify_add_watch(fd: int, path: str, mask: int) -> int:
    """Return the number by which `fd` names the file at `path`, also when that is renamed. Raises OSError."""
    number: int = libc.inotify_add_watch(ctypes.c_int(fd), _path(path), ctypes.c_uint32(mask))
    if number < 0:
        raise failure("inotify_add_watch", path)
    return number


def inotify_rm_watch(fd: int, number: int) -> None:
    """Forget a file; one that is gone is forgotten already."""
    libc.inotify_rm_watch(ctypes.c_int(fd), ctypes.c_int(number))


# -- hostname, network -------------------------------------------------------------------------------------------------


def sethostname(name: str) -> None:
    """Set the host name of this process's UTS namespace."""
    try:
        socket.sethostname(name)
    except OSError as error:
        raise failure("sethostname", name, error.errno) from error


def bring_up_loopback() -> None:
    """Bring up `lo` of this process's network namespace (its addresses come by themselves)."""
    get_flags, set_flags, up = 0x8913, 0x8914, 0x1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            request = fcntl.ioctl(sock, get_flags, struct.pack("16sH14x", b"lo", 0))
            flags = struct.unpack_from("H", request, 16)[0]
            fcntl.ioctl(sock, set_flags, struct.pack("16sH14x", b"lo", flags | up))
        except OSError as error:
            raise failure("ioctl(SIOCSIFFLAGS)", "lo", error.errno) from error
