"""The load generator as a process of a cluster (`ClusterOptions.load`), without what it imports."""

import gc
from asyncio import AbstractEventLoop
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lastcall.traffic.process import LoadClient


class LoadGenerator:
    """What a cluster needs of a load generator (`kube/cluster/options.py:LoadRole`)."""

    def serve(self, sock: socket, runs: Callable[[AbstractEventLoop], None]) -> None:
        """Send what is asked for over `sock` until killed. `runs` gets the loop once it turns."""
        # late: 30 ms of the start of `rollout`
        from lastcall.traffic.process import main

        gc.freeze()
        main(sock, runs)

    async def client(self, sock: socket) -> "LoadClient":
        """Return what talks to `serve` over the other end."""
        # late: 30 ms of the start of `rollout`
        from lastcall.traffic.process import LoadClient

        return await LoadClient.over(sock)
