"""What an API server's answer means: an object, the events of a watch, a failure, or half of an answer."""

from collections.abc import AsyncIterator
from typing import cast

import orjson

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import PartialResource, Resource
from lastcall.kube.client.api import ConnectionLost, UnusableAnswer, WatchEvent
from lastcall.kube.client.lost import why_lost
from lastcall.world.aiohttp_inside.client import aiohttp

MOST_ANSWER_BYTES = 512 << 20
"""Of the answers that are read at a time: a list of 50 000 Pods of 10 kB."""
MOST_EVENT_BYTES = 16 << 20
"""Of one event of a watch (apimachinery pkg/runtime/serializer/streaming/streaming.go: maxBytes)."""


def with_its_kind(obj: Object, resource: Resource) -> Object:
    """Set the resource's own kind in an object that comes as metadata, and return it."""
    if obj.get("kind") == "PartialObjectMetadata":
        obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version
    return obj


async def chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the body as it comes. Raises ConnectionLost."""
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise lost_connection(response.method, str(response.url), error) from error


class Reading:
    """The answers that one client reads at a time, which together have at most `most` bytes."""

    def __init__(self, most: int = MOST_ANSWER_BYTES) -> None:
        self._most, self._size = most, 0

    async def whole(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the whole body, unpacked. Raises ConnectionLost, UnusableAnswer if it is too large."""
        found: list[bytes] = []
        size = 0
        try:
            async for chunk in chunks(response):
                found.append(chunk)
                size += len(chunk)
                self._size += len(chunk)
                if self._size > self._most:
                    response.close()
                    why = f"the answers have more than {self._most >> 20} MiB: ask for less (--namespace, --selector)"
                    why += ", or look whether this is an API server"
                    raise unusable(response.method, str(response.url), why)
            return b"".join(found)
        finally:
            self._size -= size


def decoded(data: bytes, method: str, url: str) -> Object:
    """Return the object that an answer is. Raises UnusableAnswer."""
    try:
        answer = orjson.loads(data)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        shown = data[:100].decode("utf-8", "replace")
        raise unusable(
            method, url, f"the answer is not a JSON object, but {shown!a}: look whether this is an API server"
        )
    return answer


def unusable(method: str, url: str, why: str) -> UnusableAnswer:
    """Return the error of an answer, with the request and what is wrong."""
    found = UnusableAnswer(f"{method} {url}: {why}")
    found.reason = why
    return found


async def watch_events(
    response: aiohttp.ClientResponse, bookmarks: bool, resource: Resource
) -> AsyncIterator[WatchEvent]:
    """Yield one event per line, which may be longer than any read buffer.

    Raises ConnectionLost, UnusableAnswer for an event of more than MOST_EVENT_BYTES.
    """
    rest: list[bytes] = []
    size = 0
    async for chunk in chunks(response):
        *lines, last = chunk.split(b"\n")
        for line in lines:
            if rest:
                line = b"".join((*rest, line))
                rest.clear()
                size = 0
            if line.strip():
                event = _watch_event(line)
                if isinstance(resource, PartialResource):
                    with_its_kind(event.object, resource)
                if event.type != "BOOKMARK" or bookmarks:
                    yield event
        if last:
            rest.append(last)
            size += len(last)
            if size > MOST_EVENT_BYTES:
                why = f"an event of the watch has more than {MOST_EVENT_BYTES >> 20} MiB"
                raise unusable("GET", str(response.url), f"{why}: look whether this is an API server")
    if rest:
        broken = ConnectionLost(f"GET {response.url}: the watch ended in the middle of an event")
        broken.reason = "the watch ended in the middle of an event"
        raise broken


def _watch_event(line: bytes) -> WatchEvent:
    try:
        event = orjson.loads(line)
        return WatchEvent(event["type"], event["object"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise ConnectionLost(f"a watch sent something that is not an event: {line[:200]!r}") from error


def lost_connection(method: str, url: str, error: BaseException) -> ConnectionLost:
    """Return the error to raise for what the library noticed."""
    reason = why_lost(error)
    found = ConnectionLost(f"{method} {url}: {reason}")
    found.reason = reason
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        found.sent = False
    return found


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
"""Reason and text for an answer that is not a Status.

Source: apimachinery pkg/api/errors/errors.go:NewGenericServerResponse.
"""


def status_error(method: str, path: str, code: int, headers: dict[str, str], body: bytes) -> StatusError:
    """Return the error to raise for a failure, also where the body is something other than a Status."""
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
