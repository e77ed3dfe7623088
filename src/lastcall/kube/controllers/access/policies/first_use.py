"""The validatingadmissionpolicy-status controller starts, and is imported, with the first ValidatingAdmissionPolicy."""

import asyncio

from lastcall.kube.api.resources import VALIDATINGADMISSIONPOLICIES
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.informers import Informers
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.world import World

NAME = "validatingadmissionpolicy-status-controller"


class FirstPolicy:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world, self._client, self._informers = world, client, informers
        self._needed = asyncio.Event()
        informers.get(VALIDATINGADMISSIONPOLICIES).add_handler(lambda policy: self._needed.set())

    async def run(self) -> None:
        """Work until cancelled."""
        await self._needed.wait()
        # late: the first policy needs CEL and the kinds' schemas
        from lastcall.kube.controllers.access.policies.controller import PolicyStatusController

        controller = PolicyStatusController(self._world, self._client, self._informers)
        await crash_guard.keep_running(NAME, controller.run, self._world.clock)
