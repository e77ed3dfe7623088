"""`--ui` of the commands that have a cluster, in chromium: the page lives as long as the command, and says so then."""

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubectls import needs_kubectl
from live_page import TEXT, assert_good, choose, ended, link_of, seen, write
from pods import container, pod
from staying import Place
from waiting import eventually

from browser import Browser

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

DRAINS = "trap 'echo draining; sleep 1; exit 0' TERM; echo up; while true; do sleep 0.1; done"


@pytest.fixture
def place() -> Iterator[Place]:
    with Place() as found:
        yield found


def nobody_listens(link: str) -> bool:
    try:
        urllib.request.urlopen(link, timeout=5).close()
    except urllib.error.HTTPError:
        return False
    except OSError:
        return True
    return False


async def test_a_demo_waits_for_its_browser_and_what_was_seen_stays_when_it_has_ended(
    place: Place, browser: Browser, tmp_path: Path
) -> None:
    process = place.start("demo", "--ui")
    link = link_of(process)
    page = await browser.open(link)
    await seen(page, "document.querySelectorAll('.cell.wide').length === 2")
    await choose(page, "sigkill-demo")
    await seen(page, "document.querySelector('.predicted.p-kill rect')")
    await page.screenshot(tmp_path / "demo.png")
    await page.until("!!document.querySelector('.banner')", seconds=120)
    assert "SIGKILL" in ended(process, 3)
    assert "The cluster has ended" in await page.eval("document.querySelector('.banner').innerText")
    assert nobody_listens(link)
    await write(page, "#scrub", "0.5")
    await seen(page, "document.querySelector('#clock').innerText === '0.500 s'")
    await page.eval("document.querySelector('#play').click()")
    await seen(page, "parseFloat(document.querySelector('#clock').innerText) > 1")
    await page.eval("location.hash = '#/ends'")
    await seen(page, "document.querySelectorAll('tbody tr').length === 2")
    await page.eval("[...document.querySelectorAll('tbody a')].find(e => /term-demo/.test(e.innerText)).click()")
    await seen(page, f"/ended gracefully/.test({TEXT})")
    await page.screenshot(tmp_path / "ended.png")
    await assert_good(page)


def printed_link(process: subprocess.Popen[str]) -> str:
    """Return the link that a cluster's command prints on stdout."""
    assert process.stdout is not None
    while line := process.stdout.readline():
        for word in line.split():
            if word.startswith("http://"):
                return word
    raise AssertionError(process.communicate())


async def test_the_tour_s_command_opens_its_levels_and_ends_with_its_cluster(place: Place, browser: Browser) -> None:
    process = place.start("tour")
    link = printed_link(process)
    page = await browser.open(link)
    await seen(
        page,
        "location.hash.startsWith('#/tour') && /level 1 of 12|A Pod that takes too long/.test(document.body.innerText)",
    )
    process.send_signal(signal.SIGINT)
    ended(process, 0)
    assert nobody_listens(link)


async def test_up_has_a_page_until_it_ends(place: Place, browser: Browser, tmp_path: Path) -> None:
    manifest = tmp_path / "pod.json"
    manifest.write_text(json.dumps(pod("web", container("app", DRAINS))))
    process = place.start("up", "--ui", "-f", str(manifest))
    link = printed_link(process)
    page = await browser.open(link)
    await seen(page, "document.querySelectorAll('.cell.wide.ready').length === 1")
    await assert_good(page)
    process.send_signal(signal.SIGINT)
    await seen(page, "/The cluster has ended/.test(document.querySelector('.banner')?.innerText)")
    ended(process, 0)
    assert nobody_listens(link)


async def test_a_cluster_in_the_background_has_a_page_until_down(place: Place, browser: Browser) -> None:
    facts: dict[str, Any] = json.loads(place.ok("up", "--detach", "--ui", "-o", "json"))
    page = await browser.open(facts["page"])
    await seen(page, "document.querySelector('.status.running')")
    assert "for another browser" in place.ok("logs", "--role", "front")
    place.ok("down")
    await seen(page, "/The cluster has ended/.test(document.querySelector('.banner')?.innerText)")
    assert nobody_listens(facts["page"])


def test_a_command_that_is_killed_leaves_no_page(place: Place) -> None:
    process = place.start("demo", "--ui")
    link = link_of(process)
    assert not nobody_listens(link)
    process.kill()
    process.wait()
    eventually(lambda: nobody_listens(link), "the page's end")


def test_a_port_that_is_taken_is_told_and_the_command_goes_on(place: Place) -> None:
    first = place.start("demo", "graceful", "--ui")
    port = link_of(first).split(":")[2].partition("/")[0]
    result = place.run("demo", "graceful", "--ui-port", port)
    assert result.status == 0
    assert f"there is no page: port {port} of 127.0.0.1" in result.err
    first.send_signal(signal.SIGINT)
    ended(first, 130)


async def test_a_trace_shows_what_it_sees_and_only_reads(place: Place, browser: Browser, tmp_path: Path) -> None:
    facts: dict[str, Any] = json.loads(place.ok("up", "--detach", "-o", "json"))
    made = pod("web", container("app", DRAINS))
    made["metadata"]["labels"] = {"app": "web"}
    place.kubectl(facts["kubeconfig"], "create", "-f", "-", stdin=json.dumps(made))
    place.kubectl(facts["kubeconfig"], "wait", "pod/web", "--for=condition=Ready", "--timeout=60s")
    process = place.start("trace", "--ui", "--kubeconfig", facts["kubeconfig"], "pod/web")
    page = await browser.open(link_of(process))
    await seen(page, "document.querySelectorAll('.cell.wide.ready').length === 1")
    await seen(page, "document.querySelector('.group .tag.good')")
    await choose(page, "web")
    await seen(page, "document.querySelector('#tab-describe')")
    assert not await page.eval("document.querySelector('.act')")
    await assert_good(page)
    place.kubectl(facts["kubeconfig"], "delete", "pod", "web", "--wait=false")
    await seen(page, f"/SIGTERM/.test({TEXT})")
    await seen(page, "/The trace has ended/.test(document.querySelector('.banner')?.innerText)")
    assert "1 Pod ended" in ended(process, 0)
    await page.screenshot(tmp_path / "traced.png")
    assert "Who deleted it is not known" in await page.eval(
        "document.querySelector('#not-known').parentElement.innerText"
    )
    await page.eval("location.hash = '#/ends'")
    await seen(page, "document.querySelectorAll('tbody tr').length === 1")
    refused = await page.eval("document.querySelector('.banner').innerText")
    assert "stays here" in refused
