"""An application that is served, with a bound on its connections."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from lastcall.world.aiohttp_inside.bounded import BoundedServer


class BoundedRunner(web.AppRunner):
    """`web.AppRunner` with a `BoundedServer`."""

    def __init__(self, application: web.Application, *, most: int, **options: Any) -> None:
        super().__init__(application, access_log=None, **options)
        self._most = most

    async def _make_server(self) -> BoundedServer:
        made = await super()._make_server()
        return BoundedServer(
            made.request_handler, request_factory=made.request_factory, most=self._most, **made._kwargs
        )


@asynccontextmanager
async def serving(
    application: web.Application, host: str, port: int, *, most: int, shutdown_seconds: float = 1.0
) -> AsyncIterator[int]:
    """Serve an application until the block ends, and give its port; port 0 lets the kernel choose. Raises OSError."""
    runner = BoundedRunner(application, most=most, handle_signals=False, shutdown_timeout=shutdown_seconds)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
