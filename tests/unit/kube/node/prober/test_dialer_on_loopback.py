"""The real dialer against small servers on 127.0.0.1."""

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lastcall.kube.node.interfaces import DialError
from lastcall.kube.node.prober import dialer
from lastcall.kube.node.prober.dialer import MAX_BODY_BYTES, RealDialer

pytestmark = pytest.mark.loopback

Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(handler: Handler) -> AsyncIterator[tuple[int, list[bytes]]]:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            requests.append(head)
            await handler(head, writer)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1], requests
    finally:
        listening.close()


def answer(status: str, body: bytes = b"", *headers: str) -> Handler:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]

    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()

    return handler


async def test_a_request_has_the_callers_headers_in_order_and_nothing_else() -> None:
    async with server(answer("200 OK", b"hello", "X-B: c")) as (port, requests):
        headers = [("User-Agent", "kube-probe/1.36"), ("Accept", "*/*"), ("X-Hook", "yes")]
        response = await RealDialer().http_get(f"http://127.0.0.1:{port}/drain?x=1", headers, 1.0)
    assert (response.status, response.body, response.headers["x-b"]) == (200, b"hello", "c")
    lines = requests[0].decode().split("\r\n")
    assert lines[:6] == [
        "GET /drain?x=1 HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "User-Agent: kube-probe/1.36",
        "Accept: */*",
        "X-Hook: yes",
        "Accept-Encoding: gzip",
    ]
    assert [line for line in lines[6:] if line] in ([], ["Connection: close"])


@pytest.mark.rule("node-semantics 7/http-redirects")
async def test_redirects_are_followed_on_the_same_host_only() -> None:
    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        place = b"/end" if head.startswith(b"GET /a") else b"http://other.invalid/"
        code = b"200 OK" if head.startswith(b"GET /end") else b"302 Found"
        writer.write(b"HTTP/1.1 " + code + b"\r\nContent-Length: 0\r\nLocation: " + place + b"\r\n\r\n")
        await writer.drain()

    async with server(handler) as (port, requests):
        dialer = RealDialer()
        assert (await dialer.http_get(f"http://127.0.0.1:{port}/a", [], 1.0)).status == 200
        assert (await dialer.http_get(f"http://127.0.0.1:{port}/b", [], 1.0)).status == 302
        assert (await dialer.http_get(f"http://127.0.0.1:{port}/a", [], 1.0, follow_redirects=False)).status == 302
    assert len(requests) == 4


@pytest.mark.rule("node-semantics 7/http-redirects")
async def test_ten_redirects_are_enough() -> None:
    async with server(answer("302 Found", b"", "Location: /again")) as (port, requests):
        with pytest.raises(DialError, match="stopped after 10 redirects"):
            await RealDialer().http_get(f"http://127.0.0.1:{port}/", [], 5.0)
    assert len(requests) == 10


@pytest.mark.parametrize("place", ["http://[", "http://[::1", "http://127.0.0.1:99999/", "http://127.0.0.1:port/"])
async def test_a_redirect_to_what_is_no_address_is_an_error_like_any_other(place: str) -> None:
    """net/http client.go: failed to parse Location header. What a server answers must not end a probe's worker."""
    async with server(answer("302 Found", b"", f"Location: {place}")) as (port, requests):
        with pytest.raises(DialError) as caught:
            await RealDialer().http_get(f"http://127.0.0.1:{port}/", [], 5.0)
    assert place in str(caught.value) and len(requests) == 1


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("a..b", "dial tcp: lookup a..b: no such host"),
        ("x" * 64, "no such host"),
        ("[", "Invalid IPv6 URL"),
        ("\N{ACCOUNT OF}", "invalid characters"),
    ],
)
async def test_a_host_that_cannot_be_one_is_an_error_like_any_other(host: str, text: str) -> None:
    """The API server takes any text for the host of a probe or hook."""
    with pytest.raises(DialError, match=re.escape(text)):
        await RealDialer().http_get(f"http://{host}:1/", [], 5.0)


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "\0"])
async def test_a_connection_to_what_cannot_be_a_host_is_an_error_like_any_other(host: str) -> None:
    with pytest.raises(DialError, match="no such host"):
        await RealDialer().tcp_connect(host, 1, 5.0)


async def test_errors_are_worded_as_go_words_them() -> None:
    async def hang(head: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)  # a server that hangs

    async def hang_up(head: bytes, writer: asyncio.StreamWriter) -> None:
        return

    dialer = RealDialer()
    async with server(hang) as (port, _):
        url = f"http://127.0.0.1:{port}/r"
        with pytest.raises(DialError) as caught:
            await dialer.http_get(url, [], 0.1)
        text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        assert str(caught.value) == f'Get "{url}": {text}'
    async with server(hang_up) as (port, _):
        with pytest.raises(DialError) as caught:
            await dialer.http_get(f"http://127.0.0.1:{port}/", [], 1.0)
        assert str(caught.value) == f'Get "http://127.0.0.1:{port}/": EOF'
    with pytest.raises(DialError) as caught:
        await dialer.http_get(f"http://127.0.0.1:{port}/", [], 1.0)
    refused = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert str(caught.value) == f'Get "http://127.0.0.1:{port}/": {refused}'
    with pytest.raises(DialError) as caught:
        await dialer.tcp_connect("127.0.0.1", port, 1.0)
    assert str(caught.value) == refused


async def test_an_answer_that_is_not_http_is_an_error_like_any_other() -> None:
    async def nonsense(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"what do you want?\r\n\r\n")
        await writer.drain()

    async with server(nonsense) as (port, _):
        with pytest.raises(DialError, match="net/http: malformed HTTP response"):
            await RealDialer().http_get(f"http://127.0.0.1:{port}/", [], 5.0)


async def test_a_long_answer_is_cut() -> None:
    async with server(answer("200 OK", b"x" * 50_000)) as (port, _):
        response = await RealDialer().http_get(f"http://127.0.0.1:{port}/", [], 1.0)
    assert len(response.body) == MAX_BODY_BYTES


async def test_tcp_connect_succeeds_where_somebody_listens() -> None:
    async with server(answer("200 OK")) as (port, _):
        await RealDialer().tcp_connect("127.0.0.1", port, 1.0)


@pytest.mark.parametrize(("resets", "text"), [(False, "EOF"), (True, "read: connection reset by peer")])
async def test_a_request_whose_connection_breaks_is_not_sent_again(resets: bool, text: str) -> None:
    """Go repeats one only on a connection that it used before (net/http transport.go:shouldRetryRequest)."""

    async def breaks(head: bytes, writer: asyncio.StreamWriter) -> None:
        if resets:
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async with server(breaks) as (port, requests):
        with pytest.raises(DialError, match=f": {text}$"):
            await RealDialer().http_get(f"http://127.0.0.1:{port}/", [], None)
    assert len(requests) == 1


async def test_a_hook_whose_connection_is_forgotten_by_the_other_end_ends_as_in_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """net.Dialer's KeepAlive: after 15 s without a word the other end is asked, nine times at most."""
    sockets: list[socket.socket] = []
    made = dialer._socket

    def kept(*arguments: Any) -> socket.socket:
        sockets.append(made(*arguments))
        return sockets[-1]

    monkeypatch.setattr(dialer, "_socket", kept)
    found: list[int] = []

    async def looks(head: bytes, writer: asyncio.StreamWriter) -> None:
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        found.append(sockets[-1].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        found.extend(sockets[-1].getsockopt(socket.IPPROTO_TCP, name) for name in names)
        await answer("200 OK")(head, writer)

    async with server(looks) as (port, _):
        await RealDialer().http_get(f"http://127.0.0.1:{port}/", [], None)
    assert found == [1, 15, 15, 9]
