"""The kinds that a server says it serves, asked again and again.

Source: pkg/controller/garbagecollector/garbagecollector.go (Sync, GetDeletableResources).
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import EVENTS, EVENTS_V1, Resource
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.client.discovery import Discover, Discovered
from lastcall.kube.client.informer import Informer

log = logging.getLogger(__name__)

SYNC_SECONDS = 30.0
"""Between two looks (the period of `GarbageCollector.Sync`)."""
FIRST_SECONDS = 60.0
DELETABLE = frozenset({"delete", "list", "watch"})
IGNORED = (EVENTS, EVENTS_V1)


def content_of(found: Discovered) -> list[Resource]:
    """Return one version of each kind whose objects a namespace has and that can be deleted."""
    needed = {"delete", "list"}
    return [
        each.resource for each in found.kinds if each.preferred and each.resource.namespaced and needed <= each.verbs
    ]


class DiscoveredKinds:
    """`served(resource)` for each version, which can own, when it comes; `unserved(resource)` when it goes.
    `added(resource)` for one version of each kind whose objects can be collected: its cache. Kinds of a group whose
    discovery fails stay."""

    def __init__(
        self,
        discover: Discover,
        served: Callable[[Resource], None],
        unserved: Callable[[Resource], None],
        added: Callable[[Resource], Informer],
    ) -> None:
        self._discover = discover
        self._on_served, self._on_unserved, self._added = served, unserved, added
        self._served: set[Resource] = set()
        self._followed: dict[Resource, Informer] = {}
        self._first = asyncio.Event()
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._look()
            self._wanted.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(SYNC_SECONDS):
                    await self._wanted.wait()

    def look_soon(self) -> None:
        """Ask the server soon, because the kinds may have changed."""
        self._wanted.set()

    async def synced(self) -> None:
        """Return once the caches of the kinds of the first look are filled, or after a while (InitialSyncTimeout):
        one kind that cannot be listed does not hold all others."""
        await self._first.wait()
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                for informer in list(self._followed.values()):
                    await informer.synced()
        except TimeoutError:
            log.warning("not every kind could be listed within %.0f s; goes on without them", FIRST_SECONDS)

    async def _look(self) -> None:
        try:
            found = await self._discover()
        except (StatusError, ConnectionLost) as error:
            log.warning("the kinds that the API server serves are not known: %s", error)
            return
        if not found.kinds:
            return
        if found.failed:
            log.warning("%s", found.error)
        now = {each.resource for each in found.kinds}
        now |= {each for each in self._served if each.api_version in found.failed}
        for resource in self._served - now:
            self._followed.pop(resource, None)
            self._on_unserved(resource)
        for each in found.kinds:
            if each.resource not in self._served:
                self._on_served(each.resource)
        self._served = now
        for each in found.kinds:
            if each.preferred and each.verbs >= DELETABLE and each.resource not in (*IGNORED, *self._followed):
                self._followed[each.resource] = self._added(each.resource)
        self._first.set()
