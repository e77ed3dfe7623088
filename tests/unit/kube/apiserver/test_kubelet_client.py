"""Container logs from a kubelet over HTTPS with client certificates."""

import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from ports import reserve_port

from lastcall.kube.api.errors import StatusError
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.apiserver.auth.tls import client_context, server_context
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletClient, PodLogOptions, kubelet_address

pytestmark = pytest.mark.loopback


def node(port: int) -> dict:
    return {
        "metadata": {"name": "n1"},
        "status": {
            "addresses": [{"type": "Hostname", "address": "n1"}, {"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    }


class Kubelet:
    def __init__(self) -> None:
        self.port = 0
        self.asked: list[tuple[str, dict, str]] = []

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert") or {}
        names = [value for part in peer.get("subject", ()) for key, value in part if key == "commonName"]
        self.asked.append((request.path, dict(request.query), "".join(names)))
        if request.path.endswith("/waiting"):
            return web.Response(status=400, text='container "waiting" in pod "p" is waiting to start: ErrImagePull')
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        await response.write(b"two\n")
        return response


@pytest.fixture
async def kubelet() -> AsyncIterator[tuple[Kubelet, KubeletClient]]:
    ca = ClusterCA.create()
    kubelet = Kubelet()
    sock = socket.create_server(("127.0.0.1", 0))
    kubelet.port = sock.getsockname()[1]
    runner = web.ServerRunner(web.Server(kubelet.handle), shutdown_timeout=0.1)
    await runner.setup()
    context = server_context(*ca.issue_server(["127.0.0.1"]), client_ca=ca.certificate_pem)
    await web.SockSite(runner, sock, ssl_context=context).start()
    client = KubeletClient(client_context(ca.certificate_pem, *ca.issue_client("kube-apiserver-kubelet-client")))
    yield kubelet, client
    await client.close()
    await runner.cleanup()


async def test_the_log_is_read_as_the_api_server(kubelet) -> None:
    server, client = kubelet
    options = PodLogOptions(follow=True, tail_lines=2, since_time="2030-01-01T00:00:00Z", limit_bytes=10)
    chunks = [chunk async for chunk in client.container_logs(node(server.port), "ns", "p", "main", options)]
    assert b"".join(chunks) == b"one\ntwo\n"
    query = {"follow": "true", "tailLines": "2", "sinceTime": "2030-01-01T00:00:00Z", "limitBytes": "10"}
    assert server.asked == [("/containerLogs/ns/p/main", query, "kube-apiserver-kubelet-client")]


async def test_what_the_kubelet_refuses_the_client_is_told(kubelet) -> None:
    server, client = kubelet
    with pytest.raises(StatusError) as caught:
        await anext(client.container_logs(node(server.port), "ns", "p", "waiting", PodLogOptions()))
    assert caught.value.code == 400
    assert caught.value.message == 'container "waiting" in pod "p" is waiting to start: ErrImagePull'


async def test_a_kubelet_that_cannot_be_reached_is_named(kubelet) -> None:
    _, client = kubelet
    with pytest.raises(StatusError) as caught:
        await anext(client.container_logs(node(reserve_port()), "ns", "p", "main", PodLogOptions()))
    assert caught.value.code == 500
    assert "cannot reach the kubelet of n1" in caught.value.message


def test_a_node_without_an_address_is_an_error_and_no_traceback() -> None:
    with pytest.raises(StatusError):
        kubelet_address({"metadata": {"name": "n1"}})
