"""Programs of a few instructions as files: one segment, no libraries."""

from __future__ import annotations

import struct

_MACHINE = {"x86_64": 62, "aarch64": 183}
_BASE, _HEADERS = 0x40_0000, 64 + 56


def static_program(machine: str, code: bytes) -> bytes:
    """Make an ELF program of `code`, which is position-independent and begins where it is entered."""
    size = _HEADERS + len(code)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 2, _MACHINE[machine], 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 64, 0, 0
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1_0000)  # PT_LOAD, read and execute
    return header + segment + code
