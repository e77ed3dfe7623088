"""Levels in chromium where nothing is run: what the machine lacks, and what the page refuses."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
from live_page import assert_good, seen, write

from browser import Browser
from lastcall.records.record import Record
from lastcall.ui.server import PageServer
from lastcall.ui.source import NoMore, ObjectHandler, Opened, PageClient
from lastcall.ui.tour.levels import recorded
from lastcall.ui.watching import Watching
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

pytestmark = pytest.mark.loopback


AXIS = """(() => {
    const all = what => [...document.querySelectorAll(`.lanes ${what}`)], of = e => e.getBoundingClientRect();
    const {left, width} = of(document.querySelector('.lanes'));
    const marks = all('.mark path').map(e => (of(e).left + of(e).right) / 2 - left);
    if (all('.tick-label').some(e => of(e).right > left + width)) return [0, 'a label is cut off'];
    return [Math.max(...marks) / width, all('.tick-label').map(e => e.textContent)];
})()"""
"""At which share of the width the last mark is, and the labels of the axis."""


class Client:
    """It fails where it is asked for anything."""

    async def close(self) -> None:
        return None


class Empty:
    """A cluster without Pods."""

    name = "made"
    opened = False

    async def open(self) -> Opened:
        if self.opened:
            raise NoMore
        self.opened = True
        about = {"name": "made", "kubernetesVersion": "1.36"}
        return Opened(about, "1", cast(PageClient, Client()), self._records(), True, self._watch)

    def _watch(self, on_object: ObjectHandler) -> None:
        pass

    async def _records(self) -> AsyncIterator[Record]:
        await asyncio.Event().wait()
        yield Record("never", 0, 0, "apiserver", "", "")


async def test_without_a_memory_control_group_the_level_says_so_and_plays_a_recording(browser: Browser) -> None:
    world = World()
    watching = Watching(Empty(), world)
    async with PageServer(watching, world.clock).listening() as entrance, Tasks() as tasks:
        tasks.spawn(watching.run(), name="watching")
        page = await browser.open(f"{entrance.link}", reduced_motion=True)
        await page.eval("location.hash = '#/tour/level-memory'")
        await seen(page, "document.querySelector('#goal')")
        assert not await page.eval("!!document.querySelector('.lanes')")
        run = recorded("memory")
        goal = [{**each, "left": 0 if each["path"].endswith("exitCode") else "Completed"} for each in run["goal"]]
        done = {key: value for key, value in run.items() if key != "story"} | {
            "experiment": "level-memory",
            "goal": goal,
        }
        watching.board.put("tour/level-memory", done)
        watching.board.on_change()
        await seen(page, "/no memory control group/.test(document.querySelector('#run-state').innerText)")
        await seen(page, "[...document.querySelectorAll('.step')].some(e => /out of memory|OOM/i.test(e.innerText))")
        await seen(page, "document.querySelector('#play')")
        await seen(page, f"{AXIS}[0] > 0.9")  # a run of 401 ms takes the width of the picture
        _, ticks = await page.eval(AXIS)
        assert len(ticks) >= 4 and set(ticks) <= {"0 s", *(f"{each} ms" for each in range(10, 401, 10))}, ticks
        await assert_good(page)
        tasks.cancel()


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "a level accepts .*, not Secret"), ("ja", "レベルで使えるのは .* で、Secret は使えません")],
)
async def test_why_a_manifest_is_refused_is_said_in_the_language_of_the_page(
    browser: Browser, language: str, said: str
) -> None:
    world = World()
    watching = Watching(Empty(), world)
    async with PageServer(watching, world.clock).listening() as entrance, Tasks() as tasks:
        tasks.spawn(watching.run(), name="watching")
        page = await browser.open(entrance.link, language=language)
        await page.eval("location.hash = '#/tour/level-kill'")
        await seen(page, "document.querySelector('#start') && !document.querySelector('#start').disabled")
        await write(page, "#manifest", "kind: Secret")
        await page.eval("document.querySelector('#start').click()")
        await seen(page, f"/{said}/.test(document.querySelector('article').innerText)")
        tasks.cancel()
