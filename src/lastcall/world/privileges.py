"""What a process may do: capabilities, seccomp filters, no new privileges. Thin functions over libc, as `linux.py`.

Standard library only (`ctypes`): the shim uses it. Every failure is an OSError whose text names the call.
"""

# check: standard library

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Mapping

from lastcall.world.linux import MACHINE, failure, libc, prctl, system_call

_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SYS_CAPGET = {"x86_64": 125, "aarch64": 90, "riscv64": 90, "ppc64le": 183, "s390x": 184}
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91, "riscv64": 91, "ppc64le": 184, "s390x": 185}


def set_no_new_privs() -> None:
    """Forbid every execve of this process and its children to gain privileges, for good."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


# -- capabilities ------------------------------------------------------------------------------------------------------

_CAPABILITY_NAMES = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE "
    "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
)
CAPABILITIES: Mapping[str, int] = {name: number for number, name in enumerate(_CAPABILITY_NAMES.split())}
"""Capability names without `CAP_`, and their numbers."""

_CAP_HEADER = struct.pack("=Ii", 0x2008_0522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread


def capget() -> tuple[int, int, int]:
    """Return (effective, permitted, inheritable) of this thread as bit masks."""
    data = ctypes.create_string_buffer(24)
    system_call("capget", _SYS_CAPGET[MACHINE], _CAP_HEADER, data)
    low = struct.unpack("=6I", data.raw)
    return low[0] | low[3] << 32, low[1] | low[4] << 32, low[2] | low[5] << 32


def capset(effective: int, permitted: int, inheritable: int) -> None:
    """Set this thread's capability masks."""
    low, high = 0xFFFF_FFFF, 32
    data = struct.pack(
        "=6I",
        effective & low,
        permitted & low,
        inheritable & low,
        effective >> high,
        permitted >> high,
        inheritable >> high,
    )
    system_call("capset", _SYS_CAPSET[MACHINE], _CAP_HEADER, data)


def capability_mask(names: tuple[str, ...] | list[str]) -> int:
    """Return the bit mask of capability names (with or without `CAP_`, any case). Raises ValueError for others."""
    mask = 0
    for name in names:
        key = name.upper().removeprefix("CAP_")
        if key not in CAPABILITIES:
            raise ValueError(f"unknown capability {name!r}")
        mask |= 1 << CAPABILITIES[key]
    return mask


def drop_bounding_set(keep: int) -> None:
    """Drop every capability not in the mask `keep` from the bounding set. Needs CAP_SETPCAP."""
    for number in range(64):
        if not keep >> number & 1:
            try:
                prctl(_PR_CAPBSET_DROP, number)
            except OSError as error:
                if error.errno == errno.EINVAL:
                    return  # past the kernel's last capability
                raise failure("prctl(PR_CAPBSET_DROP)", number=error.errno) from error


def clear_ambient_set() -> None:
    """Clear the ambient set: no capability survives an execve by it."""
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)


def set_file_owner(uid: int, gid: int) -> None:
    """Make new files of this thread belong to `uid` and `gid`, and keep its capabilities (setfsuid(2))."""
    permitted, inheritable = capget()[1:]
    libc.setfsgid(ctypes.c_uint(gid))
    libc.setfsuid(ctypes.c_uint(uid))
    capset(permitted, permitted, inheritable)  # the kernel took what concerns files


# -- seccomp -----------------------------------------------------------------------------------------------------------

SECCOMP_FILTER_FLAG_NEW_LISTENER = 0x8
_SECCOMP_SET_MODE_FILTER = 1
_SYS_SECCOMP = {"x86_64": 317, "aarch64": 277, "riscv64": 277, "ppc64le": 358, "s390x": 348}


def has_seccomp_filters() -> bool:
    """Return whether this kernel takes filters (it is built with them, and nothing forbids the question)."""
    action = ctypes.c_uint32(0x7FFF_0000)  # SECCOMP_RET_ALLOW
    operation = ctypes.c_long(2)  # SECCOMP_GET_ACTION_AVAIL
    if MACHINE not in _SYS_SECCOMP:
        return False
    try:
        system_call("seccomp", _SYS_SECCOMP[MACHINE], operation, ctypes.c_uint(0), ctypes.byref(action))
    except OSError:
        return False
    return True


def install_seccomp_filter(program: bytes, flags: int = 0) -> int:
    """Filter this thread's system calls, and those of its children, for good; `program` is BPF (`struct sock_filter`s).

    With SECCOMP_FILTER_FLAG_NEW_LISTENER return a close-on-exec fd that is notified of the calls that the filter
    chooses. Needs CAP_SYS_ADMIN in the user namespace, or no_new_privs.
    """
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the number of instructions, and where they are
    header = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(code))
    return system_call(
        "seccomp", _SYS_SECCOMP[MACHINE], ctypes.c_long(_SECCOMP_SET_MODE_FILTER), ctypes.c_uint(flags), header
    )
