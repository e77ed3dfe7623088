"""Requests that another server answers, over real TLS on loopback."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web
from api_server import RunningServer, running_server
from waiting import until

from lastcall.kube.api.resources import APISERVICES, CUSTOMRESOURCEDEFINITIONS, ENDPOINTSLICES, NAMESPACES, SERVICES
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.apiserver.auth.tls import server_context
from lastcall.kube.apiserver.proxying import upstream
from lastcall.kube.apiserver.proxying.aggregation.front_proxy import FrontProxy

pytestmark = pytest.mark.loopback

ADDRESS = "10.1.2.3"
NAME = "v1.a.example.com"
FOOS = {"name": "foos", "singularName": "foo", "namespaced": True, "kind": "Foo", "verbs": ["get", "list"]}


@dataclass
class Target:
    """A server of one group version, and what it was asked."""

    asked: list[tuple[str, dict[str, list[str]], str]] = field(default_factory=list)
    status: int = 200

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        certificate = transport.get_extra_info("peercert") or {}
        subject = dict(pair for group in certificate.get("subject", ()) for pair in group)
        seen: dict[str, list[str]] = {}
        for key, value in request.headers.items():
            seen.setdefault(key.lower(), []).append(value)
        self.asked.append((request.raw_path, seen, subject.get("commonName", "")))
        if "foos" not in request.path:
            self.asked.pop()  # the controller's
        if request.headers.get("Upgrade"):
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            await socket.send_str((await socket.receive_str()).upper())
            await socket.close()
            return socket
        if request.path == "/apis/a.example.com/v1":
            resources = {"kind": "APIResourceList", "groupVersion": "a.example.com/v1", "resources": [FOOS]}
            return web.json_response(resources, status=self.status)
        if request.path.endswith("/foos"):
            return web.json_response({"body": (await request.read()).decode()}, status=207)
        return web.Response(status=404)


@asynccontextmanager
async def aggregated(target: Target, **spec: object) -> AsyncIterator[tuple[RunningServer, aiohttp.ClientSession]]:
    authority, front_proxy_ca = ClusterCA.create(), ClusterCA.create()
    context = server_context(*authority.issue_server(["api.ns.svc"]), client_ca=front_proxy_ca.certificate_pem)
    context.verify_mode = ssl.CERT_REQUIRED
    listening = await asyncio.get_running_loop().create_server(web.Server(target.handle), "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]

    async def dial(host: str, asked: int):
        assert (host, asked) == (ADDRESS, 6443)
        return await upstream.dial("127.0.0.1", port)

    front_proxy = FrontProxy(front_proxy_ca.certificate_pem, *front_proxy_ca.issue_client("front-proxy-client"))
    async with running_server(dial=dial, front_proxy=front_proxy) as server:
        await server.admin.create(NAMESPACES, {"metadata": {"name": "ns"}})
        whole = {
            "group": "a.example.com",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "service": {"namespace": "ns", "name": "api"},
            "caBundle": base64.b64encode(authority.certificate_pem).decode(),
            **spec,
        }
        await server.admin.create(APISERVICES, {"metadata": {"name": NAME}, "spec": whole})
        headers = {"Authorization": f"Bearer {server.token}"}
        connector = aiohttp.TCPConnector(ssl=server.trust)
        async with aiohttp.ClientSession(server.url, connector=connector, headers=headers) as session:
            yield server, session
    listening.close()


async def reason(server: RunningServer) -> str:
    conditions = (await server.admin.get(APISERVICES, NAME))["status"].get("conditions") or [{"reason": ""}]
    return str(conditions[0]["reason"])


async def make_service(server: RunningServer) -> None:
    ports = [{"port": 443, "targetPort": 6443}]
    await server.admin.create(SERVICES, {"metadata": {"name": "api"}, "spec": {"ports": ports}}, "ns")
    labels = {"kubernetes.io/service-name": "api"}
    endpoints = {
        "metadata": {"name": "api-1", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
        "ports": [{"name": "", "port": 6443, "protocol": "TCP"}],
    }
    await server.admin.create(ENDPOINTSLICES, endpoints, "ns")


async def test_a_group_of_another_server_is_unavailable_then_served_then_gone() -> None:
    target = Target()
    async with aggregated(target) as (server, session), asyncio.timeout(120):

        async def is_(wanted: str) -> bool:
            return await reason(server) == wanted

        await until(lambda: is_("ServiceNotFound"))
        async with session.get("/apis/a.example.com/v1") as answer:
            assert (answer.status, await answer.text()) == (503, "service unavailable\n")
        async with session.get("/apis/a.example.com") as answer:
            assert (await answer.json())["preferredVersion"]["version"] == "v1"

        await make_service(server)
        await until(lambda: is_("Passed"))
        headers = {"X-Remote-User": "root", "Impersonate-User": "jane", "Impersonate-Group": "system:masters"}
        async with session.post("/apis/a.example.com/v1/foos?a=b%26c", data=b"hello", headers=headers) as answer:
            assert (answer.status, await answer.json()) == (207, {"body": "hello"})
        path, seen, proven = target.asked[-1]
        assert (path, proven) == ("/apis/a.example.com/v1/foos?a=b%26c", "front-proxy-client")
        assert seen["x-remote-user"] == ["jane"]
        assert seen["x-remote-group"] == ["system:masters", "system:authenticated"]
        assert not {"authorization", "impersonate-user"} & set(seen)

        async with session.ws_connect("/apis/a.example.com/v1/foos/x/exec?c=d") as socket:
            await socket.send_str("hello")
            assert await socket.receive_str() == "HELLO"
        assert target.asked[-1][0] == "/apis/a.example.com/v1/foos/x/exec?c=d"

        async def entries() -> list:
            accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            async with session.get("/apis", headers={"Accept": accept}) as answer:
                groups = {each["metadata"]["name"]: each for each in json.loads(await answer.text())["items"]}
            return [(each["freshness"], each.get("resources")) for each in groups["a.example.com"]["versions"]]

        async def current() -> bool:
            return [(fresh, found and found[0]["resource"]) for fresh, found in await entries()] == [
                ("Current", "foos")
            ]

        await until(current)
        await server.admin.delete(APISERVICES, NAME)
        async with session.get("/apis/a.example.com/v1") as answer:
            assert answer.status == 404


async def test_a_server_that_answers_an_error_or_has_another_certificate_is_not_available() -> None:
    target = Target(status=500)
    async with aggregated(target) as (server, _), asyncio.timeout(120):
        await make_service(server)

        async def failed() -> bool:
            return await reason(server) == "FailedDiscoveryCheck"

        await until(failed)
        message = (await server.admin.get(APISERVICES, NAME))["status"]["conditions"][0]["message"]
        assert "bad status from https://api.ns.svc:443/apis/a.example.com/v1: 500" in message
        target.status = 200
        other = base64.b64encode(ClusterCA.create().certificate_pem).decode()
        await server.admin.patch(APISERVICES, NAME, {"spec": {"caBundle": other}})

        async def unknown_authority() -> bool:
            status = (await server.admin.get(APISERVICES, NAME))["status"]
            return "certificate signed by unknown authority" in status["conditions"][0]["message"]

        await until(unknown_authority)
        await server.admin.patch(APISERVICES, NAME, {"spec": {"caBundle": None, "insecureSkipTLSVerify": True}})

        async def passed() -> bool:
            return await reason(server) == "Passed"

        await until(passed)


async def test_the_group_of_a_declared_kind_has_its_own_as_long_as_it_is_declared() -> None:
    names = {"plural": "foos", "singular": "foo", "kind": "Foo"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "b.example.com", "scope": "Cluster", "names": names, "versions": [version]}
    async with running_server() as server:
        created = {"metadata": {"name": "foos.b.example.com"}, "spec": spec}
        await server.admin.create(CUSTOMRESOURCEDEFINITIONS, created)
        made = await server.admin.get(APISERVICES, "v1.b.example.com")
        assert made["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
        assert made["status"]["conditions"][0]["reason"] == "Local"
        await server.admin.delete(CUSTOMRESOURCEDEFINITIONS, "foos.b.example.com")
        listed = (await server.admin.list(APISERVICES)).items
        assert "v1.b.example.com" not in [each["metadata"]["name"] for each in listed]
        assert "v1.apps" in [each["metadata"]["name"] for each in listed]
