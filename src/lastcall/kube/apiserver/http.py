"""HTTP: it authenticates and authorizes requests; `paths/` and `proxying/` answer them.

Errors are Status objects; a fault of our own is logged and answered 500, never with a
traceback.

Sources: apiserver pkg/server/filters.
"""

# check: asks for kinds because a Namespace's own path has a namespace in it
# check: many attributes APIHandler because a request passes every part of the server here, each given by name

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lastcall.kube.api.apiservices.routes import Routes
from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.errors import (
    StatusError,
    internal,
    resource_not_found,
)
from lastcall.kube.api.resources import (
    COMPONENTSTATUSES,
    ENDPOINTS,
    Resource,
)
from lastcall.kube.apiserver.answers.responses import Responses
from lastcall.kube.apiserver.audit.request import answering, begin_answer, current
from lastcall.kube.apiserver.auth.authentication import (
    Authenticator,
    UserInfo,
    forbidden_request,
    is_superuser,
)
from lastcall.kube.apiserver.auth.impersonation import Impersonator, impersonation
from lastcall.kube.apiserver.auth.tokens import TokenIssuer
from lastcall.kube.apiserver.catalog import Catalog
from lastcall.kube.apiserver.operations import Operations
from lastcall.kube.apiserver.paths.documents import Documents
from lastcall.kube.apiserver.paths.health import is_health
from lastcall.kube.apiserver.paths.metrics.requests import RequestCounts
from lastcall.kube.apiserver.paths.objects import Objects
from lastcall.kube.apiserver.paths.scope import RequestScope
from lastcall.kube.apiserver.requestinfo import RequestInfo, request_info
from lastcall.kube.apiserver.streaming.location import SUBRESOURCES as STREAMS
from lastcall.kube.apiserver.user_limits import Shares
from lastcall.kube.apiserver.wire.negotiation import negotiate
from lastcall.kube.apiserver.wire.requests import MAX_BODY_BYTES, warnings_of
from lastcall.kube.streaming.hosts import Hosts
from lastcall.world import crash_guard
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.audit.auditor import Auditor
    from lastcall.kube.apiserver.proxying.aggregation.backends import Backends
    from lastcall.kube.streaming.dialing import Dial

DEPRECATED: Mapping[Resource, tuple[int, str]] = {
    COMPONENTSTATUSES: (19, "v1 ComponentStatus is deprecated in v1.19+"),
    ENDPOINTS: (33, "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
}
"""Kinds that requests are warned of: from which Kubernetes 1.x on, and the warning."""
COLLECTION_VERBS = frozenset(("list", "watch", "deletecollection"))
LONG = frozenset((*STREAMS, "log", "proxy"))
"""Subresources whose answers last."""
_DEPRECATED_NAMES = frozenset(each.plural for each in DEPRECATED)

GOODBYE_SECONDS = 0.5
"""How long a connection that has to end stays after its answer (net/http server.go: rstAvoidanceDelay). A client that
says no goodbye would keep it for 30 s."""
MOST_READ_FOR_NOTHING = 256 << 10
"""A connection whose request was refused ends if more of the body was to come (maxPostHandlerReadBytes)."""

_log = logging.getLogger("lastcall.kube.apiserver")


def _no_backends() -> "Backends":
    raise internal("this API server passes no requests on")


class APIHandler:
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
        auditor: "Auditor | None" = None,
    ) -> None:
        self._world = world
        self._responses = Responses(world, operations)
        self._documents = Documents(catalog, issuer, self._responses)
        self._operations = operations
        self._authenticator = authenticator
        self._catalog = catalog
        self._hosts = hosts
        self._routes, self._backends = routes or Routes(), backends
        self._auditor = auditor
        self._impersonator = Impersonator(operations.authorizer.check)
        self._counts = RequestCounts(world.clock)
        self.shares = Shares()
        self._objects = Objects(world, operations, self._responses, self._counts.event_sizes, dial, self.shares)

    async def disconnect_stalled(self) -> None:
        """Disconnect clients that take nothing of an answer, until cancelled."""
        await self._responses.sendings.disconnect_stalled()

    async def close(self) -> None:
        """Close what requests have opened, after they have ended."""
        await self._objects.close()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, and audit it where the policy says so."""
        if self._auditor is None:
            return await self._handled(request)
        response = None
        with answering(None):
            try:
                response = await self._handled(request)
                return response
            finally:
                if (audited := current()) is not None:
                    audited.completed(None if response is None else response.status)

    async def _handled(self, request: web.BaseRequest) -> web.StreamResponse:
        if (refused := self._hosts.refusal(request)) is not None:
            return refused
        if crash_guard.on_turn is not None:
            crash_guard.on_turn(crash_guard.REQUEST, f"{request.method} {request.path}")
        try:
            return await self._handle(request)
        except StatusError as error:
            response = self._responses.error(request, error)
            if error.headers.get("Connection") == "close" or _is_much_unread(request):
                response.force_close()
                _abort_soon(request)
            return response
        except (ConnectionResetError, web.HTTPException):
            raise
        except Exception as error:
            crash_guard.noticed("API server", f"{request.method} {request.path}", error)
            _log.exception("%s %s failed", request.method, request.path)
            return self._responses.error(request, internal(f"{type(error).__name__}: {error}"))
        finally:
            if crash_guard.on_turn is not None:
                crash_guard.on_turn("", "")

    def _begin_audit(self, request: web.BaseRequest, user: UserInfo | None, about: RequestInfo, received: str) -> None:
        """Begin the event of a request; `user` is None for one that nobody knows."""
        if self._auditor is not None:
            begin_answer(self._auditor.begin(request, user, about, received, long=is_stream(about)))

    async def _authenticate(
        self,
        request: web.BaseRequest,
        certificate: "Mapping[str, object] | None",
        about: RequestInfo,
        received: str,
    ) -> UserInfo:
        """Raises the 401 StatusError."""
        authorization = request.headers.get("Authorization", "")
        result, counts = "failure", self._counts.authenticated
        try:
            user = await self._authenticator.authenticate(authorization, certificate)
            result = "success"
            return user
        except StatusError:
            self._begin_audit(request, None, about, received)
            raise
        finally:
            counts[result] = counts.get(result, 0) + 1

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        received = "" if self._auditor is None else self._auditor.now()
        info = request_info(request.method, request.path, request.query)
        about = info if info.verb not in COLLECTION_VERBS else _about(request, info)
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        user = self._authenticator.known(request.headers.get("Authorization", ""), certificate)
        if user is None:
            user = await self._authenticate(request, certificate, about, received)
        else:
            self._counts.authenticated["success"] = self._counts.authenticated.get("success", 0) + 1
        self._begin_audit(request, user, about, received)
        if (asked := impersonation(request.headers)) is not None:
            requestor, user = user, await self._impersonator.user_of(asked, user, about)
            if (audited := current()) is not None:
                audited.impersonated(user, self._impersonator.granted(requestor))
        if is_superuser(user):
            self._counts.authorized["allowed"] = self._counts.authorized.get("allowed", 0) + 1
            if (audited := current()) is not None:
                audited.authorized(True, "")
        else:
            await self._authorize(user, about)
        if (share := self.shares.of(user)) is None:
            return await self._responses.sendings.in_pieces(request, await self._answer(request, user, info))
        if request.transport is not None:
            self.shares.own(request.protocol, share)
        if is_stream(info):
            with share.stream():
                return await self._answer(request, user, info)
        async with share.request(_body_size(request)):
            return await self._responses.sendings.in_pieces(request, await self._answer(request, user, info))

    async def _answer(self, request: web.BaseRequest, user: UserInfo, info: RequestInfo) -> web.StreamResponse:
        """The answer to a request that is allowed."""
        if self._routes.remote and (remote := self._routes.of_path(info.path)) is not None:
            return await self._backends().handle(request, user, remote)
        if not info.is_resource_request:
            if info.path.startswith("/openapi/"):
                # late: with the first client that asks for a schema
                from lastcall.kube.apiserver.openapi.serving import openapi_response

                return await openapi_response(self._catalog.openapi, request)
            return await self._document(request, info)
        resource = self._resource(info)
        if resource is None:
            return self._not_found(info)
        if isinstance(resource, CustomResource):
            lists = not info.name and info.verb != "watch"
            negotiate(request.headers.get("Accept", ""), list_=lists, message=False)
            if resource.warning:
                warnings_of(request).append(resource.warning)
        verb = self._objects.verb(request, info, resource)
        if info.resource in _DEPRECATED_NAMES:
            since, warning = DEPRECATED.get(resource, (0, ""))
            if warning and self._catalog.discovery.minor_version >= since:
                warnings_of(request).append(warning)
        begun, code, size = self._counts.begin(request, info), 0, 0
        try:
            answer = await verb(RequestScope(request, info, resource, user))
            code, size = answer.status, _size(answer)
            return answer
        except StatusError as error:
            code = error.code
            if code == 405 or error.message.startswith(("406: ", "415: ")):
                warnings_of(request).clear()  # nobody who would warn was asked
            raise
        finally:
            self._counts.end(begun, code, size)

    async def _document(self, request: web.BaseRequest, info: RequestInfo) -> web.StreamResponse:
        """What is at a path that is not of objects."""
        if info.path == "/metrics":
            # late: few ask for it
            from lastcall.kube.apiserver.paths.metrics.endpoints import metrics

            return await metrics(self._world, self._counts, self._operations.kinds, self._catalog.version)
        if info.path == "/statusz":
            # late: few ask for it
            from lastcall.kube.apiserver.paths.metrics.statusz import statusz

            return statusz(request, "apiserver", self._catalog.version, self._world.clock)
        if is_health(info.path):
            begun, code, size = self._counts.begin(request, info), 0, 0
            try:
                answer = self._documents.answer(request, info)
                code, size = answer.status, _size(answer)
                return answer
            except StatusError as error:
                code = error.code
                raise
            finally:
                self._counts.end(begun, code, size)
        return self._documents.answer(request, info)

    async def _authorize(self, user: UserInfo, about: RequestInfo) -> None:
        """Raises the 403 StatusError."""
        authorizer, asked = self._operations.authorizer, about
        decision = await authorizer.authorize(user, about)
        if decision.allowed and about.subresource in STREAMS and about.verb == "get":
            # A WebSocket begins with a GET and may do what a POST may
            # (AuthorizePodWebsocketUpgradeCreatePermission, since 1.35).
            asked = about._replace(verb="create")
            decision = await authorizer.authorize(user, asked)
        result = "allowed" if decision.allowed else "denied"
        self._counts.authorized[result] = self._counts.authorized.get(result, 0) + 1
        if (audited := current()) is not None:
            audited.authorized(decision.allowed, decision.reason)
        if not decision.allowed:
            raise forbidden_request(user, asked, decision.reason)

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


def _about(request: web.BaseRequest, info: RequestInfo) -> RequestInfo:
    """Return what an authorizer is asked of a request about a collection: also which of its objects are meant."""
    return info.with_selector(request.query.get("fieldSelector", ""))


def _is_much_unread(request: web.BaseRequest) -> bool:
    """Return True for a body that is too long to be read only so that the connection can be used again."""
    return not request.content.is_eof() and _body_size(request) > MOST_READ_FOR_NOTHING


def _abort_soon(request: web.BaseRequest) -> None:
    """Give the client time to read why it is disconnected, and wait no longer for its goodbye."""
    if request.transport is not None:
        asyncio.get_running_loop().call_later(GOODBYE_SECONDS, request.transport.abort)


def is_stream(info: RequestInfo) -> bool:
    """Return whether an answer lasts as long as the client wants (longRunningRequestCheck)."""
    return info.verb == "watch" or info.subresource in LONG


def _body_size(request: web.BaseRequest) -> int:
    """Bytes of the body at most."""
    if request.content_length is not None:
        return min(request.content_length, MAX_BODY_BYTES)
    return MAX_BODY_BYTES if request.can_read_body else 0


def _size(answer: web.StreamResponse) -> int:
    """Bytes of an answer that is whole, 0 for one that was sent in pieces."""
    body = answer.body if isinstance(answer, web.Response) else None
    return len(body) if isinstance(body, bytes) else 0
