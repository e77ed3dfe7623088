"""Screenshots become one animated PNG."""

import struct
import zlib

import pytest
from animated_png import SIGNATURE, Shot, animated, chunks, decoded

WIDTH, HEIGHT = 5, 4
PIXELS = [bytes((7 * x + 31 * y + 11 * channel) % 256 for x in range(WIDTH) for channel in range(3)) for y in range(4)]


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    """As the PNG specification words its filters."""
    nearest = min((left, up, corner), key=lambda each: abs(left + up - corner - each))
    return (0, left, up, (left + up) // 2, nearest)[kind]


def png(rows: list[bytes], filters: tuple[int, ...] = (0, 0, 0, 0)) -> bytes:
    """An RGB picture with a filter for each row."""
    data, above = b"", bytes(len(rows[0]))
    for kind, row in zip(filters, rows, strict=True):
        data += bytes([kind])
        for at, value in enumerate(row):
            left, corner = (row[at - 3], above[at - 3]) if at >= 3 else (0, 0)
            data += bytes([(value - predicted(kind, left, above[at], corner)) % 256])
        above = row
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    made = [
        struct.pack(">I", len(each)) + kind + each + struct.pack(">I", zlib.crc32(kind + each)) for kind, each in parts
    ]
    return SIGNATURE + b"".join(made)


def colors(rows: list[bytes]) -> list[bytes]:
    """Without what says how transparent they are."""
    return [bytes(value for at, value in enumerate(row) if at % 4 < 3) for row in rows]


@pytest.mark.parametrize("filters", [(0, 1, 2, 3), (4, 4, 4, 4), (1, 2, 3, 4), (3, 1, 4, 2)])
def test_every_filter_of_a_screenshot_is_undone(filters: tuple[int, ...]) -> None:
    size, rows = decoded(png(PIXELS, filters))
    assert size == (WIDTH, HEIGHT)
    assert colors(rows) == PIXELS
    assert {row[at] for row in rows for at in range(3, len(row), 4)} == {255}


def test_a_frame_has_only_the_rows_and_pixels_that_differ() -> None:
    other = [*PIXELS]
    other[2] = other[2][:3] + b"\x01\x02\x03" + other[2][6:]
    found = list(chunks(animated([Shot(png(PIXELS), 0.25), Shot(png(other), 3), Shot(png(other), 1)])))
    assert [kind for kind, _ in found] == [
        b"IHDR",
        b"acTL",
        b"fcTL",
        b"IDAT",
        b"fcTL",
        b"fdAT",
        b"fcTL",
        b"fdAT",
        b"IEND",
    ]
    assert struct.unpack(">II", found[1][1]) == (3, 0)
    frames = [struct.unpack(">IIIIIHHBB", data) for kind, data in found if kind == b"fcTL"]
    assert frames[0] == (0, WIDTH, HEIGHT, 0, 0, 250, 1000, 0, 0)
    assert frames[1] == (1, WIDTH, 1, 0, 2, 3000, 1000, 0, 1)
    assert frames[2][:3] == (3, WIDTH, 1), "a frame without a difference keeps one row"
    (second, _) = (data for kind, data in found if kind == b"fdAT")
    assert struct.unpack(">I", second[:4]) == (2,)
    assert zlib.decompress(second[4:]) == b"\0" + bytes(4) + b"\x01\x02\x03\xff" + bytes(12)


def test_what_cannot_be_put_together_is_refused() -> None:
    with pytest.raises(ValueError, match="no screenshots"):
        animated([])
    with pytest.raises(ValueError, match="not a PNG"):
        decoded(b"GIF89a")
    gray = png(PIXELS).replace(struct.pack(">BBBBB", 8, 2, 0, 0, 0), struct.pack(">BBBBB", 8, 0, 0, 0, 0))
    with pytest.raises(ValueError, match="color type 0"):
        decoded(gray)
    small = animated([Shot(png(PIXELS), 1)]).replace(
        struct.pack(">II", WIDTH, HEIGHT), struct.pack(">II", 1, HEIGHT), 1
    )
    with pytest.raises(ValueError, match="1x4 pixels, the first one 5x4"):
        animated([Shot(png(PIXELS), 1), Shot(small, 1)])
