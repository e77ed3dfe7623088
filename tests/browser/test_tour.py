"""The tour of `lastcall ui` in chromium: steps that are run on a real cluster, and what the page says about them."""

import json
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from kubectls import needs_kubectl
from live_page import Served, assert_good, seen, served_page, write
from waiting import eventually

from browser import Browser, Page
from lastcall.ui.texts import texts

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

LESSON: Any = json.loads((Path(__file__).parents[2] / "ui/src/tour.json").read_text("utf-8"))


@pytest.fixture
def served() -> Iterator[Served]:
    with served_page() as page:
        yield page


def namespaces(served: Served) -> list[str]:
    """Those of the tour."""
    label = "app.kubernetes.io/managed-by=lastcall-tour"
    return served.kubectl("get", "namespaces", "-o", "name", "-l", label).split()


async def go(page: Page, step: str) -> None:
    title = texts()["steps"][step]["title"]["en"]
    await page.eval(f"location.hash = '#/tour/{step}'")
    await seen(page, f"document.querySelector('h1')?.innerText === {json.dumps(title)}")


async def run(page: Page, end: str = "done;") -> None:
    """Press the button, and wait for the end, of which the status says this (a pattern)."""
    await seen(page, "document.querySelector('#start') && !document.querySelector('#start').disabled")
    await page.eval("document.querySelector('#start').click()")
    await seen(page, "document.querySelector('#stop')")
    try:
        await page.until("!document.querySelector('#stop')", 120)
    finally:
        text = await page.eval("document.querySelector('#run-state').innerText")
        assert re.search(end, text), text + await page.eval("document.querySelector('article').innerText")


TABLE = "document.querySelector('.claims').innerText"


def verdicts(claim: str = "") -> str:
    """What stands in the last column, of one claim or of all."""
    rows = f"tr[data-claim={claim}]" if claim else "tr[data-claim]"
    return f"[...document.querySelectorAll('.claims {rows}')].map(e => e.lastChild.innerText.trim())"


async def test_every_step_of_the_tour_is_so_on_a_real_cluster(served: Served, browser: Browser) -> None:
    """Each experiment is run once, and every claim of every step is looked at."""
    page = await browser.open(served.link())
    wrong = []
    todo = {step["run"] for step in LESSON["steps"]}
    for step in LESSON["steps"]:
        await go(page, step["id"])
        if step["run"] in todo:
            todo.remove(step["run"])
            await run(page)
        await seen(page, f"{verdicts()}.length === {len(step['claims'])}")
        if any(each != "✓ yes" for each in await page.eval(verdicts())):
            wrong.append(f"{step['id']}: {await page.eval(TABLE)}")
        assert await page.eval("!!document.querySelector('.versions')") is bool(step.get("versions"))
    assert wrong == []
    assert page.errors == []
    eventually(lambda: namespaces(served) == [], "the tour to leave nothing", 60)


VERDICT = "document.querySelector('#run-state').innerText"
DECIDED = "^[✓✗] "
REACHED = """[...document.querySelectorAll('.contents li')].filter(e => e.querySelector('[role=img]')).map(
    e => e.querySelector('a').getAttribute('href'))"""


async def go_to_level(page: Page, name: str) -> None:
    await page.eval(f"location.hash = '#/tour/level-{name}'")
    title = texts()["titles"][name]["en"]
    await seen(page, f"document.querySelector('h1')?.innerText === {json.dumps(title)}")


async def test_every_level_of_the_tour_is_reached_by_its_solution_on_a_real_cluster(
    served: Served, browser: Browser
) -> None:
    page = await browser.open(served.link())
    await go_to_level(page, "grace")
    await seen(page, "/deletes the Pod/.test(document.querySelector('#run-state')?.innerText)")
    await run(page, r"^✗ Not yet: gone after 6\.\d\d s, wanted < 4 s$")
    assert not await page.eval("!!document.querySelector('#next')")
    row = "[...document.querySelector('tr[data-goal=gone]').cells].map(e => e.innerText.trim())"
    wanted, found, verdict = await page.eval(row)
    assert wanted.split("\n") == ["The object is gone within 4 s of the DELETE", "gone < 4 s"]
    assert verdict == "✗ not yet" and re.fullmatch(r"6\.\d\d s", found)
    below = "(a, b) => !!(a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING)"
    order = ["#start", ".lanes", "#goal", "#steps"]
    for first, second in pairwise(order):
        query = f"({below})(document.querySelector('{first}'), document.querySelector('{second}'))"
        assert await page.eval(query), f"{first} comes before {second}"
    await assert_good(page)
    missed = []
    for name in LESSON["levels"]:
        await go_to_level(page, name)
        await seen(page, "document.querySelector('#solve')")
        await page.eval("document.querySelector('#solve').click()")
        await run(page, DECIDED)
        if not (await page.eval(VERDICT)).startswith("✓ Goal reached: "):
            missed.append(f"{name}: {await page.eval(TABLE)}")
    assert missed == []
    assert await page.eval(REACHED) == [f"#/tour/level-{name}" for name in LESSON["levels"]]
    await assert_good(page)


OLD = f"!!document.querySelector('.old') && /^Of an earlier manifest/.test({VERDICT})"


EXPECTED = "document.querySelector('#expected').innerText"


async def test_a_learner_says_what_to_expect_and_keeps_what_was_written_after_a_reload(
    served: Served, browser: Browser
) -> None:
    page = await browser.open(served.link())
    await go_to_level(page, "kill")
    await seen(page, "document.querySelector('.expect')")
    assert await page.eval(EXPECTED) == ""
    assert not await page.eval("document.querySelector('#start').disabled"), "nothing waits for an answer"
    await page.eval("document.querySelectorAll('.expect input')[1].click()")
    await run(page, DECIDED)
    assert await page.eval(EXPECTED) == "≠ You expected: 137. What happened: 0"
    await assert_good(page)
    await page.eval("document.querySelector('#solve').click()")
    assert await page.eval(EXPECTED) == "", "it is of an earlier manifest"
    await page.eval("window.left = true; location.reload()")
    await seen(page, "!window.left && /Seconds: 2/.test(document.querySelector('#manifest')?.value)")
    assert await page.eval("document.querySelectorAll('.expect input')[1].checked")
    await run(page, DECIDED)
    assert await page.eval(EXPECTED) == "✓ As you expected: 137"
    await page.eval("document.querySelector('#reset').click()")
    await seen(page, "/Seconds: 8/.test(document.querySelector('#manifest').value)")
    await page.eval("window.left = true; location.reload()")
    await seen(page, "!window.left && /Seconds: 8/.test(document.querySelector('#manifest')?.value)")


async def test_a_learner_sees_a_mistake_at_once_what_a_result_is_of_and_what_is_reached(
    served: Served, browser: Browser
) -> None:
    page = await browser.open(served.link())
    await go_to_level(page, "force")
    await seen(page, "document.querySelector('#manifest')?.value")
    given = await page.eval("document.querySelector('#manifest').value")
    await write(page, "#manifest", given.replace("[sh,", "[shh,"))
    began = time.monotonic()
    await run(page, "did not come to the end")
    assert time.monotonic() - began < 20
    why = await page.eval("[...document.querySelectorAll('article .error')].map(e => e.innerText).join('')")
    assert why.startswith("app cannot start: command: no directory of the image's PATH has shh: ")
    assert not await page.eval("document.querySelector('section .help').open"), "the runtime's words are folded"
    assert "executable file not found" in await page.eval("document.querySelector('section .help pre').textContent")
    assert not await page.eval("!!document.querySelector('.lanes')"), "the clean-up is no story"
    await write(page, "#manifest", given + "  nodeSelector: {disk: ssd}\n")
    await page.eval("document.querySelector('#start').click()")
    refused = "/no node takes force: .*nodeSelector/.test(document.querySelector('article').innerText)"
    await page.until(refused, 20)
    await assert_good(page)
    await write(page, "#manifest", given)
    await seen(page, OLD)

    await page.eval("document.querySelector('#solve').click()")
    await run(page, r"^✓ Goal reached: gone after \d")
    assert not await page.eval(OLD)
    assert (await page.eval("document.querySelector('#next').getAttribute('href')")).endswith("level-sidecar")
    await assert_good(page)
    await write(page, "#manifest", "a: [")
    await seen(page, OLD)
    await page.eval("document.querySelector('#start').click()")
    await seen(page, "/YAML/.test(document.querySelector('article .error').parentElement.innerText)")
    assert await page.eval(OLD)
    page.errors.clear()  # the one that was refused
    await assert_good(page)
    await page.eval("document.querySelector('#solve').click()")
    await seen(page, f"!({OLD})")
    await page.eval("window.left = true; location.reload()")
    await seen(page, "!window.left && /^✓/.test(document.querySelector('#run-state')?.innerText)")
    assert not await page.eval(OLD), "the grace period is kept, too"
    assert await page.eval(REACHED) == ["#/tour/level-force"]

    await page.eval("document.querySelector('#reset').click()")
    await seen(page, OLD)
    await page.eval("document.querySelector('#start').click()")
    await seen(page, "document.querySelector('#stop')")
    await page.eval("document.querySelector('#stop').click()")
    await seen(page, f"{VERDICT} === 'Stopped, no verdict'")


async def test_a_learner_writes_another_manifest_and_hears_why_it_is_refused(served: Served, browser: Browser) -> None:
    page = await browser.open(served.link(), width=390, height=844, dark=True)
    await go_to_level(page, "kill")
    await seen(page, "document.querySelector('#manifest')")
    await write(page, "#manifest", "kind: Secret")
    await page.eval("document.querySelector('#start').click()")
    await seen(page, "/not Secret/.test(document.querySelector('article .error ~ *, article').innerText)")
    page.errors.clear()  # the one that was refused
    await go_to_level(page, "pid1")
    await go_to_level(page, "kill")
    await seen(page, "document.querySelector('#manifest')?.value === 'kind: Secret'")
    await page.eval("document.querySelector('#reset').click()")
    await seen(page, "/terminationGracePeriodSeconds: 8/.test(document.querySelector('#manifest').value)")
    host = {"hostNetwork": True, "containers": [{"name": "app", "image": "busybox:1.36"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": host}
    await write(page, "#manifest", json.dumps(pod))
    await page.eval("document.querySelector('#start').click()")
    await seen(page, "/baseline/.test(document.querySelector('#run-state').closest('section').innerText)")
    await assert_good(page)


async def test_a_step_is_shown_live_by_keyboard_in_japanese_and_stopped(
    served: Served, browser: Browser, tmp_path: Path
) -> None:
    page = await browser.open(served.link(), reduced_motion=True)
    await seen(page, "document.querySelector('.status.running')")
    await page.key("t")
    await seen(page, "document.querySelector('.tour h1')")
    await assert_good(page)
    await go(page, "request")  # the tour begins with its levels
    await page.key("ArrowRight")
    await seen(page, "location.hash === '#/tour/marks'")
    await go(page, "order")
    await page.eval("document.querySelector('#start').click()")
    await seen(page, "document.querySelector('.lanes .bar.b-preStop')")
    await seen(page, "document.querySelector('#stop')")
    await page.until("/done/.test(document.querySelector('#run-state').innerText)", 60)
    await seen(page, f"{verdicts('order')}[0] === '✓ yes'")
    await assert_good(page)
    hooks, textures = "document.querySelectorAll('.b-preStop').length", "document.querySelectorAll('.texture').length"
    assert await page.eval(hooks) == 1 <= await page.eval(textures) - 1, "a bar's color does not stand alone"
    await page.eval("document.querySelector('#play').click()")
    await page.screenshot(tmp_path / "tour.png")

    await page.eval("document.querySelector('header button').click()")
    await seen(page, "document.documentElement.lang === 'ja' && /フック/.test(document.querySelector('h1')?.innerText)")
    await seen(page, "[...document.querySelectorAll('.step')].some(e => /SIGTERM/.test(e.innerText))")
    await page.eval("[...document.querySelectorAll('.step')].find(e => /SIGTERM/.test(e.innerText)).click()")
    await seen(page, "/停止シグナル/.test(document.querySelector('.about')?.innerText)")
    await assert_good(page)
    await page.eval("document.querySelector('header button').click()")

    await go(page, "kill")
    await page.eval("document.querySelector('#start').click()")
    await seen(page, "document.querySelector('#stop')")
    second = await browser.open(served.link(), width=390, height=844, dark=True)
    await second.eval("location.hash = '#/tour/term'")
    await seen(second, "/Another step/.test(document.querySelector('#run-state')?.innerText)")
    assert await second.eval("document.querySelector('#start').disabled")
    refused = await second.eval("fetch('/api/tour/graceful/run', {method: 'POST'}).then(r => r.status)")
    assert refused == 409
    assert await second.eval("fetch('/api/tour/nothing/run', {method: 'POST'}).then(r => r.status)") == 404
    await page.eval("document.querySelector('#stop').click()")
    await seen(page, "document.querySelector('#run-state').innerText === 'Stopped, no verdict'")
    second.errors.clear()  # the two that were refused
    await seen(second, "document.querySelector('#start') && !document.querySelector('#start').disabled")
    await assert_good(second)
    await second.screenshot(tmp_path / "tour-phone.png")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    await second.send("Emulation.setEmulatedMedia", media="print", features=dark)
    assert await second.eval("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert await second.eval("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    for hidden in (".top", ".contents", ".player", ".keys"):
        assert await second.eval(f"getComputedStyle(document.querySelector('{hidden}')).display") == "none", hidden
    await second.send("Emulation.setEmulatedMedia", media="screen", features=dark)
    large = await browser.open(served.link(), width=640, height=450)  # 1280 by 900 at 200 %
    await large.eval("location.hash = '#/tour/hookCounts'")
    await seen(large, "document.querySelector('.versions')")
    await assert_good(large)

    await go(page, "kill")
    await page.eval("document.querySelector('#start').click()")
    await seen(page, "document.querySelector('#stop')")
    served.stop()  # Ctrl-C while a step runs
    eventually(lambda: namespaces(served) == [], "the tour to leave nothing", 60)
