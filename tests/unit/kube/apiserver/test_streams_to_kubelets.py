"""pods/exec, attach and portforward: checks, and everything else passed on to a real kubelet endpoint over TLS."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import aiohttp
import pytest
from api_server import RunningServer, running_server
from kubelet_server import serving
from streaming_fakes import FakeRuntime, SpdyConnection, all_of

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import NODES, PODS
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.apiserver.auth.tls import client_context, server_context
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletClient
from lastcall.kube.node.server import KubeletServer
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
PODS_PATH = "/api/v1/namespaces/default/pods"


class Cluster:
    """An API server and the kubelet of `node1`, on a runtime of the test's."""

    def __init__(self, server: RunningServer, runtime: FakeRuntime, session: aiohttp.ClientSession) -> None:
        self.server, self.runtime, self.session = server, runtime, session

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.server.token}"}

    async def status(self, path: str, **headers: str) -> tuple[int, str]:
        """Code and text of what is answered to a POST that asks for an upgrade, or to a plain one."""
        async with self.session.post(f"{self.server.url}{path}", headers={**self.headers, **headers}) as answer:
            text = await answer.text()
            return answer.status, json.loads(text)["message"] if text.startswith("{") else text

    def websocket(self, path: str, *protocols: str):
        return self.session.ws_connect(f"{self.server.url}{path}", protocols=protocols, headers=self.headers)

    async def spdy(self, path: str, *protocols: str) -> SpdyConnection:
        parts = urlsplit(self.server.url)
        headers = [f"Authorization: Bearer {self.server.token}"]
        return await SpdyConnection.open(
            parts.hostname or "", parts.port or 0, path, protocols, headers=headers, ssl=self.server.trust
        )


class Pods:
    def __init__(self) -> None:
        self.known: dict[str, Object] = {}

    def get_pod_by_name(self, namespace: str, name: str) -> Object | None:
        return self.known.get(name)

    def get_pods(self) -> list[Object]:
        return list(self.known.values())

    def get_pod_status(self, uid: str) -> None:
        return None


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    ca = ClusterCA.create()
    runtime, pods = FakeRuntime(), Pods()
    kubelet = KubeletServer(world=World(), runtime=runtime, pods=pods)
    context = server_context(*ca.issue_server(["127.0.0.1"]), client_ca=ca.certificate_pem)
    client = KubeletClient(
        client_context(ca.certificate_pem, *ca.issue_client("kube-apiserver-kubelet-client", ["system:masters"]))
    )
    try:
        async with serving(kubelet, context) as port, running_server(kubelet_streams=client, ca=ca) as server:
            await prepare(server, port)
            pods.known["p"] = await server.admin.get(PODS, "p", "default")
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=server.trust)) as session:
                yield Cluster(server, runtime, session)
    finally:
        await client.close()


async def prepare(server: RunningServer, port: int) -> None:
    """Pods `p` and `lost` (on a node that cannot be reached), `two` (two containers), `pending`."""
    admin = server.admin
    for name, kubelet_port in (("node1", port), ("node2", 1)):
        await admin.create(NODES, {"metadata": {"name": name}})
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
        }
        await admin.patch(NODES, name, {"status": status}, subresource="status")
    from lastcall.kube.api.resources import SERVICEACCOUNTS

    await admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
    for name, node, containers in (
        ("p", "node1", ["c"]),
        ("lost", "node2", ["c"]),
        ("two", "node1", ["a", "b"]),
        ("pending", "", ["c"]),
    ):
        spec: Object = {"containers": [{"name": each, "image": "busybox"} for each in containers]}
        if node:
            spec["nodeName"] = node
        await admin.create(PODS, {"metadata": {"name": name}, "spec": spec}, "default")


async def test_refusals_come_in_kubernetes_s_order_and_words() -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": V4}
    async with cluster() as it:
        for path, headers, expected in (
            ("/nope/exec?command=x", upgrade, (404, 'pods "nope" not found')),
            ("/p/exec?container=zzz", {}, (400, "container zzz is not valid for pod p")),
            ("/two/exec?command=x", {}, (400, "a container name must be specified for pod two, choose one of: [a b]")),
            ("/pending/exec?command=x", {}, (400, "pod pending does not have a host assigned")),
            ("/pending/portforward", {}, (400, "pod pending does not have a host assigned")),
            ("/p/exec?command=x", {}, (400, "Upgrade request required")),
            ("/p/attach", {}, (400, "Upgrade request required")),
            ("/p/portforward", {}, (400, "Upgrade request required")),
            ("/p/exec?command=x", upgrade, (400, "you must specify at least 1 of stdin, stdout, stderr")),
            ("/two/exec?container=a&stdout=1", upgrade, (404, "pod does not exist")),
            (
                "/lost/exec?command=x&stdout=true",
                upgrade,
                (500, "error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused"),
            ),
        ):
            assert await it.status(f"{PODS_PATH}{path}", **headers) == expected, path
        async with it.session.put(f"{it.server.url}{PODS_PATH}/p/exec", headers=it.headers) as answer:
            assert answer.status == 405
        async with it.session.post(f"{it.server.url}{PODS_PATH}/p/exec?command=x") as answer:
            assert answer.status in (401, 403)


async def test_websocket_and_spdy_reach_the_container_and_every_byte_comes_back() -> None:
    async with cluster() as it:
        it.runtime.prepare = lambda streams: setattr(streams, "echo", True)
        long = "x" * 100_000
        path = f"{PODS_PATH}/p/exec?command=a+b&command=%2F%3F%26&command={long}&stdin=true&stdout=true&stderr=1"
        data = os.urandom(1 << 20)
        async with it.websocket(path, V5) as socket:
            assert socket.protocol == V5
            assert await socket.receive_bytes() == b"\1"
            got = b""

            async def send() -> None:
                for at in range(0, len(data), 30_000):
                    await socket.send_bytes(b"\0" + data[at : at + 30_000])
                await socket.send_bytes(b"\xff\0")

            sending = asyncio.create_task(send())
            async for message in socket:
                if message.data[0] == 3:
                    assert json.loads(message.data[1:])["status"] == "Success"
                else:
                    got += message.data[1:]
            await sending
            assert got == data
        assert it.runtime.calls == [("exec", "c-id", ("a b", "/?&", long), False, True)]
        async with await it.spdy(path, V4) as client:
            opened = await client.remote_command("stdin", "stdout", "stderr")
            sending = asyncio.create_task(opened["stdin"].write(data))
            received = b""
            while len(received) < len(data):
                received += await opened["stdout"].read()
            await sending
            assert received == data
            await opened["stdin"].close_write()
            assert json.loads(await all_of(opened["error"]))["status"] == "Success"


async def test_ports_are_forwarded_in_every_way_clients_ask_for_it() -> None:
    async with cluster() as it:
        async with it.websocket(f"{PODS_PATH}/p/portforward?ports=8080", V5, V4) as socket:
            assert socket.protocol == V4
            assert [await socket.receive_bytes() for _ in range(2)] == [b"\0\x90\x1f", b"\1\x90\x1f"]
            await socket.send_bytes(b"\0hello")
            assert await socket.receive_bytes() == b"\0HELLO"
        async with await it.spdy(f"{PODS_PATH}/p/portforward", "portforward.k8s.io") as client:
            headers = {"port": "8080", "requestid": "0"}
            await client.session.open({"streamtype": "error", **headers})
            data = await client.session.open({"streamtype": "data", **headers})
            await data.write(b"spdy")
            assert await data.read() == b"SPDY"


@pytest.mark.parametrize("way", ["websocket", "spdy"])
async def test_either_side_going_away_ends_the_other(way: str) -> None:
    async with cluster() as it:
        path = f"{PODS_PATH}/p/exec?command=x&stdout=true&stdin=true"
        await it.status(f"{PODS_PATH}/p/exec?command=x", Connection="Upgrade", Upgrade="SPDY/3.1")
        before = len(asyncio.all_tasks())
        if way == "websocket":
            socket = await it.websocket(path, V5)
            await it.runtime.until(lambda: it.runtime.streams)
            assert socket._response.connection is not None
            socket._response.connection.transport.abort()
        else:
            async with await it.spdy(path, V4) as client:
                await client.remote_command("stdin", "stdout")
                await it.runtime.until(lambda: it.runtime.streams)
                client.writer.transport.abort()
        await asyncio.wait_for(it.runtime.streams[0].closed.wait(), 60)
        await it.runtime.until(lambda: len(asyncio.all_tasks()) <= before + 2)


async def test_no_descriptor_and_no_task_is_left_after_many_streams() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async with cluster() as it:
        path = f"{PODS_PATH}/p/exec?command=x&stdout=true"
        await it.status(f"{PODS_PATH}/p/exec?command=x", Connection="Upgrade", Upgrade="SPDY/3.1")
        before, tasks = descriptors(), len(asyncio.all_tasks())

        async def one(number: int) -> None:
            async with it.websocket(path, V5) as socket:
                await socket.receive_bytes()
                if number % 3 == 0:
                    return
                streams = it.runtime.streams[-1]
                streams.exit()
                async for _ in socket:
                    pass

        for number in range(30):
            await one(number)
        await it.runtime.until(lambda: descriptors() <= before + 4 and len(asyncio.all_tasks()) <= tasks + 4)


class Logs:
    """A kubelet with a log of two pieces for every container."""

    async def container_logs(self, node: Object, namespace: str, pod: str, container: str, options: object):
        yield b"one\n"
        yield b"\xff two\n"


@pytest.mark.parametrize(
    ("protocols", "agreed", "messages"),
    [
        ((), None, [b"one\n", b"\xff two\n"]),
        (("binary.k8s.io",), "binary.k8s.io", [b"one\n", b"\xff two\n"]),
        (("base64.binary.k8s.io",), "base64.binary.k8s.io", ["b25lCg==", "/yB0d28K"]),
    ],
)
async def test_a_log_comes_over_a_websocket_too(protocols, agreed, messages) -> None:
    async with running_server(kubelet_logs=Logs()) as server, aiohttp.ClientSession() as session:
        await prepare(server, 1)
        headers = {"Authorization": f"Bearer {server.token}"}
        path = f"{server.url}{PODS_PATH}/p/log?container=c"
        async with session.ws_connect(path, protocols=protocols, headers=headers, ssl=server.trust) as socket:
            assert socket.protocol == agreed
            assert [message.data async for message in socket] == messages
            assert socket.close_code == 1000
        with pytest.raises(aiohttp.WSServerHandshakeError, match="404"):
            await session.ws_connect(f"{server.url}{PODS_PATH}/nobody/log", headers=headers, ssl=server.trust)
