"""A request that becomes something else than HTTP: a WebSocket mostly. What is said on it is not looked into.

Unlike other requests it is passed on with nearly all of its headers, and without its query: so does kube-apiserver.

Source: apimachinery pkg/util/proxy/upgradeaware.go:tryUpgrade.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus

from multidict import CIMultiDict

from lastcall.kube.api.errors import bad_request, plain_failure
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.apiserver.proxying import headers, paths
from lastcall.kube.apiserver.proxying.paths import Asked
from lastcall.kube.apiserver.proxying.targets import Target
from lastcall.kube.apiserver.proxying.upstream import Upstream, shown_host
from lastcall.kube.apiserver.streaming.proxy import relay
from lastcall.kube.streaming.dialing import DialError
from lastcall.kube.streaming.upgrade import HandedOver, SocketStream, take_over
from lastcall.world.aiohttp_inside import server as web

REFUSAL_SECONDS = 10.0
"""How long the body of a refusal may take."""
_LONGEST_REFUSAL = 64 << 10
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\r\n\x00]*)?")


Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""A new connection to the target. Raises DialError."""


async def upgrade(
    request: web.BaseRequest, upstream: Upstream, target: Target, asked: Asked, client: str
) -> web.StreamResponse:
    """Pass on a request for an upgrade and what follows it. Raises StatusError."""
    host = shown_host(target) if target.kubelet else request.headers.get("Host", "")
    passed = headers.upgrade_headers(list(request.headers.items()), client)
    sent = head(request.method, paths.escape(asked.rest or "/"), host, passed)
    return await switch(request, partial(upstream.connect, target), sent)


async def switch(request: web.BaseRequest, connect: Connect, sent: bytes) -> web.StreamResponse:
    """Begin with `sent`, the head of a request, and once the target has agreed pass all on. Raises StatusError."""
    if request.content_length or "Transfer-Encoding" in request.headers:
        # What follows the head could be taken for the body or for the new protocol.
        raise bad_request("a request for an upgrade has no body here")
    try:
        reader, writer = await connect()
    except DialError as error:
        raise plain_failure(f"error dialing backend: {error}") from None
    stream = SocketStream(reader, writer)
    try:
        await stream.write(sent)
        answered = await reader.readuntil(b"\r\n\r\n")
        status = _status(answered)
        if status == 101:
            await relay(take_over(request, answered), stream)
            return HandedOver()
        if status < 400:
            raise plain_failure(f"invalid upgrade response: status code {status}")
        return await _refused(status, answered, reader)
    except asyncio.IncompleteReadError:
        raise plain_failure("unexpected EOF") from None
    except asyncio.LimitOverrunError:
        raise plain_failure("the headers of the answer are too long") from None
    except OSError as error:
        raise plain_failure(f"error dialing backend: {error}") from None
    finally:
        stream.abort()


def head(method: str, target: str, host: str, passed: headers.Headers) -> bytes:
    """Write the head of a request for an upgrade; `target` is path and query as they are written."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{key}: {value}" for key, value in passed)]
    if method != "GET":
        lines.append("Content-Length: 0")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")


def _status(head: bytes) -> int:
    line = head.partition(b"\r\n")[0]
    found = _STATUS_LINE.fullmatch(line)
    if found is None:
        words = line.decode("utf-8", "replace").split(None, 2)
        shown = words[1] if len(words) > 1 else ""
        raise plain_failure(f'malformed HTTP status code "{shown}"')
    return int(found[1])


async def _refused(status: int, head: bytes, reader: asyncio.StreamReader) -> web.Response:
    """The target's own words, and the connection ends."""
    said = [
        (name.strip(), value.strip())
        for line in head.decode("utf-8", "replace").split("\r\n")[1:]
        for name, colon, value in [line.partition(":")]
        if colon
    ]
    length = next((int_of(value) for name, value in said if name.lower() == "content-length"), None)
    body = b""
    try:
        async with asyncio.timeout(REFUSAL_SECONDS):
            while len(body) < min(length or 0, _LONGEST_REFUSAL) and (data := await reader.read(_LONGEST_REFUSAL)):
                body += data
    except (TimeoutError, OSError):
        pass  # what has come is what there is
    body = body[: min(length or 0, _LONGEST_REFUSAL)]
    passed = CIMultiDict(headers.response_headers(said))
    passed.popall("Content-Length", None)
    reason = HTTPStatus(status).phrase if status in list(HTTPStatus) else f"status code {status}"
    response = web.Response(status=status, reason=reason, headers=passed, body=body)
    response.force_close()
    return response
