"""How a container is stopped: its signal, the grace, SIGKILL.

Source: containerd internal/cri/server/container_stop.go:stopContainer.
"""

import signal

from lastcall.kube.cri.api import ContainerState, RuntimeServiceError
from lastcall.kube.cri.sandbox.objects import Container
from lastcall.kube.cri.sandbox.shim import messages
from lastcall.kube.cri.sandbox.shim_client import ShimClient
from lastcall.world.clock import Clock, wait_for_event


class Stopping:
    """Signals go through the shim; that a container has ended is known from the shim's events (`picture.py`)."""

    def __init__(self, shim: ShimClient, clock: Clock) -> None:
        self._shim, self._clock = shim, clock

    async def stop(self, container: Container, timeout: int) -> None:
        """Send the stop signal (once per life), wait `timeout` seconds, then SIGKILL; wait until it has ended.

        Raises RuntimeServiceError if the shim is lost meanwhile.
        """
        if container.state != ContainerState.CONTAINER_RUNNING:
            return
        if timeout <= 0:
            await self.kill(container, "StopContainer")
            return
        if not container.stop_signal_sent:
            container.stop_signal_sent = True
            await self._shim.call(messages.Signal(id=container.id, signal=container.stop_signal, why="StopContainer"))
        if not await wait_for_event(self._clock, container.ended, timeout):
            await self.kill(container, "grace over")
        _demand_known(container)

    async def kill(self, container: Container, why: str) -> None:
        """Send SIGKILL, and wait until the kernel has ended the whole container. First wait for a start under way."""
        if container.start_requested:
            await container.settled.wait()
        if container.state == ContainerState.CONTAINER_RUNNING:
            await self._shim.call(messages.Signal(id=container.id, signal=int(signal.SIGKILL), why=why))
            await container.ended.wait()
        _demand_known(container)


def _demand_known(container: Container) -> None:
    """Raises RuntimeServiceError when the shim was lost meanwhile."""
    if container.state == ContainerState.CONTAINER_UNKNOWN:
        raise RuntimeServiceError("the connection to the shim is gone")
