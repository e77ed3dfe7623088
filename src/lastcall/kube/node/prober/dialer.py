"""The real way of probes and hooks to Pods: one connection per request, texts as Go's net package words them."""

import asyncio
import errno
import os
import socket
import ssl
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin, urlsplit

from lastcall.kube.api.text.go_notation import go_quote
from lastcall.kube.node.interfaces import DialError, HTTPResponse
from lastcall.world.aiohttp_inside.client import aiohttp
from lastcall.world.aiohttp_inside.session import send_once
from lastcall.world.clock import Clock, RealClock

MAX_BODY_BYTES = 10 * 1024
"""Kubernetes reads at most this much of an answer (pkg/probe/http: maxRespBodyLength)."""
MAX_REDIRECTS = 10
KEEP_ALIVE_SECONDS, KEEP_ALIVE_PROBES = 15, 9
"""What ends a hook whose other end went without a word (Go net/tcpsockopt.go: defaultTCPKeepAlive…)."""

SNIFF_SECONDS = 5.0
_HTTP = b"HTTP/"
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "UNKNOWN_PROTOCOL")
"""OpenSSL's names for an answer that is not TLS."""

_TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_SYSCALL_TEXTS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset by peer",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
    errno.EPIPE: "broken pipe",
}


def _socket(address: tuple[Any, ...]) -> socket.socket:
    """For one of getaddrinfo(3)'s answers."""
    made = socket.socket(*address[:3])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, KEEP_ALIVE_SECONDS),
        (socket.TCP_KEEPINTVL, KEEP_ALIVE_SECONDS),
        (socket.TCP_KEEPCNT, KEEP_ALIVE_PROBES),
    ):
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


class RealDialer:
    """Implements `interfaces.Dialer` on aiohttp and asyncio."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or RealClock()

    async def http_get(
        self, url: str, headers: list[tuple[str, str]], timeout: float | None, *, follow_redirects: bool = True
    ) -> HTTPResponse:
        """Send a GET; follow at most ten redirects, on the same host. For another host return the redirect itself."""
        first_host = _host_of(url)
        try:
            async with asyncio.timeout(timeout):
                response = await self._get(url, headers)
                hops = 0
                while (
                    follow_redirects and response.status in (301, 302, 303, 307, 308) and "location" in response.headers
                ):
                    target, host = _redirected(url, response.headers["location"])
                    if host != first_host:
                        return response
                    hops += 1
                    if hops >= MAX_REDIRECTS:
                        raise DialError(f"Get {go_quote(target)}: stopped after 10 redirects")
                    url = target
                    response = await self._get(url, headers)
                return response
        except TimeoutError:
            raise DialError(f"Get {go_quote(url)}: {_TIMED_OUT}") from None

    async def _get(self, url: str, headers: list[tuple[str, str]]) -> HTTPResponse:
        connector = aiohttp.TCPConnector(ssl=False, use_dns_cache=False, limit=1, socket_factory=_socket)
        wanted = [*headers]
        if not any(name.lower() == "accept-encoding" for name, _ in wanted):
            wanted.append(("Accept-Encoding", "gzip"))
        try:
            async with (
                send_once(
                    aiohttp.ClientSession(
                        connector=connector,
                        timeout=aiohttp.ClientTimeout(total=None),
                        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                        cookie_jar=aiohttp.DummyCookieJar(),
                        read_bufsize=MAX_BODY_BYTES,
                    )
                ) as session,
                session.get(url, headers=wanted, allow_redirects=False) as response,
            ):
                body = b""
                while len(body) < MAX_BODY_BYTES and (chunk := await response.content.read(MAX_BODY_BYTES - len(body))):
                    body += chunk
                answer_headers = {name.lower(): value for name, value in response.headers.items()}
                return HTTPResponse(response.status, body, answer_headers)
        except aiohttp.ClientConnectorSSLError as error:
            raise DialError(f"Get {go_quote(url)}: {await _tls_text(url, error.os_error)}") from None
        except aiohttp.ClientConnectorError as error:
            raise DialError(f"Get {go_quote(url)}: {_dial_text(url, error.os_error)}") from None
        except aiohttp.ServerDisconnectedError:
            raise DialError(f"Get {go_quote(url)}: EOF") from None
        except aiohttp.ClientPayloadError:
            raise DialError("unexpected EOF") from None
        except aiohttp.InvalidURL:
            raise DialError(f"Get {go_quote(url)}: invalid URL") from None
        except UnicodeError:  # no name of a host is like that
            raise DialError(f"Get {go_quote(url)}: dial tcp: lookup {urlsplit(url).hostname}: no such host") from None
        except aiohttp.ClientResponseError as error:
            raise DialError(f"Get {go_quote(url)}: net/http: malformed HTTP response: {error.message}") from None
        except OSError as error:
            raise DialError(f"Get {go_quote(url)}: read tcp {_address(url)}: read: {_errno_text(error)}") from None
        except aiohttp.ClientError as error:
            raise DialError(f"Get {go_quote(url)}: {error}") from None

    async def tcp_connect(self, host: str, port: int, timeout: float | None) -> None:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            async with asyncio.timeout(timeout):
                _, writer = await asyncio.open_connection(host, port)
        except TimeoutError:
            raise DialError(f"dial tcp {address}: i/o timeout") from None
        except (socket.gaierror, ValueError):  # not found, or not like any name
            raise DialError(f"dial tcp: lookup {host}: no such host") from None
        except OSError as error:
            raise DialError(f"dial tcp {address}: connect: {_errno_text(error)}") from None
        writer.close()

    async def grpc_health(self, host: str, port: int, service: str, timeout: float, user_agent: str) -> int:
        # late: 22 ms of a node's start
        from lastcall.kube.node.prober.grpc_health import (
            check_health,  # brings HTTP/2 with it: for nodes with gRPC probes only
        )

        return await check_health(self._clock, host, port, service, timeout, user_agent)


def _host_of(url: str) -> str | None:
    """Return the host of an address. Raises DialError if it is none."""
    try:
        return urlsplit(url).hostname
    except ValueError as error:
        raise DialError(f"Get {go_quote(url)}: parse {go_quote(url)}: {error}") from None


def _redirected(url: str, location: str) -> tuple[str, str | None]:
    """Return where a redirect leads, and its host. Raises DialError (net/http client.go:do)."""
    try:
        target = urljoin(url, location)
        return target, urlsplit(target).hostname
    except ValueError as error:
        raise DialError(f"Get {go_quote(url)}: failed to parse Location header {go_quote(location)}: {error}") from None


async def _tls_text(url: str, error: OSError) -> str:
    """Why there was no TLS connection (net/http transport.go, crypto/tls).

    The library does not tell what a server said that speaks something else, so it is asked once more.
    """
    reason = str(getattr(error, "reason", "") or "")
    if reason not in _NO_TLS:
        return f"remote error: tls: {reason.lower().replace('_', ' ') or 'handshake failure'}"
    parts = urlsplit(url)
    said = b""
    with suppress(OSError, EOFError, TimeoutError):
        async with asyncio.timeout(SNIFF_SECONDS):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 443)
            try:
                writer.write(_client_hello())
                said = await reader.readexactly(len(_HTTP))
            finally:
                writer.close()
    if said == _HTTP:
        return "http: server gave HTTP response to HTTPS client"
    return "tls: first record does not look like a TLS handshake"


def _client_hello() -> bytes:
    """The first bytes of any TLS connection."""
    context = ssl.create_default_context()
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


def _dial_text(url: str, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {urlsplit(url).hostname}: no such host"
    return f"dial tcp {_address(url)}: connect: {_errno_text(error)}"


def _address(url: str) -> str:
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _errno_text(error: OSError) -> str:
    if error.errno in _SYSCALL_TEXTS:
        return _SYSCALL_TEXTS[error.errno]
    return os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
