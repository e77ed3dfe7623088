"""Decisions that may need the authorizer, and may take long."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from lastcall.apiserver.auth.authorizer import Authorizer
from lastcall.apiserver.policies.authorization import Asked, Undecided
from lastcall.apiserver.policies.evaluation import CALL_LIMIT, TooDear

T = TypeVar("T")
QUICK = 20_000
"""Cost of an expression up to which it is evaluated where requests are answered (some milliseconds)."""


class Decider:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def decided(self, decide: Callable[[Asked, int], T]) -> T:
        """What `decide` says, once all is known that it asks the authorizer for: it is called until then. What is dear
        is decided in a thread, and others' requests go on meanwhile."""
        asked = Asked()
        limit = QUICK
        while True:
            try:
                if limit == QUICK:
                    return decide(asked, limit)
                return await asyncio.to_thread(decide, asked, limit)
            except TooDear:
                limit = CALL_LIMIT
            except Undecided as undecided:
                await asked.ask(self._authorizer, undecided)
