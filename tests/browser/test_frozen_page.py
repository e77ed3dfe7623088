"""A page that is frozen while more happens than the server keeps: it says from when to when steps are missing."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import cast

import pytest
from live_page import assert_good, seen

from browser import Browser
from lastcall.kube.api.resources import PODS
from lastcall.records.record import Record
from lastcall.ui.board import Board, Changes
from lastcall.ui.cells import pod_cell
from lastcall.ui.entrance import Entrance
from lastcall.ui.server import PageServer
from lastcall.ui.source import NoMore, ObjectHandler, Opened, PageClient
from lastcall.ui.watching import Watching
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

BIG = "x" * 200_000
"""So that what lies between the server and a page is full soon."""

MINUTE = 60.0
"""In seconds."""


class Ring(Board):
    """Counts how often the server goes on to a browser's next message."""

    asked = 0

    def after(self, version: int) -> Changes | None:
        type(self).asked += 1
        return super().after(version)


class Client:
    """It fails where it is asked for anything."""

    async def close(self) -> None:
        return None


class Cluster:
    """With one Pod."""

    name = "made"
    opened = False

    async def open(self) -> Opened:
        if self.opened:
            raise NoMore
        self.opened = True
        about = {"name": "made", "kubernetesVersion": "1.36"}
        return Opened(about, "1", cast(PageClient, Client()), self._records(), True, self._watch)

    def _watch(self, on_object: ObjectHandler) -> None:
        on_object(PODS, "ADDED", pod("stays"))

    async def _records(self) -> AsyncIterator[Record]:
        await asyncio.Event().wait()
        yield Record("never", 0, 0, "apiserver", "", "")


def pod(name: str, label: str = "") -> dict[str, object]:
    return {"metadata": {"uid": name, "name": name, "namespace": "default", "labels": {"l": label}}, "spec": {}}


@asynccontextmanager
async def served(board: Board) -> AsyncIterator[Entrance]:
    world = World()
    watching = Watching(Cluster(), world)
    watching.board = board
    server = PageServer(watching, world.clock)
    async with server.listening() as entrance, Tasks() as tasks:
        tasks.spawn(watching.run(), name="watching")
        yield entrance
        tasks.cancel()


@contextmanager
def stopped(processes: list[int]) -> Iterator[None]:
    for each in processes:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in processes:
            os.kill(each, signal.SIGCONT)


async def churn(board: Ring, rounds: int) -> None:
    """Pods come and go."""
    for _ in range(rounds):
        name = f"goes-{board.version}"
        board.put(f"pod/{name}", pod_cell(pod(name, BIG), ""))
        await asyncio.sleep(0)
        board.take(f"pod/{name}")


async def until_the_server_waits(board: Ring) -> None:
    """Until it has nowhere to write to."""
    for _ in range(400):
        before = board.asked
        name = f"fills-{board.version}"
        board.put(f"pod/{name}", pod_cell(pod(name, BIG), ""))
        await asyncio.sleep(0.5)  # five times as long as it pauses between two messages
        board.take(f"pod/{name}")
        if board.asked == before:
            return
    raise AssertionError("the server never waited for the page")


@pytest.mark.parametrize("seconds", [0.0, MINUTE], ids=["until the server waits", "a minute"])
async def test_a_page_that_was_frozen_says_from_when_to_when_steps_are_missing(
    browser: Browser, seconds: float
) -> None:
    board = Ring(most_gone=3)
    async with served(board) as entrance:
        page = await browser.open(entrance.link)
        await seen(page, "document.querySelectorAll('.cells .cell').length === 1")
        assert not await page.eval("!!document.querySelector('#missed')")
        processes = (await browser.send("SystemInfo.getProcessInfo"))["processInfo"]
        with stopped([each["id"] for each in processes if each["type"] == "renderer"]):
            thaws = asyncio.get_running_loop().time() + seconds
            await until_the_server_waits(board)
            await churn(board, 10)
            await asyncio.sleep(thaws - asyncio.get_running_loop().time())  # the rest of the minute, if there is one
        await seen(page, "document.querySelector('#missed')")
        text = await page.eval("document.querySelector('#missed').innerText")
        assert re.match(r"From \d+:\d\d:\d\d\s[AP]M to \d+:\d\d:\d\d\s[AP]M steps are missing", text), text
        await seen(page, "document.querySelectorAll('.cells .cell').length === 1")
        await assert_good(page)
