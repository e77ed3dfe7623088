"""Which revision etcd has now, asked once for all who ask at the same time.

A reader needs an answer to a question that was put after it came: it takes the round after the one that is under way.
"""

import asyncio
from collections.abc import Awaitable, Callable


class Rounds:
    """`ask` gives the revision that etcd has, by quorum."""

    def __init__(self, ask: Callable[[], Awaitable[int]]) -> None:
        self._ask = ask
        self._started = self._finished = self._failed = 0
        self._result = 0
        self._error: Exception | None = None
        self._running = False
        self._waiting: list[asyncio.Future[None]] = []

    async def revision(self) -> int:
        """Return the revision of everything acknowledged before this call. Raises what `ask` raises."""
        need = self._started + 1
        while self._finished < need:
            if self._error is not None and self._failed >= need:
                raise self._error
            if self._running:
                future = asyncio.get_running_loop().create_future()
                self._waiting.append(future)
                await future
            else:
                await self._round()
        return self._result

    async def _round(self) -> None:
        self._running = True
        self._started += 1
        mine = self._started
        try:
            self._result = max(self._result, await self._ask())
            self._finished = mine
        except Exception as error:
            self._failed, self._error = mine, error
            raise
        finally:
            self._running = False
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
