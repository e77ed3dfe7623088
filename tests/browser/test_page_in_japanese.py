"""`lastcall ui` for a reader of Japanese, with a real Pod that ends: nothing that lastcall says is in English."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from japanese import LETTERS
from kubectls import needs_kubectl
from live_page import TEXT, Served, assert_good, choose, seen, served_page
from pods import container, pod

from browser import Browser, Page

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

DRAINS = "trap 'sleep 1; exit 0' TERM; while true; do sleep 0.1; done"
ENGLISH = re.compile(r"\b(the|is|was|are|has|had|of|and|to|with|after|not|by|from|that|which|it|its|still|no|open)\b")
AS_THEY_ARE = {
    "kubelet": "Kubernetes's name",
    "kube-proxy": "Kubernetes's name",
    "init": "the name of lastcall's process",
    "endpointslice": "Kubernetes's name",
}
"""Actors that Japanese has no other name for, and why."""


@pytest.fixture
def served() -> Iterator[Served]:
    with served_page() as page:
        yield page


def of_web() -> list[Any]:
    """A Pod with a hook of a second and a drain of another, and its Service."""
    made: dict[str, Any] = pod("web", container("app", DRAINS))
    made["metadata"]["labels"] = {"app": "web"}
    made["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", "1"]}}}
    made["spec"]["terminationGracePeriodSeconds"] = 8
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    return [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}, made]


async def texts(page: Page, selector: str) -> list[str]:
    found = await page.eval(f"[...document.querySelectorAll({selector!r})].map(each => each.textContent.trim())")
    return [str(each) for each in found]


def english(found: list[str]) -> list[str]:
    """Those without a Japanese letter, or with a word that only English has."""
    return [each for each in found if not LETTERS.search(each) or ENGLISH.search(each)]


async def test_the_end_of_a_pod_is_told_in_japanese_to_whom_reads_it(
    served: Served, browser: Browser, tmp_path: Path
) -> None:
    served.create(*of_web())
    page = await browser.open(served.link(), language="ja")
    assert await page.eval("navigator.language") == "ja"
    await seen(page, "document.querySelectorAll('.cell.wide.ready').length === 1")
    await choose(page, "web")
    await seen(page, "document.querySelector('.coming')")
    assert english(await texts(page, ".coming li")) == []
    await page.eval("document.querySelector('#delete').click()")
    await seen(page, "document.querySelector('.bar.b-preStop.open')")
    assert len(coming := await texts(page, ".coming li")) >= 2 and english(coming) == []
    await page.screenshot(tmp_path / "ending.png")
    await seen(page, "document.querySelector('.state .tag')?.innerText === '削除済み'")
    await page.eval("document.querySelector('#steps ~ .check input').click()")
    await seen(page, "document.querySelectorAll('.step').length > 15")

    steps = await texts(page, ".steps .step")
    assert len(steps) > 15 and english(steps) == []
    actors = {each for each in await texts(page, ".steps .actor") if not LETTERS.search(each)}
    assert actors <= AS_THEY_ARE.keys()
    lanes = [each for each in await texts(page, ".lane-name") if not each.startswith(("app", "kubelet", "init"))]
    assert len(lanes) >= 4 and english(lanes) == []
    labels = [each for each in await texts(page, ".bar title") if each and not each.startswith("preStop exec ")]
    assert len(labels) >= 4 and english(labels) == []
    assert "正常に終了" in await page.eval("document.querySelector('.state').innerText")
    assert "削除された (" in await page.eval("document.querySelector('.state').innerText")
    await page.screenshot(tmp_path / "ended.png")
    await assert_good(page)

    await page.eval("location.hash = '#/ends'")
    await seen(page, "/正常に終了/.test(document.querySelector('tbody')?.innerText)")
    await page.eval("location.hash = '#/pod/' + document.querySelector('tbody a').href.split('/pod/')[1]")
    await seen(page, f"/DELETE 受理/.test({TEXT})")
    await page.eval("[...document.querySelectorAll('button')].find(each => each.innerText === 'English').click()")
    await seen(page, f"/DELETE accepted: deletionTimestamp set/.test({TEXT})")


async def test_findings_and_advice_are_told_in_the_language_that_is_chosen_also_when_the_server_has_ended(
    served: Served, browser: Browser, tmp_path: Path
) -> None:
    deaf: dict[str, Any] = pod("deaf", container("app", "exec sleep 600"))
    deaf["spec"]["terminationGracePeriodSeconds"] = 2
    served.create(deaf)
    page = await browser.open(served.link(), language="ja")
    await seen(page, "document.querySelectorAll('.cell.wide.ready').length === 1")
    await choose(page, "deaf")
    await seen(page, "document.querySelector('#delete')")
    await page.eval("document.querySelector('#delete').click()")
    await seen(page, "document.querySelector('.state .tag')?.innerText === '削除済み'")
    await seen(page, "/SIGKILL が送られました/.test(document.querySelector('.findings')?.innerText)")

    found = await texts(page, ".findings li")
    assert english([each.replace("localhost/from-host/busybox", "") for each in found]) == []
    assert any(
        "SIGTERM のハンドラーを持っていません" in each and "tini のような init を PID 1 に" in each for each in found
    )
    await page.screenshot(tmp_path / "findings.png")
    uid = await page.eval("location.hash.split('/')[2]")
    saved = await page.eval(f"fetch('/api/pods/{uid}/page?language=ja').then(answer => answer.text())")
    assert "SIGTERM のハンドラーを持っていません" in saved and '<html lang="ja">' in saved
    assert f"/api/pods/{uid}/page?language=ja" in await page.eval("document.querySelector('a[download]').href")

    await turn_to(page, "English")
    await seen(page, "/has no handler for SIGTERM/.test(document.querySelector('.findings').innerText)")
    assert not [each for each in await texts(page, ".findings li") if LETTERS.search(each)]

    served.stop()
    await seen(page, "/lastcall ui has ended/.test(document.querySelector('.banner')?.innerText)")
    await turn_to(page, "日本語")
    await seen(page, "/SIGTERM のハンドラーを持っていません/.test(document.querySelector('.findings').innerText)")
    await assert_good(page)


async def turn_to(page: Page, language: str) -> None:
    await page.eval(f"[...document.querySelectorAll('button')].find(each => each.innerText === '{language}').click()")
