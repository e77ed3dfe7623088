"""How much of an image is here already, on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lastcall.cli.errors import takes_escapes
from lastcall.cli.image.text import size_text


@contextmanager
def growth(what: str) -> Iterator[Callable[[int], None]]:
    """On a terminal a line that says how much there is; nothing elsewhere."""
    stream = sys.stderr
    if not takes_escapes(stream):
        yield lambda size: None
        return

    def show(size: int) -> None:
        stream.write(f"\r\x1b[K{what}: {size_text(size)}")
        stream.flush()

    try:
        yield show
    finally:
        stream.write("\r\x1b[K")
        stream.flush()
