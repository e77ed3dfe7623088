"""What the live page costs, and how smooth it is: `python -m bench page WHAT [--pods 500]`, WHAT one of:

cost     CPU of the cluster's processes with `--pods` real Pods, without a page and with one open in a browser, in
         turns: while nothing happens, and while a Pod is deleted each second; it says how many a second were. It
         measures for three minutes after the Pods run, and says on stderr what it does
frames   frame times in the browser while 200 of `--pods` real Pods end; of what runs after `--minutes`, where a
         machine cannot start as many in that time
replayed the same with copies of one real Pod, of which 200 end in 20 s with its records: the CPU is the browser's
history  the page of a cluster of which 500 ends, 120 records each, are remembered, after ten times as many have come:
         how long it takes to absorb, to load, to search, and what it holds in memory
steps    from the record of a Pod's SIGTERM until its step is in the page: of 20 Pods, one after the other

The browser is Debian's chromium, driven by `tests/support/browser.py`. Prints Markdown.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from bench.figures import cpu_seconds, machine
from bench.page_frames import CELLS, EndingPods, Nobody, at_share, measured
from lastcall.kube.cluster.control.socket import ControlClient
from lastcall.records.keep import MAX_PODS
from lastcall.records.record import Record
from lastcall.ui.entrance import Entrance
from lastcall.ui.server import PageServer
from lastcall.ui.source import NoMore, Opened, Source
from lastcall.ui.watching import Watching
from lastcall.world.world import World

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from browser import Browser, BrowserProcess, Page

LASTCALL = [sys.executable, "-m", "lastcall.cli.main"]
NAME = "page-bench"
LIVES = "trap 'exit 0' TERM; sleep 86400 & wait"
RECORDS = 120
ROUNDS, SECONDS = 3, 15.0
PORTION = 100
"""Pods that are created at once; the next ones come when half of them run."""


class Cluster:
    """`lastcall up`, in a home of its own, with so many Pods that run."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.environment = {**os.environ, "XDG_STATE_HOME": f"{home}/state", "XDG_DATA_HOME": f"{home}/data"}
        os.environ["XDG_STATE_HOME"] = f"{home}/state"

    def start(self, pods: int, minutes: float) -> None:
        """Start it, and so many Pods as run in that time."""
        nodes = max(1, -(-pods // 200))
        up = ("up", "--detach", "--name", NAME, "--nodes", str(nodes), "--max-pods", "250", "--timeout", "300")
        facts = json.loads(self.run(*LASTCALL, *up, "-o", "json"))
        self.kubectl = ("kubectl", "--kubeconfig", facts["kubeconfig"], "--cache-dir", f"{self.home}/kubectl")
        began, before = time.monotonic(), self.memory()
        self.pods = self.create(pods, began + minutes * 60)
        took, each = time.monotonic() - began, (self.memory() - before) * 1024 / max(1, self.pods)
        self.started = f"{self.pods} Pods ran after {took:.0f} s; each takes {each:.0f} KiB (PSS, with its processes)"

    def run(self, *arguments: str, given: str | None = None) -> str:
        done = subprocess.run(
            arguments, env=self.environment, input=given, capture_output=True, text=True, check=False, timeout=900
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)[:200]}: {done.stderr or done.stdout}")
        return done.stdout

    def create(self, pods: int, deadline: float) -> int:
        """Create Pods, and return how many run.

        A machine starts only so many at once, and those after the deadline are not created.
        """
        made = 0
        while made < pods and time.monotonic() < deadline:
            items = [
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}"},
                 "spec": {"terminationGracePeriodSeconds": 5, "containers": [
                     {"name": "app", "image": "busybox:1.36", "command": ["sh", "-c", LIVES]}]}}
                for number in range(made, min(pods, made + PORTION))
            ]  # fmt: skip
            given = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
            self.run(*self.kubectl, "create", "-f", "-", given=given)
            made += len(items)
            while self.waiting() > (0 if made == pods else PORTION // 2):
                time.sleep(0.5)
        while self.waiting():
            time.sleep(0.5)
        return made

    def waiting(self) -> int:
        """Return how many Pods do not run yet."""
        listed = self.run(*self.kubectl, "get", "pods", "-o", "name", "--field-selector=status.phase!=Running")
        return len(listed.split())

    def delete(self, *names: str) -> None:
        self.run(*self.kubectl, "delete", "pod", "--wait=false", *names)

    def pids(self) -> dict[str, int]:
        """Return the pids by role."""
        (found,) = json.loads(self.run(*LASTCALL, "status", NAME, "-o", "json"))["clusters"]
        return {each["role"]: each["pid"] for each in found["processes"]}

    def memory(self) -> float:
        """Return the MiB of its processes and its Pods'."""
        total = 0.0
        for pid in _tree([*self.pids().values()]):
            with suppress(OSError, StopIteration):
                total += _memory(str(pid))
        return total

    def cpu(self) -> dict[str, float]:
        """Return the seconds of CPU so far, by role."""
        pids = self.pids()
        return {role: cpu_seconds(pid) for role, pid in pids.items() if "shim" not in role}

    def down(self) -> None:
        self.run(*LASTCALL, "down", NAME, "--timeout", "300")


def _tree(roots: list[int]) -> set[int]:
    """Those processes and all below them, Pods' included."""
    below: dict[int, list[int]] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            below.setdefault(int(each.read_text().rpartition(")")[2].split()[1]), []).append(int(each.parent.name))
    found, left = set[int](), [*roots]
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += below.get(pid, [])
    return found


@contextmanager
def cluster(pods: int, minutes: float = 60.0) -> Iterator[Cluster]:
    home = tempfile.mkdtemp(prefix="lastcall-page-")
    made = Cluster(home)
    try:
        made.start(pods, minutes)
        yield made
    finally:
        made.down()
        shutil.rmtree(home, ignore_errors=True)


@asynccontextmanager
async def opened(made: Cluster, browser: Browser, pods: int) -> AsyncIterator[tuple[Page, int]]:
    """Open `lastcall ui` in the browser, which shows all Pods. Yield the page and the pid of the server."""
    process = subprocess.Popen(  # noqa: ASYNC220
        [*LASTCALL, "ui", NAME], env=made.environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        link = process.stdout.readline().split()[-1]
        page = await browser.open(link)
        await page.until(f"document.querySelectorAll('.cells .cell').length >= {pods}", seconds=120)
        yield page, process.pid
    finally:
        process.terminate()
        process.wait(30)


# -- cost -------------------------------------------------------------------------------------------------------------


async def cost(pods: int) -> None:
    """Print the table of `cost`."""
    shares: dict[tuple[bool, bool], list[dict[str, float]]] = {}
    deleted, lasted = 0, 0.0

    async def measure(made: Cluster, page: int, busy: bool) -> None:
        nonlocal deleted, lasted
        before, own, began, number = made.cpu(), cpu_seconds(page) if page else 0.0, time.monotonic(), 0
        while time.monotonic() - began < SECONDS:
            if busy:
                made.delete(f"p{made.pods - 1 - deleted}")
                number, deleted = number + 1, deleted + 1
            await asyncio.sleep(max(0.0, began + number - time.monotonic()) if busy else SECONDS)
        seconds = time.monotonic() - began
        lasted += seconds if busy else 0.0
        after = made.cpu()
        used = {role: (after[role] - before[role]) / seconds * 100 for role in after}
        if page:
            used["page"] = (cpu_seconds(page) - own) / seconds * 100
        shares.setdefault((bool(page), busy), []).append(used)

    with cluster(pods) as made, BrowserProcess() as process:
        print(f"{made.started}\n", flush=True)
        async with Browser(process) as browser:
            await asyncio.sleep(10)
            for number in range(1, ROUNDS + 1):
                print(f"round {number} of {ROUNDS}: without a page", file=sys.stderr)
                for busy in (False, True):
                    await measure(made, 0, busy)
                print(f"round {number} of {ROUNDS}: with a page", file=sys.stderr)
                async with opened(made, browser, 1) as (_, pid):
                    await asyncio.sleep(5)
                    for busy in (False, True):
                        await measure(made, pid, busy)
    print(f"% of a core, median of {ROUNDS} times {SECONDS:g} s, {pods} Pods at first")
    print(f"Pods were deleted every {lasted / deleted:.2f} s: {deleted} of them\n")
    print(
        "| process | idle | idle, a page open | a Pod ends each second | the same, a page open |\n|---|---|---|---|---|"
    )
    columns = [(False, False), (True, False), (False, True), (True, True)]
    for role in [*shares[True, True][0]]:
        medians = [statistics.median([each.get(role, 0.0) for each in shares[column]]) for column in columns]
        print(f"| {role} | {' | '.join(f'{each:.1f}' for each in medians)} |")


# -- frames -----------------------------------------------------------------------------------------------------------


async def frames(pods: int, minutes: float, ends: int = 200) -> None:
    """Print the table of `frames`."""
    with cluster(pods, minutes) as made, BrowserProcess() as process:
        print(f"{made.started}\n", flush=True)
        async with Browser(process) as browser, opened(made, browser, made.pods) as (page, _):

            async def end() -> None:
                await asyncio.to_thread(made.delete, *[f"p{number}" for number in range(ends)])

            await measured(page, made.pods, ends, end)


async def replayed(pods: int, ends: int = 200) -> None:
    """Print the table of `replayed`."""
    with cluster(1) as made:
        pod = json.loads(made.run(*made.kubectl, "get", "pod", "p0", "-o", "json"))
        records = await records_of_an_end(made)
    source = EndingPods(pod, records, pods, ends)
    async with served(source) as (_, entrance):
        with BrowserProcess() as process:
            async with Browser(process) as browser:
                page = await browser.open(entrance.link)
                await page.until(f"{CELLS} === {pods}", seconds=120)
                await measured(page, pods, ends, source.end)


# -- steps ------------------------------------------------------------------------------------------------------------

STEPS = 20
SIGTERM = "/SIGTERM \\u2192/"
WATCH_FOR_STEP = (
    "window.step_ = 0; new MutationObserver((all, watch) => {"
    f" if (![...document.querySelectorAll('.steps .step')].some(each => {SIGTERM}.test(each.textContent))) return;"
    " watch.disconnect(); requestAnimationFrame(() => { step_ = Date.now() }) })"
    ".observe(document.body, {subtree: true, childList: true, characterData: true})"
)
STEP_AFTER = (
    "(story => step_ - story.zeroAt - 1000 * story.steps.find(each => "
    f"{SIGTERM}.test(each.text)).at)(lastcall['./store'].store.story)"
)
"""Milliseconds: both are times of this machine's clock."""


async def steps() -> None:
    """Print the line of `steps`."""
    found = []
    with cluster(STEPS) as made, BrowserProcess() as process:
        async with Browser(process) as browser, opened(made, browser, STEPS) as (page, _):
            for number in range(STEPS):
                name = f"default/p{number}"
                await page.eval("location.hash = '#/'")
                await page.until(f"!!document.querySelector('.cell[data-pod=\"{name}\"]')")
                await page.eval(f"document.querySelector('.cell[data-pod=\"{name}\"]').click()")
                await page.until(
                    f"document.querySelector('h1')?.innerText === '{name}' && !!document.querySelector('.step')"
                )
                await page.eval(WATCH_FOR_STEP)
                await asyncio.to_thread(made.delete, f"p{number}")
                await page.until("step_ > 0")
                found.append(float(await page.eval(STEP_AFTER)))
    found.sort()
    print(
        f"from the record of SIGTERM to its step in the page, {STEPS} Pods: median {at_share(found, 0.5)}, "
        f"{found[0]:.0f} to {found[-1]:.0f} ms"
    )


# -- history ----------------------------------------------------------------------------------------------------------


async def records_of_an_end(made: Cluster) -> list[Record]:
    """Delete the Pod p0, and return its records, once it is gone."""
    made.delete("p0")
    records: list[Record] = []
    while not any(each.kind == "PodGoneSeen" or each.kind == "WorkerFinished" for each in records):
        await asyncio.sleep(1)
        uid = next(
            each.pod_uid
            for each in [r async for r in await ControlClient(NAME).records()]
            if each.kind == "DeleteAccepted"
        )
        records = [each async for each in await ControlClient(NAME).records(pod_uid=uid)]
    return sorted(records, key=lambda each: each.at_ns)


@asynccontextmanager
async def served(source: Source) -> AsyncIterator[tuple[Watching, Entrance]]:
    """Serve a page of that source, in this process."""
    world = World()
    watching = Watching(source, world)
    task = asyncio.get_running_loop().create_task(watching.run())
    try:
        async with PageServer(watching, world.clock).listening() as entrance:
            yield watching, entrance
    finally:
        task.cancel()


class Replayed:
    """The records of one real end, again and again, as those of other Pods; the source of a page."""

    name = "replayed"

    def __init__(self, records: list[Record], ends: int) -> None:
        self._records = records
        self._ends = ends
        self._opened = False
        self.absorbed = asyncio.Event()

    async def open(self) -> Opened:
        if self._opened:
            raise NoMore
        self._opened = True
        facts = {"name": self.name, "kubernetesVersion": "1.36"}
        return Opened(facts, "1", Nobody(), self._each(), False, lambda on_object: None)  # type: ignore[arg-type]

    async def _each(self) -> AsyncIterator[Record]:
        shift = self._records[-1].at_ns - self._records[0].at_ns
        for number in range(self._ends):
            uid = f"{number:08d}-0000-4000-8000-000000000000"
            for each in self._records:
                facts = each.facts
                if "name" in facts and each.kind == "PodCreated":
                    facts = {**facts, "name": f"web-{number}"}
                moved = {"at_ns": each.at_ns + shift * (number - self._ends), "wall_ns": each.wall_ns}
                yield dataclasses.replace(each, id=f"{each.id}-{number}", pod_uid=uid, facts=facts, **moved)
            if number % 10 == 0:
                await asyncio.sleep(0)
        self.absorbed.set()
        await asyncio.Event().wait()


def _memory(pid: str = "self") -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Pss:"))) / 1024


async def history(ends: int) -> None:
    """Print the table of `history`."""
    with cluster(1) as made:
        records = await records_of_an_end(made)
    records = sorted((records * (1 + RECORDS // len(records)))[:RECORDS], key=lambda each: each.at_ns)
    records = [dataclasses.replace(each, id=f"r{number}") for number, each in enumerate(records)]
    source = Replayed(records, ends)
    before, began = _memory(), time.monotonic()
    with BrowserProcess() as process:
        async with served(source) as (watching, entrance), Browser(process) as browser:
            await source.absorbed.wait()
            absorbed = time.monotonic() - began
            kept = len(watching.ended())
            held = _memory()
            began = time.monotonic()
            page = await browser.open(f"{entrance.link}#/ends")
            rows = "document.querySelectorAll('tbody tr').length"
            await page.until(f"{rows} === {kept}", seconds=120)
            loaded = time.monotonic() - began
            searched = await page.eval(
                "(async () => { const e = document.querySelector('#search'); const t = performance.now();"
                f"e.value = 'web-{ends - 7}'; e.dispatchEvent(new Event('input', {{bubbles: true}}));"
                f"while ({rows} !== 1) await new Promise(requestAnimationFrame); return performance.now() - t; }})()"
            )
            began = time.monotonic()
            await page.eval("document.querySelector('tbody a').click()")
            await page.until("!!document.querySelector('.lanes')")
            story = time.monotonic() - began
            heap = await page.eval("performance.memory.usedJSHeapSize") / (1 << 20)
    print("| figure | value |\n|---|---|")
    print(f"| records that came, of Pods that ended | {ends * len(records)}, {ends} |")
    print(f"| until they were absorbed | {absorbed:.1f} s, {ends * len(records) / absorbed:.0f} a second |")
    print(f"| memory (PSS) of the page's process, before and after | {before:.0f} → {held:.0f} MB |")
    print(f"| the page with {kept} ends, from the link to the last row | {loaded:.2f} s |")
    print(f"| a search, until the rows are drawn | {searched:.0f} ms |")
    print(f"| a story of it, from the click to its lanes | {story * 1000:.0f} ms |")
    print(f"| the browser's JavaScript heap | {heap:.0f} MB |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cost", "frames", "history", "replayed", "steps"))
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--ends", type=int, default=10 * MAX_PODS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # `finally` removes the cluster
    print(machine(), "\n", sep="\n", flush=True)
    if options.what == "steps":
        asyncio.run(steps())
    elif options.what == "replayed":
        asyncio.run(replayed(options.pods))
    elif options.what == "history":
        asyncio.run(history(options.ends))
    else:
        asyncio.run(cost(options.pods) if options.what == "cost" else frames(options.pods, options.minutes))


if __name__ == "__main__":
    main()
