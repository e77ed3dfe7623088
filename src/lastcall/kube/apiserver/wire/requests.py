"""What a request says beside its path: options, the body, the form of the answer, warnings that go with it.

Source: apiserver pkg/endpoints/handlers/{create,update,patch,delete}.go.
"""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any, cast

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.errors import StatusError, method_not_allowed, timeout, too_large
from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.decoding import has_message, message_of
from lastcall.kube.api.resources import REVIEWS, Resource
from lastcall.kube.apiserver.audit.request import DELETE_OPTIONS_TYPE, current
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.conversions.table import conversion_of
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.apiserver.wire.bodies import Turns, decode_object, decode_optional, decode_patch
from lastcall.kube.apiserver.wire.context import FieldValidation, RequestContext
from lastcall.kube.apiserver.wire.negotiation import MediaType, body_media_type, negotiate, wants_pretty
from lastcall.kube.apiserver.wire.options import parse_delete_options, parse_dry_run
from lastcall.kube.apiserver.wire.preparing import prepare_copy
from lastcall.kube.apiserver.wire.warning_headers import warning_headers
from lastcall.world.aiohttp_inside import server as web

MAX_BODY_BYTES = 3 << 20
"""MaxRequestBodyBytes."""

BODY_SECONDS = 60.0
"""In which a body has to come (--request-timeout)."""

MAX_REVIEW_BYTES = 64 << 10
"""Of what everybody may send who is known, whatever else they may: reviews, and options of a DELETE. Kubernetes has no
other limit for them, and other processors to read them with."""

_REVIEWS = frozenset(REVIEWS)

WARNINGS: Any = web.RequestKey("warnings", list) if web.RequestKey else "warnings"
"""Where a request keeps its warnings."""


def namespace_of(info: RequestInfo, resource: Resource) -> str:
    """Return the namespace that is asked about; "" for kinds without namespaces, and for all of them."""
    return info.namespace if resource.namespaced else ""


def needs_name(info: RequestInfo) -> None:
    """Raise the 405 StatusError when the path names no object."""
    if not info.name:
        raise method_not_allowed()


def context_of(request: web.BaseRequest, user: UserInfo, options_kind: str, *, apply: bool = False) -> RequestContext:
    """Return who writes, and how. `options_kind`: as errors name the options. Raises the 400 StatusError."""
    query = request.query
    return RequestContext(
        user,
        request.headers.get("User-Agent", ""),
        field_manager=query.get("fieldManager", ""),
        dry_run=parse_dry_run(options_kind, query, query.getall("dryRun", []), apply=apply),
        field_validation=cast(FieldValidation, query.get("fieldValidation") or "Warn"),  # looked at with dryRun
        warnings=warnings_of(request),
    )


def deleting_context(request: web.BaseRequest, user: UserInfo) -> RequestContext:
    """Return who deletes; the options of a deletion say the rest."""
    return RequestContext(user, request.headers.get("User-Agent", ""), warnings=warnings_of(request))


def media_type_of(request: web.BaseRequest, resource: Resource, *, list_: bool, rows: bool = True) -> MediaType:
    """Return the form of the answer. `rows`: whether it can be a Table. Raises the 406 StatusError."""
    accept, user_agent = request.headers.get("Accept", ""), request.headers.get("User-Agent", "")
    message = not isinstance(resource, CustomResource) and has_message(message_of(resource.api_version, resource.kind))
    if request.query:
        return _pretty(request.query, user_agent, negotiate(accept, list_=list_, rows=rows, message=message))
    return _media_type(accept, user_agent, list_, rows, message)


@lru_cache(256)
def _media_type(accept: str, user_agent: str, list_: bool, rows: bool, message: bool) -> MediaType:
    return _pretty({}, user_agent, negotiate(accept, list_=list_, rows=rows, message=message))


def pretty(request: web.BaseRequest, media_type: MediaType) -> MediaType:
    """Return `media_type`, indented where a person asks: with `?pretty`, a browser or curl."""
    return _pretty(request.query, request.headers.get("User-Agent", ""), media_type)


def _pretty(query: Mapping[str, str], user_agent: str, media_type: MediaType) -> MediaType:
    if not wants_pretty(query, user_agent):
        return media_type
    return MediaType(media_type.name, media_type.as_, media_type.version, True)


def warnings_of(request: web.BaseRequest) -> list[str]:
    """Return what the answer's `Warning` headers will say, also that of a refused request."""
    warnings: list[str] = request.setdefault(WARNINGS, [])
    return warnings


def warn(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add the `Warning` headers to an answer that has not begun."""
    if not len(request):  # nothing is kept of it; to ask for what is not there would raise
        return
    if texts := request.get(WARNINGS, ()):
        for header in warning_headers(texts):
            response.headers.add("Warning", header)


async def body_of(request: web.BaseRequest, limit: int = MAX_BODY_BYTES) -> bytes:
    """Read the body. Raises the 413 StatusError when it has more than `limit` bytes, the 504 when it takes too long."""
    if (request.content_length or 0) > limit:
        raise too_large(f"limit is {limit}")
    chunks: list[bytes] = []
    size = 0
    try:
        async with nullcontext() if request.content.is_eof() else asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                size += len(chunk)
                if size > limit:
                    raise too_large(f"limit is {limit}")
                chunks.append(chunk)
    except TimeoutError:
        raise timeout("request did not complete within requested timeout - context deadline exceeded") from None
    return b"".join(chunks)


class Bodies:
    """Read request bodies, long ones in `turns`, between which other requests are served. All raise StatusError."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    async def object(self, request: web.BaseRequest, kind: Resource, context: RequestContext) -> Object:
        """Return the body as an object of `kind`."""
        body = await body_of(request, MAX_REVIEW_BYTES if kind in _REVIEWS else MAX_BODY_BYTES)
        obj = await decode_object(body, _body_type(request), kind, context, self._turns)
        if (audited := current()) is not None:
            audited.request_object(obj, partial(_with_defaults, context.user, kind, obj))
        return obj

    async def patch(self, request: web.BaseRequest, content_type: str, context: RequestContext) -> Any:
        """Return the body as a patch: a list of operations, or an object."""
        patch = await decode_patch(await body_of(request), content_type, self._turns, context)
        if (audited := current()) is not None:
            audited.request_patch(patch)
        return patch

    async def delete_options(self, request: web.BaseRequest) -> Any:
        """Return the options of a deletion, from the body and the query."""
        body = await body_of(request, MAX_REVIEW_BYTES)
        decoded = await decode_optional(body, _body_type(request), None, self._turns) if body else None
        if isinstance(decoded, dict) and (audited := current()) is not None:
            audited.request_object({**decoded, **DELETE_OPTIONS_TYPE})
        return parse_delete_options(decoded, request.query, request.query.getall("dryRun", []))


def _with_defaults(user: UserInfo, kind: Resource, obj: Object) -> Object:
    """Return a body as an object of its kind with its defaults; one that is none as it came."""
    try:
        decoded = prepare_copy(RequestContext(user), kind, obj)
    except StatusError:
        return obj
    if conversion_of(kind) is None:
        set_defaults(kind, decoded)
    return decoded


def _body_type(request: web.BaseRequest) -> str:
    return body_media_type(request.headers.get("Content-Type", ""))
