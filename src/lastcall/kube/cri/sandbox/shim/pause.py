"""PID 1 of a Pod whose containers share a PID namespace: it reaps, and has nothing that anybody could take from it.

A container with CAP_SYS_PTRACE may look into it, open its root and make it call what it likes. So it is not a copy of
the shim but a program of a few bytes, with an empty root, the Pod's namespaces, no capability, and a filter by which
it can do nothing but wait. It exits on SIGINT and SIGTERM (kubernetes build/pause/linux/pause.c:sigdown); the kernel
ends every process of the namespace then.
"""

# check: starts processes because PID 1 of shared PIDs is a program of its own

from __future__ import annotations

import contextlib
import os
import signal

from lastcall.kube.cri.sandbox.seccomp import bpf
from lastcall.kube.cri.sandbox.seccomp.syscalls import MACHINES, system_calls
from lastcall.kube.cri.sandbox.shim import idmap
from lastcall.kube.cri.sandbox.shim.single_id import elf
from lastcall.world import linux, privileges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

# prctl(PR_SET_NAME, "pause"); rt_sigaction(SIGINT, &down); rt_sigaction(SIGTERM, &down); for (;;) pause();
# down: exit_group(0); aarch64 has no pause: ppoll(NULL, 0, NULL, NULL, 0)
_CODE = {
    "x86_64": (
        "b89d000000bf0f000000488d35470000000f056a00488d0533000000506800000004504889e631d241ba08000000bf02"
        "000000b80d0000000f05bf0f000000b80d0000000f05b8220000000f05ebf731ffb8e70000000f05"
    ),
    "aarch64": (
        "e00180d221030010e81480d2010000d469020010ff7fbfa9e97fbfa9400080d2e1030091020080d2030180d2c81080d2"
        "010000d4e00180d2010000d4000080d2010080d2020080d2030080d2040080d2280980d2010000d4f9ffff17000080d2"
        "c80b80d2010000d4"
    ),
}
_NAME = b"pause\0"  # without it the process were called after the descriptor it was executed from
_ALLOWED = (
    *("pause", "ppoll", "restart_syscall", "rt_sigaction", "rt_sigreturn", "exit", "exit_group", "execve", "execveat"),
)
_EPERM = 1
_IMAGE_ID = 65535
"""User and group of the image (kubernetes build/pause/Dockerfile)."""


def program() -> int:
    """Return the program as a file descriptor; -1 on a machine for which there is none. Raises OSError."""
    machine = os.uname().machine
    if machine not in MACHINES:
        return -1
    fd = os.memfd_create("pause", os.MFD_CLOEXEC)
    os.write(fd, elf.static_program(machine, bytes.fromhex(_CODE[machine]) + _NAME))
    return fd


def ids(spec: Mapping[str, Any]) -> tuple[int, int]:
    """Return user and group of the process: the Pod's own, or those of its image.

    A group without a user goes with the image's, as in CRI-O. CRI wants an error, with which containerd ends the start.
    """
    user, group = spec.get("runAsUser"), spec.get("runAsGroup")
    if user is None:
        return _IMAGE_ID, _IMAGE_ID if group is None else group
    return user, 0 if group is None else group


def run(namespaces: Mapping[int, int], users: idmap.Users | None, as_ids: tuple[int, int], executable: int) -> NoReturn:
    """Run as it. `namespaces`: CLONE_NEW* flag → fd of the Pod's, `users` its user ids; `executable` is `program`'s.

    Raises OSError.
    """
    # What is ignored stays so over the execve, and a process that ignores SIGCHLD need not wait for its children.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    for flag, fd in namespaces.items():
        linux.setns(fd, flag)
    _leave_the_machine()
    if users is not None:
        idmap.enter(users)
    privileges.drop_bounding_set(0)
    with contextlib.suppress(OSError):  # where the machine gives a user one id only, it stays root's
        os.setgroups([])
        os.setresgid(as_ids[1], as_ids[1], as_ids[1])
        os.setresuid(as_ids[0], as_ids[0], as_ids[0])
    privileges.clear_ambient_set()
    privileges.capset(0, 0, 0)
    privileges.set_no_new_privs()
    if executable < 0:
        linux.close_range(3)
        _wait_for_ever()
    linux.close_range(3, flags=linux.CLOSE_RANGE_CLOEXEC)
    with contextlib.suppress(OSError):  # a kernel without filters
        privileges.install_seccomp_filter(filter_program(os.uname().machine))
    os.execve(executable, ["/pause"], {})  # noqa: S606 - what a pause is


def filter_program(machine: str) -> bytes:
    """Return a filter that allows waiting, its name, and the execve that it begins with; nothing else."""
    numbers = system_calls(machine)
    rules = {numbers[name]: [bpf.Rule(bpf.ALLOW)] for name in _ALLOWED if name in numbers}
    rules[numbers["prctl"]] = [bpf.Rule(bpf.ALLOW, [bpf.Condition(0, "EQ", linux.PR_SET_NAME)])]
    refuse = bpf.errno_action(_EPERM)
    return bpf.compile_filter(machine, rules, refuse, other_architecture=refuse)


def _leave_the_machine() -> None:
    """An empty root, which nobody can write."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    flags = linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    linux.mount("pause", "/proc", "tmpfs", flags, "size=0k,nr_inodes=2")
    os.chdir("/proc")
    linux.pivot_root(".", ".")
    linux.umount2(".", linux.MNT_DETACH)
    os.chdir("/")


def _wait_for_ever() -> NoReturn:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    while True:
        signal.pause()
