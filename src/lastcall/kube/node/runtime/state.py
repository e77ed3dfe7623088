"""Whether the container runtime has a network for Pods (runtime.go:runtimeState, kubelet.go:updateRuntimeUp)."""

import logging

from lastcall.kube.cri.api import USER_NAMESPACES, RuntimeService, RuntimeServiceError
from lastcall.world.world import World

UPDATE_SECONDS = 5.0

log = logging.getLogger(__name__)


class RuntimeState:
    """`network_error` is why Pods get no network, "" when they do; asked for every `UPDATE_SECONDS`."""

    def __init__(self, world: World, runtime: RuntimeService) -> None:
        self._world = world
        self._runtime = runtime
        self.network_error = ""
        self.no_user_namespaces = ""
        """Why Pods can have none of their own."""

    async def run(self) -> None:
        """Update the state until cancelled."""
        while True:
            await self._world.clock.sleep(UPDATE_SECONDS)
            await self.update()

    async def update(self) -> None:
        """Ask the runtime. What it does not answer changes nothing: the PLEG says so already."""
        try:
            status = await self._runtime.status()
        except RuntimeServiceError as error:
            log.debug("the container runtime does not tell its status: %s", error)
            return
        condition = status.find("NetworkReady")
        self.network_error = ""
        if condition is not None and not condition.status:
            why = f"NetworkReady=false reason:{condition.reason} message:{condition.message}"
            self.network_error = f"container runtime network not ready: {why}"
        users = status.find(USER_NAMESPACES)
        self.no_user_namespaces = "" if users is None or users.status else users.message
