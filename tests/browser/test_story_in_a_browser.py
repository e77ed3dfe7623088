"""The story's page as people meet it: drawn, played, walked by keyboard, read aloud, in the dark, on a phone."""

import asyncio
from itertools import pairwise

import pytest

VISIBLE_MARKS = """[...document.querySelectorAll('.m use')].filter(use => {
  const box = use.getBoundingClientRect(), view = use.closest('.view').getBoundingClientRect();
  return box.width > 3 && box.left >= view.left - 1 && box.right <= view.right + 1;
}).length"""
ACTIVE = "document.activeElement.dataset.n || document.activeElement.className || document.activeElement.tagName"
HEAD = "+document.querySelector('.playhead').getAttribute('x1').replace('%','')"


@pytest.mark.core
@pytest.mark.parametrize("name", ["graceful", "sigkill", "sidecar", "overrun", "several", "hostile", "chatty", "many"])
async def test_the_page_opens_without_an_error_and_asks_the_network_for_nothing(open_page, written, name):
    page = await open_page(name)
    await asyncio.sleep(0.2)  # a request that the page should not make would come now
    assert page.requests == [written[name]]
    assert page.errors == []
    assert await page.eval("document.documentElement.classList.contains('js')")
    assert await page.eval("window.pwned === undefined && !document.querySelector('main script, main img')")
    assert await page.eval("document.documentElement.scrollWidth <= innerWidth")


async def test_lanes_phases_and_marks_are_there_and_none_is_cut_off(open_page):
    page = await open_page("sigkill")
    lanes = await page.eval("[...document.querySelectorAll('.names .name')].map(name => name.textContent)")
    assert lanes[:3] == ["API server", "EndpointSlice controller", "endpoint"]
    assert {"endpoint", "kubelet", "runtime", "app", "output"} <= set(lanes)
    marks = await page.eval("document.querySelectorAll('.m').length")
    assert marks > 15
    assert await page.eval(VISIBLE_MARKS) == marks
    widths = await page.eval(
        "Object.fromEntries([...document.querySelectorAll('.plot rect.bar')].map(bar => "
        "[bar.classList[1], bar.getBoundingClientRect().width]))"
    )
    assert widths["b-preStop"] > 60
    assert widths["b-drain"] > 100
    overlaps = await page.eval(
        """(() => {
          const boxes = [...document.querySelectorAll('.m:not(.g-detail) use')].map(u => u.getBoundingClientRect());
          return boxes.filter((a, i) => boxes.some((b, j) => j > i &&
            Math.hypot(a.x + a.width / 2 - b.x - b.width / 2, a.y + a.height / 2 - b.y - b.height / 2) < 10)).length;
        })()"""
    )
    assert overlaps == 0


async def test_without_javascript_it_is_the_same_picture_and_no_button_that_does_nothing(open_page):
    page = await open_page("sigkill", javascript=False)
    layout = await page.send("DOM.getDocument", depth=-1)
    assert layout
    names = await page.names()
    assert not [name for role, name in names if role in ("button", "slider", "combobox")]
    assert [name for role, name in names if role == "link" and "SIGKILL" in name]


async def test_play_moves_the_playhead_to_the_end_and_space_pauses_it(open_page):
    page = await open_page("graceful")
    start = await page.eval(HEAD)
    assert start > 95  # all of the story is shown at first
    await page.eval("document.querySelector('.play').focus()")
    await page.eval("document.querySelector('.play').click()")
    # All of it of one moment: the page plays on between two questions.
    head, button, future, later = await page.eval(
        f"""new Promise(resolve => {{
          const look = () => {{
            if ({HEAD} > 3 && {HEAD} < 95) resolve([{HEAD}, document.querySelector('.play').textContent,
              +document.querySelector('.future').getAttribute('width').replace('%',''),
              document.querySelectorAll('.log .later').length]);
            else requestAnimationFrame(look);
          }};
          look();
        }})"""
    )
    assert "Pause" in button
    assert future == pytest.approx(100 - head, abs=3)
    assert later == 1 or head > 60
    await page.key(" ")
    await page.until("document.querySelector('.play').textContent.includes('Play')")
    paused = await page.eval(HEAD)
    await asyncio.sleep(0.2)  # what is paused must not move: nothing to wait for
    assert await page.eval(HEAD) == paused
    await page.eval("document.querySelector('.transport select').value = '4'")
    await page.key(" ")
    await page.until(f"{HEAD} > 95")
    await page.until("document.querySelector('.play').textContent.includes('Play')")
    assert await page.eval("document.querySelectorAll('.log .later').length") == 0


async def test_scrubbing_shows_the_story_as_it_was_then(open_page):
    page = await open_page("sigkill")
    await page.eval(
        "(() => { const s = document.querySelector('.scrub'); s.value = 550; s.dispatchEvent(new Event('input')); })()"
    )
    assert 50 < await page.eval(HEAD) < 60
    said = await page.eval("document.querySelector('.scrub').getAttribute('aria-valuetext')")
    assert " s. " in said
    assert "SIGTERM" in said or "PID 1" in said
    assert await page.eval("document.querySelector('.clock').textContent.startsWith('+')")


async def test_the_keyboard_walks_through_the_records_and_the_card_says_what_each_is(open_page):
    page = await open_page("sigkill")
    await page.eval("document.querySelector('.scrub').focus()")
    await page.key("Tab")  # the plot may scroll, so it can be focused on the way
    for _ in range(3):
        if (await page.eval(ACTIVE)).isdigit():
            break
        await page.key("Tab")
    first = await page.eval(ACTIVE)
    await page.key("Home")
    assert await page.eval(ACTIVE) == "1"
    seen = []
    for _ in range(6):
        await page.key("ArrowRight")
        seen.append(await page.eval(ACTIVE))
    assert first.isdigit()
    assert seen == ["2", "3", "4", "5", "6", "7"]
    card = await page.eval("document.querySelector('.card').textContent")
    assert card.startswith("7. ")
    await page.key("ArrowLeft")
    assert "because of" in await page.eval("document.querySelector('.card').textContent")
    assert await page.eval("document.querySelectorAll('.m.on-chain').length") > 1
    lane = "document.activeElement.querySelector('use').getAttribute('y')"
    before = float(await page.eval(lane))
    await page.key("ArrowUp")
    assert float(await page.eval(lane)) < before
    await page.key("End")
    marks = await page.eval("document.querySelectorAll('.m').length")
    assert (await page.eval("document.querySelector('.card h4').textContent")).startswith(f"{marks}. ")
    await page.key("Escape")
    assert await page.eval("document.querySelectorAll('.chosen').length") == 0


async def test_tab_reaches_the_records_in_their_order_too(open_page):
    page = await open_page("graceful")
    await page.eval("document.querySelector('.m').focus()")
    numbers = [int(await page.eval(ACTIVE))]
    for _ in range(4):
        await page.key("Tab")
        numbers.append(int(await page.eval(ACTIVE)))
    assert len(set(numbers)) == 5
    assert await page.eval("getComputedStyle(document.activeElement).outlineStyle") == "solid"


async def test_pointing_at_a_mark_shows_facts_rule_and_evidence(open_page):
    page = await open_page("graceful")
    spot = await page.eval(
        "(() => { const all = [...document.querySelectorAll('.m')];"
        " const m = all.find(m => m.getAttribute('aria-label').includes('DELETE accepted'));"
        " m.scrollIntoView({block: 'center', behavior: 'instant'});"
        " const b = m.querySelector('use').getBoundingClientRect();"
        " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    await page.move(*spot)
    await page.until("document.querySelector('.card h4').textContent.includes('DELETE accepted')")
    card = await page.eval("document.querySelector('.card').textContent")
    assert "gracePeriodSeconds30" in card
    assert "delete.go:BeforeDelete" in card
    assert "observed" in card
    assert "deletionTimestamp becomes now plus the grace period" in card
    await page.move(5, 5)
    await page.until("document.querySelector('.card h4').textContent === 'Records'")


async def test_true_to_scale_a_second_is_as_wide_as_any_other(open_page):
    page = await open_page("graceful")
    await page.eval("document.querySelector('.transport input[type=checkbox]').click()")
    place = "+document.querySelector('.plot rect.b-{}').getAttribute('width').replace('%','')"
    hook = await page.eval(place.format("preStop"))
    drain = await page.eval(place.format("drain"))
    assert drain / hook == pytest.approx(5 / 3, rel=0.05)
    await page.eval("document.querySelector('.transport input[type=checkbox]').click()")
    assert await page.eval(place.format("preStop")) != hook
    assert await page.eval(VISIBLE_MARKS) == await page.eval("document.querySelectorAll('.m').length")


async def test_zoom_widens_the_picture_and_fit_brings_it_back(open_page):
    page = await open_page("sidecar")
    width = "document.querySelector('.plot').getBoundingClientRect().width"
    before = await page.eval(width)
    ticks = await page.eval("document.querySelectorAll('.axis text').length")
    await page.eval("document.querySelector('[aria-label=\"Zoom in\"]').click()")
    await page.eval("document.querySelector('[aria-label=\"Zoom in\"]').click()")
    assert await page.eval(width) == pytest.approx(before * 2.25, rel=0.02)
    await page.until(f"document.querySelectorAll('.axis text').length > {ticks}")
    assert await page.eval("document.documentElement.scrollWidth <= innerWidth")
    await page.eval("[...document.querySelectorAll('.transport button')].find(b => b.textContent === 'Fit').click()")
    assert await page.eval(width) == pytest.approx(before, rel=0.01)


async def test_reduced_motion_steps_from_record_to_record_and_nothing_glides(open_page):
    page = await open_page("graceful", reduced_motion=True)
    assert await page.eval("getComputedStyle(document.querySelector('.m use')).transitionDuration") == "0s"
    assert await page.eval("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    places = await page.eval(
        """new Promise(resolve => {
          const seen = new Set(), play = document.querySelector('.play');
          play.click();
          const look = () => {
            seen.add(document.querySelector('.playhead').getAttribute('x1'));
            if (seen.size >= 4) { play.click(); resolve([...seen]); } else requestAnimationFrame(look);
          };
          look();
        })"""
    )
    marks = await page.eval("[...document.querySelectorAll('.m use')].map(use => parseFloat(use.getAttribute('x')))")
    for place in places:
        assert min(abs(float(place.strip("%")) - mark) for mark in marks) < 0.1


@pytest.mark.parametrize("dark", [False, True])
async def test_light_and_dark_follow_the_system(open_page, dark):
    page = await open_page("sigkill", dark=dark)
    colour = await page.eval("getComputedStyle(document.documentElement).backgroundColor.match(/[0-9]+/g)")
    assert (sum(map(int, colour[:3])) < 150) == dark


@pytest.mark.parametrize("name", ["sidecar", "several", "chatty"])
async def test_on_a_phone_nothing_runs_out_of_the_page_and_the_lanes_keep_their_names(open_page, name):
    page = await open_page(name, width=400, height=800)
    assert await page.eval("document.documentElement.scrollWidth") <= 400
    inside = await page.eval(
        "[...document.querySelectorAll('.names .name')].every(n => { const b = n.getBoundingClientRect();"
        " return b.left >= 0 && b.right <= 400 && b.width > 0; })"
    )
    assert inside
    assert await page.eval("document.querySelector('.view').scrollWidth > document.querySelector('.view').clientWidth")


@pytest.mark.parametrize("width", [800, 960, 1100, 1200, 1280, 1340])
async def test_in_a_window_of_a_laptop_the_picture_opens_no_wider_than_its_frame(open_page, width):
    page = await open_page("sigkill", width=width, height=900)
    view = "document.querySelector('.view')"
    assert await page.eval(f"{view}.scrollWidth <= {view}.clientWidth")
    assert await page.eval("document.documentElement.scrollWidth <= innerWidth")


async def test_everything_has_a_role_and_a_name_for_those_who_listen(open_page):
    page = await open_page("several")
    names = await page.names()
    for role, name in names:
        if role in ("button", "slider", "combobox", "checkbox", "link", "table", "region", "image", "img", "heading"):
            assert name.strip(), f"a {role} without a name"
    roles = {role for role, _ in names}
    assert {"main", "heading", "table", "columnheader", "button", "slider", "link", "list"} <= roles
    assert [name for role, name in names if role in ("image", "img") and "preStop" in name]
    levels = await page.eval("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert await page.eval("document.documentElement.lang") == "en"
    captions = await page.eval(
        "[...document.querySelectorAll('table')].every(t => t.caption && t.querySelector('th[scope]'))"
    )
    assert captions


async def test_targets_are_large_enough_to_be_hit(open_page):
    page = await open_page("sigkill")
    small = await page.eval(
        "[...document.querySelectorAll('.transport button, .transport select')].filter(e => {"
        " const b = e.getBoundingClientRect(); return b.width < 24 || b.height < 24; }).length"
    )
    assert small == 0


async def test_printed_it_is_light_without_controls_and_whole(open_page, tmp_path):
    page = await open_page("sigkill", dark=True)
    await page.send("Emulation.setEmulatedMedia", media="print")
    assert await page.eval("getComputedStyle(document.querySelector('.transport')).display") == "none"
    assert await page.eval("getComputedStyle(document.querySelector('.pod')).backgroundColor") == "rgb(255, 255, 255)"
    assert await page.eval("getComputedStyle(document.querySelector('.pod')).color") == "rgb(19, 24, 32)"
    printed = await page.pdf(tmp_path / "story.pdf")
    assert printed.read_bytes().startswith(b"%PDF")


async def test_ten_thousand_lines_open_and_play(open_page):
    page = await open_page("chatty")
    assert await page.eval("document.querySelectorAll('.log li').length") > 400
    assert await page.eval("document.querySelector('.output').textContent.includes('left out')")
    await page.eval("document.querySelector('.play').click()")
    await page.until(f"{HEAD} > 5 && {HEAD} < 90")
    assert page.errors == []
