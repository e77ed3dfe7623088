"""The part of the API server that has to do with other servers: nothing of it is imported before there is one."""

import asyncio
from typing import TYPE_CHECKING

from lastcall.kube.api.apiservices.routes import Routes
from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.proxying.aggregation.front_proxy import FrontProxy
from lastcall.kube.client.api import Client
from lastcall.world.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from lastcall.kube.apiserver.proxying.aggregation.backends import All, Backends, Find
    from lastcall.kube.apiserver.proxying.aggregation.controller import AvailabilityController
    from lastcall.kube.streaming.dialing import Dial


class Aggregation:
    """`client` acts as the API server; `find` and `list_` read what is stored; `dial` None: by this process's routes.

    `changed` is called when something else is served than before.
    """

    def __init__(
        self,
        world: World,
        routes: Routes,
        client: Client,
        find: "Find",
        list_: "All",
        dial: "Dial | None",
        front_proxy: FrontProxy,
        changed: "Callable[[], None]",
    ) -> None:
        self._world, self._routes, self._client = world, routes, client
        self._find, self._list, self._dial, self._front_proxy = find, list_, dial, front_proxy
        self._catalog_changed = changed
        self._made: Backends | None = None
        self._controller: AvailabilityController | None = None
        self._wanted = asyncio.Event()
        routes.changed = self._changed

    def _changed(self) -> None:
        self._catalog_changed()
        if self._routes.remote:
            self._wanted.set()
        if self._controller is not None:
            self._controller.wake()

    def backends(self) -> "Backends":
        """Return the servers."""
        if self._made is None:
            # late: most clusters have none
            from lastcall.kube.apiserver.proxying.aggregation.backends import Backends
            from lastcall.kube.apiserver.proxying.upstream import dial

            self._made = Backends(self._world, self._find, self._list, self._dial or dial, self._front_proxy)
        return self._made

    async def run(self) -> None:
        """Keep the conditions of their APIServices, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if not self._routes.remote:
                continue
            # late: most clusters have none
            from lastcall.kube.apiserver.proxying.aggregation.controller import AvailabilityController

            self._controller = AvailabilityController(self._world, self._client, self._routes, self.backends())
            try:
                await self._controller.run()
            finally:
                self._controller = None

    async def ask(self, path: str) -> Object | None:
        """Return what another server answers to a GET; None where it is this one's own. Raises StatusError."""
        remote = self._routes.of_path(path.partition("?")[0]) if self._routes.remote else None
        if remote is None:
            return None
        # late: most clusters have none
        from lastcall.kube.apiserver.proxying.aggregation.controller import ask

        return await ask(self.backends(), remote, path)

    async def close(self) -> None:
        """Close the connections, after requests have ended."""
        if self._made is not None:
            await self._made.close()
