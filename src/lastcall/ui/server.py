"""The page's HTTP server on the loopback: its files, one stream of changes for each browser, and what it may ask."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar

import orjson
from aiohttp import web

from lastcall._version import __version__
from lastcall.kube.api import AnyObject, LabelSelector, StatusError, parse_label_selector
from lastcall.kube.client import ConnectionLost
from lastcall.records.language import LANGUAGES, translate
from lastcall.records.said import tell
from lastcall.ui import actions, terminal
from lastcall.ui.answers import (
    Handler,
    Refused,
    asked_by,
    body_of,
    grace_of,
    guard,
    json_answer,
    language_of,
    reading,
)
from lastcall.ui.board import Changes
from lastcall.ui.entrance import ENTER, HEADERS, Entrance
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
ONLY_READS = tell("this page only reads")


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
        application = web.Application(client_max_size=MOST_BODY, middlewares=[guard(entrance)])
        router = application.router
        router.add_get("/", self._index)
        router.add_get(ENTER, self._is_known(entrance))
        router.add_post(ENTER, self._enter(entrance))
        for name in FILES:
            router.add_get(f"/assets/{name}", self._file(name))
        for path, handler in (
            ("/api/feed", self._feed),
            ("/api/select", self._select),
            ("/api/pods/{uid}/events", reading(self._events)),
            ("/api/pods/{uid}/object", reading(self._object)),
            ("/api/pods/{uid}/logs", reading(self._logs)),
            ("/api/pods/{uid}/plan", reading(self._plan)),
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
            return json_answer({"known": entrance.knows(asked_by(request, entrance))})

        return is_known

    def _enter(self, entrance: Entrance) -> Handler:
        """The token for the cookie."""

        async def enter(request: web.Request) -> web.StreamResponse:
            known = entrance.knows(asked_by(request, entrance))
            let_in = known or entrance.spend(str((await body_of(request)).get("token", "")))
            response = json_answer({"known": let_in})
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
        uid, language = request.query.get("pod", ""), language_of(request)
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
        return json_answer({})

    # -- one Pod ------------------------------------------------------------------------------------------------------

    def _pod(self, request: web.Request) -> tuple[PageClient, AnyObject]:
        pod, client = self._watching.pod(request.match_info["uid"]), self._watching.client
        if pod is None:
            raise Refused(404, tell("this Pod is gone"))
        if client is None:
            raise Refused(503, tell("the cluster is not running"))
        if request.method != "GET" and not self._watching.may_write:
            raise Refused(403, ONLY_READS)
        return client, pod

    async def _events(self, request: web.Request) -> web.StreamResponse:
        return json_answer({"events": await actions.events(*self._pod(request))})

    async def _object(self, request: web.Request) -> web.StreamResponse:
        # late: 43 ms, when a browser shows the YAML
        import yaml

        _, pod = self._pod(request)
        plain = actions.plain(pod)
        return json_answer({"object": plain, "yaml": yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)})

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        previous = request.query.get("previous") == "true"
        text = await actions.logs(*self._pod(request), request.query.get("container", ""), previous)
        return json_answer({"text": text})

    async def _plan(self, request: web.Request) -> web.StreamResponse:
        _, pod = self._pod(request)
        steps = plan(what_if_deleted(pod, grace_of(request.query.get("grace", ""))))
        return json_answer({"next": translate(steps, language_of(request))})

    async def _export(self, request: web.Request) -> web.StreamResponse:
        """The story as the page of `lastcall story --output html`, as a file."""
        try:
            ending = self._watching.ending(request.match_info["uid"])
        except LookupError:
            raise Refused(404, tell("nothing is known about this Pod")) from None
        version = str(self._watching.about.get("kubernetesVersion") or "")
        page = html_page(
            [ending], kubernetes_version=version, lastcall_version=__version__, language=language_of(request)
        )
        name = "".join(c for c in ending.pod.name if c.isalnum() or c in "-.")
        headers = {"Content-Disposition": f'attachment; filename="{name or "pod"}.html"'}
        return web.Response(text=page, content_type="text/html", headers=headers)

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        client, pod = self._pod(request)
        if not self._watching.may_write:
            raise Refused(403, ONLY_READS)
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
        await actions.delete(client, pod, grace_of(str((await body_of(request)).get("grace", ""))))
        return json_answer({})

    async def _forecast(self, request: web.Request) -> web.StreamResponse:
        """What would be lost with these values: the answer comes by the stream, with this number."""
        body = await body_of(request)
        return json_answer({"number": self._of_rollout(lambda room: room.what_if(body))})

    async def _again(self, request: web.Request) -> web.StreamResponse:
        if self._watching.read_only:
            raise Refused(403, ONLY_READS)
        body = await body_of(request)
        self._of_rollout(lambda room: room.run_again(body))
        return json_answer({})

    def _of_rollout(self, ask: Callable[[RolloutRoom], T]) -> T:
        if self._rollout is None:
            raise Refused(404, tell("there is no rollout"))
        try:
            return ask(self._rollout)
        except ValueError as error:
            raise Refused(400, error.args[0]) from None
        except LookupError as error:
            raise Refused(409, error.args[0]) from None

    async def _evict(self, request: web.Request) -> web.StreamResponse:
        client, pod = self._pod(request)
        await actions.evict(client, pod, grace_of(str((await body_of(request)).get("grace", ""))))
        return json_answer({})

    # -- the tour -----------------------------------------------------------------------------------------------------

    async def _run_tour(self, request: web.Request) -> web.StreamResponse:
        return self._started(lambda: self._tour.start(request.match_info["id"]))

    async def _levels(self, request: web.Request) -> web.StreamResponse:
        return json_answer({"levels": [level_document(each) for each in levels().values()]})

    async def _recorded(self, request: web.Request) -> web.StreamResponse:
        try:
            return json_answer(recorded(request.match_info["id"]))
        except KeyError:
            raise Refused(404, tell("nothing is recorded of that level: every machine can run it")) from None

    async def _run_level(self, request: web.Request) -> web.StreamResponse:
        """The learner's `manifest`, deleted with `grace`, "" for the Pod's own. `guess`: the number of a choice."""
        body = await body_of(request)
        manifest, grace = str(body.get("manifest", "")), grace_of(str(body.get("grace", "")))
        guess = body["guess"] if isinstance(body.get("guess"), int) else None
        return self._started(lambda: self._tour.start_level(request.match_info["id"], manifest, grace, guess))

    def _started(self, start: Callable[[], None]) -> web.StreamResponse:
        if self._watching.client is not None and not self._watching.may_write:
            raise Refused(403, ONLY_READS)
        try:
            start()
        except LookupError:
            raise Refused(404, tell("the tour has no such experiment")) from None
        except BadManifest as error:
            raise Refused(400, error.text) from None
        except TourError as error:
            raise Refused(409, error.text) from None
        return json_answer({})

    async def _stop_tour(self, request: web.Request) -> web.StreamResponse:
        await self._tour.end()
        return json_answer({})


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
