"""Keys in blocks are keys in one list, whatever is put in and taken out."""

import bisect
import random

import pytest

from lastcall.kube.store import keys as module
from lastcall.kube.store.keys import Keys


@pytest.mark.parametrize("seed", range(40))
def test_blocks_are_as_good_as_one_list(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 3)
    source = random.Random(seed)
    known = sorted({f"k/{source.randrange(60):02}" for _ in range(source.choice([0, 1, 7, 40]))})
    keys = Keys(known)
    for _ in range(300):
        key = f"k/{source.randrange(60):02}"
        if key in known:
            known.remove(key)
            keys.remove(key)
        else:
            bisect.insort(known, key)
            keys.add(key)
        assert keys.between(0, len(keys)) == known
        asked = f"k/{source.randrange(62):02}"
        assert keys.place(asked) == bisect.bisect_left(known, asked)
        assert keys.place(asked, after=True) == bisect.bisect_right(known, asked)
        first, last = sorted((source.randrange(65), source.randrange(65)))
        assert keys.between(first, last) == known[first:last]


def test_blocks_stay_small_and_none_is_empty() -> None:
    source = random.Random(1)
    names = [f"{source.random()}" for _ in range(20_000)]
    keys = Keys()
    for name in names:
        keys.add(name)
    assert max(map(len, keys._blocks)) <= 2 * module.BLOCK
    for name in names[:-1]:
        keys.remove(name)
    assert [block for block in keys._blocks if block] == keys._blocks == [names[-1:]]
    keys.remove(names[-1])
    assert keys.between(0, 10) == [] and keys.place("z") == 0
