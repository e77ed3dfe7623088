"""The child's side of a start: from the clone to the execve.

It runs between a fork of the shim and the program, reports over a SEQPACKET socket and never returns:
`{"error": …}` when the set-up failed, `{"console": true}` with the terminal's fd, `{"executing": path}` right before
the execve; end-of-file, by close-on-exec, then says that it happened. It does not execute before the shim said go,
which is after the shim has recorded its pid; a shim that dies before takes it along.
"""

# check: prints because the reason is the output of a container that could not be executed
# check: starts processes because it executes what a container runs

from __future__ import annotations

import array
import contextlib
import fcntl
import gc
import json
import os
import resource
import signal
import socket
import stat
import struct
import termios

from lastcall.kube.cri.sandbox.shim import identity, idmap, limits, not_executed
from lastcall.kube.cri.sandbox.shim.rootfs.build import build
from lastcall.kube.cri.sandbox.shim.rootfs.confined import SetupError, words
from lastcall.kube.cri.sandbox.shim.single_id import filters
from lastcall.world import linux, privileges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from lastcall.kube.cri.sandbox.shim.process import Stdio

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TIOCSPTLCK, _TIOCGPTN = 0x40045431, 0x80045430
_MOST_FILES = 65536
_SYS_ADMIN = privileges.capability_mask(("SYS_ADMIN",))
_EXEC_FAILED = 255  # runc's exit code when the program is there but the kernel cannot execute it


def run_container(
    spec: dict[str, Any], status: socket.socket, stdio: Stdio, namespaces: dict[int, int], maps: Any
) -> NoReturn:
    """Run as the container's PID 1. `namespaces`: CLONE_NEW* flag → fd of the sandbox's namespace to join."""

    def prepare() -> None:
        limits.join(spec["cgroupFiles"])
        linux.unshare(linux.CLONE_NEWCGROUP)  # whose root is the group just joined
        for flag, fd in namespaces.items():
            linux.setns(fd, flag)
        if spec["oomScoreAdj"]:
            # Below the shim's own value only the machine's root may go.
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                file.write(str(spec["oomScoreAdj"]))
        build(spec)

    _run(spec, status, stdio, maps, prepare, create_cwd=True)


def run_exec(spec: dict[str, Any], status: socket.socket, stdio: Stdio, init_pidfd: int, maps: Any) -> NoReturn:
    """Run another process in a container whose PID 1 is behind `init_pidfd`; this process is in its PID namespace."""

    def prepare() -> None:
        limits.join(spec["cgroupFiles"])
        flags = linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
        linux.setns(init_pidfd, flags | linux.CLONE_NEWCGROUP)
        os.chdir("/")

    _run(spec, status, stdio, maps, prepare, create_cwd=False)


def _run(
    spec: dict[str, Any],
    status: socket.socket,
    stdio: Stdio,
    maps: Any,
    prepare: Callable[[], None],
    *,
    create_cwd: bool,
) -> NoReturn:
    code = 128
    try:
        gc.disable()
        linux.set_parent_death_signal(signal.SIGKILL)
        default_signals()
        os.umask(0o022)
        os.setsid()
        prepare()
        _stdio(spec, status, stdio)
        _limits(spec)
        who = identity.resolve(spec["user"])
        users: idmap.Users | None = spec.get("users")
        _give_stdio(who.uid if users is None else users.outside(who.uid))
        mask = identity.capability_mask(spec)
        if users is not None:
            idmap.enter(users)
            if mask & _SYS_ADMIN and create_cwd:
                linux.unshare(linux.CLONE_NEWNS)  # which its root may then mount in
        environment = _environment(spec, who.home)
        _change_directory(spec["cwd"] or "/")
        identity.assume(who, mask, maps, lambda: filters.install(spec, who, mask, maps[0], status))
        if spec["noNewPrivs"]:
            privileges.set_no_new_privs()
        program = _find_program(spec["argv"], environment)
        linux.close_range(3, flags=linux.CLOSE_RANGE_CLOEXEC)
        if status.recv(16) != b"go":
            os._exit(code)  # the shim has died and will never know of this process
        linux.set_parent_death_signal(0)
        said = {"executing": os.path.realpath(program), "uid": who.uid, "gid": who.gid}
        status.send(json.dumps(said).encode())
        code = _execute(program, spec["argv"], environment, status)
    except SetupError as error:
        _report(status, str(error))
    except OSError as error:
        _report(status, error.strerror or str(error))
    except BaseException as error:  # whatever it is, the shim must hear of it
        _report(status, f"{type(error).__name__}: {error}")
    os._exit(code)


def _execute(program: str, argv: list[str], environment: dict[bytes, bytes], status: socket.socket) -> int:
    """Become the program. Return the exit status if that fails, and say on `status` what the file is."""
    try:
        os.execve(program, argv, environment)  # noqa: S606 - what a runtime is for
    except OSError as error:
        with contextlib.suppress(OSError):
            status.send(json.dumps({"notExecuted": not_executed.describe(program, words(error))}).encode())
        # Like runc: the container has started by now; the reason is its only output.
        os.write(2, f"exec {program}: {words(error)}\n".encode())
    return _EXEC_FAILED


def _report(status: socket.socket, message: str) -> None:
    with contextlib.suppress(OSError):
        status.send(json.dumps({"error": message[:8000]}).encode())


_NOT_DEFAULT = tuple(
    number for number in signal.valid_signals() if signal.getsignal(number) not in (signal.SIG_DFL, None)
)
"""What Python handles or ignores (SIGINT, SIGPIPE), and what was ignored when the shim began."""


def default_signals() -> None:
    """Set every signal to its default: ignored ones would outlive the execve."""
    for number in _NOT_DEFAULT:
        signal.signal(number, signal.SIG_DFL)
    linux.default_internal_signals()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _limits(spec: dict[str, Any]) -> None:
    if spec.get("maxProcesses") and not spec["limited"]:
        # No control group does: counts the user's processes in this user namespace, so a fork bomb ends somewhere.
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        most = spec["maxProcesses"] if hard == resource.RLIM_INFINITY else min(hard, spec["maxProcesses"])
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _stdio(spec: dict[str, Any], status: socket.socket, stdio: Stdio) -> None:
    if spec["tty"]:
        terminal = _terminal(status)
        fds = (terminal, terminal, terminal)
    else:
        stdin = stdio.stdin if stdio.stdin >= 0 else os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        fds = (stdin, stdio.stdout, stdio.stderr)
    for target, fd in enumerate(fds):
        os.dup2(fd, target)


def _give_stdio(uid: int) -> None:
    """Programs open /dev/stdout once more, so it is the user's own. Source: runc init_linux.go:fixStdioPermissions."""
    for fd in range(3):
        facts = os.fstat(fd)
        is_null = stat.S_ISCHR(facts.st_mode) and facts.st_rdev == os.makedev(1, 3)
        if facts.st_uid != uid and not is_null:
            with contextlib.suppress(OSError):  # an id that is not mapped: then it is ours under another name
                os.fchown(fd, uid, -1)


def _terminal(status: socket.socket) -> int:
    """A terminal of the container's own devpts; the shim gets its other end."""
    master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
    number = struct.unpack("i", fcntl.ioctl(master, _TIOCGPTN, bytes(4)))[0]
    terminal = os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [master]))
    status.sendmsg([b'{"console":true}'], [rights])
    return terminal


def _environment(spec: dict[str, Any], home: str) -> dict[bytes, bytes]:
    """The spec's `NAME=value` texts, the last of a name wins; PATH and HOME when they are missing."""
    environment: dict[bytes, bytes] = {}
    for text in spec["env"]:
        name, _, value = text.partition("=")
        if name:
            environment[os.fsencode(name)] = os.fsencode(value)
    environment.setdefault(b"PATH", DEFAULT_PATH.encode())
    environment.setdefault(b"HOME", os.fsencode(home))
    if spec["tty"]:
        environment.setdefault(b"TERM", b"xterm")
    return environment


def _change_directory(path: str) -> None:
    try:
        os.chdir(path)
    except OSError as error:
        reason = words(error)
        raise SetupError(f'chdir to cwd ("{path}") set in config.json failed: {reason}') from error


def _find_program(argv: list[str], environment: dict[bytes, bytes]) -> str:
    """The file to execute, looked up inside the container. Raises SetupError in the words of Go's os/exec and runc."""
    name = argv[0] if argv else ""
    if "/" in name:
        problem = _not_executable(name)
        if problem:
            raise SetupError(f'exec: "{name}": {problem}')
        return name
    for directory in os.fsdecode(environment[b"PATH"]).split(":"):
        candidate = os.path.join(directory or ".", name)
        if name and not _not_executable(candidate):
            return candidate
    raise SetupError(f'exec: "{name}": executable file not found in $PATH')


def _not_executable(path: str) -> str:
    """Why `path` cannot be executed; "" when it can."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return f"stat {path}: {words(error)}"
    if stat.S_ISDIR(mode):
        return "is a directory"
    if not stat.S_ISREG(mode) or not os.access(path, os.X_OK):
        return "permission denied"
    try:
        # /proc/self/exe would be this interpreter, the host's own file.
        os.close(linux.openat2(linux.AT_FDCWD, path, os.O_PATH, linux.RESOLVE_NO_MAGICLINKS))
    except OSError:
        return "permission denied"
    return ""
