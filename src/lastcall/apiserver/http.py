"""The HTTP face: from request to response and nothing more. What is asked is done in `operations`.

Stored bytes go out as they are. Errors are Status objects; a fault of our own is logged and answered 500, never with a
traceback.

Sources: apiserver pkg/endpoints/handlers/{get,create,update,patch,delete,watch}.go, pkg/server/filters.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import orjson

from lastcall.api.apiservices.routes import Routes
from lastcall.api.custom.kinds import CustomResource
from lastcall.api.errors import (
    StatusError,
    internal,
    method_not_allowed,
    resource_not_found,
    too_large,
)
from lastcall.api.meta import Object
from lastcall.api.resources import BINDINGS, ENDPOINTS, METRICS, REVIEWS, Resource
from lastcall.apiserver.answers import representation
from lastcall.apiserver.answers.list_bodies import PIECE_BYTES, StoredList, is_stored_form, list_body, stored_list
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
from lastcall.apiserver.health import health
from lastcall.apiserver.openapi.serving import openapi_response
from lastcall.apiserver.operations import TOKEN_REQUESTS, Operations
from lastcall.apiserver.registry.generic import Answer
from lastcall.apiserver.registry.listing import Page
from lastcall.apiserver.registry.patching import patch_type
from lastcall.apiserver.requestinfo import RequestInfo, is_true, request_info
from lastcall.apiserver.streaming import frames
from lastcall.apiserver.streaming.frames import wants_websocket
from lastcall.apiserver.streaming.location import SUBRESOURCES as STREAMS
from lastcall.apiserver.streaming.proxy import proxy
from lastcall.apiserver.subresources.eviction import EVICTIONS
from lastcall.apiserver.wire.bodies import Turns, decode_object, decode_optional, decode_patch
from lastcall.apiserver.wire.context import FieldValidation, RequestContext
from lastcall.apiserver.wire.negotiation import (
    INDENTED,
    JSON,
    PLAIN,
    PROTOBUF,
    YAML,
    MediaType,
    body_media_type,
    negotiate,
    not_acceptable,
    wants_pretty,
)
from lastcall.apiserver.wire.options import parse_delete_options, parse_dry_run, parse_list_options
from lastcall.apiserver.wire.warning_headers import warning_headers
from lastcall.client.api import APPLY_PATCH
from lastcall.streaming.hosts import Hosts
from lastcall.world import walls
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.apiserver.proxying.aggregation.backends import Backends
    from lastcall.apiserver.proxying.handler import Proxying
    from lastcall.apiserver.proxying.upstream import Dial

MAX_BODY_BYTES = 3 << 20
"""MaxRequestBodyBytes."""

MAX_REVIEW_BYTES = 64 << 10
"""Of what everybody may send who is known, whatever else they may: reviews, and options of a DELETE. Kubernetes has no
other limit for them, and other processors to read them with."""

WATCH_BYTES = 64 << 10
"""Events that have come together leave together, in writes of about this size."""

WARNINGS: Any = web.RequestKey("warnings", list) if web.RequestKey else "warnings"
"""Where a request keeps its warnings."""

DEPRECATED: Mapping[Resource, tuple[int, str]] = {
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
        self._turns = Turns(world.clock)
        self._operations = operations
        self._authenticator = authenticator
        self._catalog = catalog
        self._issuer = issuer
        self._hosts = hosts
        self._dial = dial
        self._proxying: Proxying | None = None
        self._routes, self._backends = routes or Routes(), backends
        self._impersonator = Impersonator(operations.authorizer.check)

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
            return self._error(request, error)
        except (ConnectionResetError, web.HTTPException):
            raise
        except Exception as error:
            walls.noticed("API server", f"{request.method} {request.path}", error)
            _log.exception("%s %s failed", request.method, request.path)
            return self._error(request, internal(f"{type(error).__name__}: {error}"))
        finally:
            if walls.on_turn is not None:
                walls.on_turn("", "")

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        user = await self._authenticator.authenticate(request.headers.get("Authorization", ""), certificate)
        info = request_info(request.method, request.path, request.query)
        if (asked := impersonation(request.headers)) is not None:
            user = await self._impersonator.user_of(asked, user, _about(request, info))
        if not may_everything(user):
            await self._check(request, user, info)
        if self._routes.remote and (remote := self._routes.of_path(info.path)) is not None:
            return await self._backends().handle(request, user, remote)
        if not info.is_resource_request:
            if info.path.startswith("/openapi/"):
                return await openapi_response(self._catalog.openapi, request)
            return self._path(request, info)
        resource = self._resource(info)
        if resource is None:
            return self._not_found(info)
        if isinstance(resource, CustomResource):
            lists = not info.name and info.verb != "watch"
            if negotiate(request.headers.get("Accept", ""), list_=lists).name == PROTOBUF:
                raise not_acceptable(True)
            if resource.warning:
                _warnings(request).append(resource.warning)
        since, warning = DEPRECATED.get(resource, (0, ""))
        if warning and self._catalog.discovery.minor_version >= since:
            _warnings(request).append(warning)
        return await self._verbs(request, info)(request, info, resource, user)

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
        self, request: web.BaseRequest, info: RequestInfo
    ) -> Callable[[web.BaseRequest, RequestInfo, Resource, UserInfo], Awaitable[web.StreamResponse]]:
        if info.subresource == "proxy":
            return self._proxy
        if info.group == METRICS[0].group:
            return self._metrics
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
        handler = handlers.get(info.verb)
        if handler is None or request.method == "HEAD":
            raise method_not_allowed()
        return handler

    # -- paths that are not resources ---------------------------------------------------------------------------------

    def _path(self, request: web.BaseRequest, info: RequestInfo) -> web.Response:
        path = request.path.rstrip("/") or "/"
        if (answer := health(path, request.query)) is not None:
            return web.Response(status=answer.status, text=answer.text, headers={"X-Content-Type-Options": "nosniff"})
        accept = request.headers.get("Accept", "")
        if path in self._catalog.discovery.aggregated and "apidiscovery.k8s.io" in accept:
            return self._aggregated(request, path, accept)
        if path == "/openid/v1/jwks":
            return web.Response(body=orjson.dumps(self._issuer.jwks()), content_type="application/jwk-set+json")
        if path == "/.well-known/openid-configuration":
            return web.Response(body=orjson.dumps(self._issuer.configuration(request.host)), content_type=JSON)
        document = self._catalog.discovery.documents.get(path)
        if document is None:
            if info.path.startswith(("/api/", "/apis/")) and len(path.split("/")) > 2 and path.startswith("/api/"):
                raise resource_not_found()
            group = path.split("/")[2] if path.startswith("/apis/") else ""
            if group and self._catalog.discovery.has_group(group):
                raise resource_not_found()
            return web.Response(status=404, text="404 page not found\n")
        if request.method != "GET":
            raise method_not_allowed()
        media_type = negotiate(accept, list_=False, table=False)
        if path == "/version":
            media_type = INDENTED
        return self._bytes(request, document, self._pretty(request, media_type))

    def _aggregated(self, request: web.BaseRequest, path: str, accept: str) -> web.Response:
        for clause in accept.split(","):
            pieces = {piece.strip() for piece in clause.split(";")}
            for version, (body, etag) in self._catalog.discovery.aggregated[path].items():
                form = ("g=apidiscovery.k8s.io", f"v={version}", "as=APIGroupDiscoveryList")
                if not pieces.issuperset(form):
                    continue
                headers = {"ETag": etag, "Vary": "Accept", "Cache-Control": "public"}
                if request.headers.get("If-None-Match") == etag:
                    return web.Response(status=304, headers=headers)
                return web.Response(body=body, headers={**headers, "Content-Type": ";".join((JSON, *form))})
            if clause.strip() in (JSON, "*/*"):
                return self._bytes(request, self._catalog.discovery.documents[path], PLAIN)
        raise not_acceptable(True)

    # -- verbs -------------------------------------------------------------------------------------------------------

    async def _get(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        if info.subresource not in ("", "status", "scale", "ephemeralcontainers", "resize", "approval"):
            raise method_not_allowed()
        media_type = self._media_type(request, list_=False, rows=has_rows(resource, info.subresource))
        if info.subresource == "scale":
            scale = await self._operations.get_scale(resource, info.namespace, info.name)
            return self._answer(request, SCALES, scale, media_type)
        await self._operations.check_get_version(request.query.get("resourceVersion", ""))
        namespace = self._namespace(info, resource)
        if media_type.plain:
            return self._bytes(request, await self._operations.get_bytes(resource, namespace, info.name), media_type)
        answer = await self._operations.get(resource, namespace, info.name)
        return self._answer(request, resource, answer, media_type)

    async def _list(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        media_type = self._media_type(request, list_=True)
        options = parse_list_options(request.query, watch=False)
        page = await self._operations.list(resource, self._namespace(info, resource), options)
        if media_type.plain and is_stored_form(self._operations, resource):
            stored = await stored_list(self._operations, resource, page)
            if stored.length > PIECE_BYTES:
                return await self._stored(request, stored)
        return await self._list_body(request, resource, page, media_type)

    async def _stored(self, request: web.BaseRequest, stored: StoredList) -> web.StreamResponse:
        """A long list as its pieces are made; others get their turn between two of them."""
        headers = {**self._headers(), "Content-Type": JSON, "Content-Length": str(stored.length)}
        response = web.StreamResponse(headers=headers)
        _warn(request, response)
        await response.prepare(request)
        with suppress(ConnectionResetError):
            for piece in stored.pieces:
                await response.write(piece)
                await self._world.clock.sleep(0)
            await response.write_eof()
        return response

    async def _list_body(
        self, request: web.BaseRequest, resource: Resource, page: Page, media_type: MediaType
    ) -> web.Response:
        body = await list_body(self._operations, resource, page, media_type, request.query)
        response = web.Response(body=body, headers={**self._headers(), "Content-Type": media_type.name})
        _warn(request, response)
        return response

    async def _watch(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        query = dict(request.query)
        if info.name:
            query["fieldSelector"] = f"metadata.name={info.name}"
        media_type = self._media_type(request, list_=False)
        if media_type.name == YAML:
            raise not_acceptable(True, stream=True)
        options = parse_list_options(query, watch=True)
        encoder = representation.WatchEncoder(self._operations, resource, media_type, request.query)
        encode, content_type = encoder.line, JSON
        if media_type.name == PROTOBUF:
            encode, content_type = encoder.frame, f"{PROTOBUF};stream=watch"
        async with self._operations.watch(resource, self._namespace(info, resource), options) as events:
            response = web.StreamResponse(headers={"Content-Type": content_type, **self._headers()})
            response.enable_chunked_encoding()
            _warn(request, response)
            await response.prepare(request)
            with suppress(ConnectionResetError):
                async for event in events:
                    lines, size = [encode(event)], 0
                    while size < WATCH_BYTES and (more := events.take()) is not None:
                        lines.append(encode(more))
                        size += len(lines[-1])
                    await response.write(lines[0] if len(lines) == 1 else b"".join(lines))
                await response.write_eof()
        return response

    async def _create(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        takes_name = info.subresource in ("binding", "eviction", "token")
        if bool(info.name) is not takes_name or (resource.namespaced and not info.namespace):
            raise method_not_allowed()
        media_type = self._media_type(request, list_=False, rows=has_rows(resource, info.subresource))
        context = self._context(request, user, "CreateOptions")
        obj = await self._object(request, _body_kind(resource, info), context)
        answer = await self._operations.create(
            context,
            resource,
            obj,
            info.namespace if resource.namespaced else "",
            name=info.name if info.subresource else "",
            subresource=info.subresource,
        )
        return self._answer(request, resource, answer, media_type)

    async def _update(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        self._needs_name(info)
        media_type = self._media_type(request, list_=False, rows=has_rows(resource, info.subresource))
        context = self._context(request, user, "UpdateOptions")
        obj = await self._object(request, _body_kind(resource, info), context)
        namespace = info.namespace if resource.namespaced else ""
        answer = await self._operations.update(
            context, resource, obj, namespace, info.name, subresource=info.subresource
        )
        shown = SCALES if info.subresource == "scale" else resource
        return self._answer(request, shown, answer, media_type)

    async def _patch(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        self._needs_name(info)
        content_type = patch_type(request.headers.get("Content-Type", ""))
        media_type = self._media_type(request, list_=False, rows=has_rows(resource, info.subresource))
        apply = content_type == APPLY_PATCH
        context = self._context(request, user, "PatchOptions", apply=apply)
        patch = await decode_patch(await self._body(request), content_type, self._turns, context)
        namespace = info.namespace if resource.namespaced else ""
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
        return self._answer(request, shown, answer, media_type)

    async def _delete(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        if info.subresource:
            raise method_not_allowed()
        media_type = self._media_type(request, list_=False)
        context = RequestContext(user, request.headers.get("User-Agent", ""), warnings=_warnings(request))
        options = await self._delete_options(request)
        namespace = info.namespace if resource.namespaced else ""
        answer = await self._operations.delete(context, resource, namespace, info.name, options)
        status = 202 if options.orphan_dependents is False and not answer.removed else 200
        return self._answer(request, resource, answer, media_type, status=status)

    async def _delete_collection(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        if "deletecollection" not in verbs_of(resource) or (resource.namespaced and not info.namespace):
            raise method_not_allowed()
        media_type = self._media_type(request, list_=True)
        context = RequestContext(user, request.headers.get("User-Agent", ""), warnings=_warnings(request))
        options = await self._delete_options(request)
        list_options = parse_list_options(request.query, watch=False)
        page = await self._operations.delete_collection(context, resource, info.namespace, list_options, options)
        return await self._list_body(request, resource, page, media_type)

    async def _log_of(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        chunks = await self._operations.log(info.namespace, info.name, request.query)
        if chunks is None:
            return web.Response(status=204, headers=self._headers())
        # The first chunk tells whether the kubelet refuses; only then is the answer a 200.
        first = await anext(chunks, b"")
        if wants_websocket(request):
            return await frames.send(request, _from(first, chunks))
        response = web.StreamResponse(headers={"Content-Type": "text/plain", **self._headers()})
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
        return await self._proxying.handle(request, info, self._headers())

    async def _metrics(
        self, request: web.BaseRequest, info: RequestInfo, resource: Resource, user: UserInfo
    ) -> web.StreamResponse:
        """What nodes and Pods use now."""
        if info.verb not in ("get", "list") or request.method == "HEAD":
            raise method_not_allowed()
        media_type = self._media_type(request, list_=info.verb == "list")
        namespace = self._namespace(info, resource)
        if info.verb == "get":
            answer = await self._operations.metrics.get(resource, namespace, info.name)
        else:
            options = parse_list_options(request.query, watch=False)
            selection = self._operations.selection(resource, options)
            answer = await self._operations.metrics.all_of(resource, namespace, selection.matches)
        if media_type.as_ == "Table":
            rows = answer["items"] if info.verb == "list" else [answer]
            # late: kubectl asks for Tables, most other clients do not
            from lastcall.api.table.rows import table_for

            answer = table_for(resource, rows, self._operations.now())
        return self._bytes(request, orjson.dumps(answer), media_type)

    # -- requests ----------------------------------------------------------------------------------------------------

    @staticmethod
    def _namespace(info: RequestInfo, resource: Resource) -> str:
        return info.namespace if resource.namespaced else ""

    @staticmethod
    def _needs_name(info: RequestInfo) -> None:
        if not info.name:
            raise method_not_allowed()

    def _context(
        self, request: web.BaseRequest, user: UserInfo, options_kind: str, *, apply: bool = False
    ) -> RequestContext:
        query = request.query
        return RequestContext(
            user,
            request.headers.get("User-Agent", ""),
            field_manager=query.get("fieldManager", ""),
            dry_run=parse_dry_run(options_kind, query, query.getall("dryRun", []), apply=apply),
            field_validation=cast(FieldValidation, query.get("fieldValidation") or "Warn"),  # looked at with dryRun
            warnings=_warnings(request),
        )

    def _media_type(self, request: web.BaseRequest, *, list_: bool, rows: bool = True) -> MediaType:
        return self._pretty(request, negotiate(request.headers.get("Accept", ""), list_=list_, rows=rows))

    @staticmethod
    def _pretty(request: web.BaseRequest, media_type: MediaType) -> MediaType:
        if not wants_pretty(request.query, request.headers.get("User-Agent", "")):
            return media_type
        return MediaType(media_type.name, media_type.as_, media_type.version, True)

    @staticmethod
    def _body_type(request: web.BaseRequest) -> str:
        return body_media_type(request.headers.get("Content-Type", ""))

    @staticmethod
    async def _body(request: web.BaseRequest, limit: int = MAX_BODY_BYTES) -> bytes:
        if (request.content_length or 0) > limit:
            raise too_large(f"limit is {limit}")
        chunks: list[bytes] = []
        size = 0
        async for chunk in request.content.iter_any():
            size += len(chunk)
            if size > limit:
                raise too_large(f"limit is {limit}")
            chunks.append(chunk)
        return b"".join(chunks)

    async def _object(self, request: web.BaseRequest, kind: Resource, context: RequestContext) -> Object:
        body = await self._body(request, MAX_REVIEW_BYTES if kind in REVIEWS else MAX_BODY_BYTES)
        return await decode_object(body, self._body_type(request), kind, context, self._turns)

    async def _delete_options(self, request: web.BaseRequest) -> Any:
        body = await self._body(request, MAX_REVIEW_BYTES)
        decoded = await decode_optional(body, self._body_type(request), None, self._turns) if body else None
        return parse_delete_options(decoded, request.query, request.query.getall("dryRun", []))

    # -- responses ---------------------------------------------------------------------------------------------------

    def _headers(self) -> dict[str, str]:
        return {"Audit-Id": self._world.new_uid(), "Cache-Control": "no-cache, private"}

    def _answer(
        self,
        request: web.BaseRequest,
        resource: Resource,
        answer: Answer,
        media_type: MediaType,
        *,
        status: int = 200,
    ) -> web.Response:
        is_status = answer.object.get("kind") == "Status" and resource.kind != "Status"
        if media_type.plain or is_status:
            body = answer.value.encoded()
        else:
            body = representation.object_body(
                resource, answer.object, media_type, request.query, self._operations.now()
            )
        return self._bytes(request, body, media_type, status=201 if answer.created else status)

    def _bytes(
        self, request: web.BaseRequest, body: bytes, media_type: MediaType, *, status: int = 200
    ) -> web.Response:
        if media_type.pretty or media_type.name != JSON:
            body = representation.reformat(body, media_type)
        else:
            body += b"\n"  # as Go's json.Encoder ends a value
        response = web.Response(status=status, body=body, headers={**self._headers(), "Content-Type": media_type.name})
        _warn(request, response)
        return response

    def _error(self, request: web.BaseRequest, error: StatusError) -> web.Response:
        try:
            media_type = self._pretty(request, negotiate(request.headers.get("Accept", ""), list_=False, table=True))
        except StatusError:
            media_type = INDENTED if error.code == 406 else PLAIN
        response = self._bytes(request, orjson.dumps(error.status), media_type, status=error.code)
        for name, value in error.headers.items():
            response.headers[name] = value
        return response


def _about(request: web.BaseRequest, info: RequestInfo) -> RequestInfo:
    """What an authorizer is asked: of a request about a collection also which of its objects are meant."""
    if info.verb in ("list", "watch", "deletecollection"):
        return info.with_selector(request.query.get("fieldSelector", ""))
    return info


def _note(request: web.BaseRequest) -> None:
    """Say that this request is worked on (`world/walls.py`)."""
    if walls.on_turn is not None:
        walls.on_turn(walls.REQUEST, f"{request.method} {request.path}")


def _warn(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """The `Warning` headers of an answer that has not begun."""
    for header in warning_headers(request.get(WARNINGS, ())):
        response.headers.add("Warning", header)


def _warnings(request: web.BaseRequest) -> list[str]:
    """What the answer's `Warning` headers will say, also that of a refused request."""
    warnings: list[str] = request.setdefault(WARNINGS, [])
    return warnings


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


__all__ = ["HTTPFace", "Object"]
