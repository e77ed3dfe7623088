"""The modules of the API's fuzzer find each other by name."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = str(Path(__file__).resolve().parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)


@pytest.fixture(autouse=True)
def own_objects() -> Iterator[None]:
    """What thousands of tests before left in this process is not collected in a request's time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
