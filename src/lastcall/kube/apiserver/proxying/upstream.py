"""Connections to what requests are passed on to.

The control plane's namespace routes to Pods and nodes, so they are dialled as they are. Each request has a connection
of its own: what a target sends beyond its answer never becomes the next one's.

Sources: pkg/kubeapiserver (ProxyTransport: certificates are not looked at), net/dial.go for the texts.
"""

import asyncio
import errno
import os
import socket
import ssl

from multidict import CIMultiDict
from yarl import URL

from lastcall.kube.apiserver.proxying.headers import Headers
from lastcall.kube.apiserver.proxying.targets import Target
from lastcall.kube.streaming.dialing import Dial, DialError
from lastcall.kube.streaming.upgrade import CHUNK
from lastcall.world.aiohttp_inside.client import aiohttp
from lastcall.world.aiohttp_inside.connector import DialledConnector

CONNECT_SECONDS = 30.0
"""net.Dialer's of the API server's transports."""
LONGEST_LINE = 1 << 20
"""Bytes of one header of an answer. Go takes 10 MiB of all of them."""
_OWN_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Which aiohttp would add."""


async def dial(host: str, port: int) -> socket.socket:
    """Connect as `Dial` does, by this process's own routes."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    sock.setblocking(False)
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not port:  # Linux says so late
            raise ConnectionRefusedError(errno.ECONNREFUSED, "")
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(sock, (host, port))
    except OSError as error:
        sock.close()
        if isinstance(error, TimeoutError):
            raise DialError(f"dial tcp {shown}: i/o timeout") from None
        words = os.strerror(error.errno).lower() if error.errno else str(error).lower()
        raise DialError(f"dial tcp {shown}: connect: {words}") from None
    except BaseException:
        sock.close()
        raise
    return sock


def port_of(target: Target) -> int:
    """Return the port. Raises DialError for a number that TCP does not have."""
    port = int(target.port) if len(target.port) <= 10 else 65536
    if port > 65535:
        raise DialError(f"dial tcp: address {target.port}: invalid port")
    return port


def shown_host(target: Target) -> str:
    """Return `host:port` as URLs have it."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{host}:{target.port}"


class _Connector(DialledConnector):
    def __init__(self, dial: Dial, context: ssl.SSLContext) -> None:
        super().__init__(force_close=True, limit=0)
        self._dial, self._context = dial, context

    async def dial(self, url: URL) -> tuple[socket.socket, ssl.SSLContext | None]:
        assert url.host is not None
        assert url.port is not None
        return await self._dial(url.host, url.port), self._context if url.scheme == "https" else None

    def tls_failed(self, error: ssl.SSLError) -> Exception:
        return DialError(tls_words(error))


def tls_words(error: ssl.SSLError) -> str:
    """Return what Go's client says where OpenSSL's says something else."""
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "http: server gave HTTP response to HTTPS client"
    return f"tls: {(error.reason or str(error)).lower().replace('_', ' ')}"


class Upstream:
    """`dial_` is how addresses are reached; `kubelet_tls` has the API server's certificate and trusts kubelets', None
    when this API server has none."""

    def __init__(self, dial_: Dial, kubelet_tls: ssl.SSLContext | None) -> None:
        self._dial = dial_
        self._contexts = {False: _unverified(), True: kubelet_tls or _unverified()}
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    def _session(self, target: Target) -> aiohttp.ClientSession:
        if target.kubelet not in self._sessions:
            self._sessions[target.kubelet] = aiohttp.ClientSession(
                connector=_Connector(self._dial, self._contexts[target.kubelet]),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=LONGEST_LINE,
                max_field_size=LONGEST_LINE,
            )
        return self._sessions[target.kubelet]

    async def request(
        self, method: str, target: Target, path: str, headers: Headers, body: aiohttp.StreamReader | None
    ) -> aiohttp.ClientResponse:
        """Return the answer's head; its body is read afterwards. Raises DialError and aiohttp.ClientError."""
        port_of(target)
        return await self._session(target).request(
            method,
            URL(f"{target.scheme}://{shown_host(target)}{path}", encoded=True),
            headers=CIMultiDict(headers),
            data=body,
            allow_redirects=False,
            skip_auto_headers=_OWN_HEADERS,
        )

    async def connect(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection that becomes something other than HTTP. Raises DialError."""
        sock = await self._dial(target.host, port_of(target))
        context = self._contexts[target.kubelet] if target.scheme == "https" else None
        try:
            return await asyncio.open_connection(
                sock=sock, ssl=context, server_hostname=target.host if context is not None else None, limit=CHUNK
            )
        except OSError as error:
            sock.close()
            raise DialError(tls_words(error) if isinstance(error, ssl.SSLError) else str(error)) from None

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()


def _unverified() -> ssl.SSLContext:
    """Nothing is known that an https target's certificate could be compared with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
