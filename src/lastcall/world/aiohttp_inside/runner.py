"""The runner of an application whose server bounds its connections."""

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
