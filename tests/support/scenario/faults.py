"""A client that is as unreliable as a network: for components, which must come to the same outcome.

`VirtualCluster(wrap=…)` puts it between a component and the API server.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from lastcall.kube.api.errors import StatusError, conflict
from lastcall.kube.api.resources import Resource
from lastcall.kube.client.api import Client, ConnectionLost, WatchEvent


@dataclass(frozen=True)
class Faults:
    """`every_…`: each n-th time, counted per client; 0 never.

    - `lost_watches`: a watch breaks before its n-th event is handed on.
    - `duplicates`: every watch event comes twice.
    - `conflicts`: an update or patch is answered 409 and not done; `failures`: 500 and not done.
    - `lost_answers`: a write is done, its answer is lost.

    `slow_seconds`: every read and write takes so long; `late_seconds`: every watch event comes so late (no two change
    places).
    """

    lost_watches: int = 0
    duplicates: bool = False
    conflicts: int = 0
    failures: int = 0
    lost_answers: int = 0
    slow_seconds: float = 0.0
    late_seconds: float = 0.0


class FaultyClient:
    """Implements `Client`. `log` counts what was done to the component. `faults` may be asked anew each time."""

    def __init__(self, client: Client, faults: Faults | Callable[[], Faults], log: dict[str, int]) -> None:
        self._client = client
        self._ask = faults if callable(faults) else lambda: faults
        self._log = log
        self._counts: dict[str, int] = {}

    @property
    def _faults(self) -> Faults:
        return self._ask()

    @_faults.setter
    def _faults(self, faults: Faults) -> None:
        self._ask = lambda: faults

    async def _slow(self) -> None:
        if self._faults.slow_seconds:
            await asyncio.sleep(self._faults.slow_seconds)  # virtual time

    def _is_due(self, what: str, every: int) -> bool:
        if not every:
            return False
        self._counts[what] = self._counts.get(what, 0) + 1
        due = self._counts[what] % every == 0
        if due:
            self._log[what] = self._log.get(what, 0) + 1
        return due

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    @asynccontextmanager
    async def watch(self, resource: Resource, namespace: str = "", **options: Any) -> AsyncIterator[Any]:
        async with self._client.watch(resource, namespace, **options) as events:

            async def unreliable() -> AsyncIterator[WatchEvent]:
                async for event in events:
                    if self._is_due("lost watch", self._faults.lost_watches):
                        raise ConnectionLost("the watch broke")
                    if self._faults.late_seconds:
                        await asyncio.sleep(self._faults.late_seconds)  # virtual time
                    yield event
                    if self._faults.duplicates and event.type != "BOOKMARK":
                        self._log["duplicate"] = self._log.get("duplicate", 0) + 1
                        yield event

            yield unreliable()

    async def get(self, resource: Resource, *arguments: Any, **options: Any) -> Any:
        await self._slow()
        return await self._client.get(resource, *arguments, **options)

    async def list(self, resource: Resource, *arguments: Any, **options: Any) -> Any:
        await self._slow()
        return await self._client.list(resource, *arguments, **options)

    async def update(self, resource: Resource, *arguments: Any, **options: Any) -> Any:
        await self._slow()
        self._may_refuse(resource)
        return self._may_lose(await self._client.update(resource, *arguments, **options))

    async def patch(self, resource: Resource, *arguments: Any, **options: Any) -> Any:
        await self._slow()
        self._may_refuse(resource)
        return self._may_lose(await self._client.patch(resource, *arguments, **options))

    async def create(self, resource: Resource, *arguments: Any, **options: Any) -> Any:
        await self._slow()
        return self._may_lose(await self._client.create(resource, *arguments, **options))

    async def delete(self, resource: Resource, *arguments: Any, **options: Any) -> Any:
        await self._slow()
        return self._may_lose(await self._client.delete(resource, *arguments, **options))

    def _may_refuse(self, resource: Resource) -> None:
        if self._is_due("conflict", self._faults.conflicts):
            raise conflict(resource, "object", "the object has been modified; please apply your changes again")
        if self._is_due("failure", self._faults.failures):
            raise StatusError(
                {"kind": "Status", "status": "Failure", "reason": "InternalError", "code": 500, "message": "injected"}
            )

    def _may_lose(self, answer: Any) -> Any:
        if self._is_due("lost answer", self._faults.lost_answers):
            raise ConnectionLost("the answer got lost")
        return answer
