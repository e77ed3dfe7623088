"""A kubelet's HTTPS endpoint on the loopback."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lastcall.kube.node.server import KubeletServer, listen
from lastcall.world.tasks import Tasks


@asynccontextmanager
async def serving(kubelet: KubeletServer, tls: ssl.SSLContext) -> AsyncIterator[int]:
    """The port on which `kubelet` answers while the block runs."""
    listening = listen("127.0.0.1", 0)
    async with Tasks() as tasks:
        tasks.spawn(kubelet.serve_when_asked(listening, tls), name="kubelet server")
        try:
            yield listening.getsockname()[1]
        finally:
            tasks.cancel()
