"""The saved page of stories as people meet it: drawn, played, walked by keyboard, in the dark, on a phone, printed."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest
from live_page import assert_good, seen, write

from browser import Page

OpenPage = Callable[..., Awaitable[Page]]

MARKS = "[...document.querySelectorAll('.lanes .mark')]"
CLOCK = "parseFloat(document.querySelector('#clock').innerText)"
CHOSEN = "Number(document.querySelector('.steps .chosen')?.id.slice(5))"
BAR = "document.querySelector('.view .bar.b-{}').getBoundingClientRect().width"
PICTURE = "document.querySelector('.view > .lanes:last-of-type').getBoundingClientRect().width"
FITS = "document.documentElement.scrollWidth <= innerWidth"


def press(name: str) -> str:
    """The button of that name."""
    return (
        f"[...document.querySelectorAll('.zoom button')].find(b => (b.ariaLabel ?? b.innerText) === '{name}').click()"
    )


@pytest.mark.core
@pytest.mark.parametrize("name", ["graceful", "sigkill", "sidecar", "overrun", "several", "hostile", "chatty", "many"])
async def test_the_page_opens_without_an_error_and_asks_the_network_for_nothing(
    open_page: OpenPage, written: dict[str, str], name: str
) -> None:
    page = await open_page(name)
    await asyncio.sleep(0.2)  # a request that the page should not make would come now
    assert page.requests == [written[name]]
    await assert_good(page)
    assert await page.eval("window.pwned === undefined && !document.querySelector('main script, main img')")
    assert await page.eval(FITS)


async def test_lanes_phases_and_marks_are_there_and_none_is_cut_off(open_page: OpenPage) -> None:
    page = await open_page("sigkill")
    lanes = await page.eval("[...document.querySelectorAll('.lane-name')].map(name => name.firstChild.textContent)")
    assert {"API server", "EndpointSlice controller", "endpoint", "kubelet", "runtime", "app", "output"} <= set(lanes)
    outside = (
        f"(view => {MARKS}.filter(m => {{ const b = m.getBoundingClientRect();"
        " return b.left < view.left || b.right > view.right; }).length)"
        "(document.querySelector('.view').getBoundingClientRect())"
    )
    assert await page.eval(f"{MARKS}.length") > 15 and await page.eval(outside) == 0
    assert await page.eval(BAR.format("preStop")) > 60 and await page.eval(BAR.format("drain")) > 100
    text = await page.eval("document.body.innerText")
    for words in (
        "was ended by SIGKILL", "Problem:", "Grace period 10 s", "exit code 137 (Error)",
        "records from before the DELETE",
    ):  # fmt: skip
        assert words in text


async def test_without_javascript_it_is_the_story_as_text_and_no_button_that_does_nothing(open_page: OpenPage) -> None:
    page = await open_page("sigkill", javascript=False)
    names = await page.names()
    assert not [name for role, name in names if role in ("button", "slider", "combobox")]
    assert [name for _, name in names if "SIGKILL → PID" in name]


async def test_play_moves_to_the_end_and_space_pauses_it(open_page: OpenPage) -> None:
    page = await open_page("graceful")
    end = await page.eval(CLOCK)
    await page.eval("document.querySelector('#play').click()")
    await page.until(f"{CLOCK} > 0 && {CLOCK} < {end}")
    assert await page.eval(f"{MARKS}.length < 15")
    await page.key(" ")
    await seen(page, "document.querySelector('#pause').innerText === 'Show the end'")
    paused = await page.eval(CLOCK)
    await asyncio.sleep(0.2)  # what is paused must not move: nothing to wait for
    assert await page.eval(CLOCK) == paused
    await page.eval("document.querySelector('#play').click()")
    await page.until(f"{CLOCK} === {end}")


async def test_play_keeps_its_speed_when_the_browser_is_slow(open_page: OpenPage) -> None:
    """Timers of a tab behind others come once a second: 8 s would take 200 s by the number of their calls."""
    page = await open_page("graceful")
    end = await page.eval(CLOCK)
    await page.eval("(real => { window.setInterval = call => real(call, 1000) })(window.setInterval)")
    await page.eval("document.querySelector('#play').click()")
    await page.until(f"{CLOCK} > 0 && {CLOCK} < {end}")
    await page.until(f"{CLOCK} === {end}")


async def test_scrubbing_shows_the_story_as_it_was_then(open_page: OpenPage) -> None:
    page = await open_page("sigkill")
    await write(page, "#scrub", "3")
    await seen(page, "document.querySelector('#clock').innerText === '3.00 s'")
    assert not await page.eval("[...document.querySelectorAll('.step')].some(e => /SIGKILL/.test(e.innerText))")
    await seen(page, "/SIGTERM/.test(document.querySelector('#said').innerText)")


async def test_the_keyboard_walks_through_the_records_and_each_says_what_it_is(open_page: OpenPage) -> None:
    page = await open_page("sigkill")
    await page.eval("document.querySelector('.view').focus()")
    await page.key("Home")
    await seen(page, f"{CHOSEN} === 1")
    for number in (2, 3, 4):
        await page.key("ArrowRight")
        await seen(page, f"{CHOSEN} === {number}")
    await page.key("ArrowLeft")
    await seen(page, f"{CHOSEN} === 3 && document.querySelector('.mark.chosen')")
    await seen(page, "document.querySelector('.cause')")
    about = await page.eval("document.querySelector('.steps .chosen .about').innerText")
    assert "The rule" in about and ".go:" in about and "Facts" in about and "caused by step" in about
    await page.key("End")
    await seen(page, f"{CHOSEN} === {await page.eval(f'{MARKS}.length')}")
    await seen(page, f"document.querySelector('#said').innerText.startsWith({CHOSEN} + '. ')")


@pytest.mark.parametrize("width", [1400, 390])
async def test_the_timeline_is_a_table_that_the_picture_decorates(open_page: OpenPage, width: int) -> None:
    page = await open_page("sigkill", width=width)
    rows = await page.eval("document.querySelectorAll('.steps .step[aria-expanded]').length")
    told = await page.names()
    assert rows > 10 and sum(role == "rowheader" and name.isdigit() for role, name in told) == rows
    assert {("table", "Steps"), ("columnheader", "Moment"), ("columnheader", "Who"), ("columnheader", "What")} <= set(
        told
    )
    assert [name for role, name in told if role == "button" and "SIGTERM → PID" in name]


async def test_stretched_or_true_to_scale(open_page: OpenPage) -> None:
    page = await open_page("graceful")
    hook, drain = await page.eval(f"[{BAR.format('preStop')}, {BAR.format('drain')}]")
    assert drain / hook < 1.3  # the cube root of 5 / 3
    await page.eval("document.querySelector('#stretch').click()")
    await page.until(f"{BAR.format('drain')} / {BAR.format('preStop')} > 1.5")
    hook, drain = await page.eval(f"[{BAR.format('preStop')}, {BAR.format('drain')}]")
    assert drain / hook == pytest.approx(5 / 3, rel=0.05)


async def test_zoom_widens_the_picture_and_fit_brings_it_back(open_page: OpenPage) -> None:
    page = await open_page("sidecar")
    before = await page.eval(PICTURE)
    ticks = await page.eval("document.querySelectorAll('.tick').length")
    await page.eval(press("Zoom in"))
    await page.until(f"{PICTURE} > {before} * 1.4")
    await page.eval(press("Zoom in"))
    await page.until(f"Math.abs({PICTURE} - {before} * 2.25) < {before} * 0.05")
    await page.until(f"document.querySelectorAll('.tick').length > {ticks}")
    assert await page.eval("document.querySelector('.view').scrollLeft > 0")
    names = "document.querySelector('.view > .names').getBoundingClientRect().left"
    assert await page.eval(f"{names} >= document.querySelector('.view').getBoundingClientRect().left - 1")
    assert await page.eval(FITS)
    await page.eval(press("Fit"))
    await page.until(f"Math.abs({PICTURE} - {before}) < 2")


async def test_several_pods_are_rows_on_one_axis_and_each_leads_to_its_story(open_page: OpenPage) -> None:
    page = await open_page("several")
    assert await page.eval("document.querySelectorAll('.together tbody tr').length") == 4
    assert await page.eval("document.querySelectorAll('.mini .m-kill').length") == 1
    await assert_good(page)
    await page.eval("[...document.querySelectorAll('.together a')].find(a => /sigkill/.test(a.innerText)).click()")
    await seen(page, "/sigkill-demo/.test(document.querySelector('h1').innerText)")
    await seen(page, "document.querySelector('.view .mark.m-kill')")
    await assert_good(page)
    await page.eval("document.querySelector('.crumbs a').click()")
    await seen(page, "document.querySelector('.together')")


@pytest.mark.parametrize("dark", [False, True])
async def test_light_and_dark_follow_the_system(open_page: OpenPage, dark: bool) -> None:
    page = await open_page("sigkill", dark=dark)
    colour = await page.eval("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g)")
    assert (sum(map(int, colour[:3])) < 150) == dark
    await assert_good(page)


@pytest.mark.parametrize("name", ["sidecar", "several", "chatty"])
@pytest.mark.parametrize("width", [400, 960])
async def test_in_a_narrow_window_nothing_runs_out_of_the_page(open_page: OpenPage, name: str, width: int) -> None:
    page = await open_page(name, width=width, height=800)
    assert await page.eval("document.documentElement.scrollWidth") <= width
    await assert_good(page)


async def test_headings_follow_one_another_and_everything_has_a_name(open_page: OpenPage) -> None:
    page = await open_page("sidecar")
    for role, name in await page.names():
        if role in ("button", "slider", "combobox", "checkbox", "link", "region", "image", "img", "heading"):
            assert name.strip(), f"a {role} without a name"
    levels = await page.eval("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1 and all(b - a <= 1 for a, b in pairwise(levels))


async def test_printed_it_is_light_without_controls_and_whole(open_page: OpenPage, tmp_path: Path) -> None:
    page = await open_page("sigkill", dark=True)
    await page.send("Emulation.setEmulatedMedia", media="print")
    assert await page.eval("getComputedStyle(document.querySelector('.player')).display") == "none"
    assert await page.eval("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert (await page.pdf(tmp_path / "story.pdf")).read_bytes().startswith(b"%PDF")


async def test_ten_thousand_lines_open_and_play(open_page: OpenPage) -> None:
    page = await open_page("chatty")
    assert await page.eval("document.querySelectorAll('.log span').length") > 400
    assert await page.eval("document.querySelector('.log').textContent.includes('left out')")
    end = await page.eval(CLOCK)
    await page.eval("document.querySelector('#play').click()")
    await page.until(f"{CLOCK} > 0 && {CLOCK} < {end}")
    assert page.errors == []


async def test_readers_hear_at_most_one_sentence_a_second(open_page: OpenPage) -> None:
    page = await open_page("sigkill")
    watch = "new MutationObserver(() => heard_.push(performance.now())).observe(document.querySelector('#said'), all_)"
    await page.eval(
        f"window.heard_ = []; window.all_ = {{childList: true, characterData: true, subtree: true}}; {watch}"
    )
    assert await page.eval("document.querySelector('#said').getAttribute('role')") == "status"
    await page.eval("document.querySelector('#play').click()")
    await page.until("heard_.length >= 4")
    heard = await page.eval("heard_")
    assert min(b - a for a, b in pairwise(heard)) > 900, heard
