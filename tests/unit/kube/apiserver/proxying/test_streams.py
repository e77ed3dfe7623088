"""Bodies of proxied requests pass as they come; nobody waits for the end, and nothing is collected."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from api_server import RunningServer, running_server
from kubelet_server import serving
from proxied_target import serve

from lastcall.kube.api.resources import NODES, PODS, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.apiserver.auth.tls import client_context, server_context
from lastcall.kube.apiserver.proxying import upstream
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletClient
from lastcall.kube.node.server import KubeletServer
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ADDRESS = "10.1.2.3"
PATH = "/api/v1/namespaces/default/pods/p/proxy"


@asynccontextmanager
async def proxied(serve: Serve, ssl=None) -> AsyncIterator[tuple[RunningServer, aiohttp.ClientSession, str]]:
    """An API server with the Pod `p`, which `serve` answers for, and the URL of its proxy."""
    target = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=ssl)
    port = target.sockets[0].getsockname()[1]

    async def dial(host: str, asked: int):
        assert (host, asked) == (ADDRESS, 8080)
        return await upstream.dial("127.0.0.1", port)

    async with running_server(dial=dial) as server:
        await server.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        spec = {"containers": [{"name": "c", "image": "x", "ports": [{"name": "web", "containerPort": 8080}]}]}
        await server.admin.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, "default")
        status = {"podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}]}
        await server.admin.patch(PODS, "p", {"status": status}, "default", subresource="status")
        headers = {"Authorization": f"Bearer {server.token}"}
        connector = aiohttp.TCPConnector(ssl=server.trust)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            yield server, session, f"{server.url}{PATH}"
    target.close()


async def test_an_answer_that_never_ends_waits_for_its_reader_and_ends_with_it() -> None:
    written, ended = 0, asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n")
        try:
            while True:
                writer.write(bytes(65536))
                await writer.drain()
                written += 65536
        except ConnectionError:
            ended.set()
        finally:
            writer.close()

    async with proxied(endless) as (_, session, url), asyncio.timeout(120):
        async with session.get(f"{url}/") as answer:
            await answer.content.readexactly(1 << 20)
            before = -1
            while before != written:  # until nothing moves any more
                before = written
                await asyncio.sleep(0.5)  # pause of a poll: nothing moved meanwhile
            assert written < 64 << 20
            answer.close()
        await ended.wait()


async def test_what_a_target_says_comes_at_once_and_so_does_what_a_client_says() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n")
        while (size := int(await reader.readline(), 16)) > 0:
            writer.write((await reader.readexactly(size + 2))[:-2])
            await writer.drain()
        writer.close()

    said: asyncio.Queue[bytes] = asyncio.Queue()

    async def body() -> AsyncIterator[bytes]:
        while each := await said.get():
            yield each

    async with proxied(echo) as (_, session, url), asyncio.timeout(120):
        said.put_nowait(b"first")
        async with session.post(f"{url}/", data=body()) as answer:
            for each in (b"first", b"second", b"third"):
                if each != b"first":
                    said.put_nowait(each)
                assert await answer.content.readexactly(len(each)) == each
            said.put_nowait(b"")
            assert await answer.content.read() == b""


async def test_a_large_request_reaches_the_target_whole_and_is_not_held_to_the_api_s_own_limit() -> None:
    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        assert len(await reader.readexactly(size)) == size
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nContent-Length: 8\r\n\r\n%8d" % size)
        writer.close()

    async with proxied(count) as (_, session, url), asyncio.timeout(120):
        async with session.put(f"{url}/", data=bytes(9_000_000)) as answer:
            assert (answer.status, await answer.text()) == (201, " 9000000")


async def test_a_target_that_breaks_off_is_seen_to_break_off() -> None:
    async with proxied(serve) as (_, session, url), asyncio.timeout(120):
        try:
            async with session.get(f"{url}/short") as answer:
                body = await answer.read()
        except aiohttp.ClientError:
            body = b""
        assert body != b"abc" or answer.headers["Content-Length"] != "3"
        async with session.get(f"{url}/close") as answer:
            assert answer.status == 503
            assert json.loads(await answer.text())["message"] == "error trying to reach service: EOF"


async def test_a_target_says_nothing_beyond_its_answer_and_no_header_of_its_making_is_two() -> None:
    async with proxied(serve) as (_, session, url), asyncio.timeout(120):
        for _ in range(3):
            async with session.get(f"{url}/second") as answer:
                assert await answer.text() == "one"
        async with session.get(f"{url}/injected") as answer:
            assert "X-Evil" not in answer.headers
            assert "X-A" not in answer.headers
        async with session.get(f"{url}/garbage") as answer:
            assert answer.status == 503
        async with session.get(f"{url}/headers") as answer:
            assert "Set-Cookie" in answer.headers
        session.cookie_jar.clear()
        async with session.get(f"{url}/echo") as answer:  # cookies are the client's, not the API server's
            assert not [each for each in (await answer.json())["headers"] if each.lower().startswith("cookie")]


async def test_a_websocket_passes_both_ways() -> None:
    async with proxied(serve) as (_, session, url), asyncio.timeout(120):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", int(url.split(":")[2].split("/")[0]), ssl=session.connector._ssl
        )
        head = f"GET {PATH}/ws HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
        writer.write(f"{head}Authorization: {session.headers['Authorization']}\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        assert await reader.readexactly(5) == b"early"
        writer.write(b"hello")
        assert await reader.readexactly(7) == b"<hello>"
        writer.write(b"bye")
        assert await reader.read() == b"<bye>"
        writer.close()


async def test_an_https_target_needs_no_certificate_that_could_be_trusted() -> None:
    tls = server_context(*ClusterCA.create().issue_server(["elsewhere.example"]))
    async with proxied(serve, tls) as (_, session, url), asyncio.timeout(120):
        secure = url.replace("/pods/p/", "/pods/https:p:8080/")
        async with session.get(f"{secure}/x") as answer:
            assert (await answer.json())["request"] == "GET /x"
        async with session.get(f"{url}/x") as answer:  # plain HTTP to a TLS port
            assert answer.status == 503


async def test_a_kubelet_is_asked_with_the_api_server_s_certificate_and_shows_its_own() -> None:
    class Pods:
        def get_pods(self) -> list[object]:
            return []

        def get_pod_by_name(self, namespace: str, name: str) -> None:
            return None

    ca, other = ClusterCA.create(), ClusterCA.create()
    tls = client_context(ca.certificate_pem, *ca.issue_client("kube-apiserver-kubelet-client", ["system:masters"]))
    kubelets = KubeletClient(tls)
    kubelet = KubeletServer(world=World(), runtime=None, pods=Pods(), names=(ADDRESS,))
    contexts = [server_context(*each.issue_server([ADDRESS]), client_ca=ca.certificate_pem) for each in (ca, other)]
    ports: list[int] = []

    async def dial(host: str, port: int):
        return await upstream.dial("127.0.0.1", ports[port - 10250])

    try:
        async with (
            serving(kubelet, contexts[0]) as port,
            serving(kubelet, contexts[1]) as other_port,
            running_server(dial=dial, kubelet_streams=kubelets, ca=ca) as server,
            asyncio.timeout(120),
        ):
            ports += port, other_port
            for number in range(2):
                await server.admin.create(NODES, {"metadata": {"name": f"n{number}"}})
                status = {
                    "addresses": [{"type": "InternalIP", "address": ADDRESS}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250 + number}},
                }
                await server.admin.patch(NODES, f"n{number}", {"status": status}, subresource="status")
            headers = {"Authorization": f"Bearer {server.token}", "Host": "kubernetes.default.svc"}
            connector = aiohttp.TCPConnector(ssl=server.trust)
            async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
                nodes = f"{server.url}/api/v1/nodes"
                async with session.get(f"{nodes}/n0/proxy/healthz") as answer:
                    assert (answer.status, await answer.text()) == (200, "ok")
                async with session.get(f"{nodes}/n0:10250/proxy/pods") as answer:
                    assert (await answer.json())["kind"] == "PodList"
                async with session.get(f"{nodes}/n1/proxy/healthz") as answer:
                    assert answer.status == 503
    finally:
        await kubelets.close()
