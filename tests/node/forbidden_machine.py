"""Makes a machine that forbids something, in namespaces of its own, and runs lastcall there.

Usage: forbidden_machine.py <what> [arguments of lastcall; `doctor --output json` without any]. Standard library and
lastcall only.
"""

import ctypes
import os
import signal
import struct
import sys
from collections.abc import Callable

from lastcall.world import linux, privileges

SYS_MOUNT = {"x86_64": 165, "aarch64": 40}[os.uname().machine]
SYS_SETHOSTNAME = {"x86_64": 170, "aarch64": 161}[os.uname().machine]
SYS_CLONE3 = 435


def doctor() -> None:
    from lastcall.cli.main import main

    main(sys.argv[2:] or ["doctor", "--output", "json"])


def in_outer_namespace(prepare: Callable[[], None]) -> None:
    """Run the doctor as PID 1 of user, mount and PID namespaces in which `prepare` has changed something."""
    read, write = os.pipe()
    pid = linux.clone3(linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWPID)
    if pid == 0:
        os.close(write)
        os.read(read, 1)
        linux.set_parent_death_signal(signal.SIGKILL)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("proc", "/proc", "proc")
        prepare()
        doctor()
    for name, own in (("uid_map", os.getuid()), ("setgroups", -1), ("gid_map", os.getgid())):
        # Root keeps all ids. An ordinary user keeps its own, so that the doctor meets an ordinary user.
        text = "deny" if own < 0 else "0 0 4294967295" if own == 0 else f"{own} {own} 1"
        if own >= 0 or os.getuid() != 0:
            with open(f"/proc/{pid}/{name}", "w") as file:
                file.write(text)
    os.close(write)
    _, status = os.waitpid(pid, 0)
    raise SystemExit(os.waitstatus_to_exitcode(status))


def set_sysctl(name: str, value: str) -> Callable[[], None]:
    def prepare() -> None:
        with open("/proc/sys/" + name.replace(".", "/"), "w") as file:
            file.write(value)

    return prepare


def mask_proc() -> None:
    for path in ("/proc/kcore", "/proc/keys", "/proc/timer_list"):
        if os.path.exists(path):
            linux.mount("/dev/null", path, None, linux.MS_BIND)


def deny(system_call: int, number: int) -> Callable[[], None]:
    """A seccomp filter: this system call fails with errno `number`, all others work."""

    def prepare() -> None:
        load_number, jump_if_equal, answer = 0x20, 0x15, 0x06
        program = b"".join(
            struct.pack("=HBBI", *instruction)
            for instruction in (
                (load_number, 0, 0, 0),
                (jump_if_equal, 0, 1, system_call),
                (answer, 0, 0, 0x0005_0000 | number),
                (answer, 0, 0, 0x7FFF_0000),
            )
        )
        buffer = ctypes.create_string_buffer(program)
        header = struct.pack("=HxxxxxxQ", 4, ctypes.addressof(buffer))
        privileges.set_no_new_privs()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(22, 2, ctypes.c_char_p(header), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")

    return prepare


def directly(prepare: Callable[[], None]) -> None:
    prepare()
    doctor()


MACHINES: dict[str, Callable[[], None]] = {
    "nothing forbidden": lambda: directly(lambda: None),
    "no user namespaces": lambda: in_outer_namespace(set_sysctl("user.max_user_namespaces", "0")),
    "no network namespaces": lambda: in_outer_namespace(set_sysctl("user.max_net_namespaces", "0")),
    "masked proc": lambda: in_outer_namespace(mask_proc),
    "docker's seccomp": lambda: directly(deny(SYS_CLONE3, 38)),
    "no mounts": lambda: directly(deny(SYS_MOUNT, 1)),
    "podman's seccomp": lambda: directly(deny(SYS_SETHOSTNAME, 1)),
}

if __name__ == "__main__":
    MACHINES[sys.argv[1]]()
