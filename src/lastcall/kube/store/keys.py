"""Keys in order, in blocks: to put one in or take it out moves a block's others, not those of a hundred thousand."""

import bisect
from collections.abc import Iterable

BLOCK = 1024
"""A block is split when it has twice as many."""


class Keys:
    """A sorted set of strings. A place is a number: how many come before."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        known = sorted(keys)
        self._blocks = [known[start : start + BLOCK] for start in range(0, len(known), BLOCK)] or [[]]
        self._lasts = [block[-1] for block in self._blocks if block]
        self._count = len(known)

    def __len__(self) -> int:
        return self._count

    def add(self, key: str) -> None:
        """Add `key`, which is not there."""
        self._count += 1
        number = min(bisect.bisect_left(self._lasts, key), len(self._blocks) - 1)
        block = self._blocks[number]
        bisect.insort(block, key)
        if len(block) > 2 * BLOCK:
            self._blocks[number : number + 1] = block[:BLOCK], block[BLOCK:]
            self._lasts[number : number + 1] = block[BLOCK - 1], block[-1]
        else:
            self._lasts[number : number + 1] = (block[-1],)

    def remove(self, key: str) -> None:
        """Remove `key`, which is there."""
        self._count -= 1
        number = bisect.bisect_left(self._lasts, key)
        block = self._blocks[number]
        del block[bisect.bisect_left(block, key)]
        if block:
            self._lasts[number] = block[-1]
            return
        del self._lasts[number]
        if self._lasts:
            del self._blocks[number]

    def place(self, key: str, *, after: bool = False) -> int:
        """Count the keys that come before `key`. With `after` it counts itself."""
        number = bisect.bisect_left(self._lasts, key)
        before = sum(map(len, self._blocks[:number]))
        if number == len(self._lasts):
            return before
        find = bisect.bisect_right if after else bisect.bisect_left
        return before + find(self._blocks[number], key)

    def between(self, first: int, last: int) -> list[str]:
        """Return the keys from one place up to another."""
        found: list[str] = []
        for block in self._blocks:
            if last <= 0:
                break
            if first < len(block):
                found += block[max(first, 0) : last]
            first -= len(block)
            last -= len(block)
        return found
