"""The documentation as a site, in chromium: nothing comes from another host, the tour and the stories can be played."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_page import assert_good, seen
from make_site.__main__ import MADE
from make_site.links import problems

from browser import Browser, Page

ROOT = Path(__file__).parents[2]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`make site` into a temporary folder, strict, and its address."""
    folder = tmp_path_factory.mktemp("site")
    path = os.pathsep.join(str(ROOT / each) for each in ("src", "tools", "tests/support"))
    command = [sys.executable, "-m", "make_site", str(folder)]
    environment = {**os.environ, "PYTHONPATH": path}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def assert_own(page: Page) -> None:
    """Nothing was asked of anybody else, and nothing failed."""
    origin = await page.eval("location.origin")
    assert [each for each in page.requests if not each.startswith((origin, "data:"))] == []
    assert page.errors == []


SEARCH = "[...document.body.children].find(each => each.shadowRoot).shadowRoot"
"""Where Zensical shows its search."""


async def test_every_part_of_the_site_is_there_and_asks_nobody_else(site: str, browser: Browser) -> None:
    page = await browser.open(f"{site}/index.html")
    await assert_own(page)
    await assert_good(page)
    assert await page.eval("document.title") == "Real Kubernetes Pods on one Linux machine - lastcall"
    phone = await browser.open(f"{site}/reference/commands.html", width=390, height=844, dark=True)
    await assert_good(phone)
    listed = await phone.eval("[...document.querySelectorAll('.md-sidebar--primary a')].map(e => e.textContent.trim())")
    assert set(MADE) <= set(listed)
    for address, words in (
        ("reference/commands.html", "lastcall rollout"),
        ("reference/records.html", "GraceDecided"),
        ("reference/findings.html", "stopSignalNotHandled"),
        ("reference/schemas.html", "lastcall/ending/v1"),
        ("reference/python.html", "AsyncCluster.delete"),
        ("architecture/index.html", "API server"),
        ("ui.html", "The tour"),
        ("lesson.ja.html", "猶予期間"),
        ("lesson.html", "7.0 s"),
    ):
        fetched = f"fetch('/{address}').then(r => r.text()).then(t => new DOMParser().parseFromString(t, 'text/html'))"
        assert words in await page.eval(f"{fetched}.then(d => d.querySelector('article').textContent)"), address
    await page.eval("document.querySelector('.md-search__button').click()")
    await seen(page, f"{SEARCH}.querySelector('input')")
    await page.eval(
        "(e => { e.value = 'terminationGracePeriodSeconds'; e.dispatchEvent(new Event('input', {bubbles: true})) })"
        f"({SEARCH}.querySelector('input'))"
    )
    await seen(page, f"/hook|grace/i.test({SEARCH}.querySelector('a[href]')?.innerText)")
    await assert_own(page)


EXPECTED = "document.querySelector('#expected').innerText"
SIGNS = "[...document.querySelectorAll('.claims td:last-child')].map(e => e.innerText.trim())"


async def test_the_tour_is_played_without_a_cluster(site: str, browser: Browser, tmp_path: Path) -> None:
    page = await browser.open(f"{site}/tour/index.html#/tour/hookCounts")
    await seen(page, "document.querySelector('.lanes')")
    assert "without a cluster" in await page.eval("document.querySelector('#run').innerText")
    assert await page.eval("document.querySelectorAll('.versions tbody tr').length") == 3
    await assert_good(page)
    await page.eval("document.querySelector('#start').click()")
    await seen(page, "document.querySelector('#play[aria-pressed=true]')")
    assert not await page.eval("[...document.querySelectorAll('.step')].some(e => /SIGKILL/.test(e.innerText))")
    fast = "e.value = '2'; e.dispatchEvent(new Event('change', {bubbles: true}))"
    await page.eval(f"(e => {{ {fast} }})(document.querySelector('#speed'))")
    await seen(page, "[...document.querySelectorAll('.step')].some(e => /SIGKILL/.test(e.innerText))")
    assert await page.eval("document.querySelector('[data-claim=hookCounts]').lastChild.innerText.trim()") == "✓ yes"
    await page.screenshot(tmp_path / "played.png")
    for step in await page.eval("[...document.querySelectorAll('.contents a')].map(e => e.hash)"):
        await page.eval(f"location.hash = {step!r}")
        await seen(page, f"document.querySelector('.contents [aria-current]').hash === {step!r}")
        await seen(page, f"{SIGNS}.length")
        if "level-" in step:
            assert set(await page.eval(SIGNS)) == {"… run it"}, "nothing is given away before the first run"
            await page.eval("document.querySelector('.expect input').click()")
            await page.eval("document.querySelector('#start').click()")  # as it is given the goal is missed
            await seen(page, f"{SIGNS}.includes('✗ not yet')")
            assert re.match("✓ As you expected: |≠ You expected: ", await page.eval(EXPECTED)), step
            await page.eval("document.querySelector('#solve').click()")
            await seen(page, "/^✓ Goal reached/.test(document.querySelector('#run-state').innerText)")
        assert set(await page.eval(SIGNS)) == {"✓ yes"}, step
    phone = await browser.open(f"{site}/tour/index.html#/tour/race", width=390, height=844, dark=True)
    await seen(phone, "document.querySelector('.lanes')")
    await assert_good(phone)


async def test_tour_and_stories_stand_in_pages_of_the_site(site: str, browser: Browser) -> None:
    for name in ("tour", "stories"):
        page = await browser.open(f"{site}/{name}.html")
        await seen(page, "document.querySelector('iframe.played').contentDocument?.querySelector('h1, h2')")
        await assert_own(page)


def test_a_link_that_leads_nowhere_is_found() -> None:
    page = '<a href="b.html#there"></a><a href="b.html#gone"></a><a href="c.html"></a><a href="../d"></a><a href="https://e"></a>'
    other = '<h2 id="there"></h2><script src="https://cdn/x.js"></script><img src="gone.png">'
    found = list(problems({"x/a.html": page, "x/b.html": other, "x/s.css": "@import '//fonts/x'"}, {"d/index.html"}))
    assert found == [
        "x/a.html: b.html#gone: the page has no such anchor",
        "x/a.html: c.html: there is no such page",
        "x/b.html: https://cdn/x.js is loaded from another host",
        "x/b.html: gone.png: there is no such page",
        "x/s.css: @import '//fonts/x is loaded from another host",
    ]
