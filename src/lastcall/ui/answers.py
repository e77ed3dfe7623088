"""Answer the page's requests: who may ask, and what is wrong, in the page's language."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from lastcall.kube.api import StatusError
from lastcall.kube.client import ConnectionLost
from lastcall.records.language import ENGLISH, LANGUAGES, translate
from lastcall.records.said import Said, tell
from lastcall.ui.entrance import ENTER, HEADERS, Asked, Entrance

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Refused(Exception):
    """The request has no other answer than `text`, with this HTTP status."""

    def __init__(self, status: int, text: Said) -> None:
        super().__init__(text)
        self.status, self.text = status, text


def language_of(request: web.Request) -> str:
    """Return the language of the page that asks, English for one that is not known.

    It is in the query of a link or a stream, and in a header of all else.
    """
    asked = request.query.get("language") or request.headers.get("Accept-Language", "")
    return asked if asked in LANGUAGES else ENGLISH


def reading(handler: Handler) -> Handler:
    """Answer with the reason where something of a Pod cannot be read, with status 200: a page goes on asking until it
    knows that the Pod is gone, and browsers write any other status into their console as an error."""

    async def read(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refused as error:
            if error.status != web.HTTPNotFound.status_code:
                raise
            return json_answer({"unread": translate(error.text, language_of(request))})
        except StatusError as error:
            if not 400 <= error.code < 500:
                raise
            return json_answer({"unread": str(error)})

    return read


def guard(entrance: Entrance) -> Any:
    """Return what every request comes through, and what gives every answer its headers."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = asked_by(request, entrance)
        if why := entrance.refusal(asked):
            response: web.StreamResponse = web.Response(status=403, text=why)
        elif request.path.startswith("/api/") and request.path != ENTER and not entrance.knows(asked):
            text = translate(tell("open the link that lastcall ui prints"), language_of(request))
            response = web.Response(status=401, text=text)
        else:
            response = await _answered(request, handler)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return guarded


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors of the world become answers, with their own words."""
    try:
        return await handler(request)
    except Refused as error:
        return web.Response(status=error.status, text=translate(error.text, language_of(request)))
    except web.HTTPException as error:
        return web.Response(status=error.status, text=error.text)
    except StatusError as error:
        return web.Response(status=error.code if 400 <= error.code < 600 else 502, text=str(error))
    except (ConnectionLost, TimeoutError) as error:
        text = str(error) or translate(tell("no answer in time"), language_of(request))
        return web.Response(status=502, text=text)


def asked_by(request: web.Request, entrance: Entrance) -> Asked:
    """Return what the entrance looks at of a request."""
    headers = request.headers
    return Asked(
        request.method,
        headers.get("Host", ""),
        headers.get("Origin", ""),
        headers.get("Sec-Fetch-Site", "") if request.path != "/" else "",
        request.cookies.get(entrance.cookie_name, ""),
        headers.get("Upgrade", "").lower() == "websocket",
    )


def json_answer(content: Any) -> web.Response:
    """Return an answer whose body is JSON."""
    return web.Response(body=orjson.dumps(content), content_type="application/json")


def grace_of(text: str) -> int | None:
    """Return a grace period in seconds, None for the Pod's own. Raises Refused."""
    if text in ("", "None"):
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refused(400, tell("grace period $text: write whole seconds", text=repr(text[:40])))
    return int(text)


async def body_of(request: web.Request) -> dict[str, Any]:
    """Return the JSON object of a request, {} for no body. Raises Refused."""
    try:
        body = orjson.loads(await request.read() or b"{}")
    except orjson.JSONDecodeError:
        raise Refused(400, tell("the body is not JSON")) from None
    if not isinstance(body, dict):
        raise Refused(400, tell("the body is not a JSON object"))
    return body
