"""The page's HTTP server on the loopback: its files, one stream of changes for each browser, and what it may ask."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar

import orjson
from aiohttp import web

from lastcall._version import __version__
from lastcall.kube.api import AnyObject, LabelSelector, StatusError, parse_label_selector
from lastcall.kube.client import ConnectionLost
from lastcall.records.language import ENGLISH, LANGUAGES, translate
from lastcall.ui import actions, terminal
from lastcall.ui.board import Changes
from lastcall.ui.entrance import ENTER, HEADERS, Asked, Entrance
from lastcall.ui.predict import what_if_deleted
from lastcall.ui.rollout.room import RolloutRoom
from lastcall.ui.saved import asset
from lastcall.ui.saved_stories import html_page
from lastcall.ui.source import PageClient
from lastcall.ui.story import plan
from lastcall.ui.tour.levels import BadManifest, level_document, levels, recorded
from lastcall.ui.tour.running import TourError
from lastcall.ui.tour.turns import Turns
from lastcall.ui.watching import Watching
from lastcall.world.aiohttp_inside.runner import serving
from lastcall.world.clock import Clock, monotonic

T = TypeVar("T")

FILES = {
    "ui.js": "text/javascript",
    "tour.js": "text/javascript",
    "rollout.js": "text/javascript",
    "cluster.js": "text/javascript",
    "ui.css": "text/css",
}
PAUSE_SECONDS = 0.1
"""Between two messages to one browser, at least: the first after a rest comes at once."""
STILL_HERE_SECONDS = 15.0
MOST_STORIES = 40
"""That a browser keeps when the server ends: the latest ends."""
FAREWELL_SECONDS = 2.0
"""A browser that has not heard by then that the server ends will find out by itself."""
MOST_BODY = 1 << 16
MOST_CONNECTIONS = 200
"""Above that a new one takes the place of a silent or an idle one."""
ONLY_READS = "this page only reads"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NotListening(Exception):
    """The port is taken, or not ours to listen on; the text names it."""


class PageServer:
    """`listening` serves until its block ends."""

    def __init__(
        self,
        watching: Watching,
        clock: Clock,
        on_spent: Callable[[], None] = lambda: None,
        on_browsers: Callable[[int], None] = lambda count: None,
        rollout: RolloutRoom | None = None,
        view: str = "",
    ) -> None:
        """`on_spent` is called when the link was used, `on_browsers` when the number of those that look has changed.
        `view` is where links lead to in the page."""
        self._rollout = rollout
        self._view = view
        if rollout is not None:
            rollout.on_change = self._ring
        self._watching = watching
        self._clock = clock
        self._on_spent = on_spent
        self._on_browsers = on_browsers
        self._changed = asyncio.Event()
        self._farewell: dict[str, Any] | None = None
        self._browsers = 0
        watching.board.on_change = self._ring
        self._tour = Turns(watching)

    @asynccontextmanager
    async def listening(self, port: int = 0) -> AsyncIterator[Entrance]:
        """Listen, and give the entrance, which has the link. Raises NotListening."""
        entrance = Entrance(0, on_spent=self._on_spent, now=lambda: monotonic(self._clock), view=self._view)
        application = web.Application(client_max_size=MOST_BODY, middlewares=[_guard(entrance)])
        router = application.router
        router.add_get("/", self._index)
        router.add_get(ENTER, self._is_known(entrance))
        router.add_post(ENTER, self._enter(entrance))
        for name in FILES:
            router.add_get(f"/assets/{name}", self._file(name))
        for path, handler in (
            ("/api/feed", self._feed),
            ("/api/select", self._select),
            ("/api/pods/{uid}/events", _reading(self._events)),
            ("/api/pods/{uid}/object", _reading(self._object)),
            ("/api/pods/{uid}/logs", _reading(self._logs)),
            ("/api/pods/{uid}/plan", _reading(self._plan)),
            ("/api/pods/{uid}/page", self._export),
            ("/api/pods/{uid}/exec", self._exec),
        ):
            router.add_get(path, handler)
        router.add_post("/api/rollout/forecast", self._forecast)
        router.add_post("/api/rollout/again", self._again)
        router.add_post("/api/pods/{uid}/delete", self._delete)
        router.add_post("/api/pods/{uid}/evict", self._evict)
        router.add_post("/api/tour/{id}/run", self._run_tour)
        router.add_post("/api/tour/stop", self._stop_tour)
        router.add_get("/api/tour/levels", self._levels)
        router.add_get("/api/tour/levels/{id}/recorded", self._recorded)
        router.add_post("/api/tour/levels/{id}/run", self._run_level)
        async with AsyncExitStack() as stack:
            served = serving(application, "127.0.0.1", port, most=MOST_CONNECTIONS, shutdown_seconds=0.5)
            try:
                entrance.port = await stack.enter_async_context(served)
            except OSError as error:
                raise NotListening(f"port {port} of 127.0.0.1: {error}") from error
            stack.push_async_callback(self._tour.end)
            yield entrance

    async def end(self, why: str) -> None:
        """Tell every browser that the server ends. `why` is `cluster` when the cluster has ended; `page` or `trace`
        when only that command has, and the cluster runs on.

        They get the latest stories, so that what was seen can be looked at again."""
        await self._tour.end()  # while there is still a client, which takes its namespace away
        latest = self._watching.ended()[-MOST_STORIES:]
        stories = []
        for uid in latest:
            with suppress(LookupError):
                stories.append(self._watching.story(uid))
        ends = {key: value for key, value in self._watching.board.everything().items() if key.startswith("end/")}
        rollout = self._rollout.document if self._rollout is not None else {}
        last = {"stories": stories, "ends": ends, "rollout": rollout or None}
        # In every language: nobody is there to be asked when its reader chooses another one.
        self._farewell = {"why": why, "told": {language: translate(last, language) for language in LANGUAGES}}
        self._ring()
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                while self._browsers:
                    await self._clock.sleep(0.02)

    def _looks(self, more: int) -> None:
        self._browsers += more
        self._on_browsers(self._browsers)

    def _ring(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # -- files --------------------------------------------------------------------------------------------------------

    async def _index(self, request: web.Request) -> web.StreamResponse:
        """For everybody: it shows nothing of the cluster, and takes the token out of its address."""
        return web.Response(text=asset("index.html"), content_type="text/html")

    def _is_known(self, entrance: Entrance) -> Handler:
        async def is_known(request: web.Request) -> web.StreamResponse:
            return _json({"known": entrance.knows(_asked(request, entrance))})

        return is_known

    def _enter(self, entrance: Entrance) -> Handler:
        """The token for the cookie."""

        async def enter(request: web.Request) -> web.StreamResponse:
            known = entrance.knows(_asked(request, entrance))
            let_in = known or entrance.spend(str((await _body(request)).get("token", "")))
            response = _json({"known": let_in})
            if let_in and not known:
                response.set_cookie(entrance.cookie_name, entrance.session, httponly=True, samesite="Strict", path="/")
            return response

        return enter

    def _file(self, name: str) -> Handler:
        async def file(request: web.Request) -> web.StreamResponse:
            return web.Response(text=asset(name), content_type=FILES[name])

        return file

    # -- the stream ---------------------------------------------------------------------------------------------------

    async def _feed(self, request: web.Request) -> web.StreamResponse:
        selector = parse_label_selector(request.query.get("labels", ""))
        uid, language = request.query.get("pod", ""), _language(request)
        board = self._watching.board
        version = board.version_of(request.headers.get("Last-Event-ID", ""))
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        self._looks(1)
        try:
            with suppress(ConnectionError):  # the browser has gone
                await response.prepare(request)
                await self._tell(response, selector, uid, version, language)
        finally:
            self._looks(-1)
        return response

    async def _tell(
        self, response: web.StreamResponse, selector: LabelSelector, uid: str, version: int, language: str
    ) -> None:
        """One browser's messages, until its connection ends. Raises ConnectionError then."""
        board, seen, drawn = self._watching.board, -1, 0
        while True:
            changed, sent = self._changed, monotonic(self._clock)
            changes = board.after(version)
            name = "changes" if changes is not None else "snapshot"
            shown = _selected(board.everything() if changes is None else changes, selector)
            missing = board.is_behind(version)
            now, version = board.event_id, board.version
            if shown or changes is None:
                message = {"now": self._clock.wall_ns() / 1e6, "items": translate(shown, language)}
                if missing:
                    message["missing"] = True
                await response.write(_event(name, message, now))
            if uid and seen != self._watching.version(uid):
                seen = self._watching.version(uid)
                with suppress(LookupError):
                    await response.write(_event("story", translate(self._watching.story(uid), language), now))
            if self._rollout is not None and drawn != self._rollout.version:
                drawn = self._rollout.version
                await response.write(_event("rollout", translate(self._rollout.document, language), now))
            if self._farewell is not None:
                await response.write(_event("ended", self._farewell, now))
                return
            try:
                async with asyncio.timeout(STILL_HERE_SECONDS):
                    await changed.wait()
            except TimeoutError:
                await response.write(b": still here\n\n")
            await self._clock.sleep(max(0.0, sent + PAUSE_SECONDS - monotonic(self._clock)))

    async def _select(self, request: web.Request) -> web.StreamResponse:
        """Whether a label selector can be read; the error is Kubernetes's."""
        parse_label_selector(request.query.get("labels", ""))
        return _json({})

    # -- one Pod ------------------------------------------------------------------------------------------------------

    def _pod(self, request: web.Request) -> tuple[PageClient, AnyObject]:
        pod, client = self._watching.pod(request.match_info["uid"]), self._watching.client
        if pod is None:
            raise web.HTTPNotFound(text="this Pod is gone")
        if client is None:
            raise web.HTTPServiceUnavailable(text="the cluster is not running")
        if request.method != "GET" and not self._watching.may_write:
            raise web.HTTPForbidden(text=ONLY_READS)
        return client, pod

    async def _events(self, request: web.Request) -> web.StreamResponse:
        return _json({"events": await actions.events(*self._pod(request))})

    async def _object(self, request: web.Request) -> web.StreamResponse:
        # late: 43 ms, when a browser shows the YAML
        import yaml

        _, pod = self._pod(request)
        plain = actions.plain(pod)
        return _json({"object": plain, "yaml": yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)})

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        previous = request.query.get("previous") == "true"
        text = await actions.logs(*self._pod(request), request.query.get("container", ""), previous)
        return _json({"text": text})

    async def _plan(self, request: web.Request) -> web.StreamResponse:
        _, pod = self._pod(request)
        steps = plan(what_if_deleted(pod, _grace(request.query.get("grace", ""))))
        return _json({"next": translate(steps, _language(request))})

    async def _export(self, request: web.Request) -> web.StreamResponse:
        """The story as the page of `lastcall story --output html`, as a file."""
        try:
            ending = self._watching.ending(request.match_info["uid"])
        except LookupError:
            raise web.HTTPNotFound(text="nothing is known about this Pod") from None
        version = str(self._watching.about.get("kubernetesVersion") or "")
        page = html_page(
            [ending], kubernetes_version=version, lastcall_version=__version__, language=_language(request)
        )
        name = "".join(c for c in ending.pod.name if c.isalnum() or c in "-.")
        headers = {"Content-Disposition": f'attachment; filename="{name or "pod"}.html"'}
        return web.Response(text=page, content_type="text/html", headers=headers)

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        client, pod = self._pod(request)
        if not self._watching.may_write:
            raise web.HTTPForbidden(text=ONLY_READS)
        page = web.WebSocketResponse(max_msg_size=terminal.MOST_MESSAGE)
        await page.prepare(request)
        try:
            await terminal.hold(page, client, pod, request.query.get("container", ""), ("sh",))
        except* (StatusError, ConnectionLost) as group:
            with suppress(ConnectionError):
                await page.send_bytes(b"\x03" + str(group.exceptions[0]).encode())
        await page.close()
        return page

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        client, pod = self._pod(request)
        await actions.delete(client, pod, _grace(str((await _body(request)).get("grace", ""))))
        return _json({})

    async def _forecast(self, request: web.Request) -> web.StreamResponse:
        """What would be lost with these values: the answer comes by the stream, with this number."""
        body = await _body(request)
        return _json({"number": self._of_rollout(lambda room: room.what_if(body))})

    async def _again(self, request: web.Request) -> web.StreamResponse:
        if self._watching.read_only:
            raise web.HTTPForbidden(text=ONLY_READS)
        body = await _body(request)
        self._of_rollout(lambda room: room.run_again(body))
        return _json({})

    def _of_rollout(self, ask: Callable[[RolloutRoom], T]) -> T:
        if self._rollout is None:
            raise web.HTTPNotFound(text="there is no rollout")
        try:
            return ask(self._rollout)
        except ValueError as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        except LookupError as error:
            raise web.HTTPConflict(text=str(error.args[0])) from None

    async def _evict(self, request: web.Request) -> web.StreamResponse:
        client, pod = self._pod(request)
        await actions.evict(client, pod, _grace(str((await _body(request)).get("grace", ""))))
        return _json({})

    # -- the tour -----------------------------------------------------------------------------------------------------

    async def _run_tour(self, request: web.Request) -> web.StreamResponse:
        return self._started(lambda: self._tour.start(request.match_info["id"]))

    async def _levels(self, request: web.Request) -> web.StreamResponse:
        return _json({"levels": [level_document(each) for each in levels().values()]})

    async def _recorded(self, request: web.Request) -> web.StreamResponse:
        try:
            return _json(recorded(request.match_info["id"]))
        except KeyError:
            raise web.HTTPNotFound(text="nothing is recorded of that level: every machine can run it") from None

    async def _run_level(self, request: web.Request) -> web.StreamResponse:
        """The learner's `manifest`, deleted with `grace`, "" for the Pod's own. `guess`: the number of a choice."""
        body = await _body(request)
        manifest, grace = str(body.get("manifest", "")), _grace(str(body.get("grace", "")))
        guess = body["guess"] if isinstance(body.get("guess"), int) else None
        return self._started(lambda: self._tour.start_level(request.match_info["id"], manifest, grace, guess))

    def _started(self, start: Callable[[], None]) -> web.StreamResponse:
        if self._watching.client is not None and not self._watching.may_write:
            raise web.HTTPForbidden(text=ONLY_READS)
        try:
            start()
        except LookupError:
            raise web.HTTPNotFound(text="the tour has no such experiment") from None
        except BadManifest as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        except TourError as error:
            raise web.HTTPConflict(text=str(error)) from None
        return _json({})

    async def _stop_tour(self, request: web.Request) -> web.StreamResponse:
        await self._tour.end()
        return _json({})


def _reading(handler: Handler) -> Handler:
    """Answer with the reason where something of a Pod cannot be read, with status 200: a page goes on asking until it
    knows that the Pod is gone, and browsers write any other status into their console as an error."""

    async def read(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPNotFound as error:
            return _json({"unread": error.text})
        except StatusError as error:
            if not 400 <= error.code < 500:
                raise
            return _json({"unread": str(error)})

    return read


def _guard(entrance: Entrance) -> Any:
    """Every request comes through here; every answer gets the headers."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = _asked(request, entrance)
        if why := entrance.refusal(asked):
            response: web.StreamResponse = web.Response(status=403, text=why)
        elif request.path.startswith("/api/") and request.path != ENTER and not entrance.knows(asked):
            response = web.Response(status=401, text="open the link that lastcall ui prints")
        else:
            response = await _answered(request, handler)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return guard


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors of the world become answers, with their own words."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return web.Response(status=error.status, text=error.text)
    except StatusError as error:
        return web.Response(status=error.code if 400 <= error.code < 600 else 502, text=str(error))
    except (ConnectionLost, TimeoutError) as error:
        return web.Response(status=502, text=str(error) or "no answer in time")


def _asked(request: web.Request, entrance: Entrance) -> Asked:
    headers = request.headers
    return Asked(
        request.method,
        headers.get("Host", ""),
        headers.get("Origin", ""),
        headers.get("Sec-Fetch-Site", "") if request.path != "/" else "",
        request.cookies.get(entrance.cookie_name, ""),
        headers.get("Upgrade", "").lower() == "websocket",
    )


def _selected(items: Changes, selector: LabelSelector) -> Changes:
    """Pods that the selector does not select are gone for this browser."""
    if selector.empty:
        return items
    return {
        key: None if value and key.startswith("pod/") and not selector.matches(value["labels"]) else value
        for key, value in items.items()
    }


def _event(name: str, content: Any, event_id: str) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (event_id.encode(), name.encode(), orjson.dumps(content))


def _json(content: Any) -> web.Response:
    return web.Response(body=orjson.dumps(content), content_type="application/json")


def _language(request: web.Request) -> str:
    """That of the page; English for one that is not known."""
    asked = request.query.get("language", ENGLISH)
    return asked if asked in LANGUAGES else ENGLISH


def _grace(text: str) -> int | None:
    """Raises 400."""
    if text in ("", "None"):
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise web.HTTPBadRequest(text=f"grace period {text[:40]!r}: write whole seconds")
    return int(text)


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = orjson.loads(await request.read() or b"{}")
    except orjson.JSONDecodeError:
        raise web.HTTPBadRequest(text="the body is not JSON") from None
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="the body is not a JSON object")
    return body
