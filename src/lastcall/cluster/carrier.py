"""The node's part of published ports: connections that front accepted on the host are carried on into the cluster."""

import asyncio
import socket

from lastcall.cluster.splice import reset, splice
from lastcall.world.tasks import Tasks

DIAL_SECONDS = 10.0
"""A target that does not answer is given up after this."""


class Carrier:
    """Dials in the node's network namespace, where the service proxy decides what a Service's address means."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def take(self, accepted: socket.socket, address: str, port: int) -> None:
        """Own `accepted` from now on: it is joined to a connection to the target, or reset."""
        self._tasks.spawn(self._carry(accepted, address, port), name="published connection")

    async def _carry(self, accepted: socket.socket, address: str, port: int) -> None:
        target = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            accepted.setblocking(False)
            target.setblocking(False)
            async with asyncio.timeout(DIAL_SECONDS):
                await asyncio.get_running_loop().sock_connect(target, (address, port))
        except (OSError, TimeoutError):
            target.close()
            reset(accepted)
            return
        await splice(accepted, target)
