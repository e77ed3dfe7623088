"""What is asked of objects, by verb: from request to response. What is asked is done in `operations`.

Stored bytes go out as they are.

Sources: apiserver pkg/endpoints/handlers/{get,create,update,patch,delete,watch}.go.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from typing import TYPE_CHECKING

from lastcall.kube.api.errors import (
    StatusError,
    method_not_allowed,
    not_watched,
    resource_not_found,
)
from lastcall.kube.api.resources import (
    APISERVICES,
    BINDINGS,
    COMPUTED,
    CUSTOMRESOURCEDEFINITIONS,
    RESOURCECLAIMS,
    REVIEWS,
    Resource,
)
from lastcall.kube.apiserver.answers import representation
from lastcall.kube.apiserver.answers.computed import computed_body
from lastcall.kube.apiserver.answers.responses import Responses
from lastcall.kube.apiserver.audit.request import current
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.conversions.scale import SCALES
from lastcall.kube.apiserver.discovery import verbs_of
from lastcall.kube.apiserver.operations import Operations
from lastcall.kube.apiserver.paths.scope import RequestScope, Verb
from lastcall.kube.apiserver.registry.patching import patch_type
from lastcall.kube.apiserver.registry.unreadable import warning_of
from lastcall.kube.apiserver.registry.watch import EventStream, WatchItem
from lastcall.kube.apiserver.requestinfo import RequestInfo, is_true
from lastcall.kube.apiserver.streaming import frames
from lastcall.kube.apiserver.streaming.frames import wants_websocket
from lastcall.kube.apiserver.streaming.location import SUBRESOURCES as STREAMS
from lastcall.kube.apiserver.streaming.proxy import proxy
from lastcall.kube.apiserver.subresources.eviction import EVICTIONS
from lastcall.kube.apiserver.subresources.posts import TOKEN_REQUESTS
from lastcall.kube.apiserver.user_limits import SMALL_BYTES, WAIT_SECONDS, Shares
from lastcall.kube.apiserver.wire.bodies import Turns
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.negotiation import JSON, PROTOBUF, YAML, check_accept_of_log, not_acceptable
from lastcall.kube.apiserver.wire.options import parse_list_options
from lastcall.kube.apiserver.wire.requests import (
    Bodies,
    context_of,
    deleting_context,
    media_type_of,
    namespace_of,
    needs_name,
    warn,
    warnings_of,
)
from lastcall.kube.client.api import APPLY_PATCH
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.counting import Histogram
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.proxying.handler import Proxying
    from lastcall.kube.streaming.dialing import Dial

WATCH_BYTES = 16 << 10
"""Events that have come together leave together, in writes of about this size."""

WITHOUT_ROWS = frozenset(("approval", "binding", "ephemeralcontainers", "eviction", "finalize", "resize", "token"))
"""Subresources of which there is no Table."""
KINDS_WITHOUT_ROWS = frozenset((BINDINGS, *REVIEWS))
"""Kinds of which there is no Table."""
STATUS_WITHOUT_ROWS = frozenset((APISERVICES, CUSTOMRESOURCEDEFINITIONS, RESOURCECLAIMS))
"""Kinds of whose status there is no Table."""

_COMPUTED = frozenset(COMPUTED)


def has_rows(resource: Resource, subresource: str) -> bool:
    """Return whether there is a Table of what is answered."""
    if subresource == "status" and resource in STATUS_WITHOUT_ROWS:
        return False
    return resource not in KINDS_WITHOUT_ROWS and subresource not in WITHOUT_ROWS


class Objects:
    """`event_sizes` counts the bytes of a kind's events, `dial` is how the proxy subresources reach Pods and nodes."""

    def __init__(
        self,
        world: World,
        operations: Operations,
        responses: Responses,
        event_sizes: Callable[[Resource], Histogram],
        dial: "Dial | None",
        shares: Shares,
    ) -> None:
        self._world = world
        self._operations = operations
        self._responses = responses
        self._event_sizes = event_sizes
        self._dial = dial
        self._shares = shares
        self._bodies = Bodies(Turns(world.clock))
        self._proxying: Proxying | None = None
        self._verbs: dict[str, Verb] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    async def close(self) -> None:
        """Close what requests have opened, after they have ended."""
        if self._proxying is not None:
            await self._proxying.close()

    def verb(self, request: web.BaseRequest, info: RequestInfo, resource: Resource) -> Verb:
        """Return what answers. Raises StatusError (404, 405)."""
        if info.subresource == "proxy":
            return self._proxy
        stored = self._operations.has_objects(resource)
        if not stored and resource in _COMPUTED:
            return self._computed
        if info.verb == "watch":
            return self._watch
        if info.subresource == "log" and request.method == "GET":
            return self._log_of
        if info.subresource in STREAMS:
            if request.method not in ("GET", "POST"):
                raise method_not_allowed()
            return self._stream
        if info.name and not info.subresource and not stored:
            raise resource_not_found()
        handler = self._verbs.get(info.verb)
        if handler is None or request.method == "HEAD":
            raise method_not_allowed()
        return handler

    async def _get(self, scope: RequestScope) -> web.StreamResponse:
        request, info, resource = scope.request, scope.info, scope.resource
        if info.subresource not in ("", "status", "scale", "ephemeralcontainers", "resize", "approval"):
            raise method_not_allowed()
        media_type = media_type_of(request, resource, list_=False, rows=has_rows(resource, info.subresource))
        if info.subresource == "scale":
            scale = await self._operations.get_scale(resource, info.namespace, info.name)
            return self._responses.object(request, SCALES, scale, media_type)
        if version := request.query.get("resourceVersion", ""):
            await self._operations.check_get_version(resource, version)
        namespace = namespace_of(info, resource)
        if media_type.plain:
            return self._responses.document(
                request, await self._operations.get_bytes(resource, namespace, info.name), media_type
            )
        answer = await self._operations.get(resource, namespace, info.name)
        return self._responses.object(request, resource, answer, media_type)

    async def _list(self, scope: RequestScope) -> web.StreamResponse:
        request, info, resource, user = scope.request, scope.info, scope.resource, scope.user
        media_type = media_type_of(request, resource, list_=True)
        options = parse_list_options(request.query, watch=False)
        page = await self._operations.list(resource, namespace_of(info, resource), options)
        if missing := self._operations.unreadable(resource, namespace_of(info, resource)):
            warnings_of(request).append(warning_of(missing))
        size = 0 if self._shares.of(user) is None else sum(entry.value.size for entry in page.entries)
        async with self._room(user, size):
            answer = await self._responses.list(request, resource, page, media_type)
            return await self._responses.sendings.in_pieces(request, answer)

    def _room(
        self, user: UserInfo, size: int, patience: float | None = WAIT_SECONDS
    ) -> AbstractAsyncContextManager[None]:
        """Return room for something large that is sent to a user; an exempt user always has it.

        Raises the 429 StatusError.
        """
        share = self._shares.of(user) if size > SMALL_BYTES else None
        return nullcontext() if share is None else share.bytes.hold(size, patience)

    async def _watch(self, scope: RequestScope) -> web.StreamResponse:
        request, info, resource, user = scope.request, scope.info, scope.resource, scope.user
        query = dict(request.query)
        if info.name:
            query["fieldSelector"] = f"metadata.name={info.name}"
        media_type = media_type_of(request, resource, list_=True)
        if media_type.name == YAML:
            raise not_acceptable(True, stream=True)
        options = parse_list_options(query, watch=True)
        encoder = representation.WatchEncoder(self._operations, resource, media_type, request.query)
        encode, content_type = encoder.line, JSON
        if media_type.name == PROTOBUF:
            encode, content_type = encoder.frame, f"{PROTOBUF};stream=watch"
        sizes = self._event_sizes(resource)
        async with self._operations.watch(resource, namespace_of(info, resource), options) as events:
            response = web.StreamResponse(headers={"Content-Type": content_type, **self._responses.headers(request)})
            response.enable_chunked_encoding()
            warn(request, response)
            # The client may have gone, also before the first byte.
            with suppress(ConnectionResetError), self._responses.sendings.begun(request, watch=True) as sending:
                await response.prepare(request)
                if (audited := current()) is not None:
                    audited.started(200)
                async with aclosing(self._watched(events, encode, sizes, user)) as lines:
                    async for line in lines:
                        await sending.write(response, line)
                await response.write_eof()
        return response

    async def _watched(
        self, events: EventStream, encode: Callable[[WatchItem], bytes], sizes: Histogram, user: UserInfo
    ) -> AsyncGenerator[bytes, None]:
        """Yield what a watch sends: small events together, a large one alone while its bytes count for its user."""
        event = await anext(events, None)
        while event is not None:
            if event.value.size > SMALL_BYTES:
                async with self._room(user, event.value.size, None):
                    line = encode(event)
                    sizes.observe(len(line))
                    yield line
                    del line
                event = await anext(events, None)
                continue
            lines, size, more = [encode(event)], 0, None
            sizes.observe(len(lines[0]))
            while size < WATCH_BYTES and (more := events.take()) is not None:
                if more.value.size > SMALL_BYTES:
                    break
                lines.append(encode(more))
                size += len(lines[-1])
                sizes.observe(len(lines[-1]))
                more = None
            yield lines[0] if len(lines) == 1 else b"".join(lines)
            event = more or await anext(events, None)

    async def _create(self, scope: RequestScope) -> web.StreamResponse:
        request, info, resource, user = scope.request, scope.info, scope.resource, scope.user
        takes_name = info.subresource in ("binding", "eviction", "token")
        if bool(info.name) is not takes_name or (resource.namespaced and not info.namespace):
            raise method_not_allowed()
        media_type = media_type_of(request, resource, list_=False, rows=has_rows(resource, info.subresource))
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

    async def _update(self, scope: RequestScope) -> web.StreamResponse:
        request, info, resource, user = scope.request, scope.info, scope.resource, scope.user
        needs_name(info)
        media_type = media_type_of(request, resource, list_=False, rows=has_rows(resource, info.subresource))
        context = context_of(request, user, "UpdateOptions")
        obj = await self._bodies.object(request, _body_kind(resource, info), context)
        namespace = info.namespace if resource.namespaced else ""
        answer = await self._operations.update(
            context, resource, obj, namespace, info.name, subresource=info.subresource
        )
        shown = SCALES if info.subresource == "scale" else resource
        return self._responses.object(request, shown, answer, media_type)

    async def _patch(self, scope: RequestScope) -> web.StreamResponse:
        request, info, resource, user = scope.request, scope.info, scope.resource, scope.user
        needs_name(info)
        content_type = patch_type(request.headers.get("Content-Type", ""))
        media_type = media_type_of(request, resource, list_=False, rows=has_rows(resource, info.subresource))
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

    async def _delete(self, scope: RequestScope) -> web.StreamResponse:
        request, info, resource, user = scope.request, scope.info, scope.resource, scope.user
        if info.subresource:
            raise method_not_allowed()
        media_type = media_type_of(request, resource, list_=False)
        context = deleting_context(request, user)
        options = await self._bodies.delete_options(request)
        namespace = info.namespace if resource.namespaced else ""
        answer = await self._operations.delete(context, resource, namespace, info.name, options)
        status = 202 if options.orphan_dependents is False and not answer.removed else 200
        return self._responses.object(request, resource, answer, media_type, status=status)

    async def _delete_collection(self, scope: RequestScope) -> web.StreamResponse:
        request, info, resource, user = scope.request, scope.info, scope.resource, scope.user
        if "deletecollection" not in verbs_of(resource) or (resource.namespaced and not info.namespace):
            raise method_not_allowed()
        media_type = media_type_of(request, resource, list_=True)
        context = deleting_context(request, user)
        options = await self._bodies.delete_options(request)
        list_options = parse_list_options(request.query, watch=False)
        page = await self._operations.delete_collection(context, resource, info.namespace, list_options, options)
        return await self._responses.list_body(request, resource, page, media_type)

    async def _log_of(self, scope: RequestScope) -> web.StreamResponse:
        request, info = scope.request, scope.info
        check_accept_of_log(request.headers.get("Accept", ""))
        chunks = await self._operations.log(info.namespace, info.name, request.query)
        if chunks is None:
            return web.Response(status=204, headers=self._responses.headers(request))
        # The first chunk shows whether the kubelet refuses; only then is the answer a 200.
        first = await anext(chunks, b"")
        if (audited := current()) is not None:
            audited.started(101 if wants_websocket(request) else 200)
        if wants_websocket(request):
            return await frames.send(request, _from(first, chunks))
        response = web.StreamResponse(headers={"Content-Type": "text/plain", **self._responses.headers(request)})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with suppress(ConnectionResetError):
            await _pump(response, first, chunks)
        return response

    async def _stream(self, scope: RequestScope) -> web.StreamResponse:
        request, info, resource, user = scope.request, scope.info, scope.resource, scope.user
        await self._operations.connect(RequestContext(user), resource, info, request.query)
        kubelets, node, location = await self._operations.stream(
            info.subresource, info.namespace, info.name, request.query
        )
        return await proxy(request, kubelets, node, location)

    async def _proxy(self, scope: RequestScope) -> web.StreamResponse:
        request, info, resource, user = scope.request, scope.info, scope.resource, scope.user
        if resource.namespaced and not info.namespace:
            raise resource_not_found()
        await self._operations.connect(RequestContext(user), resource, info, request.query)
        if self._proxying is None:
            # late: few ask for it
            from lastcall.kube.apiserver.proxying.handler import Proxying
            from lastcall.kube.apiserver.proxying.upstream import dial

            operations = self._operations
            self._proxying = Proxying(self._world, operations.kinds, self._dial or dial, operations.kubelet_tls)
        return await self._proxying.handle(request, info, self._responses.headers(request))

    async def _computed(self, scope: RequestScope) -> web.StreamResponse:
        """What nodes and Pods use now; how the parts of the control plane are."""
        request, info, resource = scope.request, scope.info, scope.resource
        if info.verb == "watch":
            raise not_watched(resource) if is_true(request.query, "watch") else resource_not_found()
        if info.verb not in ("get", "list") or request.method == "HEAD":
            raise method_not_allowed()
        media_type = media_type_of(request, resource, list_=info.verb == "list")
        namespace = namespace_of(info, resource)
        if info.verb == "get":
            answer = await self._operations.computed(resource).get(resource, namespace, info.name)
        else:
            options = parse_list_options(request.query, watch=False)
            selection = self._operations.selection(resource, options)
            answer = await self._operations.computed(resource).all_of(resource, namespace, selection.matches)
        now, minor = self._operations.now(), self._operations.minor
        body = computed_body(resource, answer, media_type, request.query, now, minor)
        return self._responses.document(request, body, media_type)


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
