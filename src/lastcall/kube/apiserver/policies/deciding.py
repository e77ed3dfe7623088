"""Decisions about one write that may need the authorizer, and may take long."""

# check: allow asyncio.to_thread because expressions may take long

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from lastcall.kube.apiserver.auth.authorizer import Authorizer
from lastcall.kube.apiserver.policies.authorization import Asked, Undecided
from lastcall.kube.apiserver.policies.evaluation import Allowance, TooDear

T = TypeVar("T")
Decide = Callable[[Allowance | None], T]
"""Has no effects: it is called again where the authorizer has to be asked, or what it may cost was too little."""
QUICK = 20_000
"""Cost of all expressions of a write that are evaluated where requests are answered (some milliseconds)."""


class Decider:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def begin(self) -> "Decisions":
        """Begin the decisions about one write."""
        return Decisions(self._authorizer)


class Decisions:
    """What costs more than is left of `QUICK` is decided in a thread, and so is all that comes after it: others'
    requests go on meanwhile."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self.asked = Asked()
        self._here: Allowance | None = Allowance(QUICK)

    async def one(self, decide: Decide[T]) -> T:
        (found,) = await self.all([decide])
        return found

    async def all(self, decide: Sequence[Decide[T]]) -> list[T]:
        """Return the decisions, in their order, once the authorizer's answers that they need are known."""
        found: list[T] = []
        while len(found) < len(decide):
            try:
                if self._here is not None:
                    _decided(decide, found, self._here)
                else:
                    await asyncio.to_thread(_decided, decide, found, None)
            except TooDear:
                self._here = None
            except Undecided as undecided:
                await self.asked.ask(self._authorizer, undecided)
        return found


def _decided(decide: Sequence[Decide[T]], found: list[T], allowance: Allowance | None) -> None:
    """Adds to `found` what is not there yet."""
    while len(found) < len(decide):
        found.append(decide[len(found)](allowance))
