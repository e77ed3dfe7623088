"""`lastcall ui` in chromium, with a real cluster behind it: every view, two browsers, a cluster started again."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubectls import needs_kubectl
from live_page import OVERLAPS, TEXT, Served, assert_good, choose, seen, served_page, write
from pods import container, pod

from browser import Browser

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

DRAINS = "trap 'echo draining; sleep 1; exit 0' TERM; echo up; while true; do sleep 0.1; done"
HOLDS = {"preStop": {"exec": {"command": ["sh", "-c", "sleep 1"]}}}


@pytest.fixture
def served() -> Iterator[Served]:
    with served_page() as page:
        yield page


def labelled(name: str, **labels: str) -> Any:
    """A Pod with a hook of a second and a drain of another."""
    made: dict[str, Any] = pod(name, container("app", DRAINS))
    made["metadata"]["labels"] = labels
    made["spec"]["containers"][0]["lifecycle"] = HOLDS
    made["spec"]["terminationGracePeriodSeconds"] = 8
    return made


@pytest.mark.core
async def test_a_pod_s_end_is_shown_while_it_happens_and_can_be_looked_at_again(
    served: Served, browser: Browser, tmp_path: Path
) -> None:
    served.create(labelled("web", app="web"), labelled("db", app="db"))
    page = await browser.open(served.link())
    assert not await page.eval("location.search"), "the token is not left in the address"
    await seen(page, "document.querySelectorAll('.cell.wide.ready').length === 2")
    await assert_good(page)
    await write(page, "#labels", "app in (web,other)")
    await seen(page, "document.querySelectorAll('.cell.wide').length === 1")
    await write(page, "#labels", "")
    await seen(page, "document.querySelectorAll('.cell.wide').length === 2")
    await page.screenshot(tmp_path / "overview.png")

    await choose(page, "web")
    await seen(page, "document.querySelector('.coming')")
    assert "SIGKILL" in await page.eval("document.querySelector('.coming').innerText")
    kill = "[...document.querySelectorAll('.coming li')].find(e => /SIGKILL/.test(e.innerText)).innerText"
    await seen(page, f"/between 8.00 s and 10.0 s/.test({kill})")
    await write(page, "#grace", "6")
    await seen(page, f"/between 6.00 s and 8.00 s/.test({kill})")
    assert "with a grace period of 6 s" in await page.eval("document.querySelector('.coming h2').innerText")
    command = "document.querySelector('.act code').innerText"
    await seen(page, f"{command} === 'kubectl delete pod web -n default --grace-period=6'")
    await assert_good(page)
    await page.eval("document.querySelector('#delete').click()")
    await seen(page, "document.querySelector('.bar.b-preStop.open')")
    await seen(page, "document.querySelector('.predicted.p-kill rect')")
    foretold = "[...document.querySelectorAll('.foretold-label')].map(e => e.textContent)"
    assert "SIGTERM?" not in await page.eval(foretold), "the Pod does not say which signal it will be"
    await page.screenshot(tmp_path / "ending.png")
    await seen(page, f"/SIGTERM/.test({TEXT})")
    await seen(page, "document.querySelector('.bar.b-drain')")
    await seen(page, "document.querySelector('.state .tag')?.innerText === 'gone'")
    await seen(page, f"/ended gracefully/.test({TEXT})")
    await seen(page, f"/draining/.test({TEXT})")

    assert await page.eval(OVERLAPS) == []
    await write(page, "#scrub", "0.5")  # half a second after the DELETE the signal had not come
    await seen(page, "document.querySelector('#clock').innerText === '0.500 s'")
    assert not await page.eval("[...document.querySelectorAll('.step')].some(e => /SIGTERM/.test(e.innerText))")
    await page.eval("document.querySelector('#speed').value = '0.2'")
    await page.eval("document.querySelector('#play').click()")
    await seen(page, "parseFloat(document.querySelector('#clock').innerText) > 1")
    await page.eval("document.querySelector('#pause').click()")
    await seen(page, "document.querySelector('#pause[aria-pressed=false]')")
    await seen(page, "[...document.querySelectorAll('.step')].some(e => /SIGTERM/.test(e.innerText))")
    await page.eval(
        "[...document.querySelectorAll('.step')].find(e => /sees deletionTimestamp/.test(e.innerText)).click()"
    )
    await seen(page, "document.querySelector('.cause') && document.querySelector('.about code')")
    assert ".go:" in await page.eval(TEXT)
    await assert_good(page)

    export = await page.eval(
        "fetch(document.querySelector('a[download]').href).then(async r => [r.status, await r.text()])"
    )
    assert export[0] == 200 and "web ended gracefully" in export[1]
    await page.eval("location.hash = '#/ends'")
    await seen(page, "document.querySelectorAll('tbody tr').length === 1")
    await write(page, "#search", "nobody")
    await seen(page, "!document.querySelector('tbody')")
    await write(page, "#search", "web graceful")
    await seen(page, "document.querySelectorAll('tbody tr').length === 1")
    await assert_good(page)


async def test_facts_logs_events_and_a_shell_of_a_pod_and_what_ends_it(served: Served, browser: Browser) -> None:
    served.create(labelled("web", app="web"))
    page = await browser.open(served.link(), dark=True, reduced_motion=True)
    await seen(page, "document.querySelectorAll('.cell.wide.ready').length === 1")
    await choose(page, "web")
    for tab, words in (("events", "Started"), ("logs", "up"), ("yaml", "kind: Pod"), ("describe", "app=web")):
        await seen(page, f"document.querySelector('#tab-{tab}')")
        await page.eval(f"document.querySelector('#tab-{tab}').click()")
        await seen(page, f"document.querySelector('#panel').innerText.includes('{words}')")
        await assert_good(page)
    await page.eval("document.querySelector('#tab-terminal').click()")
    await seen(page, "document.querySelector('#panel select')?.value === 'app'")
    await page.eval("document.querySelector('#shell').click()")
    await seen(page, "document.querySelector('#line')")
    await write(page, "#line", "echo $((40+2))")
    await page.eval("document.querySelector('#panel form').requestSubmit()")
    await seen(page, "/\\n42\\n/.test(document.querySelector('#panel pre').innerText)")
    await assert_good(page)
    await page.eval("document.querySelector('#evict').click()")
    await seen(page, "document.querySelector('.cell, .act [role=status]')?.innerText.includes('Evict')")
    await seen(page, "/preStop/.test(document.querySelector('.steps').innerText)")
    await page.eval("document.querySelector('.choice input').click()")
    await page.eval("document.querySelector('#force').click()")
    await seen(page, "document.querySelector('.state .tag')?.innerText === 'gone'")


def seldom_seen() -> list[Any]:
    """Pods whose containers wait, crash, or are of another kind."""
    inits = [container("setup", "echo prepared"), container("mesh", DRAINS, restartPolicy="Always")]
    kinds = pod("kinds", container("app", DRAINS), initContainers=inits)
    crashing = pod("crashing", container("app", "echo oh; exit 7"), restartPolicy="Always")
    crashing["metadata"]["finalizers"] = ["example.com/hold"]
    return [kinds, crashing]


async def test_what_the_page_says_of_a_pod_is_what_kubectl_says(served: Served, browser: Browser) -> None:
    served.create(*seldom_seen())
    page = await browser.open(served.link())
    cell = "document.querySelector('.cell[data-pod$=\"/crashing\"]')"
    await seen(page, f"/restarts: [1-9]/.test({cell}?.innerText) && /restarts: [1-9]/.test({cell}.title)")
    await choose(page, "crashing")
    await seen(page, "document.activeElement.id === 'main'")
    await seen(page, f"/Seconds since the first record/.test({TEXT})")
    await seen(page, "document.querySelectorAll('.mark.m-exit').length > 1")
    coming = "document.querySelector('.coming')?.innerText"
    await seen(page, f"!/signal|SIGKILL/.test({coming}) && /until its finalizers are removed/.test({coming})")
    bars = "[...document.querySelectorAll('.bar.b-running')].map(e => e.getBoundingClientRect().width)"
    assert max(await page.eval(bars)) < 300, "it does not run while it waits to be restarted"
    await seen(page, "/exit code 7/.test(document.querySelector('#containers')?.innerText)")
    await assert_good(page)

    await seen(page, "parseFloat(document.querySelector('#clock').innerText) > 5")  # the next run is at 10 s
    served.kubectl("delete", "pod", "crashing", "--wait=false")
    await seen(page, "document.querySelector('.state .tag')?.innerText === 'held by finalizers'")
    await seen(page, f"/until its finalizers are removed/.test({coming})")
    await seen(page, "[...document.querySelectorAll('.mark-label')].some(e => /exit 7 .-[0-9]/.test(e.textContent))")
    assert -1 <= float(await page.eval("document.querySelector('#scrub').min")) < 0, "the end has room on the axis"
    await assert_good(page)
    served.kubectl("patch", "pod", "crashing", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    await seen(page, "document.querySelector('.state .tag')?.innerText === 'gone'")
    await seen(page, "document.title.startsWith('crashing')")

    await page.eval("location.hash = '#/'")
    await choose(page, "kinds")
    await seen(page, "document.querySelector('.facts')?.innerText.includes('2/2')")
    await seen(page, "document.querySelector('.bar.b-running.open')")
    await seen(page, f"/mesh: stop signal .between 0.000 s and 5.00 s/.test({coming})")
    await page.eval("document.querySelector('#tab-logs').click()")
    await seen(page, "document.querySelectorAll('#panel option').length === 3 && document.querySelector('#panel pre')")
    chooses = "e.value = 'setup'; e.dispatchEvent(new Event('change', {bubbles: true}))"
    await page.eval(f"(e => {{ {chooses} }})(document.querySelector('#panel select'))")
    await seen(page, "document.querySelector('#panel pre')?.innerText.includes('prepared')")
    await page.eval("document.querySelector('#delete').click()")
    await seen(page, f"/object removed from the store/.test({TEXT})")
    await seen(page, "document.querySelector('.bar.b-waiting')")
    await assert_good(page)


def batch_work() -> list[Any]:
    """In a namespace of its own: a Job that has one of its two completions to go, and a CronJob that is suspended."""
    template = {"spec": {"restartPolicy": "Never", "containers": [container("app", "exit 0")]}}
    job = {"template": template, "completions": 2, "parallelism": 1}
    cron = {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": {"template": template}}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "batch"}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "fill", "namespace": "batch"}, "spec": job},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": "batch"},
         "spec": cron},
    ]  # fmt: skip


async def test_one_namespace_is_shown_with_its_jobs_and_cronjobs(served: Served, browser: Browser) -> None:
    served.create(labelled("web", app="web"), *batch_work())
    page = await browser.open(served.link())
    own = "document.querySelector('[data-workload=\"{}/batch/{}\"]')?.innerText"
    job, cron = own.format("Job", "fill"), own.format("CronJob", "nightly")
    await seen(page, f"/2 of 2 completed/.test({job}) && /Complete$/.test({job})")
    await seen(page, f"/0 3 \\* \\* \\*/.test({cron}) && /0 active/.test({cron}) && /suspended/.test({cron})")
    cells = "document.querySelectorAll('.cells .cell').length"
    await seen(page, f"{cells} === 3")
    await assert_good(page)
    turn = "(v => { const e = document.querySelector('#namespace'); e.value = v;"
    turn += " e.dispatchEvent(new Event('change', {bubbles: true})) })"
    await page.eval(f"{turn}('batch')")
    await seen(
        page, f"{cells} === 2 && document.querySelectorAll('.cell.succeeded[data-pod^=\"batch/\"]').length === 2"
    )
    await assert_good(page)
    await page.eval(f"{turn}('default')")
    await seen(page, f"{cells} === 1 && !document.querySelector('[data-workload]')")
    served.kubectl("delete", "pod", "web", "--grace-period=1")
    await seen(page, f"{cells} === 0 && document.querySelector('#namespace').value === 'default'")
    assert "No Pod matches" in await page.eval(TEXT)
    await page.eval(f"{turn}('')")
    await seen(page, f"{cells} === 2 && document.querySelectorAll('[data-workload]').length === 2")


async def test_a_pod_that_is_chosen_at_once_is_followed(served: Served, browser: Browser) -> None:
    """An answer about the filter that comes late does not take it away."""
    served.create(labelled("web", app="web"))
    page = await browser.open(served.link())
    await choose(page, "web")
    await seen(page, "document.querySelector('.lanes')")
    late = "(...a) => { asked_++; return new Promise(r => setTimeout(r, 900)).then(() => fetch_(...a)) }"
    await page.eval(f"window.asked_ = 0; window.fetch_ = fetch; fetch = {late}; 1")
    await page.eval("location.hash = '#/'")
    await seen(page, "document.querySelector('#labels')")
    await write(page, "#labels", "app")
    await seen(page, "asked_ > 0")
    await choose(page, "web")
    await page.eval("new Promise(r => setTimeout(r, 1500))")
    await seen(page, "document.querySelector('.lanes') && document.querySelector('.steps .step')")


async def test_two_browsers_see_the_same_and_a_cluster_that_is_started_again(
    served: Served, browser: Browser, tmp_path: Path
) -> None:
    served.create(labelled("web", app="web"))
    first = await browser.open(served.link())
    phone = await browser.open(served.link(), width=390, height=844, dark=True)
    for page in (first, phone):
        await seen(page, "document.querySelectorAll('.cell.wide.ready').length === 1")
        await assert_good(page)
    served.kubectl("delete", "pod", "web", "--wait=false", "--grace-period=5")
    await seen(phone, "document.querySelector('.cell.wide.terminating .ring-left')")
    await phone.screenshot(tmp_path / "phone.png")
    for page in (first, phone):
        await seen(page, "document.querySelector('.cell.wide.terminating .ring-left')")
    for page in (first, phone):
        await seen(page, "!document.querySelector('.cell.wide')")
    served.place.ok("down")
    for page in (first, phone):
        await seen(page, "document.querySelector('.banner')")
    served.facts = served.place.up()
    served.create(labelled("again"))
    for page in (first, phone):
        await seen(
            page, "!document.querySelector('.banner') && document.querySelectorAll('.cell.wide.ready').length === 1"
        )
        await assert_good(page)
    large = await browser.open(served.link(), width=640, height=450)  # 1280 by 900 at 200 %
    await seen(large, "document.querySelector('.cell.wide')")
    await choose(large, "again")
    await seen(large, "document.querySelector('.lanes')")
    served.kubectl("delete", "pod", "again", "--wait=false")
    for moment in ("preStop", "drain"):
        await seen(large, f"document.querySelector('.bar.b-{moment}')")
        assert await large.eval(OVERLAPS) == []
    await assert_good(large)


CLOSED = "/needs its link/.test(document.body.innerText)"


async def test_without_a_link_or_without_javascript_the_page_says_so(served: Served, browser: Browser) -> None:
    link = served.link()
    closed = await browser.open(link.partition("#")[0])
    await seen(closed, CLOSED)
    refused = await closed.eval("fetch('/api/feed').then(r => r.status)")
    assert refused == 401
    plain = await browser.open(link, javascript=False)
    names = [name for _, name in await plain.names()]
    assert any("needs JavaScript" in name for name in names)
    assert any("lastcall story POD --follow" in name for name in names)
    assert plain.errors == []
    page = await browser.open(link)
    await seen(page, "document.querySelector('.status.running')")
    used = await browser.open(link)
    await seen(used, CLOSED)
    text = (
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'set' } catch (error) { return error.name } })()"
    )
    assert await page.eval(text) == "TypeError"  # Trusted Types


async def test_two_thousand_pods_stay_smooth_while_two_hundred_end(served: Served, browser: Browser) -> None:
    """Pods that no node has: the page draws what the API says. The figures stand in docs/ui.md."""
    waiting = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}", "finalizers": ["example.com/hold"]},
         "spec": {"schedulerName": "nobody", "containers": [{"name": "app", "image": "busybox"}]}}
        for number in range(2000)
    ]  # fmt: skip
    served.create(*waiting)
    page = await browser.open(served.link())
    await seen(page, "document.querySelectorAll('.cells .cell.small').length === 2000")
    await page.eval(
        "window.frames_ = []; (function next(before) { requestAnimationFrame(now => {"
        " if (before) frames_.push(now - before); next(now); }) })(0)"
    )
    began = time.monotonic()
    served.kubectl("delete", "pod", "--wait=false", *[f"p{number}" for number in range(200)])
    await seen(page, "document.querySelectorAll('.cells .cell.terminating').length === 200")
    frames = sorted(await page.eval("frames_"))
    print(f"{len(frames)} frames in {time.monotonic() - began:.1f} s, p95 {frames[int(len(frames) * 0.95)]:.1f} ms")
    served.kubectl("patch", "pod", "p0", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    await seen(page, "document.querySelectorAll('.cells .cell.small').length === 1999")
    assert page.errors == []
