"""The horizontal-pod-autoscaler controller starts, and is imported, with the first HorizontalPodAutoscaler."""

import asyncio

from lastcall.kube.api.resources import HORIZONTALPODAUTOSCALERS
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.podautoscaler.names import COMPONENT
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.world import World


class FirstAutoscaler:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world, self._client, self._informers, self._recorder = world, client, informers, recorder
        self._needed = asyncio.Event()
        informers.get(HORIZONTALPODAUTOSCALERS).add_handler(lambda autoscaler: self._needed.set())

    async def run(self) -> None:
        """Work until cancelled."""
        await self._needed.wait()
        # late: most clusters have none
        from lastcall.kube.controllers.podautoscaler.controller import PodAutoscalerController

        controller = PodAutoscalerController(self._world, self._client, self._informers, self._recorder)
        await crash_guard.keep_running(COMPONENT, controller.run, self._world.clock)
