"""The Client protocol over HTTPS, with aiohttp: connections are kept alive, watches are streamed.

Every method raises `StatusError` when the server answers with a failure and `ConnectionLost` when there is no answer
or only half of one.
"""

# check: many attributes HTTPClient because each is an option of the connection, from a kubeconfig or a caller

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlsplit

import orjson
from multidict import CIMultiDict
from yarl import URL

from lastcall._version import __version__
from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.meta import AnyObject, Object, name_of
from lastcall.kube.api.resources import PODS, PartialResource, Resource
from lastcall.kube.client.answers import (
    MOST_EVENT_BYTES,
    Reading,
    chunks,
    decoded,
    lost_connection,
    status_error,
    watch_events,
    with_its_kind,
)
from lastcall.kube.client.api import MERGE_PATCH, ConnectionLost, ListResult, WatchEvent
from lastcall.world.aiohttp_inside.client import aiohttp
from lastcall.world.aiohttp_inside.session import send_once

if TYPE_CHECKING:
    from lastcall.kube.client.access.credentials import Proof
    from lastcall.kube.client.access.patience import Patience

Query = Sequence[tuple[str, str]]

REQUEST_TIMEOUT = 60.0
"""Seconds for a request that is not a watch; the API server's own --request-timeout."""

CONNECT_TIMEOUT = 10.0
SILENCE_SECONDS = 15
"""After so long without an acknowledgement from a peer its connections are given up, idle watches too.

What HTTP/2's pings are for in client-go (ReadIdleTimeout 30 s, PingTimeout 15 s): nobody reports a cut network.
"""
IDLE_SECONDS = 60.0
"""A connection that rested so long is not used again: before its server closes it, which it may do just when a request
is on its way (servers on aiohttp after 75 s or more, Go's after minutes).
"""
STREAM_KEEPALIVE_READ_SIZE = 65536
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that change nothing."""


class Proving(Protocol):
    """What a client proves its user with: `access/credentials.py` of a kubeconfig, `access/service_account.py`."""

    async def proof(self) -> "Proof": ...

    async def refused(self, proof: "Proof") -> bool: ...


class HTTPClient:
    """A client of the API server at `server` (`https://host:port`, a path prefix is kept).

    `ssl_context` carries the CA to trust and, if wanted, a client certificate; None only for http. `token` is a bearer
    token. `tls_server_name` is checked in the server's certificate in place of the host. `request_timeout` 0: no limit.

    `credentials` take the place of `ssl_context` and `token`: what they say may change. `headers` are sent with every
    request, `proxy` is a URL (http, https, socks5), and without `compress` answers come as they are. With `patience`
    requests are sent again while the server restarts. `on_refused` sees every failure that the server answers.
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
        credentials: Proving | None = None,
        headers: Sequence[tuple[str, str]] = (),
        proxy: str = "",
        compress: bool = True,
        patience: "Patience | None" = None,
        on_refused: Callable[[StatusError], None] | None = None,
    ) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"server {server!r}: must be a URL such as https://127.0.0.1:6443")
        if parts.scheme == "https" and ssl_context is None and credentials is None:
            raise ValueError(f"server {server!r}: https needs an ssl_context")
        self.server = server.rstrip("/")
        self._ssl = ssl_context
        self._credentials = credentials
        self._proxy = proxy
        self._compress = compress
        self._patience = patience
        self._on_refused = on_refused
        self._headers = CIMultiDict([("User-Agent", user_agent), *headers])
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._tls_server_name = tls_server_name or None
        self._timeout = aiohttp.ClientTimeout(total=request_timeout or None, connect=CONNECT_TIMEOUT)
        self._stream_timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT)
        self._reading = Reading()
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def get(self, resource: Resource, name: str, namespace: str = "", *, subresource: str = "") -> Object:
        answer = await self._json("GET", _path(resource, namespace, name, subresource), accept=_accept(resource))
        return with_its_kind(answer, resource) if isinstance(resource, PartialResource) else answer

    async def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult:
        query = _selectors(label_selector, field_selector)
        answer = await self._json("GET", _path(resource, namespace), query=query, accept=_accept(resource, "List"))
        items: list[Object] = answer.get("items") or []
        if isinstance(resource, PartialResource):
            items = [with_its_kind(item, resource) for item in items]
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

        async def once() -> aiohttp.ClientResponse:
            return await self._open(
                "GET", _path(resource, namespace), query=query, accept=_accept(resource), timeout=self._stream_timeout
            )

        response = await (once() if self._patience is None else self._patience.send("GET", once))
        events = watch_events(response, bookmarks, resource)
        try:
            yield events
        finally:
            await events.aclose()  # type: ignore[attr-defined]  # an async generator, typed as an iterator
            response.close()

    async def create(
        self, resource: Resource, obj: AnyObject, namespace: str = "", *, name: str = "", subresource: str = ""
    ) -> Object:
        path = _path(resource, namespace, name if subresource else "", subresource)
        return await self._json("POST", path, body=obj)

    async def update(self, resource: Resource, obj: AnyObject, namespace: str = "", *, subresource: str = "") -> Object:
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
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Object:
        path = _path(resource, namespace, name, subresource)
        query = [("dryRun", "All")] if dry_run else []
        if field_manager:
            query += [("fieldManager", field_manager), ("force", "true")]
        return await self._json("PATCH", path, query=query, body=patch, content_type=content_type)

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
        dry_run: bool = False,
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
        if dry_run:
            options["dryRun"] = ["All"]
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
        """Yield a container's log in pieces as they arrive (not lines); with `follow` until the container ends.

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
        response = await self._open("GET", path, query=query, accept="*/*", timeout=self._stream_timeout)
        try:
            async for chunk in chunks(response):
                yield chunk
        finally:
            response.close()

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
        """Send any request, and return the body of a successful answer. `body` is bytes as they are, or JSON data."""

        async def once() -> bytes:
            response = await self._open(
                method, path, query=query, body=body, content_type=content_type, accept=accept, timeout=self._timeout
            )
            async with response:
                return await self._reading.whole(response)

        return await (once() if self._patience is None else self._patience.send(method, once))

    async def dated(self, path: str) -> tuple[bytes, str]:
        """Return a GET: the body, and the header `Date` (the server's clock), "" without one."""
        response = await self._open("GET", path, timeout=self._timeout)
        async with response:
            return await self._reading.whole(response), response.headers.get("Date", "")

    @asynccontextmanager
    async def websocket(
        self, path: str, query: Query, protocols: Sequence[str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Give a WebSocket of a subresource (exec, attach, portforward). StatusError when it is refused."""
        proof = None if self._credentials is None else await self._credentials.proof()
        try:
            socket = await self._open_session().ws_connect(
                _url(self.server, path, query),
                protocols=protocols,
                max_msg_size=MOST_EVENT_BYTES,
                autoping=True,
                server_hostname=self._tls_server_name,
                headers=None if proof is None else _authorization(proof),
                ssl=self._ssl_of(proof),
            )
        except aiohttp.WSServerHandshakeError as error:
            raise await self._refused(path, query, error.status) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise lost_connection("GET", self.server + path, error) from error
        async with socket:
            yield socket

    async def _refused(self, path: str, query: Query, status: int) -> StatusError:
        """Why a WebSocket was refused: a WebSocket's client does not read the Status, so it is asked for once more."""
        try:
            await self.request("GET", path, query=query)
        except StatusError as error:
            if error.code == status:
                return error
        except ConnectionLost:
            pass
        return status_failure(status, "", f"the server answered {status} in place of a WebSocket")

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _json(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        data = await self.request(method, path, query=query, body=body, content_type=content_type, accept=accept)
        return decoded(data, method, self.server + path)

    def _open_session(self) -> aiohttp.ClientSession:
        if self._closed:
            raise ConnectionLost("the client is closed")
        if self._session is None:
            self._session = send_once(
                aiohttp.ClientSession(
                    connector=self._connector(),
                    proxy=self._proxy if self._proxy.startswith("http") else None,
                    headers=self._headers,
                    skip_auto_headers=() if self._compress else ("Accept-Encoding",),
                    auto_decompress=True,
                    cookie_jar=aiohttp.DummyCookieJar(),
                    read_bufsize=STREAM_KEEPALIVE_READ_SIZE,
                )
            )
        return self._session

    async def _open(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send and wait for the head of a successful answer. The caller closes the response."""
        session = self._open_session()
        headers = {"Accept": accept}
        data: bytes | None = None
        if body is not None:
            data = body if isinstance(body, bytes) else orjson.dumps(body)
            headers["Content-Type"] = content_type
        url = _url(self.server, path, query)
        for again in (True, False):
            proof = None if self._credentials is None else await self._credentials.proof()
            try:
                response = await _sent(
                    session,
                    method,
                    url,
                    data=data,
                    headers=headers if proof is None else {**headers, **_authorization(proof)},
                    timeout=timeout,
                    allow_redirects=False,
                    server_hostname=self._tls_server_name,
                    ssl=self._ssl_of(proof),
                )
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise lost_connection(method, self.server + path, error) from error
            if response.status < 300:
                return response
            async with response:
                body_of_refusal = await self._reading.whole(response)
                refusal = status_error(method, path, response.status, dict(response.headers), body_of_refusal)
            # A 401 is answered before anything is done: with other credentials the request may be sent again.
            if response.status != 401 or proof is None or not (again and await self._renewed(proof)):
                break
        if self._on_refused is not None:
            self._on_refused(refusal)
        raise refusal

    async def _renewed(self, proof: "Proof") -> bool:
        return self._credentials is not None and await self._credentials.refused(proof)

    def _ssl_of(self, proof: "Proof | None") -> ssl.SSLContext | bool:
        tls = self._ssl if proof is None else proof.tls
        if tls is None and self._proxy.startswith("https://"):
            # of the proxy alone, which aiohttp's own context would not trust (world/aiohttp_inside/client.py)
            tls = self._ssl = self._ssl or ssl.create_default_context()
        return True if tls is None else tls

    def _connector(self) -> aiohttp.TCPConnector:
        if not self._proxy.startswith("socks5://"):
            return aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS, socket_factory=_socket)
        # late: few clusters have such a proxy
        from lastcall.kube.client.access.socks import socks_connector

        return socks_connector(self._proxy, keepalive_timeout=IDLE_SECONDS)


async def _sent(session: aiohttp.ClientSession, method: str, url: URL, **how: Any) -> aiohttp.ClientResponse:
    """The head of the answer. What changes nothing is sent a second time when its connection, which may have been kept,
    breaks without an answer; of anything else nobody knows whether it was done: its caller decides.

    Source: net/http transport.go:shouldRetryRequest, request.go:isReplayable.
    """
    try:
        return await session.request(method, url, **how)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if method not in SAFE or isinstance(error, aiohttp.ClientConnectorError):
            raise
    return await session.request(method, url, **how)


def _authorization(proof: "Proof") -> dict[str, str]:
    return {"Authorization": proof.authorization} if proof.authorization else {}


def _url(server: str, path: str, query: Query) -> URL:
    text = "&".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in query)
    return URL(server + path + (f"?{text}" if text else ""), encoded=True)


def _socket(address: Any) -> socket.socket:
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE_SECONDS * 1000)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE_SECONDS // 3)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, SILENCE_SECONDS // 3)
    return made


def _path(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    return resource.path(quote(namespace, safe=""), quote(name, safe=""), subresource)


def _accept(resource: Resource, suffix: str = "") -> str:
    """Of a kind that we know nothing of, the metadata alone, from a server that can leave out the rest."""
    if not isinstance(resource, PartialResource):
        return "application/json"
    return f"application/json;as=PartialObjectMetadata{suffix};g=meta.k8s.io;v=v1,application/json"


def _selectors(label_selector: str, field_selector: str) -> list[tuple[str, str]]:
    return [
        (key, value) for key, value in (("labelSelector", label_selector), ("fieldSelector", field_selector)) if value
    ]
