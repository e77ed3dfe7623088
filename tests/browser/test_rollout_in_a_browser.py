"""The page of a rollout in chromium: whole at any width, in both color schemes, and what was lost is to be seen."""

from pathlib import Path
from typing import Any

import pytest
from rollout_lives import pod_life

from browser import Browser
from lastcall.experiment.rollout.html import html_page
from lastcall.experiment.rollout.result import Result
from lastcall.traffic.account import account
from lastcall.traffic.advice import judge
from lastcall.traffic.outcome import Outcome

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
    lost: box('rect.k-lost').map(each => [each.width, each.height, each.left, each.right]),
    marks: box('line.lost').map(each => [each.left, each.height]),
    cells: box('td.wide').map(each => each.width),
    picture: box('.picture svg').map(each => each.width),
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
    assert page.errors == [] and page.requests == [path.as_uri()]
    look: dict[str, Any] = await page.eval(_LOOK)
    assert look["wide"] <= look["window"]  # nothing sticks out of the page
    assert len(look["marks"]) == 5 and all(height >= 10 for _, height in look["marks"])
    assert 1 <= len(look["lost"]) <= 5
    for wide, high, left, right in look["lost"]:
        assert wide >= 2 and high >= 6 and 0 <= left < right <= look["window"]
    outlines = "(kind => getComputedStyle(document.querySelector('rect.' + kind)).stroke)"
    # Not by color alone: what was lost has an outline, too.
    assert await page.eval(f"{outlines}('k-answered')") == "none"
    assert (await page.eval(f"{outlines}('k-lost')")).startswith("rgb")
    assert min(look["picture"]) > (700 if width > 1000 else 300)
    assert min(look["cells"]) > 200  # sentences, not a letter a line
