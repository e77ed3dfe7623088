"""The contents of a file, cut off after each byte, and with a bit of each byte changed."""

import random
from collections.abc import Iterator


def cut(data: bytes) -> Iterator[bytes]:
    """Every beginning of it but the whole."""
    for length in range(len(data)):
        yield data[:length]


def changed(data: bytes, seed: int = 1) -> Iterator[bytes]:
    """A bit of each byte in turn."""
    bits = random.Random(seed)
    for place in range(len(data)):
        yield data[:place] + bytes([data[place] ^ 1 << bits.randrange(8)]) + data[place + 1 :]
