"""A webhook over real TLS on loopback, and an API server that can call it."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from socket import socket
from typing import Any

from aiohttp import web
from api_server import RunningServer, running_server

from lastcall.kube.api.resources import NAMESPACES
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.apiserver.auth.tls import server_context
from lastcall.kube.apiserver.proxying import upstream

ADDRESS = "10.1.2.3"
"""The API server reaches the webhook at this address, too."""
RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
Object = dict[str, Any]


@dataclass
class Target:
    """A webhook: `answer` gives (status, body) for a request; `asked` keeps them."""

    answer: Callable[[Object], tuple[int, str]]
    asked: list[Object] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    port: int = 0
    bundle: str = ""
    spoiled: bool = False
    """Whether it answers wrongly, for those who have wrong answers."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        review = await request.json()
        self.asked.append(review["request"])
        self.paths.append(request.path)
        status, body = self.answer(review["request"])
        return web.Response(status=status, body=body.encode(), headers={"Content-Type": "application/json"})

    def hook(self, name: str = "h.example.com", path: str = "/", **more: Any) -> Object:
        client = {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.bundle}
        return {
            "name": name,
            "clientConfig": client,
            "rules": [RULE],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": {"hooked": "yes"}},
            **more,
        }


@asynccontextmanager
async def hooked(target: Target) -> AsyncIterator[RunningServer]:
    authority = ClusterCA.create()
    context = server_context(*authority.issue_server(["127.0.0.1", "hook.ns.svc"]))
    listening = await asyncio.get_running_loop().create_server(web.Server(target.handle), "127.0.0.1", 0, ssl=context)
    target.port = listening.sockets[0].getsockname()[1]
    target.bundle = base64.b64encode(authority.certificate_pem).decode()

    async def dial(host: str, port: int) -> socket:
        return await upstream.dial("127.0.0.1", target.port if host == ADDRESS else port)

    try:
        async with running_server(dial=dial) as server:
            await server.admin.create(NAMESPACES, {"metadata": {"name": "ns", "labels": {"hooked": "yes"}}})
            yield server
    finally:
        listening.close()
