"""The pictures of the live page for documents: `python tools/take_pictures.py [FOLDER]` (three minutes).

It needs root, chromium and a font for Japanese (fonts-ipaexfont-gothic). By default into docs/images; ui-live.png is
animated, for README. `--views FOLDER` keeps every view there, whole: light, dark, and as wide as
a phone, and pages that were saved. `--vision FOLDER` keeps there how people see the page who see colors
differently, and the page as it is printed, to be looked at: nothing may depend on color alone.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/support"), str(ROOT / "tools")]
os.environ["PYTHONPATH"] = str(ROOT / "src")  # of the commands, too: the page of this clone

from animated_png import Shot, animated  # noqa: E402
from live_page import choose, fresh_link, link_of, seen, write  # noqa: E402
from pods import container, pod, service  # noqa: E402
from rollout_results import rollout_result  # noqa: E402
from staying import Place  # noqa: E402
from story_samples import samples  # noqa: E402

from browser import Browser, BrowserProcess, Page  # noqa: E402
from lastcall._version import __version__  # noqa: E402
from lastcall.experiment.rollout.html import html_page as rollout_page  # noqa: E402
from lastcall.ui.saved_stories import html_page  # noqa: E402

VISIONS = ("protanopia", "deuteranopia", "tritanopia", "achromatopsia")
FOREVER = "while true; do sleep 1 & wait $!; done"
DRAINS = f"trap 'echo draining; sleep 4; exit 0' TERM; {FOREVER}"
HOOK = {"preStop": {"exec": {"command": ["sleep", "3"]}}}
LIVE_WIDTH, LIVE_HEIGHT = 960, 900
PAUSE, HOLD = 0.2, 4.0
"""Seconds between two frames of the animated picture, and for which its last one stays."""
LEAST_FRAMES = 15
"""Of the animated picture: on a machine that is too busy it does not move."""

Kubectl = Callable[..., str]
"""Called with kubectl's arguments, and `stdin`."""


def objects() -> list[dict[str, Any]]:
    """Return a Pod of every state that the overview has."""
    never = {"exec": {"command": ["false"]}, "periodSeconds": 1}
    made = [
        pod("web", container("app", DRAINS, lifecycle=HOOK), labels={"app": "web"}, grace=10),
        pod("not-ready", container("app", DRAINS, readinessProbe=never)),
        pod("pending", container("app"), nodeSelector={"example.com/disk": "ssd"}),
        pod("failed", container("app", "exit 1"), restartPolicy="Never"),
        pod("succeeded", container("app", "exit 0"), restartPolicy="Never"),
        pod("terminating", container("app", FOREVER), grace=120),
        service("web"),
    ]
    return [*made, *(pod(f"ready-{number}", container("app", DRAINS)) for number in range(4))]


class Studio:
    """Takes pictures of one page after the other."""

    def __init__(self, folder: Path | None, visions: Path | None, browser: Browser, link: Callable[[], str]) -> None:
        self._folder, self._visions = folder, visions
        self._browser, self._link = browser, link

    async def open(self, **options: Any) -> Page:
        page = await self._browser.open(self._link(), **options)
        await seen(page, "document.querySelector('.status:not(.lost)')")  # a rollout's cluster may have ended
        return page

    async def take(self, page: Page, name: str, *, kept: bool = True, height: int = 0) -> None:
        """Take a picture.

        `kept`: for the documents, too; else only as others see it. `height`: the window has it from now on.
        """
        if height:
            await page.size(1280, height)
            await page.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        if kept and self._folder is not None:
            await page.screenshot(self._folder / f"{name}.png", whole=False)
        for vision in VISIONS if self._visions is not None else ():
            assert self._visions is not None
            await page.send("Emulation.setEmulatedVisionDeficiency", type=vision)
            await page.screenshot(self._visions / f"{name}-{vision}.png", whole=False)
        await page.send("Emulation.setEmulatedVisionDeficiency", type="none")

    async def animate(self, page: Page, over: str) -> None:
        """Keep what the page shows until `over` is true as ui-live.png."""
        if self._folder is None:
            return
        frames: list[tuple[float, bytes]] = []
        last = False
        while not last:
            last = bool(await page.eval(f"!!({over})"))
            began = time.monotonic()
            with tempfile.NamedTemporaryFile(suffix=".png") as kept:
                frames.append((began, (await page.screenshot(Path(kept.name), whole=False)).read_bytes()))
            await asyncio.sleep(max(0.0, began + PAUSE - time.monotonic()))
        if len(frames) < LEAST_FRAMES:
            raise SystemExit(
                f"ui-live.png has {len(frames)} frames: the machine is too busy; --only live takes it again"
            )
        ends = [*(at for at, _ in frames[1:]), frames[-1][0] + HOLD]
        shots = [Shot(png, end - at) for (at, png), end in zip(frames, ends, strict=True)]
        (self._folder / "ui-live.png").write_bytes(animated(shots))

    async def print(self, page: Page) -> None:
        """Print the page beside the visions: it is not for the documents."""
        if self._visions is not None:
            await page.pdf(self._visions / "printed.pdf")


async def tour(page: Page, step: str) -> None:
    """Run the step, and wait for its end."""
    await page.eval(f"location.hash = '#/tour/{step}'")
    await seen(page, "document.querySelector('#start') && !document.querySelector('#start').disabled")
    await page.eval("document.querySelector('#start').click()")
    await page.until("/done;|完了/.test(document.querySelector('#run-state')?.innerText)", 60)
    await seen(page, "document.querySelector('.lanes .mark')")


async def live_picture(studio: Studio, kubectl: Kubectl) -> None:
    """Take the end of a Pod, as it happens."""
    made = pod("shop", container("app", DRAINS, lifecycle=HOOK), labels={"app": "web"}, grace=10)
    items = [made, service("web")]
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    page = await studio.open(width=LIVE_WIDTH, height=LIVE_HEIGHT)
    await seen(page, "document.querySelector('.cell.ready[data-pod$=\"/shop\"]')")
    await choose(page, "shop")
    await seen(page, "document.querySelector('.coming')")
    kubectl("delete", "pod", "shop", "--wait=false")
    await seen(page, "document.querySelector('.predicted')")
    await page.eval("scrollTo(0, document.querySelector('#picture').getBoundingClientRect().top + scrollY - 200)")
    await studio.animate(page, "document.querySelector('.state .tag')?.innerText === 'gone'")


async def pictures(studio: Studio, kubectl: Kubectl) -> None:
    page = await studio.open(width=1280, height=640)
    await seen(
        page,
        "document.querySelectorAll('.cell.wide.ready').length === 5 && document.querySelector('.cell.terminating')",
    )
    await studio.take(page, "ui-overview")
    await page.eval("document.querySelector('.cell[data-pod$=\"/web\"]').click()")
    await seen(page, "document.querySelector('.coming')")
    kubectl("delete", "pod", "web", "--wait=false")
    await seen(page, "document.querySelector('.bar.b-drain')")
    await asyncio.sleep(1.5)
    await studio.take(page, "ui-pod", height=1080)
    await page.eval("location.hash = '#/ends'")
    await seen(page, "document.querySelectorAll('tbody tr').length >= 2")
    await studio.take(page, "ui-ends", kept=False)
    await tour(page, "hookCounts")
    await studio.take(page, "ui-tour", height=1240)
    await page.eval("location.hash = '#/tour/level-kill'")
    await seen(page, "document.querySelector('#solve')")
    await page.eval("document.querySelectorAll('.expect input')[1].click()")
    await page.eval("document.querySelector('#solve').click()")
    await seen(page, "document.querySelector('#start') && !document.querySelector('#start').disabled")
    await page.eval("document.querySelector('#start').click()")
    await page.until("/^✓/.test(document.querySelector('#run-state')?.innerText)", 60)
    await studio.take(page, "ui-level", height=1440)
    await studio.print(page)

    dark = await studio.open(width=1280, height=860, dark=True)
    await tour(dark, "order")
    await studio.take(dark, "ui-tour-dark", height=1240)
    phone = await studio.open(width=390, height=844, dark=True)
    await seen(phone, "document.querySelector('.cell.terminating')")
    await studio.take(phone, "ui-phone")
    await phone.eval("[...document.querySelectorAll('header button')].pop().click()")
    await phone.eval("location.hash = '#/tour/pid1'")
    await seen(phone, "/PID 1/.test(document.querySelector('h1')?.innerText)")
    await studio.take(phone, "ui-tour-phone")


LOOKS: dict[str, dict[str, Any]] = {
    "light": {"width": 1280, "height": 860},
    "dark": {"width": 1280, "height": 860, "dark": True},
    "phone": {"width": 390, "height": 844},
}


async def views(studio: Studio, folder: Path) -> None:
    """Save every view as it is now, whole, to be looked at."""
    for look, options in LOOKS.items():
        page = await studio.open(**options)
        uid = "[...document.querySelectorAll('tbody a')].find(e => /web/.test(e.innerText)).hash"
        await page.eval("location.hash = '#/ends'")
        await seen(page, "document.querySelectorAll('tbody tr').length >= 2")
        gone = await page.eval(uid)
        for name, address, wanted in (
            ("overview", "#/", ".cell.ready"),
            ("ends", "#/ends", "tbody tr"),
            ("gone", gone, ".lanes .mark"),
            ("level", "#/tour/level-kill", "#manifest"),
            ("lesson", "#/tour/hookCounts", ".versions"),
        ):
            await page.eval(f"location.hash = {json.dumps(address)}")
            await seen(page, f"document.querySelector({json.dumps(wanted)})")
            if name == "gone":
                await page.eval(
                    "[...document.querySelectorAll('.step')].find(e => /SIGTERM/.test(e.innerText)).click()"
                )
            await page.screenshot(folder / f"{name}-{look}.png", whole=True)
        await page.eval("location.hash = '#/'")
        await choose(page, "ready-0")
        await seen(page, "document.querySelector('#containers td')")
        await page.screenshot(folder / f"pod-{look}.png", whole=True)


async def rollout_views(studio: Studio, folder: Path) -> None:
    """Take a rollout as it is now, in each look, whole."""
    for look, options in LOOKS.items():
        page = await studio.open(**options)
        await seen(page, "document.querySelector('.what-if')")
        await page.screenshot(folder / f"rollout-{look}.png", whole=True)


async def rollout_pictures(studio: Studio, whole: Path | None) -> None:
    """Take a rollout that loses requests, and what would be lost with a longer delay."""
    page = await studio.open(width=1280, height=1500)
    await page.until("document.querySelector('.state .tag.bad')?.innerText === 'requests lost'", seconds=120)
    await write(page, "#hop-watch", "4")
    await page.until("!!document.querySelector('.foretold .r-lost')", seconds=60)
    await write(page, "#sleep", "6")
    predicted = "/virtual time/.test(document.querySelector('#forecast [data-kind=fresh]')?.innerText)"
    await page.until(f"{predicted} && /none of/.test(document.querySelector('#forecast').innerText)", seconds=60)
    await studio.take(page, "ui-rollout")
    await page.eval("document.querySelector('.what-if').scrollIntoView()")
    await studio.take(page, "ui-rollout-what-if")
    if whole is not None:
        await rollout_views(studio, whole)


async def search_pictures(studio: Studio, whole: Path | None) -> None:
    """Take the runs of a search: not for the documents."""
    page = await studio.open(width=1280, height=1500, dark=True)
    await page.until("/^safe/.test(document.querySelector('#search + .verdict')?.innerText)", seconds=400)
    await studio.take(page, "ui-search", kept=False)


async def of_rollouts(folder: Path | None, visions: Path | None, whole: Path | None, process: BrowserProcess) -> None:
    rollouts = ROOT / "examples/rollout"
    taken: list[tuple[Callable[[Studio, Path | None], Coroutine[Any, Any, None]], tuple[str, ...]]] = [
        (rollout_pictures, ("naive.yaml", "--propagation", "1s"))
    ]
    if visions is not None:
        taken.append((search_pictures, ("polite.yaml", "--find-safe", "--confirm", "2")))
    for take, (manifest, *options) in taken:
        with Place() as place:
            served = place.start("rollout", str(rollouts / manifest), *options, "--ui")
            try:
                async with Browser(process) as browser:
                    await take(Studio(folder, visions, browser, partial(fresh_link, served, link_of)), whole)
            finally:
                os.kill(served.pid, signal.SIGINT)
                served.communicate(timeout=60)


def saved_pages(folder: Path) -> dict[str, str]:
    """Write pages as `--output-file` does; name → address. Samples run in a loop of their own."""
    found = samples()
    made = {
        name: html_page(found[name], kubernetes_version="1.37", lastcall_version=__version__)
        for name in ("sigkill", "several")
    }
    made["rollout"] = rollout_page([rollout_result(endings=found["graceful"])])
    for name, text in made.items():
        (folder / f"saved-{name}.html").write_text(text, "utf-8")
    return {name: (folder / f"saved-{name}.html").absolute().as_uri() for name in made}


async def of_saved_pages(folder: Path, pages: dict[str, str], process: BrowserProcess) -> None:
    """Take each saved page as it opens, whole."""
    async with Browser(process) as browser:
        for look, options in LOOKS.items():
            for name, address in pages.items():
                page = await browser.open(address, **options)
                await seen(page, "document.querySelector('.lanes')")
                await page.screenshot(folder / f"saved-{name}-{look}.png", whole=True)


async def run(folder: Path | None, visions: Path | None, whole: Path | None, only: str, saved: dict[str, str]) -> None:
    with BrowserProcess() as process:
        if whole is not None:
            await of_saved_pages(whole, saved, process)
        if only in ("", "rollout"):
            await of_rollouts(folder, visions, whole, process)
        if only in ("", "cluster"):
            await of_a_cluster(folder, visions, whole, process)
        if only in ("", "cluster", "live"):
            await of_an_end(folder, process)


async def of_a_cluster(folder: Path | None, visions: Path | None, whole: Path | None, process: BrowserProcess) -> None:
    with Place() as place:
        place.up()
        config = place.ok("kubeconfig").strip()
        place.kubectl(
            config, "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()})
        )
        place.kubectl(config, "delete", "pod", "terminating", "--wait=false")
        served = place.start("ui")

        try:
            async with Browser(process) as browser:
                studio = Studio(folder, visions, browser, partial(fresh_link, served))
                await pictures(studio, partial(place.kubectl, config))
                if whole is not None:
                    await views(studio, whole)
        finally:
            os.kill(served.pid, signal.SIGINT)
            served.communicate(timeout=60)


async def of_an_end(folder: Path | None, process: BrowserProcess) -> None:
    """Take the animated picture."""
    with Place() as place:
        place.up()
        config = place.ok("kubeconfig").strip()
        served = place.start("ui")
        try:
            async with Browser(process) as browser:
                studio = Studio(folder, None, browser, partial(fresh_link, served))
                await live_picture(studio, partial(place.kubectl, config))
        finally:
            os.kill(served.pid, signal.SIGINT)
            served.communicate(timeout=60)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs/images")
    parser.add_argument("--vision", type=Path)
    parser.add_argument("--views", type=Path)
    parser.add_argument("--only", choices=("rollout", "cluster", "live", "saved"), default="", help="not the others")
    given = parser.parse_args()
    if not subprocess.run(["fc-list", ":lang=ja"], capture_output=True, check=True).stdout:  # noqa: S607
        parser.exit(2, "no font for Japanese, which a picture shows: apt-get install fonts-ipaexfont-gothic\n")
    for made in filter(None, (given.vision, given.views)):
        made.mkdir(parents=True, exist_ok=True)
    saved = saved_pages(given.views) if given.views else {}
    asyncio.run(run(given.folder, given.vision, given.views, given.only, saved))
