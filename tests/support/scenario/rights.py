"""A client that remembers which rights its user lacked."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import Resource
from lastcall.kube.client.access.rights import missing_right
from lastcall.kube.client.api import Client


class RightsNoted:
    """`missed` gets what was refused because a right is missing: `system:…:job-controller: patch cronjobs in …`."""

    def __init__(self, client: Client, missed: set[str]) -> None:
        self._client, self._missed = client, missed

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name not in ("get", "list", "create", "update", "patch", "delete"):
            return method

        async def asked(*arguments: Any, **options: Any) -> Any:
            return await self._noted(method(*arguments, **options))

        return asked

    @asynccontextmanager
    async def watch(self, resource: Resource, namespace: str = "", **options: Any) -> AsyncIterator[Any]:
        opening = self._client.watch(resource, namespace, **options)
        events = await self._noted(opening.__aenter__())
        try:
            yield events
        finally:
            await opening.__aexit__(None, None, None)

    async def _noted(self, asking: Awaitable[Any]) -> Any:
        try:
            return await asking
        except StatusError as error:
            if (right := missing_right(error.status)) is not None:
                self._missed.add(f"{right.user}: {right.words}")
            raise
