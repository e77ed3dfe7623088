"""The lines of a container's log."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lastcall.trace.logs import MAX_BYTES, MAX_LINE, lines, split

STAMP = b"2026-01-01T00:00:00.123456789Z"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (STAMP + b" hello world", (STAMP.decode(), "hello world")),
        (STAMP + b" ", (STAMP.decode(), "")),
        (b"hello world", ("", "hello world")),
        (b"", ("", "")),
        (b"2026 years", ("", "2026 years")),
        (STAMP + b" \xff\xfe", (STAMP.decode(), "\ufffd\ufffd")),
    ],
)
def test_a_line_has_a_stamp_or_is_text(line: bytes, found: tuple[str, str]) -> None:
    assert split(line) == found


def test_a_line_without_end_is_cut() -> None:
    assert len(split(STAMP + b" " + b"x" * 100_000)[1]) == MAX_LINE
    assert len(split(b"x" * 100_000)[1]) == MAX_LINE


class Log:
    def __init__(self, *chunks: bytes) -> None:
        self.chunks, self.read = chunks, 0

    async def pod_log(self, *_: Any, **asked: Any) -> AsyncIterator[bytes]:
        assert asked["follow"] and asked["timestamps"]
        for each in self.chunks:
            self.read += 1
            yield each


def all_of(log: Log) -> list[bytes]:
    async def read() -> list[bytes]:
        return [each async for each in lines(log, "n", "p", "app", 1)]

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("chunks", "found"),
    [
        ((b"a\nb\n",), [b"a", b"b"]),
        ((b"a", b"b\nc"), [b"ab", b"c"]),
        ((b"\n\n",), [b"", b""]),
        ((), []),
    ],
)
def test_chunks_are_cut_into_lines(chunks: tuple[bytes, ...], found: list[bytes]) -> None:
    assert all_of(Log(*chunks)) == found


def test_a_line_that_does_not_end_is_not_kept_whole() -> None:
    found = all_of(Log(*[b"x" * 1000] * 20))
    assert max(map(len, found)) <= MAX_LINE + 1000


def test_of_too_much_no_more_is_read() -> None:
    log = Log(*[b"x" * 4095 + b"\n"] * 200)
    assert len(all_of(log)) * 4096 <= MAX_BYTES + 4096
    assert log.read < 200
