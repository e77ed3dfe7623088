"""Where an experiment takes place, whichever it is: what ends it from outside, and what is put back."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import field
from typing import Any, TypeVar, cast

from lastcall.errors import WorldError
from lastcall.kube.client import Client
from lastcall.records.record import Record
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import unless

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Workspace(ABC):
    """A cluster of our own (`embedded.py`), or a namespace of a context (`existing/namespace.py`).

    `records` grow meanwhile. `died` is set, and `death` says which process ended and how, once one of a cluster of our
    own has.
    """

    records: list[Record] = field(default_factory=list)
    death: str = ""
    died: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    @abstractmethod
    def client(self) -> Client: ...

    @abstractmethod
    async def restore(self, say: Callable[[str], None]) -> None:
        """Put back what was changed, whatever has happened."""

    @abstractmethod
    async def error(self, found: Exception) -> Exception:
        """Return the error to raise in place of one that ended the experiment."""

    async def alive(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` does while the cluster lives.

        Raises WorldError as soon as a process of the cluster has died, and what `error` makes of anything else.
        """
        try:
            found = await unless(work, self.died)
            if self.death:
                raise WorldError(self.death)
            return cast("T", found)
        except Exception as error:
            # What happened first in a task group is what happened.
            first = error
            while isinstance(first, ExceptionGroup):
                first = first.exceptions[0]
            reported = await self.error(first)
            raise reported from (error.__cause__ if reported is first else error)
