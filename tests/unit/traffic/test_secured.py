"""The load generator against servers that speak TLS, and against those that do not."""

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path

import pytest
from load_servers import Http2Peer, Serve, answer, outcomes, upgrade

from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.traffic.outcome import Kind
from lastcall.traffic.secured import HTTP1, Secured, lost_in_handshake

pytestmark = pytest.mark.loopback

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"


@pytest.fixture(scope="module")
def authority() -> ClusterCA:
    return ClusterCA.create()


def server_tls(authority: ClusterCA, folder: Path, name: str = "shop.example.com", alpn: str = HTTP1) -> ssl.SSLContext:
    certificate, key = authority.issue_server([name])
    file = folder / "server.pem"
    file.write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    context.set_alpn_protocols([alpn])
    return context


async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError):
        while head := await reader.readuntil(b"\r\n\r\n"):
            assert b"\r\nHost: shop.example.com\r\n" in head
            writer.write(STREAM if b"/stream" in head else ANSWER)


async def frames(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
    peer = Http2Peer(reader, writer)
    while True:
        stream, block = await peer.request()
        assert b"\x87" in block, ":scheme https, of the static table (RFC 7541 A)"
        writer.write(answer(stream))


async def socket_of_web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await upgrade(reader, writer)
    writer.write(b"\x88\x02\x03\xe8")


ALL: list[tuple[Kind, Serve, str]] = [
    ("fresh", answers, ""),
    ("keep-alive", answers, ""),
    ("slow", answers, ""),
    ("stream", answers, "ended early"),
    ("http2", frames, ""),
    ("websocket", socket_of_web, "going away"),
]


@pytest.mark.parametrize(("kind", "serve", "moved"), ALL, ids=[kind for kind, *_ in ALL])
async def test_each_kind_is_answered_through_tls(
    kind: Kind, serve: Serve, moved: str, authority: ClusterCA, tmp_path: Path
) -> None:
    tls = server_tls(authority, tmp_path, alpn="h2" if kind == "http2" else HTTP1)
    trusted = authority.certificate_pem.decode()
    found = await outcomes(
        serve, kind, count=5, tls=tls, host="shop.example.com", tls_name="shop.example.com", ca_pem=trusted
    )
    assert {(each.lost, each.moved) for each in found} == {("", moved)} and len(found) >= 5
    if kind in ("keep-alive", "http2"):
        assert len({each.connection for each in found}) < len(found), "a connection is used again"


@pytest.mark.parametrize("why", ["another authority", "another name", "no TLS at all"])
async def test_a_server_that_does_not_prove_who_it_is_gets_no_request(
    why: str, authority: ClusterCA, tmp_path: Path
) -> None:
    asked: list[bytes] = []

    async def listens(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(5))
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        await reader.read()

    name = "other.example.com" if why == "another name" else "shop.example.com"
    tls = None if why == "no TLS at all" else server_tls(authority, tmp_path, name)
    trusted = (ClusterCA.create() if why == "another authority" else authority).certificate_pem.decode()
    found = await outcomes(listens, "fresh", count=2, tls=tls, tls_name="shop.example.com", ca_pem=trusted, timeout=2.0)
    assert {each.lost for each in found} == {"no TLS"}
    assert not any(each.startswith(b"GET") for each in asked)


@pytest.mark.parametrize(("reset", "lost"), [(False, "closed before bytes"), (True, "reset before bytes")])
async def test_a_server_that_goes_in_the_middle_of_the_handshake_is_told_as_one_that_goes(
    reset: bool, lost: str
) -> None:
    async def goes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(5)
        if reset:
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        else:
            await asyncio.sleep(0.05)  # a server that answers late
            await reader.read(4096)
        writer.close()

    found = await outcomes(goes, "fresh", count=2, tls_name="shop.example.com")
    assert {each.lost for each in found} == {lost}


async def test_a_handshake_that_never_ends_is_a_timeout_of_the_request() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    found = await outcomes(silent, "fresh", tls_name="shop.example.com", timeout=0.3)
    assert {each.lost for each in found} == {"timeout"}
    assert all(each.finished - each.sent >= 0.3 for each in found)


async def test_what_answers_http1_where_http2_was_asked_for_is_told(authority: ClusterCA, tmp_path: Path) -> None:
    tls = server_tls(authority, tmp_path)  # does not offer h2, and goes on without
    trusted = authority.certificate_pem.decode()
    found = await outcomes(answers_nothing, "http2", tls=tls, tls_name="shop.example.com", ca_pem=trusted)
    assert {each.lost for each in found} == {"not HTTP/2"}


async def answers_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(24)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    writer.close()


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), "closed before bytes"),
        (ssl.SSLError(1, "wrong version number"), "no TLS"),
        (ConnectionResetError(104, "Connection reset by peer"), "reset before bytes"),
        (ConnectionResetError(), "closed before bytes"),
    ],
)
def test_a_failed_handshake_is_told_by_its_error(error: OSError, lost: str) -> None:
    assert lost_in_handshake(error) == lost


def test_what_is_no_certificate_is_an_error_at_once() -> None:
    with pytest.raises(ssl.SSLError):
        Secured("a", "-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n")
