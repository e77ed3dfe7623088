"""Whether the container runtime answers, and has a network for Pods (runtime.go:runtimeState)."""

import logging

from lastcall.kube.cri.api import USER_NAMESPACES, RuntimeService, RuntimeServiceError
from lastcall.world.clock import monotonic
from lastcall.world.world import World

UPDATE_SECONDS = 5.0
DOWN_AFTER_SECONDS = 30.0
"""After its last answer (kubelet.go:maxWaitForContainerRuntime)."""

log = logging.getLogger(__name__)


class RuntimeState:
    """`network_error` is why Pods get no network, "" when they do; asked for every `UPDATE_SECONDS`."""

    def __init__(self, world: World, runtime: RuntimeService) -> None:
        self._world = world
        self._runtime = runtime
        self._answered = monotonic(world.clock)
        self.network_error = ""
        self.no_user_namespaces = ""
        """Why Pods can have none of their own."""

    @property
    def error(self) -> str:
        """Return why the node is not Ready, "" if it is (nodestatus/setters.go:ReadyCondition)."""
        down = monotonic(self._world.clock) - self._answered >= DOWN_AFTER_SECONDS
        errors = [each for each in ("container runtime is down" if down else "", self.network_error) if each]
        return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""

    async def run(self) -> None:
        """Update the state until cancelled."""
        while True:
            await self._world.clock.sleep(UPDATE_SECONDS)
            await self.update()

    async def update(self) -> None:
        """Ask the runtime (kubelet.go:updateRuntimeUp). One that does not answer is taken for down after a while."""
        try:
            status = await self._runtime.status()
        except RuntimeServiceError as error:
            log.debug("the container runtime does not tell its status: %s", error)
            return
        self._answered = monotonic(self._world.clock)
        condition = status.find("NetworkReady")
        self.network_error = ""
        if condition is not None and not condition.status:
            why = f"NetworkReady=false reason:{condition.reason} message:{condition.message}"
            self.network_error = f"container runtime network not ready: {why}"
        users = status.find(USER_NAMESPACES)
        self.no_user_namespaces = "" if users is None or users.status else users.message
