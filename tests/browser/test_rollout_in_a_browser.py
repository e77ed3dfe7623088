"""The page of a rollout in chromium: whole at any width, in both color schemes, and what was lost is to be seen."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live_page import assert_good, seen
from rollout_lives import pod_life
from story_samples import samples

from browser import Browser
from lastcall.endings import Ending
from lastcall.experiment.rollout.html import html_page
from lastcall.experiment.rollout.result import Result
from lastcall.traffic.account import account
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.verdict import judge

NAME = "checkout-with-a-rather-long-name-6f7d8c9b54-x2x4z"


def rollout() -> Result:
    """20 000 requests, five of them lost at a Pod whose rules were late."""
    life = pod_life("u", name=NAME, ip="10.244.0.2", ready=1.0, routed=1.1, deleted=10.0, hook=10.0, stop=12.0,
                   term=12.0, exited=12.1, unrouted=13.0)  # fmt: skip
    after = pod_life("v", name=NAME[:-1] + "q", ip="10.244.0.3", ready=10.5, routed=10.6)
    outcomes = [_outcome(number) for number in range(1, 20001)]
    spec = {"template": {"spec": {"containers": [{"name": "app"}]}}}
    owner = {"kind": "Deployment", "metadata": {"name": "checkout"}, "spec": spec}
    found = account(outcomes, [life, after], [], 10.0)
    assert len(found.lost) == 5
    return Result(found, judge(found, [life, after], owner, 80), [life, after], outcomes, owner, "Deployment checkout",
                  "checkout", "rollout", "3s", "node", 10.0, 4.0)  # fmt: skip


def _outcome(number: int) -> Outcome:
    at = 8 + number / 2500
    lost = number in (10400, 10800, 11200, 11600, 12000)
    return Outcome(number, "fresh", at, at, at, 0, 0.0, 0 if lost else 200, "10.244.0.2" if lost else "10.244.0.3",
                   "refused" if lost else "")  # fmt: skip


_LOOK = """(() => {
  const box = selector => [...document.querySelectorAll(selector)].map(each => each.getBoundingClientRect());
  return {
    wide: document.documentElement.scrollWidth,
    window: document.documentElement.clientWidth,
    lost: box('rect.r-lost:not(.key *)').map(each => [each.width, each.height, each.left, each.right]),
    marks: box('.r-mark').map(each => [each.left, each.height]),
    picture: box('svg.lanes.rollout').map(each => each.width),
  };
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
async def test_the_picture_is_whole_and_five_lost_ones_are_to_be_seen(
    browser: Browser, tmp_path: Path, width: int, dark: bool
) -> None:
    path = tmp_path / "rollout.html"
    path.write_text(html_page([rollout()]), "utf-8")
    page = await browser.open(path.as_uri(), width=width, dark=dark)
    await seen(page, "document.querySelector('svg.lanes.rollout')")
    assert page.requests == [path.as_uri()]
    await assert_good(page)
    look: dict[str, Any] = await page.eval(_LOOK)
    assert look["wide"] <= look["window"]  # nothing sticks out of the page
    assert 1 <= len(look["marks"]) <= 5 and all(high >= 5 for _, high in look["marks"])
    assert 1 <= len(look["lost"]) <= 5
    for wide, high, left, right in look["lost"]:
        assert wide >= 1 and high >= 6 and 0 <= left < right <= look["window"]
    # Not by color alone: what was lost has a texture and a sign, too.
    assert await page.eval("document.querySelectorAll('.r-sign-lost').length >= 1")
    assert min(look["picture"]) > (700 if width > 1000 else 300)


@pytest.fixture(scope="module")
def killed() -> list[Ending]:
    return samples()["sigkill"]


async def test_an_old_pod_leads_to_its_story_and_back(browser: Browser, tmp_path: Path, killed: list[Ending]) -> None:
    path = tmp_path / "rollout.html"
    path.write_text(html_page([replace(rollout(), endings=killed)]), "utf-8")
    page = await browser.open(path.as_uri())
    await seen(page, "[...document.querySelectorAll('a')].find(a => /sigkill-demo: was killed/.test(a.innerText))")
    await page.eval("document.querySelector('.report a').click()")
    await seen(page, "document.querySelector('.view .mark.m-kill')")
    await assert_good(page)
    await page.eval("document.querySelector('.crumbs a').click()")
    await seen(page, "document.querySelector('svg.lanes.rollout')")


async def test_how_long_answers_took_is_drawn_below_their_requests(browser: Browser, tmp_path: Path) -> None:
    found = rollout()
    slow = [replace(each, finished=each.sent + (0.4 if 10000 < each.id < 10100 else 0.003)) for each in found.outcomes]
    path = tmp_path / "rollout.html"
    path.write_text(html_page([replace(found, outcomes=slow)]), "utf-8")
    page = await browser.open(path.as_uri())
    await seen(page, "document.querySelector('.latency')")
    assert "median 3 ms, at most 400 ms" in await page.eval("document.querySelector('.latency').textContent")
    heights = await page.eval("[...document.querySelectorAll('.r-latency')].map(e => e.getBoundingClientRect().height)")
    assert max(heights) > 15 > sorted(heights)[len(heights) // 2]
    await assert_good(page)
