"""How much of an image is here already, on a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lastcall.cli.image.text import size_text
from lastcall.endings.render import redraw, redrawn_stderr


@contextmanager
def growth(what: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows on a terminal how much there is; elsewhere it shows nothing."""
    stream = redrawn_stderr()
    if stream is None:
        yield lambda size: None
        return

    try:
        yield lambda size: redraw(stream, f"{what}: {size_text(size)}")
    finally:
        redraw(stream)
