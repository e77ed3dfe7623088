"""What the page's server answers, and to whom, over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
import pytest
from waiting import until

from lastcall.kube.api.resources import PODS
from lastcall.records.record import Record
from lastcall.ui.entrance import HEADERS, Entrance
from lastcall.ui.server import PageServer
from lastcall.ui.source import NoMore, ObjectHandler, Opened, PageClient
from lastcall.ui.watching import Watching
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

pytestmark = pytest.mark.loopback


class Client:
    """It fails where it is asked for anything."""

    async def close(self) -> None:
        return None


class Cluster:
    """With one Pod, `u`."""

    name = "made"

    def __init__(self) -> None:
        self._opened = False

    async def open(self) -> Opened:
        if self._opened:
            raise NoMore
        self._opened = True
        return Opened({"name": "made"}, "1", cast(PageClient, Client()), self._records(), True, self._watch)

    def _watch(self, on_object: ObjectHandler) -> None:
        on_object(PODS, "ADDED", {"metadata": {"uid": "u", "name": "p", "namespace": "default"}, "spec": {}})

    async def _records(self) -> AsyncIterator[Record]:
        await asyncio.Event().wait()
        yield Record("never", 0, 0, "apiserver", "", "")


@asynccontextmanager
async def page(*, read_only: bool = False) -> AsyncIterator[tuple[Entrance, aiohttp.ClientSession]]:
    """Its entrance, and a browser that has not come in."""
    world = World()
    watching = Watching(Cluster(), world, read_only=read_only)
    server = PageServer(watching, world.clock)
    jar = aiohttp.CookieJar(unsafe=True)  # of an address in place of a name
    async with server.listening() as entrance, Tasks() as tasks, aiohttp.ClientSession(cookie_jar=jar) as browser:
        tasks.spawn(watching.run(), name="watching")
        await until(lambda: watching.pod("u") is not None)
        yield entrance, browser
        tasks.cancel()


async def ask(
    browser: aiohttp.ClientSession, entrance: Entrance, path: str, body: Any = None, **headers: str
) -> tuple[int, str]:
    """Status and text; with a `body` it is a POST by the page itself."""
    method = "GET" if body is None else "POST"
    sent = {"Origin": entrance.origin, **headers} if body is not None else headers
    async with browser.request(method, entrance.origin + path, json=body, headers=sent) as answer:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        return answer.status, await answer.text()


async def enter(browser: aiohttp.ClientSession, entrance: Entrance, token: str) -> bool:
    status, text = await ask(browser, entrance, "/api/enter", {"token": token})
    assert status == 200
    return text == '{"known":true}'


async def test_a_token_is_exchanged_once_for_a_cookie_that_no_script_reads() -> None:
    async with page() as (entrance, browser):
        first = entrance.token
        assert (await ask(browser, entrance, "/api/pods/u/object"))[0] == 401
        assert not await enter(browser, entrance, "guessed")
        assert await enter(browser, entrance, first)
        (cookie,) = browser.cookie_jar
        assert cookie["httponly"] and cookie["samesite"] == "Strict"
        assert (await ask(browser, entrance, "/api/pods/u/object"))[0] == 200
        browser.cookie_jar.clear()
        assert not await enter(browser, entrance, first)
        assert (await ask(browser, entrance, "/api/pods/u/object"))[0] == 401


async def test_a_browser_that_is_in_spends_no_other_token() -> None:
    async with page() as (entrance, browser):
        assert await enter(browser, entrance, entrance.token)
        other = entrance.token
        assert await enter(browser, entrance, other) and entrance.token == other
        assert (await ask(browser, entrance, "/api/enter")) == (200, '{"known":true}')


async def test_a_foreign_host_a_foreign_origin_and_a_wrong_method_are_refused() -> None:
    async with page() as (entrance, browser):
        await enter(browser, entrance, entrance.token)
        assert (await ask(browser, entrance, "/", Host="evil.example"))[0] == 403
        assert (await ask(browser, entrance, "/api/pods/u/object", Origin="http://evil.example"))[0] == 403
        delete = "/api/pods/u/delete"
        assert (await ask(browser, entrance, delete, {}, Origin="http://evil.example"))[0] == 403
        assert (await ask(browser, entrance, delete))[0] == 405
        token = {"token": entrance.token}
        assert (await ask(browser, entrance, "/api/enter", token, Origin="null"))[0] == 403


@pytest.mark.parametrize(
    "path", ["pods/u/delete", "pods/u/evict", "tour/graceful/run", "tour/levels/grace/run", "rollout/again"]
)
async def test_a_page_that_only_reads_changes_nothing(path: str) -> None:
    async with page(read_only=True) as (entrance, browser):
        await enter(browser, entrance, entrance.token)
        assert (await ask(browser, entrance, f"/api/{path}", {})) == (403, "this page only reads")


@pytest.mark.parametrize("what", ["object", "events", "logs", "plan"])
async def test_that_a_pod_is_gone_is_no_error_in_the_console_of_a_browser(what: str) -> None:
    """Every status but those of success is one, and a page goes on asking until it hears of the end."""
    async with page() as (entrance, browser):
        await enter(browser, entrance, entrance.token)
        answer = await ask(browser, entrance, f"/api/pods/gone/{what}")
        assert answer == (200, '{"unread":"this Pod is gone"}')
        assert await ask(browser, entrance, "/api/pods/gone/delete", {}) == (404, "this Pod is gone")


BAD = {"manifest": "kind: Secret", "grace": ""}


@pytest.mark.parametrize(
    ("path", "body", "english", "japanese"),
    [
        ("pods/gone/object", None, '{"unread":"this Pod is gone"}', '{"unread":"この Pod はもうありません"}'),
        ("pods/gone/delete", {}, "this Pod is gone", "この Pod はもうありません"),
        ("pods/u/delete", {"grace": "x"}, "grace period 'x': write whole seconds", "猶予時間 'x'"),
        ("tour/levels/grace/run", BAD, "a level accepts Pod, Service", "レベルで使えるのは Pod, Service"),
        ("tour/levels/grace/run", {"manifest": "a: ["}, "line 2 of the manifest: ", "マニフェストの 2 行目: "),
        ("tour/levels/grace/run", {"manifest": "kind: Pod"}, "the Pod has no name", "Pod に名前がありません"),
        ("tour/levels/none/run", BAD, "the tour has no such experiment", "ツアーにその実験はありません"),
        ("rollout/again", {}, "there is no rollout", "ロールアウトはありません"),
    ],
)
async def test_why_the_page_is_refused_something_is_said_in_its_language(
    path: str, body: Any, english: str, japanese: str
) -> None:
    async with page() as (entrance, browser):
        await enter(browser, entrance, entrance.token)
        for language, said in (("en", english), ("ja", japanese), ("fr", english)):
            _, text = await ask(browser, entrance, f"/api/{path}", body, **{"Accept-Language": language})
            assert text.startswith(said), language


async def test_what_not_every_machine_can_run_is_recorded() -> None:
    async with page() as (entrance, browser):
        await enter(browser, entrance, entrance.token)
        status, text = await ask(browser, entrance, "/api/tour/levels/memory/recorded")
        assert status == 200 and '"OOMKilled"' in text
        assert (await ask(browser, entrance, "/api/tour/levels/grace/recorded"))[0] == 404


async def test_every_file_of_the_page_is_served_to_everybody_and_nothing_else_is() -> None:
    async with page() as (entrance, browser):
        for name in ("", "assets/ui.js", "assets/tour.js", "assets/rollout.js", "assets/cluster.js", "assets/ui.css"):
            assert (await ask(browser, entrance, f"/{name}"))[0] == 200, name
        for name in ("assets/index.html", "assets/../server.py", "assets/none.js"):
            assert (await ask(browser, entrance, f"/{name}"))[0] == 404, name
