"""What a process imports is left out of the collections of garbage."""

import gc

import pytest

from lastcall.world.garbage import frozen_imports


def test_nothing_is_collected_in_the_block_and_what_was_made_there_is_never_looked_at() -> None:
    frozen = gc.get_freeze_count()
    try:
        with frozen_imports():
            assert not gc.isenabled()
            made = [[] for _ in range(1000)]
        assert gc.isenabled()
        assert gc.get_freeze_count() >= frozen + len(made)
    finally:
        gc.unfreeze()


def test_collections_go_on_after_an_error() -> None:
    try:
        with pytest.raises(ImportError), frozen_imports():
            raise ImportError
        assert gc.isenabled()
    finally:
        gc.unfreeze()
