"""pods/proxy, services/proxy, nodes/proxy: finds the target, passes the request on and the answer back.

Neither body is ever collected: each side is read as the other takes it.

Sources: pkg/registry/core (ProxyREST of pods, services and nodes), apimachinery pkg/util/proxy (upgradeaware.go,
transport.go).
"""

import ssl
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus

from multidict import CIMultiDict

from lastcall.kube.api.errors import (
    StatusError,
    bad_request,
    internal,
    method_not_allowed,
    not_found,
    plain_failure,
    service_unavailable,
)
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import ENDPOINTS, NODES, PODS, SERVICES, Resource
from lastcall.kube.apiserver.proxying import bodies, headers, links, paths, targets
from lastcall.kube.apiserver.proxying.html import LinkRewriter
from lastcall.kube.apiserver.proxying.paths import Asked
from lastcall.kube.apiserver.proxying.targets import Target
from lastcall.kube.apiserver.proxying.upgrade import upgrade
from lastcall.kube.apiserver.proxying.upstream import Upstream, shown_host
from lastcall.kube.apiserver.registry.generic import GenericStore
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.apiserver.subresources.kubelet_client import kubelet_address
from lastcall.kube.streaming.dialing import Dial, DialError
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.aiohttp_inside.client import aiohttp
from lastcall.world.world import World

UNREACHED = "error trying to reach service: "
BROKEN = "net/http: HTTP/1.x transport connection broken: "
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Proxying:
    """`kubelet_tls` None: this API server has no connection to kubelets."""

    def __init__(
        self, world: World, kinds: Mapping[Resource, GenericStore], dial: Dial, kubelet_tls: ssl.SSLContext | None
    ) -> None:
        self._world, self._kinds = world, kinds
        self._upstream = Upstream(dial, kubelet_tls)
        self._knows_kubelets = kubelet_tls is not None

    async def close(self) -> None:
        await self._upstream.close()

    async def handle(self, request: web.BaseRequest, info: RequestInfo, own: dict[str, str]) -> web.StreamResponse:
        """Answer a request by proxy. `own` are headers of every answer. Raises StatusError."""
        if request.method not in METHODS:
            raise method_not_allowed()
        if "dryRun" in request.query:
            raise bad_request("dryRun is not supported")
        asked = paths.asked_path(request.raw_path, info.parts)
        if asked is None:
            return web.Response(status=400, text="400 Bad Request")
        target = await self._target(info)
        if headers.wants_upgrade(request.headers.items()):
            return await upgrade(request, self._upstream, target, asked, _client(request))
        if not asked.rest and request.method in ("GET", "HEAD"):
            return web.Response(status=301, headers={**own, "Location": paths.slash_redirect(asked)})
        return await self._passed_on(request, target, asked, own)

    # -- who is meant --------------------------------------------------------------------------------------------------

    async def _target(self, info: RequestInfo) -> Target:
        find = {"pods": self._pod, "services": self._endpoint, "nodes": self._node}[info.resource]
        return await find(info)

    async def _pod(self, info: RequestInfo) -> Target:
        asked = targets.asked_for("pod", info.name)
        return targets.pod_target(asked, info.name, await self._get(PODS, info.namespace, asked.name))

    async def _node(self, info: RequestInfo) -> Target:
        asked = targets.asked_for("node", info.name)
        node = await self._get(NODES, "", asked.name)
        if not self._knows_kubelets:
            raise service_unavailable("this API server has no connection to kubelets")
        try:
            address, port = kubelet_address(node)
        except StatusError:
            raise plain_failure("no preferred addresses found; known addresses: []") from None
        return targets.node_target(asked, info.name, address, port)

    async def _endpoint(self, info: RequestInfo) -> Target:
        asked = targets.asked_for("service", info.name)
        port = asked.port
        if targets.is_port_number(asked):
            port = targets.port_name(asked, await self._get(SERVICES, info.namespace, asked.name))
        endpoints = await self._find(ENDPOINTS, info.namespace, asked.name)
        if endpoints is None:
            raise not_found(SERVICES, asked.name)
        if not endpoints.get("subsets"):
            raise targets.no_endpoints(asked.name)
        for each in targets.endpoints_of(endpoints, info.namespace, port, self._world.random.randrange):
            if targets.has_address(await self._find(PODS, info.namespace, each.pod), each.address):
                return Target(asked.scheme or "http", each.address, str(each.port))
        raise targets.no_endpoints(info.name)

    async def _get(self, resource: Resource, namespace: str, name: str) -> Object:
        return (await self._kinds[resource].get(namespace, name)).object

    async def _find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        kind = self._kinds[resource]
        entry = await kind.shared.store.get(kind.key(namespace, name))
        return None if entry is None else kind.decode(entry.value)

    # -- there and back ------------------------------------------------------------------------------------------------

    async def _passed_on(
        self, request: web.BaseRequest, target: Target, asked: Asked, own: dict[str, str]
    ) -> web.StreamResponse:
        sent = headers.request_headers(
            headers.sendable(request.headers.items()), _client(request), paths.forwarded_uri(asked)
        )
        host = shown_host(target) if target.kubelet else request.headers.get("Host", "")
        sent.append(("Host", host))
        names = {name.lower() for name, _ in sent}
        gzips = request.method != "HEAD" and not {"accept-encoding", "range"} & names
        if gzips:
            sent.append(("Accept-Encoding", "gzip"))
        body = request.content if request.can_read_body else None
        if body is not None and request.content_length is not None:
            sent.append(("Content-Length", str(request.content_length)))
        if body is not None and request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        path = paths.escape(asked.rest or "/") + (f"?{asked.query}" if asked.query else "")
        try:
            answer = await self._upstream.request(request.method, target, path, sent, body)
        except (DialError, aiohttp.ClientError, ValueError) as error:
            raise service_unavailable(f"{UNREACHED}{_words(error)}") from None
        try:
            return await self._answered(request, answer, target, asked, host, own, gzips=gzips)
        finally:
            answer.close()

    async def _answered(
        self,
        request: web.BaseRequest,
        answer: aiohttp.ClientResponse,
        target: Target,
        asked: Asked,
        host: str,
        own: dict[str, str],
        *,
        gzips: bool,
    ) -> web.StreamResponse:
        coding = answer.headers.get("Transfer-Encoding", "chunked")
        if coding.lower() != "chunked":
            raise service_unavailable(f"{UNREACHED}{BROKEN}unsupported transfer encoding: {go_quote(coding)}")
        if answer.status == 101:
            shown = go_quote(answer.headers.get("Upgrade", ""))
            raise plain_failure(f'backend tried to switch protocol {shown} when "" was requested')
        passed = CIMultiDict([*own.items(), *headers.response_headers(headers.sendable(answer.headers.items()))])
        prefix, at = paths.prefix_of(asked), shown_host(target)

        def rewrite(text: str) -> str:
            return links.rewritten(links.parse(text), at, host, prefix)

        steps: list[bodies.Step] = []
        bodiless = request.method == "HEAD" or answer.status in (204, 304)
        encoding = answer.headers.get("Content-Encoding", "")
        if gzips and encoding.lower() == "gzip" and not bodiless:
            steps, encoding = [bodies.Decompressed("gzip")], ""
            passed.popall("Content-Encoding", None)
        if location := answer.headers.get("Location", ""):
            try:
                passed["Location"] = rewrite(location)
            except links.NoURL as error:
                raise internal(f"error trying to parse Location header: {error}") from None
        elif bodies.is_html(answer.headers.get("Content-Type", "")) and not bodiless:
            steps += _links(rewrite, encoding)
        if steps:
            passed.popall("Content-Length", None)
        first = await self._first(answer, passed, bodiless)
        try:
            pieces = list(bodies.through(steps, first)) if steps else [first]
        except zlib.error:
            raise plain_failure("gzip: invalid header") from None
        response = web.StreamResponse(status=answer.status, reason=_reason(answer.status), headers=passed)
        await response.prepare(request)
        try:
            await self._copy(answer, response, steps, pieces, bodiless=bodiless)
        except (aiohttp.ClientError, zlib.error):
            # It ended too early, and that is what the client has to see.
            if request.transport is not None:
                request.transport.abort()
        return response

    @staticmethod
    async def _first(answer: aiohttp.ClientResponse, passed: "CIMultiDict[str]", bodiless: bool) -> bytes:
        """Return the body's beginning where the type has to be found from it, or a decoder may refuse it."""
        if bodiless:
            return b""
        encoded = "Content-Encoding" in answer.headers and "Content-Encoding" not in passed
        typed = "Content-Type" in answer.headers
        if typed and not encoded:
            return b""
        try:
            first = await answer.content.readany()
        except aiohttp.ClientError as error:
            raise service_unavailable(f"{UNREACHED}{_words(error)}") from None
        if first and not typed and not encoded:
            passed["Content-Type"] = bodies.sniffed(first)
        return first

    async def _copy(
        self,
        answer: aiohttp.ClientResponse,
        response: web.StreamResponse,
        steps: list[bodies.Step],
        pieces: list[bytes],
        *,
        bodiless: bool,
    ) -> None:
        with suppress(ConnectionResetError):  # the client has gone
            await self._write(response, iter(pieces), bool(steps))
            while not bodiless and (data := await answer.content.readany()):
                await self._write(response, bodies.through(steps, data), bool(steps))
            if not bodiless:
                await self._write(response, bodies.ends(steps), bool(steps))
            await response.write_eof()

    async def _write(self, response: web.StreamResponse, pieces: Iterator[bytes], worked_on: bool) -> None:
        for piece in pieces:
            if piece:
                await response.write(piece)
            if worked_on:
                await self._world.clock.sleep(0)


def _links(rewrite: "links.Rewrite", encoding: str) -> list[bodies.Step]:
    """Steps for links in HTML; none for an encoding that is not known."""

    def rewrite_value(text: str) -> str:
        try:
            return rewrite(text)
        except links.NoURL:
            return text

    linked = bodies.Linked(LinkRewriter(rewrite_value))
    if not encoding:
        return [linked]
    if encoding not in ("gzip", "deflate"):
        return []
    return [bodies.Decompressed(encoding), linked, bodies.Compressed(encoding)]


def _client(request: web.BaseRequest) -> str:
    return request.remote or ""


def _reason(status: int) -> str:
    """What the target says there is not passed on: Go knows none but its own."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"status code {status}"


def _words(error: Exception) -> str:
    if isinstance(error, DialError):
        return str(error)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{BROKEN}malformed HTTP response"
    return f"read: {error}".lower()
