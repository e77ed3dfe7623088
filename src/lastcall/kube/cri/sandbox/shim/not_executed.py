"""What a file is that the kernel refused to execute: read by the child, inside the container's root."""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastcall.records.definitions.parts import NotExecuted

_READ = 4096
_LONGEST = 255
"""Bytes of a name that are kept; the kernel reads as many of a `#!` line (BINPRM_BUF_SIZE)."""
_ELF64, _LITTLE, _PT_INTERP = 2, 1, 3
_MACHINES = {3: "386", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "amd64", 183: "arm64", 243: "riscv64"}
"""`e_machine` of elf.h → the names of architectures in image indexes (GOARCH)."""
_OWN = {"x86_64": "amd64", "aarch64": "arm64"}


def describe(path: str, error: str) -> NotExecuted:
    """Describe a file from its beginning. `error` is the kernel's reason."""
    found: NotExecuted = {
        "path": path[:_LONGEST],
        "error": error,
        "format": "unknown",
        "interpreter": "",
        "carriageReturn": False,
        "machine": "",
    }
    start = _start_of(path)
    if start.startswith(b"#!"):
        line = start[2:].split(b"\n", 1)[0].strip(b" \t")
        name = line.replace(b"\t", b" ").split(b" ", 1)[0]
        found["format"] = "script"
        found["carriageReturn"] = name.endswith(b"\r")
        found["interpreter"] = _text(name.removesuffix(b"\r"))
    elif start.startswith(b"\x7fELF"):
        machine = _machine(start)
        found["format"] = "elf"
        found["interpreter"] = _loader(path, start)
        found["machine"] = "" if machine == _OWN.get(os.uname().machine, os.uname().machine) else machine
    elif start and b"\0" not in start:
        found["format"] = "text"
    return found


def _start_of(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, _READ)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _text(name: bytes) -> str:
    return name[:_LONGEST].decode("utf-8", "replace")


def _machine(start: bytes) -> str:
    if len(start) < 20:
        return ""
    (number,) = struct.unpack_from("<H" if start[5] == _LITTLE else ">H", start, 18)
    return _MACHINES.get(number, f"machine {number}")


def _loader(path: str, start: bytes) -> str:
    """Return the program interpreter of a 64-bit little-endian program; "" for others and for static ones."""
    if len(start) < 64 or (start[4], start[5]) != (_ELF64, _LITTLE):
        return ""
    (headers,) = struct.unpack_from("<Q", start, 32)
    size, count = struct.unpack_from("<HH", start, 54)
    for index in range(min(count, 64)):
        at = headers + index * size
        if at + 56 > len(start):
            break
        kind, _, offset = struct.unpack_from("<IIQ", start, at)
        (length,) = struct.unpack_from("<Q", start, at + 32)
        if kind == _PT_INTERP and offset + length <= len(start):
            return _text(start[offset : offset + length].rstrip(b"\0"))
    return ""
