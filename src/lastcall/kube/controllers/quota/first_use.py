"""The resourcequota controller starts, and is imported, with the first ResourceQuota: before, it costs nothing."""

import asyncio

from lastcall.kube.api.resources import RESOURCEQUOTAS
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.informers import Informers
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.world import World


class FirstQuota:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world, self._client, self._informers = world, client, informers
        self._needed = asyncio.Event()
        informers.get(RESOURCEQUOTAS).add_handler(lambda quota: self._needed.set())

    async def run(self) -> None:
        """Work until cancelled."""
        await self._needed.wait()
        # late: 1.6 ms of the start of `up`
        from lastcall.kube.controllers.quota.controller import COMPONENT, ResourceQuotaController

        controller = ResourceQuotaController(self._world, self._client, self._informers)
        await crash_guard.keep_running(COMPONENT, controller.run, self._world.clock)
