"""The HTTP server: /metrics, /readyz and /healthz, to read only."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from lastcall.trace.exporting.addresses import Listen
from lastcall.trace.exporting.health import Health
from lastcall.trace.exporting.metrics import Metrics
from lastcall.world.aiohttp_inside.runner import serving

MOST_CONNECTIONS = 100
"""Above that a new one takes the place of a silent or an idle one."""
_INDEX = "lastcall trace --serve: /metrics for Prometheus, /readyz and /healthz for probes\n"


class Server:
    """`ending` is set when the process is asked to end: from then on it is not ready, and still answers."""

    def __init__(self, metrics: Metrics, health: Callable[[], Health]) -> None:
        self._metrics, self._health = metrics, health
        self.ending = False

    @asynccontextmanager
    async def listening(self, listen: Listen) -> AsyncIterator[Listen]:
        """Serve at `listen` until the block ends; gives the address with the real port. Raises OSError."""
        application = web.Application()
        for path, handler in (
            ("/", self._index),
            ("/metrics", self._page),
            ("/readyz", self._readyz),
            ("/healthz", self._healthz),
        ):
            application.router.add_get(path, handler)
        async with serving(application, listen.host, listen.port, most=MOST_CONNECTIONS) as port:
            yield Listen(listen.host, port)

    async def _index(self, request: web.Request) -> web.Response:
        return web.Response(text=_INDEX)

    async def _page(self, request: web.Request) -> web.Response:
        body, content_type = self._metrics.page(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        health = self._health()
        if self.ending:
            return web.Response(status=503, text="it ends\n")
        if not health.ready:
            down = sorted(name for name, up in health.watches.items() if not up and name not in health.forbidden)
            return web.Response(status=503, text=f"not watched yet: {', '.join(down) or 'everything'}\n")
        return web.Response(text="ok\n" if health.leading else "ok: waiting for the lease\n")
