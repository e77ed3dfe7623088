"""The limits of one user, seen by clients."""

import asyncio
import json
import select
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from api_server import RunningServer, running_server

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CONFIGMAPS, ROLEBINDINGS, SERVICEACCOUNTS
from lastcall.kube.apiserver import user_limits as shares
from lastcall.kube.apiserver.wire import requests
from lastcall.kube.client.http import HTTPClient
from lastcall.world import listeners

pytestmark = pytest.mark.loopback
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server() -> AsyncIterator[RunningServer]:
    async with running_server() as running:
        yield running


@pytest.fixture
async def editor(server: RunningServer) -> AsyncIterator[tuple[HTTPClient, str]]:
    """(a client of a ServiceAccount that may edit the namespace default, its token)."""
    admin = server.admin
    await admin.create(SERVICEACCOUNTS, {"metadata": {"name": "e"}}, "default")
    subject = {"kind": "ServiceAccount", "name": "e", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    binding = {"metadata": {"name": "e"}, "subjects": [subject], "roleRef": role}
    await admin.create(ROLEBINDINGS, binding, "default")
    answer = await admin.create(SERVICEACCOUNTS, {"spec": {}}, "default", name="e", subresource="token")
    token = answer["status"]["token"]
    client = server.http(token)
    yield client, token
    await client.close()


async def test_one_watch_too_many_is_refused_and_other_requests_are_not(
    server: RunningServer, editor: tuple[HTTPClient, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "MOST_STREAMS", 2)
    client, _ = editor
    async with client.watch(CONFIGMAPS, "default"), client.watch(CONFIGMAPS, "default"):
        with pytest.raises(StatusError) as refused:
            async with client.watch(CONFIGMAPS, "default"):
                pass
        assert refused.value.code == 429 and refused.value.headers["Retry-After"] == "1"
        await client.list(CONFIGMAPS, "default")
        nobody_s_limit = server.http()
        async with nobody_s_limit.watch(CONFIGMAPS, "default"):
            pass
        await nobody_s_limit.close()


async def test_one_connection_too_many_is_refused_and_closed(
    server: RunningServer, editor: tuple[HTTPClient, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "MOST_CONNECTIONS", 1)
    client, token = editor
    await client.list(CONFIGMAPS, "default")
    parts = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=server.trust)
    writer.write(f"GET {MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    answer = await reader.read()  # to its end
    writer.close()
    assert answer.startswith(b"HTTP/1.1 429 ") and b"has 1 connections" in answer
    await client.list(CONFIGMAPS, "default")


async def test_clients_that_do_not_begin_tls_do_not_grow_the_server(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "MOST_HANDSHAKES", 1)
    parts = urlsplit(server.url)
    first, kept = await asyncio.open_connection(parts.hostname, parts.port)
    _, second = await asyncio.open_connection(parts.hostname, parts.port)
    with suppress(ConnectionResetError):
        assert await first.read() == b""
    kept.close()
    second.close()


@pytest.mark.parametrize("size", [1 << 20, 100_000])
async def test_a_refused_request_whose_long_body_does_not_come_is_disconnected_soon(
    server: RunningServer, editor: tuple[HTTPClient, str], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(shares, "MOST_BYTES", shares.CONNECTION_BYTES)
    parts = urlsplit(server.url)
    head = f"POST {MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\nAuthorization: Bearer {editor[1]}"

    def answer_and_end() -> tuple[bytes, bool]:
        """(the answer, whether the server ends the connection of a client that says no goodbye)."""
        plain = socket.create_connection((parts.hostname or "", parts.port or 0), 10)
        with server.trust.wrap_socket(plain, server_hostname=parts.hostname) as connection:
            connection.sendall(f"{head}\r\n\r\n".encode())
            answer = connection.recv(65536)
            ended = select.poll()
            ended.register(connection, select.POLLRDHUP)
            return answer, bool(ended.poll(2000))

    answer, ended = await asyncio.to_thread(answer_and_end)
    assert answer.startswith(b"HTTP/1.1 429 ") and ended is (size > 256 << 10)


async def test_objects_and_lists_that_go_out_in_pieces_are_whole(editor: tuple[HTTPClient, str]) -> None:
    client, _ = editor
    data = {"x": "".join(map(chr, range(40, 120))) * 10_000}
    await client.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": data}, "default")
    assert (await client.get(CONFIGMAPS, "a", "default"))["data"] == data
    found = {each["metadata"]["name"]: each for each in (await client.list(CONFIGMAPS, "default")).items}
    assert found["a"]["data"] == data
    shown = await client.request("GET", MAPS, query=[("pretty", "true")])
    assert {each["metadata"]["name"]: each for each in json.loads(shown)["items"]}["a"]["data"] == data
    assert shown.startswith(b'{\n  "kind": "ConfigMapList",\n') and shown.endswith(b"\n  ]\n}")
    pretty = await client.request("GET", MAPS, query=[("pretty", "true")])
    assert pretty.startswith(b"{\n") and data["x"][:50].replace("\\", "\\\\").encode() in pretty
    async with client.watch(CONFIGMAPS, "default", resource_version="0") as events:
        async for event in events:
            if event.object["metadata"]["name"] == "a":
                assert event.object["data"] == data
                break


async def test_bodies_that_do_not_end_keep_nobody_else_from_writing(
    server: RunningServer, editor: tuple[HTTPClient, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "BODY_SECONDS", 0.3)
    client, token = editor
    parts = urlsplit(server.url)
    head = (
        f"POST {MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Length: 3000000\r\n\r\n"
    )

    async def send() -> bytes:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=server.trust)
        writer.write(head.encode() + b" " * 1000)
        answer = await reader.readuntil(b"\r\n")
        writer.close()
        return answer

    stuck = [asyncio.ensure_future(send()) for _ in range(5)]
    await asyncio.sleep(0.05)  # they hold what there is
    other = server.http()
    await other.create(CONFIGMAPS, {"metadata": {"name": "b"}, "data": {"x": "y" * 100_000}}, "default")
    await other.close()
    assert await asyncio.gather(*stuck) == [b"HTTP/1.1 504 Gateway Timeout\r\n"] * 5
    await client.create(CONFIGMAPS, {"metadata": {"name": "c"}, "data": {"x": "y" * 100_000}}, "default")
