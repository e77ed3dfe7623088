"""How long a client holds a stream or a WebSocket: a length of its own, or until the load is over.

A stream that the client ends proves nothing about its server: one that waits for its streams looks well. So some are
held until the load is over: a Pod that has one when it is asked to stop ends it, or is killed with it.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from lastcall.traffic.outcome import Kind

_LASTING_SECONDS = 86400.0
"""Longer than any load."""


class Stay:
    """One stay. `seconds` from the answer's head on; it can be cut short by `leave`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.waits: asyncio.Timeout | None = None
        """What the client waits in now, for its `seconds` or for something before."""

    def leave(self) -> None:
        """Stay no longer. What is under way on the connection ends by its own rules."""
        self.seconds = 0.0
        if self.waits is not None and not self.waits.expired():
            self.waits.reschedule(asyncio.get_running_loop().time())


class Stays:
    """Those of one load. Of `lasting_every` of a kind the first lasts until `end`; 0: none does."""

    def __init__(self, seconds: float, lasting_every: int) -> None:
        self._seconds, self._every = seconds, lasting_every
        self._begun: Counter[Kind] = Counter()
        self._lasting: set[Stay] = set()
        self._over = False

    @contextmanager
    def next_of(self, kind: Kind) -> Iterator[Stay]:
        """Hold one more of a kind."""
        lasts = self._every > 0 and self._begun[kind] % self._every == 0 and not self._over
        self._begun[kind] += 1
        stay = Stay(_LASTING_SECONDS if lasts else self._seconds)
        if lasts:
            self._lasting.add(stay)
        try:
            yield stay
        finally:
            self._lasting.discard(stay)

    def end(self) -> None:
        """Leave all that were to last."""
        self._over = True
        for stay in self._lasting:
            stay.leave()
