"""What a file is that the kernel refused to execute: a script, a program of another machine, a text."""

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.cri.sandbox.shim.not_executed import describe

ENOENT, ENOEXEC = "no such file or directory", "exec format error"


def elf(machine: int, loader: bytes = b"") -> bytes:
    """The beginning of a 64-bit program with one program header, which names its loader."""
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), 2, machine, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0
    )
    segment = struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(loader), len(loader), 1)
    return header + segment + loader


MACHINE = {"x86_64": 62, "aarch64": 183}[os.uname().machine]
OTHER, OTHER_NAME = (183, "arm64") if MACHINE == 62 else (62, "amd64")
FILES = [
    ("a script with a carriage return", b"#!/bin/sh\r\necho\r\n", {"interpreter": "/bin/sh", "carriageReturn": True}),
    ("a script with an argument", b"#! /usr/bin/env node\n", {"interpreter": "/usr/bin/env", "carriageReturn": False}),
    ("a carriage return behind an argument", b"#!/bin/sh -e\r\n", {"interpreter": "/bin/sh", "carriageReturn": False}),
    ("a script of one line", b"#!/opt/x", {"interpreter": "/opt/x", "carriageReturn": False}),
    ("a bare #!", b"#!\n", {"format": "script", "interpreter": ""}),
    ("a text", b"echo hi\n", {"format": "text", "interpreter": ""}),
    ("an empty file", b"", {"format": "unknown"}),
    ("noise", b"\0\1\2", {"format": "unknown"}),
    ("a program of another machine", elf(OTHER), {"format": "elf", "machine": OTHER_NAME, "interpreter": ""}),
    ("a program whose loader is missing", elf(MACHINE, b"/lib/ld-musl-x86_64.so.1\0"),
     {"format": "elf", "machine": "", "interpreter": "/lib/ld-musl-x86_64.so.1"}),
    ("a cut-off program", b"\x7fELF\x02\x01", {"format": "elf", "machine": "", "interpreter": ""}),
]  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_the_beginning_of_a_file_says_why_it_is_not_executed(
    content: bytes, expected: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "program"
    path.write_bytes(content)
    found = dict(describe(str(path), ENOENT))
    assert {name: found[name] for name in expected} == expected
    assert (found["path"], found["error"]) == (str(path), ENOENT)


def test_a_file_that_cannot_be_read_is_of_an_unknown_format(tmp_path: Path) -> None:
    assert describe(str(tmp_path / "none"), ENOEXEC)["format"] == "unknown"
