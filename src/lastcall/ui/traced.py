"""A cluster that `lastcall trace` follows, as the page's source: what the trace sees, and nothing else is asked for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from lastcall.endings import Ending
from lastcall.kube.api import Object, Resource
from lastcall.records.record import Record
from lastcall.ui.source import NoMore, ObjectHandler, Opened, PageClient


class TracedCluster:
    """`record` and `object` are called by the trace, `end` when it ends. The client is the trace's own."""

    def __init__(
        self, name: str, facts: dict[str, Any], client: PageClient, ending: Callable[[str], Ending | None]
    ) -> None:
        self.name = name
        self._facts = facts
        self._client = client
        self._ending = ending
        self._records: asyncio.Queue[Record | None] = asyncio.Queue()
        self._on_object: ObjectHandler | None = None
        self._before: list[tuple[Resource, str, Object]] = []
        self._opened = False

    def record(self, record: Record) -> None:
        self._records.put_nowait(record)

    def object(self, resource: Resource, type_: str, obj: Object) -> None:
        if self._on_object is None:
            self._before.append((resource, type_, obj))
        else:
            self._on_object(resource, type_, obj)

    def end(self) -> None:
        """End: nothing more comes."""
        self._records.put_nowait(None)

    async def open(self) -> Opened:
        if self._opened:
            raise NoMore
        self._opened = True
        return Opened(
            self._facts,
            "trace",
            _Borrowed(self._client),
            self._each(),
            may_write=False,
            watch=self._watch,
            ending=self._ending,
        )

    def _watch(self, on_object: ObjectHandler) -> None:
        self._on_object = on_object
        before, self._before = self._before, []
        for each in before:
            on_object(*each)

    async def _each(self) -> AsyncIterator[Record]:
        while (record := await self._records.get()) is not None:
            yield record


class _Borrowed:
    """A client that its owner closes."""

    def __init__(self, client: PageClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def close(self) -> None:
        return None
