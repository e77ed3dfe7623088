"""A client's upgraded connection and the kubelet's, joined. What is said on it is the kubelet's affair.

Source: apimachinery pkg/util/proxy/upgradeaware.go:tryUpgrade.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from lastcall.kube.api.errors import bad_request, plain_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.apiserver.audit.request import current
from lastcall.kube.streaming.upgrade import HandedOver, SocketStream, take_over
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    import ssl

_log = logging.getLogger("lastcall.kube.apiserver")

LINGER = 2.0
"""Seconds a client has to close its connection after the kubelet has."""
_PASSED_ON = (
    "Connection", "Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol",
    "X-Stream-Protocol-Version", "User-Agent",
)  # fmt: skip
_LONGEST_ERROR = 64 << 10


class KubeletStreams(Protocol):
    """Opens connections to kubelets."""

    @property
    def tls(self) -> "ssl.SSLContext":
        """Return a context that trusts the kubelets' authority and holds the API server's client certificate."""
        ...

    async def connect(self, node: Object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the kubelet of a node. Raises StatusError."""
        ...


def check_upgrade(request: web.BaseRequest) -> None:
    """Raise the 400 of a request that is a plain one (httpstream.go:IsUpgradeRequest)."""
    if not any("upgrade" in value.lower() for value in request.headers.getall("Connection", [])):
        raise bad_request("Upgrade request required")


async def proxy(request: web.BaseRequest, kubelets: KubeletStreams, node: Object, location: str) -> web.StreamResponse:
    """Pass an upgrade request on and, once the kubelet has agreed, everything else. Raises StatusError."""
    check_upgrade(request)
    reader, writer = await kubelets.connect(node)
    kubelet = SocketStream(reader, writer)
    try:
        await kubelet.write(_request(request, location, writer))
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
            raise plain_failure(f"error dialing backend: the kubelet has not answered: {error}") from None
        status = _status(head)
        if status == 101:
            if (audited := current()) is not None:
                audited.started(status)
            await relay(take_over(request, head), kubelet)
            return HandedOver()
        if status < 400:
            raise plain_failure(f"invalid upgrade response: status code {status}")
        return await _refused(status, head, reader)
    except ConnectionError as error:
        raise plain_failure(f"error dialing backend: {error}") from None
    finally:
        kubelet.abort()


def _request(request: web.BaseRequest, location: str, writer: asyncio.StreamWriter) -> bytes:
    host, port = writer.get_extra_info("peername")[:2]
    lines = [f"{request.method} {location} HTTP/1.1", f"Host: {host}:{port}", "Content-Length: 0"]
    lines += [f"{name}: {value}" for name in _PASSED_ON for value in request.headers.getall(name, [])]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")


def _status(head: bytes) -> int:
    parts = head.split(b" ", 2)
    return int_of(parts[1].decode("latin-1")) or 0 if len(parts) > 1 else 0


async def _refused(status: int, head: bytes, reader: asyncio.StreamReader) -> web.Response:
    """The kubelet's own words, as they are."""
    headers = {
        name.strip().lower(): value.strip()
        for line in head.decode("latin-1").split("\r\n")[1:]
        for name, _, value in [line.partition(":")]
    }
    length = headers.get("content-length", "0")
    size = max(0, min(int_of(length) or 0, _LONGEST_ERROR))
    body = b""
    with suppress(asyncio.IncompleteReadError, OSError):
        body = await reader.readexactly(size)
    response = web.Response(status=status, body=body, headers={"Content-Type": "text/plain; charset=utf-8"})
    if accepted := headers.get("x-accepted-stream-protocol-versions"):
        response.headers["X-Accepted-Stream-Protocol-Versions"] = accepted
    return response


async def relay(client: SocketStream, kubelet: SocketStream) -> None:
    """Relay until either side ends. What the kubelet has sent still reaches the client."""
    try:
        async with Tasks() as tasks:
            tasks.spawn(_to_kubelet(client, kubelet), name="client to kubelet")
            await _copy(kubelet, client)
            tasks.cancel()
        await client.linger(LINGER)
    except* ConnectionError:
        pass  # the client has gone
    except* Exception:
        _log.exception("passing a stream on failed")  # there is no other way to say so any more
    finally:
        await client.close()


async def _to_kubelet(client: SocketStream, kubelet: SocketStream) -> None:
    try:
        await _copy(client, kubelet)
    except ConnectionError:
        return  # the kubelet has closed: the other direction ends the session
    raise ConnectionResetError("the client has closed")


async def _copy(source: SocketStream, target: SocketStream) -> None:
    while data := await source.read():
        await target.write(data)
