"""The Client protocol over HTTPS: connections are kept alive, watches are streamed.

Every method raises `StatusError` when the server answers with a failure and `ConnectionLost` when there is no answer
or only half of one.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import quote, urlsplit

import orjson

from lastcall import __version__
from lastcall.api.errors import StatusError, status_failure
from lastcall.api.meta import Object, name_of
from lastcall.api.resources import PODS, Resource
from lastcall.client.api import MERGE_PATCH, ConnectionLost, ListResult, WatchEvent
from lastcall.client.connection import Connection, Until, connect

Query = Sequence[tuple[str, str]]

REQUEST_TIMEOUT = 60.0
"""Seconds for a request that is not a watch; the API server's own --request-timeout."""

CONNECT_TIMEOUT = 10.0
IDLE_SECONDS = 60.0
"""A connection that rested so long is not used again: before its server closes it, which it may do just when a request
is on its way (servers on aiohttp after 75 s or more, Go's after minutes).
"""

_REPEATABLE = ("GET", "HEAD", "PUT", "DELETE")
_FIELD_VALUE = re.compile(r"[^\x00-\x1f\x7f]*")
_TARGET = re.compile(r"/[\x21-\x7e]*")


class HTTPClient:
    """A client of the API server at `server` (`https://host:port`, a path prefix is kept).

    `ssl_context` carries the CA to trust and, if wanted, a client certificate; None only for http. `token` is a bearer
    token. `tls_server_name` is checked in the server's certificate in place of the host.
    """

    def __init__(
        self,
        server: str,
        *,
        ssl_context: ssl.SSLContext | None,
        token: str = "",
        user_agent: str = f"lastcall/{__version__}",
        tls_server_name: str = "",
        request_timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"server {server!r}: must be a URL such as https://127.0.0.1:6443")
        if parts.scheme == "https" and ssl_context is None:
            raise ValueError(f"server {server!r}: https needs an ssl_context")
        self.server = server.rstrip("/")
        self._prefix = urlsplit(self.server).path
        self._address = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        self._ssl = ssl_context if parts.scheme == "https" else None
        self._tls_server_name = tls_server_name or parts.hostname
        common = {"Host": parts.netloc.rpartition("@")[2], "User-Agent": user_agent}
        if token:
            common["Authorization"] = f"Bearer {token}"
        for name, value in common.items():
            if not _FIELD_VALUE.fullmatch(value):
                raise ValueError(f"{name}: a control character cannot be sent; look at its end for a line feed")
        self._common = "".join(f"{name}: {value}\r\n" for name, value in common.items())
        self._timeout = request_timeout
        self._connections: dict[Connection, None] = {}
        self._idle: list[Connection] = []
        self._closed = False

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return await self._json("GET", _path(resource, namespace, name))

    async def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult:
        answer = await self._json("GET", _path(resource, namespace), query=_selectors(label_selector, field_selector))
        items: list[Object] = answer.get("items") or []
        for item in items:
            # A list names kind and apiVersion once; each object carries them here, as the protocol promises.
            item.setdefault("kind", resource.kind)
            item.setdefault("apiVersion", resource.api_version)
        return ListResult(items, answer.get("metadata", {}).get("resourceVersion", ""))

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = False,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        query = [("watch", "true"), *_selectors(label_selector, field_selector)]
        if resource_version:
            query.append(("resourceVersion", resource_version))
        if bookmarks:
            query.append(("allowWatchBookmarks", "true"))
        stream = await self._stream(_path(resource, namespace), query)
        events = _watch_events(stream, bookmarks)
        try:
            yield events
        finally:
            await events.aclose()  # type: ignore[attr-defined]  # an async generator, typed as an iterator
            stream.close()

    async def create(
        self, resource: Resource, obj: Object, namespace: str = "", *, name: str = "", subresource: str = ""
    ) -> Object:
        path = _path(resource, namespace, name if subresource else "", subresource)
        return await self._json("POST", path, body=obj)

    async def update(self, resource: Resource, obj: Object, namespace: str = "", *, subresource: str = "") -> Object:
        return await self._json("PUT", _path(resource, namespace, name_of(obj), subresource), body=obj)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
    ) -> Object:
        path = _path(resource, namespace, name, subresource)
        return await self._json("PATCH", path, body=patch, content_type=content_type)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation_policy: str | None = None,
    ) -> Object:
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        preconditions = {
            key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value is not None
        }
        if preconditions:
            options["preconditions"] = preconditions
        if propagation_policy is not None:
            options["propagationPolicy"] = propagation_policy
        return await self._json("DELETE", _path(resource, namespace, name), body=options)

    async def pod_log(
        self,
        namespace: str,
        name: str,
        container: str = "",
        *,
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail_lines: int | None = None,
        since_seconds: int | None = None,
        limit_bytes: int | None = None,
    ) -> AsyncIterator[bytes]:
        """A container's log in pieces as they arrive (not lines); with `follow` until the container ends.

        container "" is the only container of the Pod.
        """
        query: list[tuple[str, str]] = [("container", container)] if container else []
        query += [
            (key, "true") for key, on in (("follow", follow), ("previous", previous), ("timestamps", timestamps)) if on
        ]
        query += [
            (key, str(value))
            for key, value in (("tailLines", tail_lines), ("sinceSeconds", since_seconds), ("limitBytes", limit_bytes))
            if value is not None
        ]
        path = _path(PODS, namespace, name, "log")
        stream = await self._stream(path, query, accept="*/*")
        try:
            async for piece in stream.pieces():
                yield piece
        finally:
            stream.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        """Any request; the body of a successful answer. `body` is bytes as they are, or JSON data."""
        sent = self._request(method, path, query, body, content_type, accept)
        connection = await self._exchange(method, path, sent, Until.WHOLE)
        answer = connection.answer
        assert answer is not None
        data = answer.take()
        self._give_back(connection)
        if answer.status < 300:
            return data
        raise _status_error(method, path, answer.status, answer.headers, data)

    async def close(self) -> None:
        self._closed = True
        for connection in list(self._connections):
            connection.close()

    async def _json(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        content_type: str = "application/json",
    ) -> Object:
        data = await self.request(method, path, query=query, body=body, content_type=content_type)
        try:
            answer = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise ConnectionLost(f"{method} {self.server}{path}: the answer is not JSON: {data[:200]!r}") from error
        if not isinstance(answer, dict):
            raise ConnectionLost(f"{method} {self.server}{path}: the answer is not a JSON object: {data[:200]!r}")
        return answer

    async def _stream(self, path: str, query: Query, accept: str = "application/json") -> "_Stream":
        """An answer without an end in sight. Only its beginning, and what refuses it, is waited for."""
        sent = self._request("GET", path, query, None, "", accept)
        stream = _Stream(await self._exchange("GET", path, sent, Until.HEAD), f"GET {self.server}{path}")
        answer = stream.connection.answer
        assert answer is not None
        if answer.status < 300:
            return stream
        try:
            data = b"".join([piece async for piece in stream.pieces()])
        finally:
            stream.close()
        raise _status_error("GET", path, answer.status, answer.headers, data)

    def _request(self, method: str, path: str, query: Query, body: Any, content_type: str, accept: str) -> bytes:
        text = "&".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in query)
        target = self._prefix + path + (f"?{text}" if text else "")
        if not _TARGET.fullmatch(target):
            raise ValueError(f"path {path!r}: has to be quoted")
        head = f"{method} {target} HTTP/1.1\r\n{self._common}Accept: {accept}\r\n"
        if body is None:
            length = "Content-Length: 0\r\n" if method in ("POST", "PUT", "PATCH") else ""
            return f"{head}{length}\r\n".encode("latin-1")
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return f"{head}Content-Type: {content_type}\r\nContent-Length: {len(data)}\r\n\r\n".encode("latin-1") + data

    async def _exchange(self, method: str, path: str, request: bytes, until: Until) -> Connection:
        """Send on a connection of its own. Raises ConnectionLost.

        A server may close an idle connection just when it is used again: what may be done twice is then sent again.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        while True:
            if self._closed:
                raise ConnectionLost("the client is closed")
            connection = self._take_idle(loop.time())
            used = connection is not None
            timer: asyncio.TimerHandle | None = None
            try:
                if connection is None:
                    connection = await self._connect(deadline - loop.time())
                if until is Until.WHOLE:
                    timer = loop.call_at(deadline, connection.abort, TimeoutError())
                await connection.exchange(method, request, until)
                return connection
            except OSError as error:
                begun = connection is not None and connection.answer is not None and connection.answer.begun
                if used and not begun and method in _REPEATABLE and not isinstance(error, TimeoutError):
                    continue
                raise _lost(method, self.server + path, error) from error
            finally:
                if timer is not None:
                    timer.cancel()

    async def _connect(self, seconds: float) -> Connection:
        async with asyncio.timeout(min(seconds, CONNECT_TIMEOUT)):
            connection = await connect(*self._address, self._ssl, self._tls_server_name, self._forget)
        self._connections[connection] = None
        if self._closed:
            connection.close()
        return connection

    def _take_idle(self, now: float) -> Connection | None:
        """The one that was used last; those that rest too long are closed."""
        while self._idle and now - self._idle[0].idle_since > IDLE_SECONDS:
            self._idle[0].close()
        return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        answer = connection.answer
        if answer is None or not answer.reusable or self._closed:
            connection.close()
        elif not connection.closed:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)

    def _forget(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        if connection in self._idle:
            self._idle.remove(connection)


class _Stream:
    """An answer that is read piece by piece; `what` was asked for. Its connection is not used again."""

    def __init__(self, connection: Connection, what: str) -> None:
        self.connection = connection
        self.what = what

    async def pieces(self) -> AsyncIterator[bytes]:
        """Raises ConnectionLost."""
        while True:
            try:
                piece = await self.connection.piece()
            except OSError as error:
                raise ConnectionLost(f"{self.what}: {_reason(error)}") from error
            if not piece:
                return
            yield piece

    def close(self) -> None:
        self.connection.close()


def _path(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    return resource.path(quote(namespace, safe=""), quote(name, safe=""), subresource)


def _selectors(label_selector: str, field_selector: str) -> list[tuple[str, str]]:
    return [
        (key, value) for key, value in (("labelSelector", label_selector), ("fieldSelector", field_selector)) if value
    ]


async def _watch_events(stream: _Stream, bookmarks: bool) -> AsyncIterator[WatchEvent]:
    """One event per line. Lines have no greatest length: an object may be larger than any read buffer."""
    rest: list[bytes] = []
    async for piece in stream.pieces():
        *lines, last = piece.split(b"\n")
        for line in lines:
            if rest:
                line = b"".join((*rest, line))
                rest.clear()
            if line.strip():
                event = _watch_event(line)
                if event.type != "BOOKMARK" or bookmarks:
                    yield event
        if last:
            rest.append(last)
    if rest:
        raise ConnectionLost(f"{stream.what}: the watch ended in the middle of an event")


def _watch_event(line: bytes) -> WatchEvent:
    try:
        event = orjson.loads(line)
        return WatchEvent(event["type"], event["object"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise ConnectionLost(f"a watch sent something that is no event: {line[:200]!r}") from error


def _lost(method: str, url: str, error: OSError) -> ConnectionLost:
    return ConnectionLost(f"{method} {url}: {_reason(error)}")


def _reason(error: OSError) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__


_GENERIC: dict[int, tuple[str, str]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", ""),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "the server was unable to respond with a content type that the client supports"),
    409: ("Conflict", "the server reported a conflict"),
    413: ("RequestEntityTooLarge", "the request was too large"),
    415: ("UnsupportedMediaType", "the content type of the request is not supported"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", ""),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted"),
}
"""Reason and text for an answer that is no Status.

Source: apimachinery pkg/api/errors/errors.go:NewGenericServerResponse.
"""


def _status_error(method: str, path: str, code: int, headers: dict[str, str], body: bytes) -> StatusError:
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        status.setdefault("code", code)
        return StatusError(cast(Object, status), headers)
    text = body[:2048].decode("utf-8", "replace").strip()
    reason, message = _GENERIC.get(code, ("", ""))
    if code == 409 and method == "POST":
        reason = "AlreadyExists"
    if not reason and code >= 500:
        reason = "InternalError"
    if not message:
        message = text or f"the server responded with the status code {code} but did not return more information"
    error = status_failure(
        code,
        reason,
        f"{message} ({method} {path})",
        {"causes": [{"reason": "UnexpectedServerResponse", "message": text or "unknown"}]},
    )
    error.headers = headers
    return error
