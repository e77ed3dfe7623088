"""The pictures of the live page for documents: `python tools/take_pictures.py [FOLDER]` (root, chromium; two minutes).

By default into docs/images. `--views FOLDER` keeps every view there, whole: light, dark, and as wide as
a phone, and pages that were saved. `--vision FOLDER` keeps there how people see the page who see colors
differently, and the page as it is printed, for somebody to look at: nothing may be told by color alone.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/support")]

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


def objects() -> list[dict[str, Any]]:
    """A Pod of every state that the overview has."""
    hook = {"preStop": {"exec": {"command": ["sleep", "3"]}}}
    never = {"exec": {"command": ["false"]}, "periodSeconds": 1}
    made = [
        pod("web", container("app", DRAINS, lifecycle=hook), labels={"app": "web"}, grace=10),
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
        await seen(page, "document.querySelector('.status.running')")
        return page

    async def take(self, page: Page, name: str, *, kept: bool = True) -> None:
        """`kept`: for the documents, too; else only as others see it."""
        if kept and self._folder is not None:
            await page.screenshot(self._folder / f"{name}.png", whole=False)
        for vision in VISIONS if self._visions is not None else ():
            assert self._visions is not None
            await page.send("Emulation.setEmulatedVisionDeficiency", type=vision)
            await page.screenshot(self._visions / f"{name}-{vision}.png", whole=False)
        await page.send("Emulation.setEmulatedVisionDeficiency", type="none")

    async def print(self, page: Page) -> None:
        """Beside the visions: it is not for the documents."""
        if self._visions is not None:
            await page.pdf(self._visions / "printed.pdf")


async def tour(page: Page, step: str) -> None:
    """Run the step, and wait for its end."""
    await page.eval(f"location.hash = '#/tour/{step}'")
    await seen(page, "document.querySelector('#start') && !document.querySelector('#start').disabled")
    await page.eval("document.querySelector('#start').click()")
    await page.until("/done;|完了/.test(document.querySelector('#run-state')?.innerText)", 60)
    await seen(page, "document.querySelector('.lanes .mark')")


async def pictures(studio: Studio, delete: Callable[[], None]) -> None:
    page = await studio.open(width=1280, height=860)
    await seen(
        page,
        "document.querySelectorAll('.cell.wide.ready').length === 5 && document.querySelector('.cell.terminating')",
    )
    await studio.take(page, "ui-overview")
    await page.eval("document.querySelector('.cell[data-pod$=\"/web\"]').click()")
    await seen(page, "document.querySelector('.coming')")
    delete()
    await seen(page, "document.querySelector('.bar.b-drain')")
    await asyncio.sleep(1.5)
    await studio.take(page, "ui-pod")
    await page.eval("location.hash = '#/ends'")
    await seen(page, "document.querySelectorAll('tbody tr').length >= 2")
    await studio.take(page, "ui-ends", kept=False)
    await tour(page, "hookCounts")
    await studio.take(page, "ui-tour")
    await page.eval("location.hash = '#/tour/level-kill'")
    await seen(page, "document.querySelector('#solve')")
    await page.eval("document.querySelector('#solve').click()")
    await seen(page, "document.querySelector('#start') && !document.querySelector('#start').disabled")
    await page.eval("document.querySelector('#start').click()")
    await page.until("/^✓/.test(document.querySelector('#verdict')?.innerText)", 60)
    await studio.take(page, "ui-level")
    await studio.print(page)

    dark = await studio.open(width=1280, height=860, dark=True)
    await tour(dark, "order")
    await studio.take(dark, "ui-tour-dark")
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
    """Every view as it is now, whole, for somebody to look at."""
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


async def rollout_pictures(studio: Studio) -> None:
    """A rollout that loses requests, and what would be lost with a longer delay."""
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


async def search_pictures(studio: Studio) -> None:
    """The runs of a search: not for the documents."""
    page = await studio.open(width=1280, height=1500, dark=True)
    await page.until("/^safe/.test(document.querySelector('#search + .verdict')?.innerText)", seconds=400)
    await studio.take(page, "ui-search", kept=False)


async def of_rollouts(folder: Path | None, visions: Path | None, process: BrowserProcess) -> None:
    rollouts = ROOT / "examples/rollout"
    told: list[tuple[Callable[[Studio], Coroutine[Any, Any, None]], tuple[str, ...]]] = [
        (rollout_pictures, ("naive.yaml", "--propagation", "1s"))
    ]
    if visions is not None:
        told.append((search_pictures, ("polite.yaml", "--find-safe", "--confirm", "2")))
    for take, (manifest, *options) in told:
        with Place() as place:
            served = place.start("rollout", str(rollouts / manifest), *options, "--ui")
            try:
                async with Browser(process) as browser:
                    await take(Studio(folder, visions, browser, partial(fresh_link, served, link_of)))
            finally:
                os.kill(served.pid, signal.SIGINT)
                served.communicate(timeout=60)


def saved_pages(folder: Path) -> dict[str, str]:
    """Write pages as `--output-file` does; name → address. Samples run in a loop of their own."""
    found = samples()
    made = {
        name: html_page(found[name], kubernetes_version="1.36", lastcall_version=__version__)
        for name in ("sigkill", "several")
    }
    made["rollout"] = rollout_page([rollout_result(endings=found["graceful"])])
    for name, text in made.items():
        (folder / f"saved-{name}.html").write_text(text, "utf-8")
    return {name: (folder / f"saved-{name}.html").absolute().as_uri() for name in made}


async def of_saved_pages(folder: Path, pages: dict[str, str], process: BrowserProcess) -> None:
    """Each as it opens, whole."""
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
            await of_rollouts(folder, visions, process)
        if only in ("", "cluster"):
            await of_a_cluster(folder, visions, whole, process)


async def of_a_cluster(folder: Path | None, visions: Path | None, whole: Path | None, process: BrowserProcess) -> None:
    with Place() as place:
        place.up()
        config = place.ok("kubeconfig").strip()
        place.kubectl(
            config, "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()})
        )
        place.kubectl(config, "delete", "pod", "terminating", "--wait=false")
        served = place.start("ui")

        def delete() -> None:
            place.kubectl(config, "delete", "pod", "web", "--wait=false")

        try:
            async with Browser(process) as browser:
                studio = Studio(folder, visions, browser, partial(fresh_link, served))
                await pictures(studio, delete)
                if whole is not None:
                    await views(studio, whole)
        finally:
            os.kill(served.pid, signal.SIGINT)
            served.communicate(timeout=60)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs/images")
    parser.add_argument("--vision", type=Path)
    parser.add_argument("--views", type=Path)
    parser.add_argument("--only", choices=("rollout", "cluster", "saved"), default="", help="not the others")
    given = parser.parse_args()
    for made in filter(None, (given.vision, given.views)):
        made.mkdir(parents=True, exist_ok=True)
    saved = saved_pages(given.views) if given.views else {}
    asyncio.run(run(given.folder, given.vision, given.views, given.only, saved))
