"""The HTTP face: from request to response and nothing more. What is asked is done in `operations`.

Stored bytes go out as they are. Errors are Status objects; a fault of our own is logged and answered 500, never with a
traceback.

Sources: apiserver pkg/endpoints/handlers/{get,create,update,patch,delete,watch}.go, pkg/server/filters.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from lastcall.api.apiservices.routes import Routes
from lastcall.api.custom.kinds import CustomResource
from lastcall.api.errors import (
    StatusError,
    internal,
    method_not_allowed,
    not_watched,
    resource_not_found,
)
from lastcall.api.resources import BINDINGS, COMPONENTSTATUSES, COMPUTED, ENDPOINTS, REVIEWS, Resource
from lastcall.apiserver.answers import representation
from lastcall.apiserver.answers.computed import computed_body
from lastcall.apiserver.answers.responses import Responses
from lastcall.apiserver.auth.authentication import (
    Authenticator,
    UserInfo,
    may_everything,
)
from lastcall.apiserver.auth.impersonation import Impersonator, impersonation
from lastcall.apiserver.auth.tokens import TokenIssuer
from lastcall.apiserver.catalog import Catalog
from lastcall.apiserver.discovery import verbs_of
from lastcall.apiserver.faces.scale import SCALES
from lastcall.apiserver.openapi.serving import openapi_response
from lastcall.apiserver.operations import Operations
from lastcall.apiserver.paths.documents import Documents
from lastcall.apiserver.paths.health import is_health
from lastcall.apiserver.paths.metrics.requests import RequestCounts
from lastcall.apiserver.registry.patching import patch_type
from lastcall.apiserver.requestinfo import RequestInfo, is_true, request_info
from lastcall.apiserver.streaming import frames
from lastcall.apiserver.streaming.frames import wants_websocket
from lastcall.apiserver.streaming.location import SUBRESOURCES as STREAMS
from lastcall.apiserver.streaming.proxy import proxy
from lastcall.apiserver.subresources.eviction import EVICTIONS
from lastcall.apiserver.subresources.posts import TOKEN_REQUESTS
from lastcall.apiserver.wire.bodies import Turns
from lastcall.apiserver.wire.context import RequestContext
from lastcall.apiserver.wire.negotiation import JSON, PROTOBUF, YAML, negotiate, not_acceptable
from lastcall.apiserver.wire.options import parse_list_options
from lastcall.apiserver.wire.requests import (
    Bodies,
    context_of,
    deleting_context,
    media_type_of,
    namespace_of,
    needs_name,
    warn,
    warnings_of,
)
from lastcall.client.api import APPLY_PATCH
from lastcall.streaming.hosts import Hosts
from lastcall.world import walls
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.apiserver.proxying.aggregation.backends import Backends
    from lastcall.apiserver.proxying.handler import Proxying
    from lastcall.apiserver.proxying.upstream import Dial

WATCH_BYTES = 64 << 10
"""Events that have come together leave together, in writes of about this size."""

DEPRECATED: Mapping[Resource, tuple[int, str]] = {
    COMPONENTSTATUSES: (19, "v1 ComponentStatus is deprecated in v1.19+"),
    ENDPOINTS: (33, "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
}
"""Kinds that requests are warned of: from which Kubernetes 1.x on, and the warning."""

_log = logging.getLogger("lastcall.apiserver")


def _no_backends() -> "Backends":
    raise internal("this API server passes no requests on")


WITHOUT_ROWS = frozenset(("binding", "ephemeralcontainers", "eviction", "finalize", "token"))
"""Subresources of which there is no Table."""


def has_rows(resource: Resource, subresource: str) -> bool:
    """Whether there is a Table of what is answered."""
    return resource != BINDINGS and resource not in REVIEWS and subresource not in WITHOUT_ROWS


class HTTPFace:
    """`handle` answers one request; give it to `aiohttp.web.Server`. `routes` say what `backends` answer."""

    def __init__(
        self,
        world: World,
        operations: Operations,
        authenticator: Authenticator,
        catalog: Catalog,
        issuer: TokenIssuer,
        hosts: Hosts,
        dial: "Dial | None" = None,
        routes: Routes | None = None,
        backends: "Callable[[], Backends]" = _no_backends,
    ) -> None:
        self._world = world
        self._bodies = Bodies(Turns(world.clock))
        self._responses = Responses(world, operations)
        self._documents = Documents(catalog, issuer, self._responses)
        self._operations = operations
        self._authenticator = authenticator
        self._catalog = catalog
        self._hosts = hosts
        self._dial = dial
        self._proxying: Proxying | None = None
        self._routes, self._backends = routes or Routes(), backends
        self._impersonator = Impersonator(operations.authorizer.check)
        self._counts = RequestCounts(world.clock)

    async def close(self) -> None:
        """Requests have ended."""
        if self._proxying is not None:
            await self._proxying.close()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if (refused := self._hosts.refusal(request)) is not None:
            return refused
        _note(request)
        try:
            return await self._handle(request)
        except StatusError as error:
            return self._responses.error(request, error)
        except (ConnectionResetError, web.HTTPException):
            raise
        except Exception as error:
            walls.noticed("API server", f"{request.method} {request.path}", error)
            _log.exception("%s %s failed", request.method, request.path)
            return self._responses.error(request, internal(f"{type(error).__name__}: {error}"))
        finally:
            if walls.on_turn is not None:
                walls.on_turn("", "")

    async def _authenticate(self, request: web.BaseRequest, certificate: "Mapping[str, object] | None") -> UserInfo:
        """Raises the 401 StatusError."""
        told = "failure"
        try:
            user = await self._authenticator.authenticate(request.headers.get("Authorization", ""), certificate)
            told = "success"
            return user
        finally:
            self._counts.authenticated[told] = self._counts.authenticated.get(told, 0) + 1

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        user = await self._authenticate(request, certificate)
        info = request_info(request.method, request.path, request.query)
        if (asked := impersonation(request.headers)) is not None:
            user = await self._impersonator.user_of(asked, user, _about(request, info))
        await self._authorize(request, user, info)
        if self._routes.remote and (remote := self._routes.of_path(info.path)) is not None:
            return await self._backends().handle(request, user, remote)
        if not info.is_resource_request:
            if info.path.startswith("/openapi/"):
                return await openapi_response(self._catalog.openapi, request)
            return await self._document(request, info)
        resource = self._resource(info)
        if resource is None:
            return self._not_found(info)
        if isinstance(resource, CustomResource):
            lists = not info.name and info.verb != "watch"
            if negotiate(request.headers.get("Accept", ""), list_=lists).name == PROTOBUF:
                raise not_acceptable(True)
            if resource.warning:
                warnings_of(request).append(resource.warning)
        verb = self._verbs(request, info, resource)
        since, warning = DEPRECATED.get(resource, (0, ""))
        if warning and self._catalog.discovery.minor_version >= since:
            warnings_of(request).append(warning)
        try:
            return await self._counted(request, info, verb(request, info, resource, user))
        except StatusError as error:
            if error.code == 406:
                warnings_of(request).clear()  # nobody who would warn was asked
            raise

    async def _counted(
        self, request: web.BaseRequest, info: RequestInfo, work: Awaitable[web.StreamResponse]
    ) -> web.StreamResponse:
        begun, code, size = self._counts.begin(request, info), 0, 0
        try:
            answer = await work
            code = answer.status
            size = len(answer.body) if isinstance(answer, web.Response) and isinstance(answer.body, bytes) else 0
            return answer
        except StatusError as error:
            code = error.code
            raise
        finally:
            self._counts.end(begun, code, size)

    async def _document(self, request: web.BaseRequest, info: RequestInfo) -> web.StreamResponse:
        """What is at a path that is not of objects."""
        if info.path == "/metrics":
            # late: few ask for it
            from lastcall.apiserver.paths.metrics.endpoints import metrics

            return await metrics(self._world, self._counts, self._operations.kinds, self._catalog.version)
        if info.path == "/statusz":
            # late: few ask for it
            from lastcall.apiserver.paths.metrics.statusz import statusz

            return statusz(request, "apiserver", self._catalog.version, self._world.clock)
        if is_health(info.path):
            return await self._counted(request, info, self._answer(request, info))
        return self._documents.answer(request, info)

    async def _answer(self, request: web.BaseRequest, info: RequestInfo) -> web.StreamResponse:
        return self._documents.answer(request, info)

    async def _authorize(self, request: web.BaseRequest, user: UserInfo, info: RequestInfo) -> None:
        """Raises the 403 StatusError."""
        told = "denied"
        try:
            if not may_everything(user):
                await self._check(request, user, info)
            told = "allowed"
        finally:
            self._counts.authorized[told] = self._counts.authorized.get(told, 0) + 1

    async def _check(self, request: web.BaseRequest, user: UserInfo, info: RequestInfo) -> None:
        """Raises the 403 StatusError when `user` may not do this."""
        authorizer = self._operations.authorizer
        info = _about(request, info)
        await authorizer.check(user, info)
        if info.subresource in STREAMS and info.verb == "get":
            # A WebSocket begins with a GET and may do what a POST may
            # (AuthorizePodWebsocketUpgradeCreatePermission, since 1.35).
            await authorizer.check(user, info._replace(verb="create"))

    def _resource(self, info: RequestInfo) -> Resource | None:
        resource = self._catalog.resource(info.group, info.version, info.resource)
        if (
            resource is None
            or (info.parts and info.subresource != "proxy")
            or (info.subresource and info.subresource not in resource.subresources)
        ):
            return None
        if info.namespace and not resource.namespaced and resource.plural != "namespaces":
            return None
        return resource

    def _not_found(self, info: RequestInfo) -> web.Response:
        if not self._catalog.discovery.has_group(info.group):
            return web.Response(status=404, text="404 page not found\n")
        raise resource_not_found()

    def _verbs(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource
    ) -> Callable[[web.BaseRequest, RequestInfo, Resource, UserInfo], Awaitable[web.StreamResponse]]:
        if info.subresource == "proxy":
            return self._proxy
        if resource in COMPUTED:
            return self._computed
        if info.verb == "watch":
            return self._watch
        if info.subresource == "log" and request.method == "GET":
            return self._log_of
        if info.subresource in STREAMS:
            if request.method not in ("GET", "POST"):
                raise method_not_allowed()
            return self._stream
        handlers: dict[
            str, Callable[[web.BaseRequest, RequestInfo, Resource, UserInfo], Awaitable[web.StreamResponse]]
        ] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        if info.name and not info.subresource and not self._operations.has_objects(resource):
            raise resource_not_found()
        handler = handlers.get(info.verb)
        if handler is None or request.method == "HEAD":
            raise method_not_allowed()
        return handler

    # -- verbs -------------------------------------------------------------------------------------------------------

    async def _get(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        if info.subresource not in ("", "status", "scale", "ephemeralcontainers", "resize", "approval"):
            raise method_not_allowed()
        media_type = media_type_of(request, list_=False, rows=has_rows(resource, info.subresource))
        if info.subresource == "scale":
            scale = await self._operations.get_scale(resource, info.namespace, info.name)
            return self._responses.object(request, SCALES, scale, media_type)
        await self._operations.check_get_version(request.query.get("resourceVersion", ""))
        namespace = namespace_of(info, resource)
        if media_type.plain:
            return self._responses.document(
                request, await self._operations.get_bytes(resource, namespace, info.name), media_type
            )
        answer = await self._operations.get(resource, namespace, info.name)
        return self._responses.object(request, resource, answer, media_type)

    async def _list(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        media_type = media_type_of(request, list_=True)
        options = parse_list_options(request.query, watch=False)
        page = await self._operations.list(resource, namespace_of(info, resource), options)
        return await self._responses.list(request, resource, page, media_type)

    async def _watch(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        query = dict(request.query)
        if info.name:
            query["fieldSelector"] = f"metadata.name={info.name}"
        media_type = media_type_of(request, list_=False)
        if media_type.name == YAML:
            raise not_acceptable(True, stream=True)
        options = parse_list_options(query, watch=True)
        encoder = representation.WatchEncoder(self._operations, resource, media_type, request.query)
        encode, content_type = encoder.line, JSON
        if media_type.name == PROTOBUF:
            encode, content_type = encoder.frame, f"{PROTOBUF};stream=watch"
        sizes = self._counts.event_sizes(resource)
        async with self._operations.watch(resource, namespace_of(info, resource), options) as events:
            response = web.StreamResponse(headers={"Content-Type": content_type, **self._responses.headers()})
            response.enable_chunked_encoding()
            warn(request, response)
            await response.prepare(request)
            with suppress(ConnectionResetError):
                async for event in events:
                    lines, size = [encode(event)], 0
                    sizes.observe(len(lines[0]))
                    while size < WATCH_BYTES and (more := events.take()) is not None:
                        lines.append(encode(more))
                        size += len(lines[-1])
                        sizes.observe(len(lines[-1]))
                    await response.write(lines[0] if len(lines) == 1 else b"".join(lines))
                await response.write_eof()
        return response

    async def _create(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        takes_name = info.subresource in ("binding", "eviction", "token")
        if bool(info.name) is not takes_name or (resource.namespaced and not info.namespace):
            raise method_not_allowed()
        media_type = media_type_of(request, list_=False, rows=has_rows(resource, info.subresource))
        context = context_of(request, user, "CreateOptions")
        obj = await self._bodies.object(request, _body_kind(resource, info), context)
        answer = await self._operations.create(
            context,
            resource,
            obj,
            info.namespace if resource.namespaced else "",
            name=info.name if info.subresource else "",
            subresource=info.subresource,
        )
        return self._responses.object(request, resource, answer, media_type)

    async def _update(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        needs_name(info)
        media_type = media_type_of(request, list_=False, rows=has_rows(resource, info.subresource))
        context = context_of(request, user, "UpdateOptions")
        obj = await self._bodies.object(request, _body_kind(resource, info), context)
        namespace = info.namespace if resource.namespaced else ""
        answer = await self._operations.update(
            context, resource, obj, namespace, info.name, subresource=info.subresource
        )
        shown = SCALES if info.subresource == "scale" else resource
        return self._responses.object(request, shown, answer, media_type)

    async def _patch(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        needs_name(info)
        content_type = patch_type(request.headers.get("Content-Type", ""))
        media_type = media_type_of(request, list_=False, rows=has_rows(resource, info.subresource))
        apply = content_type == APPLY_PATCH
        context = context_of(request, user, "PatchOptions", apply=apply)
        namespace = info.namespace if resource.namespaced else ""
        try:
            patch = await self._bodies.patch(request, content_type, context)
        except StatusError as error:
            if error.code == 400 and not apply:
                await self._operations.get(resource, namespace, info.name)  # a patch is read after its object
            raise
        answer = await self._operations.patch(
            context,
            resource,
            patch,
            namespace,
            info.name,
            content_type=content_type,
            subresource=info.subresource,
            force=apply and is_true(request.query, "force"),
        )
        shown = SCALES if info.subresource == "scale" else resource
        return self._responses.object(request, shown, answer, media_type)

    async def _delete(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        if info.subresource:
            raise method_not_allowed()
        media_type = media_type_of(request, list_=False)
        context = deleting_context(request, user)
        options = await self._bodies.delete_options(request)
        namespace = info.namespace if resource.namespaced else ""
        answer = await self._operations.delete(context, resource, namespace, info.name, options)
        status = 202 if options.orphan_dependents is False and not answer.removed else 200
        return self._responses.object(request, resource, answer, media_type, status=status)

    async def _delete_collection(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        if "deletecollection" not in verbs_of(resource) or (resource.namespaced and not info.namespace):
            raise method_not_allowed()
        media_type = media_type_of(request, list_=True)
        context = deleting_context(request, user)
        options = await self._bodies.delete_options(request)
        list_options = parse_list_options(request.query, watch=False)
        page = await self._operations.delete_collection(context, resource, info.namespace, list_options, options)
        return await self._responses.list_body(request, resource, page, media_type)

    async def _log_of(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        chunks = await self._operations.log(info.namespace, info.name, request.query)
        if chunks is None:
            return web.Response(status=204, headers=self._responses.headers())
        # The first chunk tells whether the kubelet refuses; only then is the answer a 200.
        first = await anext(chunks, b"")
        if wants_websocket(request):
            return await frames.send(request, _from(first, chunks))
        response = web.StreamResponse(headers={"Content-Type": "text/plain", **self._responses.headers()})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with suppress(ConnectionResetError):
            await _pump(response, first, chunks)
        return response

    async def _stream(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        await self._operations.connect(RequestContext(user), resource, info, request.query)
        kubelets, node, location = await self._operations.stream(
            info.subresource, info.namespace, info.name, request.query
        )
        return await proxy(request, kubelets, node, location)

    async def _proxy(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        if resource.namespaced and not info.namespace:
            raise resource_not_found()
        await self._operations.connect(RequestContext(user), resource, info, request.query)
        if self._proxying is None:
            # late: few ask for it
            from lastcall.apiserver.proxying.handler import Proxying
            from lastcall.apiserver.proxying.upstream import dial

            operations = self._operations
            self._proxying = Proxying(self._world, operations.kinds, self._dial or dial, operations.kubelet_tls)
        return await self._proxying.handle(request, info, self._responses.headers())

    async def _computed(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        """What nodes and Pods use now; how the parts of the control plane are."""
        if info.verb == "watch":
            raise not_watched(resource) if is_true(request.query, "watch") else resource_not_found()
        if info.verb not in ("get", "list") or request.method == "HEAD":
            raise method_not_allowed()
        media_type = media_type_of(request, list_=info.verb == "list")
        namespace = namespace_of(info, resource)
        if info.verb == "get":
            answer = await self._operations.computed(resource).get(resource, namespace, info.name)
        else:
            options = parse_list_options(request.query, watch=False)
            selection = self._operations.selection(resource, options)
            answer = await self._operations.computed(resource).all_of(resource, namespace, selection.matches)
        body = computed_body(resource, answer, media_type, request.query, self._operations.now())
        return self._responses.document(request, body, media_type)


def _about(request: web.BaseRequest, info: RequestInfo) -> RequestInfo:
    """What an authorizer is asked: of a request about a collection also which of its objects are meant."""
    if info.verb in ("list", "watch", "deletecollection"):
        return info.with_selector(request.query.get("fieldSelector", ""))
    return info


def _note(request: web.BaseRequest) -> None:
    """Say that this request is worked on (`world/walls.py`)."""
    if walls.on_turn is not None:
        walls.on_turn(walls.REQUEST, f"{request.method} {request.path}")


async def _from(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for chunk in chunks:
        yield chunk


async def _pump(response: web.StreamResponse, first: bytes, chunks: AsyncIterator[bytes]) -> None:
    if first:
        await response.write(first)
    async for chunk in chunks:
        await response.write(chunk)
    await response.write_eof()


def _body_kind(resource: Resource, info: RequestInfo) -> Resource:
    """What a POST's body is: the resource itself, or what its subresource takes."""
    if info.subresource == "binding":
        return BINDINGS
    if info.subresource == "eviction":
        return EVICTIONS
    if info.subresource == "token":
        return TOKEN_REQUESTS
    return SCALES if info.subresource == "scale" else resource
