"""The horizontal-pod-autoscaler controller starts, and is imported, with the first HorizontalPodAutoscaler."""

import asyncio
from typing import TYPE_CHECKING

from lastcall.kube.api.resources import HORIZONTALPODAUTOSCALERS
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.informers import Fetch, Informers
from lastcall.kube.controllers.podautoscaler.names import COMPONENT
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.features.gates import FeatureGates


class FirstAutoscaler:
    """`gates` and `fetch`: those of the controller."""

    def __init__(
        self,
        world: World,
        client: Client,
        informers: Informers,
        recorder: Recorder,
        gates: "FeatureGates",
        fetch: Fetch | None = None,
    ) -> None:
        self._world, self._client, self._informers, self._recorder = world, client, informers, recorder
        self._gates, self._fetch = gates, fetch
        self._needed = asyncio.Event()
        informers.get(HORIZONTALPODAUTOSCALERS).add_handler(lambda autoscaler: self._needed.set())

    async def run(self) -> None:
        """Work until cancelled."""
        await self._needed.wait()
        # late: most clusters have none
        from lastcall.kube.controllers.podautoscaler.controller import PodAutoscalerController

        controller = PodAutoscalerController(
            self._world, self._client, self._informers, self._recorder, self._gates, self._fetch
        )
        await crash_guard.keep_running(COMPONENT, controller.run, self._world.clock)
