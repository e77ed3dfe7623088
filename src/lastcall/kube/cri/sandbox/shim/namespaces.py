"""The namespaces of a Pod sandbox. The shim holds them as descriptors; no process has to live in them.

Those of a Pod with a range of user ids of its own belong to its user namespace, so that its root may do in them what
root of a Pod may. The shim could not come back from there: they are made by a child that does nothing else.
"""

# check: starts processes because a child that is a Pod's root writes its sysctls

from __future__ import annotations

import contextlib
import errno
import os
import signal

from lastcall.kube.cri.sandbox.shim import child, idmap, pause, procfs
from lastcall.kube.cri.sandbox.shim.listening import ResetCounter
from lastcall.world import linux
from lastcall.world.id_maps import write_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHM_SIZE = "64m"
_FILES = {linux.CLONE_NEWNET: "net", linux.CLONE_NEWIPC: "ipc", linux.CLONE_NEWUTS: "uts"}


class Own:
    """The shim's own namespaces, to come back to."""

    def __init__(self) -> None:
        self.fds = {flag: os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for flag, name in _FILES.items()}
        self.pid = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)


class Sandbox:
    """`namespaces`: CLONE_NEW* flag → fd. `shm`: directory for /dev/shm. `pause_pidfd`: -1 unless PIDs are shared."""

    def __init__(self, identity: str, spec: dict[str, Any]) -> None:
        self.id = identity
        self.spec = spec
        self.namespaces: dict[int, int] = {}
        self.shm = ""
        self.pause_pid = 0
        self.pause_pidfd = -1
        self.ended = False
        """Somebody else than lastcall has ended its pause process."""
        self.users: idmap.Users | None = None
        self.resets = ResetCounter()
        self.maker = 0
        """The child that made the namespaces, until `end_maker`."""


def create(identity: str, spec: dict[str, Any], own: Own, directory: str) -> Sandbox:
    """Make the namespaces that `spec` asks for. Raises OSError.

    `network`, `ipc` and `pid` are POD, CONTAINER or NODE; `users` has `first` and `count` of the ids that the Pod has
    for its own, or is None. The shim enters them for a moment: it has one thread and nobody else sees it there.
    """
    sandbox = Sandbox(identity, spec)
    flags = 0
    if spec["network"] != "NODE":
        flags |= linux.CLONE_NEWNET | linux.CLONE_NEWUTS
    if spec["ipc"] != "NODE":
        flags |= linux.CLONE_NEWIPC
    try:
        if flags:
            if spec.get("users"):
                _make_with_users(sandbox, flags)
            else:
                linux.unshare(flags)
            try:
                if sandbox.users is not None:
                    for flag, fd in sandbox.namespaces.items():
                        linux.setns(fd, flag)
                _configure(spec, flags, sandbox.users)
                for flag, name in _FILES.items():
                    if flags & flag and flag not in sandbox.namespaces:
                        sandbox.namespaces[flag] = _open_namespace("self", name)
            finally:
                for flag, fd in own.fds.items():
                    linux.setns(fd, flag)
        sandbox.shm = _shared_memory(sandbox, directory)
        if spec["pid"] == "POD":
            _start_pause(sandbox)
    except BaseException:
        release(sandbox)
        raise
    return sandbox


def _make_with_users(sandbox: Sandbox, flags: int) -> None:
    first, count = sandbox.spec["users"]["first"], sandbox.spec["users"]["count"]
    sandbox.maker = pid = linux.clone_paused(flags | linux.CLONE_NEWUSER)
    write_range(pid, first, count)
    sandbox.users = idmap.Users(_open_namespace(pid, "user"), first, count)
    for flag, name in _FILES.items():
        if flags & flag:
            sandbox.namespaces[flag] = _open_namespace(pid, name)


def _open_namespace(pid: int | str, name: str) -> int:
    return os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)


def end_maker(sandbox: Sandbox, *, wait: bool) -> bool:
    """End the process that made them; return whether it is gone. Without `wait` ask again.

    It takes time, so it is not done while the Pod starts.
    """
    if sandbox.maker:
        os.kill(sandbox.maker, signal.SIGKILL)
        if os.waitpid(sandbox.maker, 0 if wait else os.WNOHANG)[0] == sandbox.maker:
            sandbox.maker = 0
    return sandbox.maker == 0


def _configure(spec: dict[str, Any], flags: int, users: idmap.Users | None) -> None:
    if flags & linux.CLONE_NEWUTS and spec["hostname"]:
        linux.sethostname(spec["hostname"])
    if flags & linux.CLONE_NEWNET:
        linux.bring_up_loopback()
    for name, value in spec["sysctls"].items():
        path = os.path.join("/proc/sys", name.replace(".", "/"))
        # Only what belongs to a namespace of the Pod (Kubernetes sysctl.go:namespaced); the rest is the machine's.
        if ".." in path or not name.startswith(("net.", "kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")):
            raise OSError(1, f"sysctl {name!r} is not namespaced")
        try:
            _write(path, value)
        except PermissionError:
            if users is None:
                raise
            _write_as(users.first, path, value)


def _write(path: str, value: str) -> None:
    with open(path, "w") as file:
        file.write(value)


def _write_as(uid: int, path: str, value: str) -> None:
    """In a child that is this user: since Linux 6.9 an IPC namespace's sysctls are its root's. Raises OSError."""
    pid = os.fork()
    if pid == 0:
        code = errno.EIO
        try:
            os.setresuid(uid, uid, uid)
            _write(path, value)
            code = 0
        except OSError as error:
            code = error.errno or code
        finally:
            os._exit(code)
    if code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError(code, os.strerror(code), path)


def _shared_memory(sandbox: Sandbox, directory: str) -> str:
    """The tmpfs that the Pod's containers share as /dev/shm."""
    if sandbox.spec["ipc"] == "NODE":
        return "/dev/shm"  # noqa: S108 - what hostIPC means
    path = os.path.join(directory, "shm")
    os.makedirs(path, 0o755, exist_ok=True)
    flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    owner = "" if sandbox.users is None else f",uid={sandbox.users.first},gid={sandbox.users.first}"
    linux.mount("shm", path, "tmpfs", flags, f"mode=1777,size={_SHM_SIZE}{owner}")
    return path


def _start_pause(sandbox: Sandbox) -> None:
    executable = pause.program()
    try:
        pid, pidfd = linux.clone3_pidfd(linux.CLONE_NEWPID)
        if pid == 0:
            try:
                child.default_signals()
                pause.run(sandbox.namespaces, sandbox.users, pause.ids(sandbox.spec), executable)
            finally:
                os._exit(1)
    finally:
        if executable >= 0:
            os.close(executable)
    sandbox.pause_pid, sandbox.pause_pidfd = pid, pidfd


def pause_is_ending(sandbox: Sandbox) -> bool:
    """Return whether the first process of a shared PID namespace has ended, or waits for the others there to end."""
    return sandbox.ended or (sandbox.pause_pidfd >= 0 and procfs.exiting(sandbox.pause_pid))


def kill_pause(sandbox: Sandbox) -> None:
    """Send SIGKILL to the first process of the shared PID namespace, which ends every other one there."""
    with contextlib.suppress(ProcessLookupError):
        linux.pidfd_send_signal(sandbox.pause_pidfd, 9)


def release(sandbox: Sandbox) -> None:
    """Release everything; with the last process and descriptor the kernel ends the namespaces. Idempotent.

    Waits for the first process of a shared PID namespace: callers with an exec in there have seen it end before.
    """
    if sandbox.pause_pidfd >= 0:
        kill_pause(sandbox)
        os.waitpid(sandbox.pause_pid, 0)
        os.close(sandbox.pause_pidfd)
        sandbox.pause_pidfd = -1
    end_maker(sandbox, wait=True)
    for fd in sandbox.namespaces.values():
        os.close(fd)
    sandbox.namespaces.clear()
    if sandbox.users is not None:
        os.close(sandbox.users.fd)
        sandbox.users = None
    if sandbox.shm and sandbox.spec["ipc"] != "NODE":
        remove_shared_memory(sandbox.shm)
    sandbox.shm = ""


def remove_shared_memory(path: str) -> None:
    """Unmount a sandbox's /dev/shm and remove its directory. A missing one is no error."""
    with contextlib.suppress(OSError):
        linux.umount2(path, linux.MNT_DETACH)
    with contextlib.suppress(OSError):
        os.rmdir(path)
        os.rmdir(os.path.dirname(path))


def clone_into(pid_target: int, flags: int, own: Own, cgroup: str) -> tuple[int, int]:
    """Call clone3; the child starts in the PID namespace of the process behind `pid_target` (-1: the shim's own).

    It starts in the version 2 group `cgroup` ("": the shim's own).
    """
    group = os.open(cgroup, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) if cgroup else -1
    pid = -1
    try:
        if pid_target < 0:
            pid, pidfd = linux.clone3_pidfd(flags, group)
            return pid, pidfd
        linux.setns(pid_target, linux.CLONE_NEWPID)
        try:
            pid, pidfd = linux.clone3_pidfd(flags, group)
        finally:
            if pid != 0:
                linux.setns(own.pid, linux.CLONE_NEWPID)
        return pid, pidfd
    finally:
        if group >= 0:
            os.close(group)
