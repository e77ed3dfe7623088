"""Responses: objects, lists and errors with the headers of every answer.

Source: apiserver pkg/endpoints/handlers/responsewriters/writers.go.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.answers import representation
from lastcall.kube.apiserver.answers.list_bodies import (
    StoredList,
    is_long,
    is_stored_form,
    list_body,
    list_pieces,
    stored_list,
)
from lastcall.kube.apiserver.answers.sending import PIECE_BYTES, Sendings
from lastcall.kube.apiserver.audit.request import current
from lastcall.kube.apiserver.wire.negotiation import INDENTED, JSON, PLAIN, PROTOBUF, MediaType, negotiate_status
from lastcall.kube.apiserver.wire.requests import pretty, warn
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.operations import Operations
    from lastcall.kube.apiserver.registry.listing import Page
    from lastcall.kube.apiserver.registry.reading import Answer


class Responses:
    """Makes the responses of an API server."""

    def __init__(self, world: World, operations: "Operations") -> None:
        self._world = world
        self._operations = operations
        self.sendings = Sendings(world.clock)

    def headers(self, request: web.BaseRequest) -> dict[str, str]:
        """Return the headers of every answer."""
        if (audited := current()) is not None:
            audit_id = audited.audit_id
        else:
            audit_id = request.headers.get("Audit-ID") or self._world.new_uid()
        return {"Audit-Id": audit_id, "Cache-Control": "no-cache, private"}

    def object(
        self,
        request: web.BaseRequest,
        resource: Resource,
        answer: "Answer",
        media_type: MediaType,
        *,
        status: int = 200,
    ) -> web.Response:
        """Answer with one object, or the Status in its place; 201 when it was created."""
        is_status = answer.object.get("kind") == "Status" and resource.kind != "Status"
        if media_type.plain or is_status:
            body = answer.value.encoded()
        else:
            now, minor = self._operations.now(), self._operations.minor
            body = representation.object_body(resource, answer.object, media_type, request.query, now, minor)
        return self.document(request, body, media_type, status=201 if answer.created else status)

    def document(
        self, request: web.BaseRequest, body: bytes, media_type: MediaType, *, status: int = 200
    ) -> web.Response:
        """Answer with `body`, which is compact JSON, in the form that was asked for."""
        if (audited := current()) is not None:
            audited.response_body(body)
        if media_type.pretty or media_type.name != JSON:
            body = representation.reformat(body, media_type)
        else:
            body += b"\n"  # as Go's json.Encoder ends a value
        headers = self.headers(request)
        headers["Content-Type"] = media_type.name
        response = web.Response(status=status, body=body, headers=headers)
        warn(request, response)
        return response

    def error(self, request: web.BaseRequest, error: StatusError) -> web.Response:
        """Answer with the Status of a refused request."""
        try:
            accept = request.headers.get("Accept", "")
            media_type = pretty(request, negotiate_status(accept))
        except StatusError:
            media_type = INDENTED if error.code == 406 else PLAIN
        response = self.document(request, orjson.dumps(error.status), media_type, status=error.code)
        for name, value in error.headers.items():
            response.headers[name] = value
        return response

    async def list(
        self, request: web.BaseRequest, resource: Resource, page: "Page", media_type: MediaType
    ) -> web.StreamResponse:
        """Answer with a list. A long one is sent as its pieces are made, unless it is audited as a whole."""
        if (audited := current()) is not None and audited.wants_response:
            return await self.list_body(request, resource, page, media_type)
        if media_type.plain and is_stored_form(self._operations, resource):
            stored = await stored_list(self._operations, resource, page)
            if stored.length > PIECE_BYTES:
                return await self._stored(request, stored)
        elif is_long(page) and media_type.name != PROTOBUF and request.version >= (1, 1):
            pieces = list_pieces(self._operations, resource, page, media_type, request.query)
            response = web.StreamResponse(headers={**self.headers(request), "Content-Type": media_type.name})
            response.enable_chunked_encoding()
            warn(request, response)
            return await self.sendings.send(request, response, pieces)
        return await self.list_body(request, resource, page, media_type)

    async def list_body(
        self, request: web.BaseRequest, resource: Resource, page: "Page", media_type: MediaType
    ) -> web.Response:
        """Answer with a list in one piece."""
        body = await list_body(self._operations, resource, page, media_type, request.query)
        if (audited := current()) is not None and audited.wants_response:
            in_json = replace(media_type, name=JSON, pretty=False)
            audited.response_body(await list_body(self._operations, resource, page, in_json, request.query))
        response = web.Response(body=body, headers={**self.headers(request), "Content-Type": media_type.name})
        warn(request, response)
        return response

    async def _stored(self, request: web.BaseRequest, stored: StoredList) -> web.StreamResponse:
        """A long list as its pieces are made."""
        headers = {**self.headers(request), "Content-Type": JSON, "Content-Length": str(stored.length)}
        response = web.StreamResponse(headers=headers)
        warn(request, response)
        return await self.sendings.send(request, response, stored.pieces)
