"""The receiver of an audit webhook: what kube-apiserver's --audit-webhook-config-file sends its events to.

Source: apiserver plugin/pkg/audit/webhook/webhook.go; an EventList in a POST, several times where that fails.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from lastcall.trace.auditing.lines import AuditInput
from lastcall.trace.exporting.addresses import Listen
from lastcall.world.aiohttp_inside.runner import serving

MOST_CONNECTIONS = 100
MOST_BODY_BYTES = 64 << 20
"""kube-apiserver sends up to 400 events at once, and of each at most 10 MB where it truncates them."""


@asynccontextmanager
async def receiving(listen: Listen, into: AuditInput) -> AsyncIterator[Listen]:
    """Take events at `listen` until the block ends; gives the address with the real port. Raises OSError."""

    async def take(request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.Response(status=405, text="lastcall trace --audit-webhook takes audit events: POST\n")
        if not into.take(await request.read()):
            return web.Response(status=400, text="this is not an EventList of audit.k8s.io/v1\n")
        return web.Response(text="")

    application = web.Application(client_max_size=MOST_BODY_BYTES)
    application.router.add_route("*", "/{path:.*}", take)
    async with serving(application, listen.host, listen.port, most=MOST_CONNECTIONS) as port:
        yield Listen(listen.host, port)
