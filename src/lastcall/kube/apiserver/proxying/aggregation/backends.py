"""Servers that answer group versions for this one: connections to them, and requests on their way.

A Service's endpoints are chosen here, ready ones at random: the control plane has no service proxy
(kube-apiserver's --enable-aggregator-routing).

Sources: kube-aggregator pkg/apiserver/handler_proxy.go, pkg/controllers/status/remote (BuildTransportConfig),
apiserver pkg/util/proxy/proxy.go:ResolveEndpoint.
"""

import asyncio
import base64
import ssl
from binascii import Error as Base64Error
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from socket import socket
from typing import NamedTuple

from multidict import CIMultiDict
from yarl import URL

from lastcall.kube.api.apiservices.routes import Remote, Service
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import ENDPOINTSLICES, SERVICES, Resource
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.auth.tls import with_certificate
from lastcall.kube.apiserver.proxying import headers
from lastcall.kube.apiserver.proxying.aggregation.availability import endpoints_of, port_name
from lastcall.kube.apiserver.proxying.aggregation.front_proxy import FrontProxy, user_headers
from lastcall.kube.apiserver.proxying.upgrade import head, switch
from lastcall.kube.apiserver.proxying.upstream import LONGEST_LINE, tls_words
from lastcall.kube.streaming.dialing import Dial, DialError
from lastcall.kube.streaming.upgrade import CHUNK
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.aiohttp_inside.client import aiohttp
from lastcall.world.aiohttp_inside.connector import DialledConnector
from lastcall.world.world import World

UNAVAILABLE = "service unavailable"
_OWN_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Which aiohttp would add."""

Find = Callable[[Resource, str, str], Awaitable[Object | None]]
All = Callable[[Resource, str], Awaitable[list[Object]]]


class BadBundle(ValueError):
    """A caBundle without a certificate."""


class Downloaded(NamedTuple):
    status: int
    content_type: str
    body: bytes


class Backends:
    """`find` and `list_` read what is stored; `dial` reaches addresses of Pods."""

    def __init__(self, world: World, find: Find, list_: All, dial: Dial, front_proxy: FrontProxy) -> None:
        self._world, self._find, self._list, self._dial, self._front_proxy = world, find, list_, dial, front_proxy
        self._made: dict[Service, _Backend] = {}

    async def close(self) -> None:
        for backend in self._made.values():
            await backend.session.close()

    async def keep_only(self, services: set[Service]) -> None:
        """Forget how others are reached."""
        for service in [each for each in self._made if each not in services]:
            await self._made.pop(service).session.close()

    def _backend(self, service: Service) -> "_Backend":
        if service not in self._made:
            self._made[service] = _Backend(service, self._connect, _context(service, self._front_proxy))
        return self._made[service]

    async def _connect(self, service: Service) -> socket:
        """To a ready endpoint. Raises DialError."""
        found = await self._find(SERVICES, service.namespace, service.name)
        name = None if found is None else port_name(found, service.port)
        if name is None:
            raise DialError(f'no service port {service.port} found for service "{service.name}"')
        slices = [
            each
            for each in await self._list(ENDPOINTSLICES, service.namespace)
            if (each["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == service.name
        ]
        ready = endpoints_of(slices, name)
        if not ready:
            raise DialError(f'no endpoints available for service "{service.name}"')
        address, port = ready[self._world.random.randrange(len(ready))]
        return await self._dial(address, port)

    async def get(self, remote: Remote, path: str, accept: str, user: UserInfo, seconds: float) -> Downloaded:
        """Fetch a whole answer. Raises DialError, aiohttp.ClientError, TimeoutError, BadBundle."""
        service = remote.service
        sent = [("Accept", accept), ("User-Agent", "kube-aggregator"), *user_headers(user)]
        async with (
            asyncio.timeout(seconds),
            self._backend(service).session.get(
                _url(service, path),
                headers=CIMultiDict(sent),
                allow_redirects=False,
                skip_auto_headers=_OWN_HEADERS,
            ) as answer,
        ):
            return Downloaded(answer.status, answer.headers.get("Content-Type", ""), await answer.read())

    async def handle(self, request: web.BaseRequest, user: UserInfo, remote: Remote) -> web.StreamResponse:
        """Pass a request on as `user`'s, and the answer back as it comes. Raises StatusError."""
        if not remote.available:
            return _refused(503, UNAVAILABLE)
        try:
            backend = self._backend(remote.service)
        except BadBundle as error:
            return _refused(500, str(error))
        client = request.remote or ""
        path = request.raw_path
        if not path.startswith("/"):  # http://host/path
            path = "/" + path.partition("//")[2].partition("/")[2]
        who = list(user_headers(user))
        if headers.wants_upgrade(request.headers.items()):
            passed = headers.upgrade_headers(list(request.headers.items()), client)
            sent = head(request.method, path, f"{remote.service.host}:{remote.service.port}", [*passed, *who])
            try:
                return await switch(request, backend.connect, sent)
            except StatusError as error:
                return _refused(503, error.status.get("message", UNAVAILABLE))
        sendable = headers.sendable(request.headers.items())
        passed = [
            (key, value)
            for key, value in headers.request_headers(sendable, client, path.partition("?")[0])
            if key != "X-Forwarded-Uri"
        ]
        body = request.content if request.can_read_body else None
        if body is not None and request.content_length is not None:
            passed.append(("Content-Length", str(request.content_length)))
        try:
            answer = await backend.session.request(
                request.method,
                _url(remote.service, path),
                headers=CIMultiDict([*passed, *who]),
                data=body,
                allow_redirects=False,
                skip_auto_headers=_OWN_HEADERS,
            )
        except (DialError, aiohttp.ClientError, ValueError) as error:
            return _refused(503, f"error trying to reach service: {error or type(error).__name__}")
        try:
            return await _passed_back(request, answer)
        finally:
            answer.close()


class _Backend:
    """One server, as one APIService says how to reach it."""

    def __init__(
        self, service: Service, connect: Callable[[Service], Awaitable[socket]], context: ssl.SSLContext
    ) -> None:
        self._service, self._connect, self._context = service, connect, context
        self.session = aiohttp.ClientSession(
            connector=_Connector(lambda: connect(service), context),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises DialError."""
        sock = await self._connect(self._service)
        try:
            return await asyncio.open_connection(
                sock=sock, ssl=self._context, server_hostname=self._service.host, limit=CHUNK
            )
        except OSError as error:
            sock.close()
            raise DialError(_words(error)) from None


class _Connector(DialledConnector):
    def __init__(self, connect: Callable[[], Awaitable[socket]], context: ssl.SSLContext) -> None:
        super().__init__(force_close=True, limit=0)
        self._connect, self._context = connect, context

    async def dial(self, url: URL) -> tuple[socket, ssl.SSLContext | None]:
        return await self._connect(), self._context

    def tls_failed(self, error: ssl.SSLError) -> Exception:
        return DialError(_words(error))


def _words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        if "ostname mismatch" in error.verify_message or "IP address mismatch" in error.verify_message:
            return f"tls: failed to verify certificate: x509: {error.verify_message}"
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    return tls_words(error) if isinstance(error, ssl.SSLError) else str(error)


def _url(service: Service, path: str) -> URL:
    return URL(f"https://{service.host}:{service.port}{path}", encoded=True)


def _context(service: Service, front_proxy: FrontProxy) -> ssl.SSLContext:
    """Raises BadBundle."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if service.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif service.ca_bundle:
        try:
            context.load_verify_locations(cadata=base64.b64decode(service.ca_bundle).decode())
        except (ValueError, Base64Error, ssl.SSLError):
            raise BadBundle("unable to load root certificates: unable to parse bytes as PEM block") from None
    else:
        context.load_default_certs()
    if front_proxy.certificate:
        with_certificate(context, front_proxy.certificate, front_proxy.key)
    return context


def _refused(status: int, text: str) -> web.Response:
    """(http.Error)"""
    return web.Response(status=status, text=text + "\n", headers={"X-Content-Type-Options": "nosniff"})


async def _passed_back(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    passed = CIMultiDict(headers.response_headers(headers.sendable(answer.headers.items())))
    reason = HTTPStatus(answer.status).phrase if answer.status in list(HTTPStatus) else str(answer.status)
    response = web.StreamResponse(status=answer.status, reason=reason, headers=passed)
    await response.prepare(request)
    bodiless = request.method == "HEAD" or answer.status in (204, 304)
    try:
        with suppress(ConnectionResetError):  # the client has gone
            while not bodiless and (data := await answer.content.readany()):
                await response.write(data)
            await response.write_eof()
    except aiohttp.ClientError:
        # It ended too early, and that is what the client has to see.
        if request.transport is not None:
            request.transport.abort()
    return response
