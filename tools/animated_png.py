"""Make one animated PNG of screenshots. A frame has only the pixels that differ from the one before.

Formats: PNG (third edition) with acTL, fcTL and fdAT; read are 8-bit RGB and RGBA without interlace, as browsers write.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {2: 3, 6: 4}
SAME, OVER = 0, 1
"""How a frame is put upon the one before: in its place, or over it."""

Rows = list[bytes]


@dataclass(frozen=True, slots=True)
class Shot:
    """A screenshot, and how many seconds it is shown."""

    png: bytes
    seconds: float


def animated(shots: Sequence[Shot]) -> bytes:
    """Return the picture, which plays again and again. Raises ValueError for none, or shots of different sizes."""
    if not shots:
        raise ValueError("no screenshots")
    size, before = decoded(shots[0].png)
    parts = [
        SIGNATURE,
        _chunk(b"IHDR", struct.pack(">IIBBBBB", *size, 8, 6, 0, 0, 0)),
        _chunk(b"acTL", struct.pack(">II", len(shots), 0)),
        _chunk(b"fcTL", _frame(0, size, 0, shots[0].seconds, SAME)),
        _chunk(b"IDAT", _packed(before)),
    ]
    number = 1
    for shot in shots[1:]:
        own, rows = decoded(shot.png)
        if own != size:
            raise ValueError(f"a screenshot has {own[0]}x{own[1]} pixels, the first one {size[0]}x{size[1]}")
        top, changed = _changed(before, rows)
        parts.append(_chunk(b"fcTL", _frame(number, (size[0], len(changed)), top, shot.seconds, OVER)))
        parts.append(_chunk(b"fdAT", struct.pack(">I", number + 1) + _packed(changed)))
        number, before = number + 2, rows
    return b"".join([*parts, _chunk(b"IEND", b"")])


def _changed(before: Rows, rows: Rows) -> tuple[int, Rows]:
    """The first row that differs, and all to the last one; what is as before is transparent."""
    differ = [at for at, (old, new) in enumerate(zip(before, rows, strict=True)) if old != new] or [0]
    found = []
    for old, new in zip(before[differ[0] : differ[-1] + 1], rows[differ[0] : differ[-1] + 1], strict=True):
        row = bytearray(len(new))
        if old != new:
            for at in range(0, len(new), 4):
                if old[at : at + 4] != new[at : at + 4]:
                    row[at : at + 4] = new[at : at + 4]
        found.append(bytes(row))
    return differ[0], found


def _frame(number: int, size: tuple[int, int], top: int, seconds: float, blend: int) -> bytes:
    return struct.pack(">IIIIIHHBB", number, *size, 0, top, min(65_535, round(seconds * 1000)), 1000, 0, blend)


def _packed(rows: Rows) -> bytes:
    return zlib.compress(b"".join(b"\0" + row for row in rows), 9)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and content of each chunk. Raises ValueError for something else than a PNG."""
    if not png.startswith(SIGNATURE):
        raise ValueError("not a PNG")
    at = len(SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def decoded(png: bytes) -> tuple[tuple[int, int], Rows]:
    """Return the size, and rows of RGBA. Raises ValueError for a PNG of another kind."""
    found = list(chunks(png))
    width, height, depth, color, *_, interlace = struct.unpack(">IIBBBBB", found[0][1])
    if depth != 8 or color not in CHANNELS or interlace:
        raise ValueError(f"a PNG of depth {depth}, color type {color}, interlace {interlace} is not supported")
    step = CHANNELS[color]
    data = zlib.decompress(b"".join(content for kind, content in found if kind == b"IDAT"))
    rows: Rows = []
    before = bytes(width * step)
    for at in range(0, len(data), width * step + 1):
        before = _unfiltered(data[at], data[at + 1 : at + 1 + width * step], before, step)
        rows.append(before)
    return (width, height), [_rgba(row) for row in rows] if step == 3 else rows


def _rgba(row: bytes) -> bytes:
    made = bytearray(b"\xff") * (len(row) // 3 * 4)
    for channel in range(3):
        made[channel::4] = row[channel::3]
    return bytes(made)


def _unfiltered(kind: int, row: bytes, above: bytes, step: int) -> bytes:
    """Undo a row's filter (PNG 9.2)."""
    if kind == 0:
        return row
    if kind == 1:
        made = bytearray(len(row))
        for channel in range(step):
            made[channel::step] = bytes(each & 255 for each in accumulate(row[channel::step]))
        return bytes(made)
    if kind == 2:
        return bytes((a + b) & 255 for a, b in zip(row, above, strict=True))
    made = bytearray(step) + row
    corner = bytes(step) + above
    for at in range(len(row)):
        left, up = made[at], above[at]
        guess = (left + up) // 2 if kind == 3 else _paeth(left, up, corner[at])
        made[at + step] = (row[at] + guess) & 255
    return bytes(made[step:])


def _paeth(left: int, up: int, corner: int) -> int:
    """Return the one that is nearest to left + up - corner."""
    a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if a <= b and a <= c:
        return left
    return up if b <= c else corner
