# ruff: noqa: SIM905 - words are easier to look over than a list of strings
"""Runs `lastcall` as if this were another platform: `python pretend.py darwin|win32 CODE`.

Modules and functions of Linux alone are not there for lastcall. Libraries and the standard library come first, as they
are on this machine: their wheels and builds for other platforms are their makers' care.
"""

import asyncio
import ctypes
import functools
import importlib.abc
import importlib.machinery
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from types import ModuleType

MODULES = {
    "darwin": {"uvloop"},
    "win32": {"uvloop", "fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "syslog", "posix"},
}
"""What the standard library does not have there, and what pyproject.toml does not ask for."""

_LINUX: dict[ModuleType, Sequence[str]] = {
    os: (
        "unshare setns pidfd_open eventfd memfd_create sched_getaffinity sched_setaffinity O_PATH splice "
        "copy_file_range getrandom posix_fallocate posix_fadvise setresuid setresgid getresuid getxattr setxattr"
    ).split(),
    socket: ["AF_NETLINK", "AF_VSOCK", "AF_PACKET", "AF_ALG", "SO_PEERCRED"],
    select: ["epoll"],
    signal: ["sigwaitinfo", "sigtimedwait", "SIGRTMIN", "SIGRTMAX", "pidfd_send_signal"],
}
_UNIX: dict[ModuleType, Sequence[str]] = {
    os: (
        "fork forkpty getuid geteuid getgid getegid getgroups setuid setgid setgroups setsid killpg waitid mkfifo "
        "chown lchown fchown fchmod chroot O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK O_SYNC statvfs uname "
        "getloadavg nice pread pwrite preadv pwritev sysconf getpgid getsid wait3 wait4 WNOHANG mknod "
        "posix_spawn confstr getpwuid"
    ).split(),
    socket: ["AF_UNIX", "SO_REUSEPORT", "SCM_RIGHTS", "recv_fds", "send_fds"],
    select: ["poll"],
    signal: (
        "SIGHUP SIGKILL SIGCHLD SIGUSR1 SIGUSR2 SIGPIPE SIGALRM SIGQUIT SIGSTOP SIGCONT SIGTSTP SIGWINCH "
        "pthread_sigmask pthread_kill SIG_BLOCK SIG_UNBLOCK SIG_SETMASK sigwait sigpending setitimer alarm pause"
    ).split(),
}


class Missing(importlib.abc.MetaPathFinder):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def pretend(platform: str) -> None:
    names = MODULES[platform]
    for name in names:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Missing(names))
    sys.platform = platform
    socket.socketpair = functools.partial(socket.socketpair, socket.AF_UNIX)  # Windows has one of its own
    for table in (_LINUX, _UNIX) if platform == "win32" else (_LINUX,):
        for module, attributes in table.items():
            for attribute in attributes:
                if hasattr(module, attribute):
                    delattr(module, attribute)

    def no_library(name: object, *arguments: object, **options: object) -> None:
        raise OSError(f"{name}: there is no such library on {platform}")

    ctypes.CDLL = no_library  # type: ignore[misc,assignment]


def load_what_others_made() -> None:
    """What lastcall's clients import, and what that imports when it is first used."""
    import importlib

    for name in (
        "aiohttp click.shell_completion cryptography.x509 jwt orjson re2 rich.console rich.text ssl yaml "
        "multiprocessing importlib.metadata importlib.resources getpass shutil concurrent.futures.thread pytest "
        "difflib uuid platform"
    ).split():
        importlib.import_module(name)
    subprocess.run([sys.executable, "-c", ""], check=True)
    tempfile.gettempdir()
    asyncio.run(asyncio.sleep(0))


if __name__ == "__main__":
    load_what_others_made()
    pretend(sys.argv[1])
    exec(sys.argv[2], {"__name__": "pretended"})
