"""Containers with a single user id: what becomes of chown, setuid and their like.

An ordinary user without a subordinate range has one id, which is root in the container. The kernel refuses every other
id there (EINVAL), so that images which drop privileges would not start. For a container that runs as root a filter asks
the shim about such calls instead (`supervisor.py`). Two parts of that are here: the filter, and the small
program by which a process that asked to be user N becomes user N with its next execve.

Only calls for which the container has the capability are answered; without it they fail with EPERM as anywhere. Calls
that name only root's own id go to the kernel.
"""

from __future__ import annotations

import functools
import os

from lastcall.kube.cri.sandbox.seccomp import bpf
from lastcall.kube.cri.sandbox.seccomp.syscalls import MACHINES, system_calls
from lastcall.kube.cri.sandbox.shim.single_id import elf
from lastcall.world import privileges

HELPER_PATH = "/dev/.u"
"""Where the program is in the container. The execve of a path shorter than this one cannot be turned into its."""

HELPER_CALL = 0x3FFF
"""A call number that no kernel has: the program asks the shim who to be and what to execute."""

_OWNERS = {"chown": (1, 2), "lchown": (1, 2), "fchown": (1, 2), "fchownat": (2, 3)}
_USERS = {"setuid": (0,), "setreuid": (0, 1), "setresuid": (0, 1, 2), "setfsuid": (0,)}
_GROUPS = {"setgid": (0,), "setregid": (0, 1), "setresgid": (0, 1, 2), "setfsgid": (0,)}
_BY_CAPABILITY = (("CHOWN", _OWNERS), ("SETUID", _USERS), ("SETGID", _GROUPS), ("SETGID", {"setgroups": ()}))
_UNCHANGED = 0xFFFF_FFFF
_EPERM = 1
_LOW_HALF = 0xFFFF_FFFF  # ids have 32 bits; what is above them in the register is nothing


def available() -> bool:
    """Return whether this machine's architecture is one we can do it for."""
    return os.uname().machine in MACHINES


@functools.lru_cache(maxsize=64)
def filter_program(capabilities: int) -> bytes:
    """Return the filter for a container with these capabilities, made once for each mask."""
    return make_filter(os.uname().machine, capabilities)


def make_filter(machine: str, capabilities: int) -> bytes:
    """Make the filter that the module describes. A call of another architecture goes to the kernel."""
    numbers = system_calls(machine)
    rules: dict[int, list[bpf.Rule]] = {}
    for capability, calls in _BY_CAPABILITY:
        has = capabilities >> privileges.CAPABILITIES[capability] & 1
        action = bpf.USER_NOTIF if has else bpf.errno_action(_EPERM)
        for name, ids in calls.items():
            if name in numbers:
                rules[numbers[name]] = _unless_own(ids, action)
    rules[numbers["execve"]] = [bpf.Rule(bpf.USER_NOTIF)]
    rules[HELPER_CALL] = [bpf.Rule(bpf.USER_NOTIF)]
    return bpf.compile_filter(machine, rules, bpf.ALLOW, other_architecture=bpf.ALLOW)


def _unless_own(ids: tuple[int, ...], action: int) -> list[bpf.Rule]:
    """`action` as soon as one of the arguments is neither 0 nor "leave it"; a call without ids always."""
    if not ids:
        return [bpf.Rule(action)]
    found = [bpf.Rule(action, [_is_not(index, 0), _is_not(index, _UNCHANGED)]) for index in ids]
    return [*found, bpf.Rule(bpf.ALLOW)]


def _is_not(index: int, value: int) -> bpf.Condition:
    return bpf.Condition(index, "MASKED_NE", _LOW_HALF, value)


# -- the program -------------------------------------------------------------------------------------------------------

# unshare(CLONE_NEWUSER); HELPER_CALL(buffer, stack); execve(buffer, argv, envp); exit_group(126). Position-independent.
_CODE = {
    "x86_64": "4889e3b810010000bf000000100f0585c0752e4881ec00200000b8ff3f0000"
    "4889e74889de0f0585c07516488b0b4889e7488d7308488d54cb10b83b000000"
    "0f05bf7e000000b8e70000000f05",
    "aarch64": "f3030091280c80d20000a2d2010000d4c00100b5ff0b40d1e8ff87d2e0030091"
    "e10313aa010000d4000100b5630240f9e003009161220091620e038b42400091"
    "a81b80d2010000d4c00f80d2c80b80d2010000d4",
}
BUFFER_SIZE = 8192


def helper_elf(machine: str) -> bytes:
    """Return the program as a file. It gets BUFFER_SIZE bytes below its stack for the path."""
    return elf.static_program(machine, bytes.fromhex(_CODE[machine]))
