"""`lastcall rollout --ui` in chromium, with clusters behind it: several runs, a search, and somebody's cluster."""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubectls import needs_kubectl
from live_page import TEXT, assert_good, ended, fresh_link, link_of, seen, write
from staying import Place

from browser import Browser, Page

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

NAIVE = str(Path(__file__).parents[2] / "examples/rollout/naive.yaml")


RUNS = "document.querySelectorAll('#runs ~ .scroll tbody tr').length"
OVER = "/The cluster has ended/.test(document.querySelector('.banner')?.innerText)"


@pytest.fixture
def place() -> Iterator[Place]:
    with Place() as found:
        yield found


_UNSIGNED = """(() => {
  const texture = e => getComputedStyle(e.parentElement.querySelector('.texture') ?? document.body).fill;
  const found = [];
  const textures = {'r-lost': 't-lost', 'r-moved': 't-moved', 'b-preStop': 't-hook', 'b-drain': 't-drain'};
  for (const [name, of] of Object.entries(textures))
    for (const each of document.querySelectorAll('.rollout .' + name))
      if (!texture(each).includes(of) || !document.getElementById(of)) found.push(name);
  const count = e => document.querySelectorAll('.lanes.rollout ' + e).length;
  const [lost, signs] = ['rect.r-lost', '.r-sign-lost'].map(count);
  return lost && lost === signs ? found : [...found, lost + ' columns, ' + signs + ' signs'];
})()"""
"""What only a color tells: parts without the texture or the shape that says the same."""


_COUNTED = """(() => {
  const number = text => (text.match(/\\d+/g) ?? []).map(Number);
  const sum = list => list.reduce((a, b) => a + b, 0);
  const texts = selector => [...document.querySelectorAll(selector)].map(e => e.textContent);
  const [said] = texts('#lost');
  return [
    sum(texts('#lost ~ .not-counted').map(each => number(each)[0])),
    number(said)[1],
    sum(texts('#lost ~ svg.lanes.rollout :not(.latency) > .lane-name > .lane-detail').map(each => number(each)[0])),
  ];
})()"""
"""Requests that do not count, those that do, and those in the columns."""


async def runs_of(page: Page) -> list[list[str]]:
    """The rows of the table of runs: number, why, delays, verdict, lost of all."""
    rows = "[...document.querySelectorAll('#runs ~ .scroll tbody tr')]"
    return list(await page.eval(f"{rows}.map(row => [...row.cells].map(cell => cell.innerText))"))


async def test_a_rollout_is_shown_predicted_mended_and_run_again(
    place: Place, browser: Browser, tmp_path: Path
) -> None:
    process = place.start("rollout", NAIVE, "--propagation", "1s", "--ui")
    page = await browser.open(link_of(process))
    await page.until("document.querySelector('h1')?.innerText === 'Rollout: Deployment naive'", seconds=120)
    await page.until("document.querySelectorAll('.rollout .r-lost').length > 0", seconds=120)
    await page.screenshot(tmp_path / "live.png")
    await seen(page, "document.querySelector('tr[data-cause=lateEndpoint]')")
    await page.until("document.querySelector('.state .tag.bad')?.innerText === 'requests lost'", seconds=120)
    await seen(page, "document.querySelectorAll('.r-mark').length > 0")
    before, counted, columns = await page.eval(_COUNTED)
    assert before > 0 and before + counted == columns, "the page says why its columns are more than what it counts"
    assert "preStop" in await page.eval("document.querySelector('#patch + pre').innerText")
    assert await page.eval(_UNSIGNED) == []
    await assert_good(page)

    fresh = "document.querySelector('#forecast [data-kind=fresh]')?.innerText"
    await write(page, "#hop-watch", "4")
    await seen(
        page, f"/fresh: [1-9]\\d* of \\d+ simulated requests lost/.test({fresh}) && /virtual time/.test({fresh})"
    )
    await write(page, "#sleep", "6")
    await seen(page, f"/fresh: none of \\d+ simulated/.test({fresh}) && /virtual time/.test({fresh})")
    edge = float(await page.eval(f"/Safe up to a delay of ([\\d.]+) s/.exec({fresh})[1]"))
    assert 5 < edge < 7
    assert "seconds: 6" in await page.eval("document.querySelector('#patch-of + pre').innerText")
    await page.screenshot(tmp_path / "what-if.png")
    await assert_good(page)
    phone = await browser.open(fresh_link(process, link_of), width=390, height=844, dark=True, reduced_motion=True)
    await seen(phone, "document.querySelectorAll('.rollout .r-lost').length > 0")
    await phone.screenshot(tmp_path / "phone.png")
    await assert_good(phone)
    await write(page, "#grace-period", "5")
    await seen(page, "/must be non-negative and less than/.test(document.querySelector('.what-if .error').innerText)")

    await page.eval("document.querySelector('#apply').click()")
    await page.until("/^Run 2/.test(document.querySelector('.state').innerText)", seconds=120)
    await page.until("!!document.querySelector('#runs ~ .scroll tbody tr:nth-child(2)')", seconds=120)
    lost = await page.eval(
        "[...document.querySelectorAll('#runs ~ .scroll tbody td:last-child')].map(e => parseInt(e.innerText))"
    )
    assert lost[0] > 10 > lost[1], lost
    assert not await page.eval("document.querySelector('tr[data-cause=lateEndpoint]')")
    await page.screenshot(tmp_path / "mended.png")
    await assert_good(page)
    process.send_signal(signal.SIGINT)
    await seen(page, "/The cluster has ended/.test(document.querySelector('.banner')?.innerText)")
    await assert_good(page)
    assert "once more, as the page asks" in ended(process, 3 if lost[1] else 0)


async def test_several_runs_and_then_those_with_the_advice_are_shown_one_after_the_other(
    place: Place, browser: Browser, tmp_path: Path
) -> None:
    process = place.start("rollout", NAIVE, "--propagation", "1s", "--runs", "2", "--apply-advice", "--ui")
    page = await browser.open(link_of(process))
    state = "document.querySelector('.state')?.innerText"
    await page.until(f"/^Run 1 of 2/.test({state})", seconds=120)
    await page.until("document.querySelectorAll('.rollout .r-lost').length > 0", seconds=120)
    await page.until(f"/^Run 2 of 2/.test({state})", seconds=120)
    assert await page.eval("document.querySelector('#apply')?.disabled ?? true")
    await page.until(f"/^Run 3 of 4 \\(with the advice applied\\)/.test({state})", seconds=120)
    await page.screenshot(tmp_path / "advised.png")
    await page.until(f"/^Run 4 of 4/.test({state})", seconds=120)
    await page.until("document.querySelector('#again')?.disabled === false", seconds=120)
    rows = await runs_of(page)
    assert [row[1] for row in rows] == ["as asked", "as asked", "with the advice applied", "with the advice applied"]
    lost = [int(row[4].split("/")[0]) for row in rows]
    assert min(lost[:2]) > 10 > max(lost[2:]), rows
    # What one has run from here is made of the advised manifest.
    await write(page, "#grace-period", "41")
    assert "preStop" not in await page.eval("document.querySelector('#patch-of + pre')?.innerText ?? ''")
    await page.eval("document.querySelector('#again').click()")
    await page.until(f"{RUNS} === 5", seconds=120)
    await assert_good(page)
    (*_, last) = await runs_of(page)
    assert last[1] == "asked for on this page" and int(last[4].split("/")[0]) < 10
    process.send_signal(signal.SIGINT)
    await seen(page, OVER)
    out = ended(process, 3 if not last[4].startswith("0 /") else 0)
    assert "once more, with the advice applied" in out and "once more, as the page asks" in out


async def test_the_search_for_what_is_safe_is_shown_with_its_runs_and_its_edge(
    place: Place, browser: Browser, tmp_path: Path
) -> None:
    polite = str(Path(NAIVE).with_name("polite.yaml"))
    process = place.start("rollout", polite, "--find-safe", "--confirm", "2", "--ui", "-o", "json")
    page = await browser.open(link_of(process))
    await page.until("!!document.querySelector('#search')", seconds=240)
    assert "Searching" in await page.eval("document.querySelector('#search + p').innerText")
    await page.until("!!document.querySelector('.edge .lossy-run')", seconds=240)
    await page.screenshot(tmp_path / "searching.png")
    await page.until("/^safe up to/.test(document.querySelector('#search + .verdict')?.innerText)", seconds=240)
    await page.until("document.querySelector('#again')?.disabled === false", seconds=60)
    trials = await page.eval("[...document.querySelectorAll('.trials tbody tr')].map(row => row.innerText)")
    safe = [row for row in trials if "○" in row]
    lossy = [row for row in trials if "▲" in row]
    assert safe and lossy and len(trials) >= 3, trials
    rows = await runs_of(page)
    assert {row[1] for row in rows} == {"the search for what is safe"} and len(rows) >= 3
    sentence = await page.eval("document.querySelector('#search + .verdict').innerText")
    await page.screenshot(tmp_path / "found.png")
    await assert_good(page)
    process.send_signal(signal.SIGINT)
    reading = asyncio.create_task(asyncio.to_thread(process.communicate, timeout=60))  # more than a pipe holds
    await seen(page, OVER)
    out, err = await reading
    assert process.returncode == 0 and "Traceback" not in err, err
    assert json.loads(out)["findSafe"]["sentence"] == sentence


async def test_a_cluster_that_is_kept_after_a_failure_is_looked_at_until_the_signal(
    place: Place, browser: Browser
) -> None:
    process = place.start("rollout", NAIVE, "--propagation", "1s", "--keep-on-failure", "--ui")
    page = await browser.open(link_of(process))
    kept = "/requests lost.*The cluster stays up until Ctrl-C/s.test(document.querySelector('.state')?.innerText)"
    await page.until(kept, seconds=120)
    assert await page.eval("document.querySelector('#again').disabled")
    await page.eval("location.hash = '#/'")
    await seen(page, "document.querySelectorAll('.cell.wide.ready').length === 3")
    await assert_good(page)
    process.send_signal(signal.SIGINT)
    await seen(page, OVER)
    assert "as the page asks" not in ended(process, 3)


@pytest.mark.timeout(600)
async def test_an_experiment_on_another_cluster_is_shown_and_that_cluster_only_read(
    place: Place, browser: Browser, tmp_path: Path
) -> None:
    facts: dict[str, Any] = json.loads(
        place.ok("up", "--detach", "--name", "theirs", "--propagation", "1s", "-o", "json", "--publish",
                 "0:svc/shop/naive:80")
    )  # fmt: skip
    config, entrance = facts["kubeconfig"], f"http://{facts['published'][0]['address']}"
    (context,) = place.kubectl(config, "config", "get-contexts", "-o", "name").split()
    place.kubectl(config, "create", "namespace", "shop")
    place.kubectl(config, "apply", "-n", "shop", "-f", NAIVE)
    place.kubectl(config, "wait", "-n", "shop", "deployment/naive", "--for=condition=Available", "--timeout=120s")
    there = ("--kubeconfig", config, "--context", context, "-n", "shop", "--url", entrance, f"--yes={context}")
    process = place.start("rollout", "deployment/naive", *there, "--load", "fresh=60", "--ui")
    page = await browser.open(link_of(process))
    await page.until("document.querySelector('h1')?.innerText === 'Rollout: Deployment naive'", seconds=60)
    await page.until("document.querySelectorAll('.rollout .r-answered').length > 5", seconds=120)
    await page.until("document.querySelectorAll('.rollout .b-drain').length > 0", seconds=120)
    await page.until("document.querySelectorAll('.rollout .r-lost').length > 0", seconds=120)
    await page.screenshot(tmp_path / "live.png")
    await page.until("document.querySelector('#again')?.disabled === false", seconds=120)
    assert not await page.eval("document.querySelector('.sliders') || document.querySelector('#apply')")
    here = await page.eval("document.querySelector('#there ~ .command code').innerText")
    assert here.startswith("lastcall rollout --from-cluster deployment/naive --context") and here.endswith("--ui")
    await assert_good(page)
    changing = "fetch('/api/rollout/again', {method: 'POST', body: '{\"advice\": true}'}).then(r => r.status)"
    assert await page.eval(changing) == 400
    page.errors.clear()  # the browser tells of the refusal
    await page.eval("document.querySelector('#again').click()")
    await page.until(f"{RUNS} === 2", seconds=240)
    rows = await runs_of(page)
    assert [row[1] for row in rows] == ["as asked", "asked for on this page"]
    await page.until("document.querySelector('#again')?.disabled === false", seconds=120)
    await page.eval("location.hash = '#/'")
    await seen(page, "document.querySelectorAll('.cell.wide.ready').length >= 3")
    assert await page.eval("document.querySelector('.status').className === 'status running'")
    await page.eval("location.hash = '#/ends'")
    await seen(page, "document.querySelectorAll('tbody tr').length >= 3")
    await page.eval("document.querySelector('tbody a').click()")
    await seen(page, f"/SIGTERM/.test({TEXT})")
    assert not await page.eval("document.querySelector('.act')")
    await page.screenshot(tmp_path / "story.png")
    await assert_good(page)
    process.send_signal(signal.SIGINT)
    await seen(page, "/the cluster runs on/.test(document.querySelector('.banner')?.innerText)")
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 3) and "Traceback" not in err, out + err
    assert "is up" not in err
    place.kubectl(config, "get", "-n", "shop", "deployment/naive")
    assert place.run("doctor", "--kubeconfig", config, "--context", context).status == 0
