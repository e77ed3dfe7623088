"""The frames of the live page: how far apart they are, and what script and layout of each take."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lastcall.kube.api import NODES, PODS
from lastcall.records.record import Record
from lastcall.ui.source import NoMore, ObjectHandler, Opened

if TYPE_CHECKING:
    from browser import Page

CELLS = "document.querySelectorAll('.cells .cell').length"
MARK = "bench-frame"
FRAMES = (
    "window.frames_ = []; (function next(before) { requestAnimationFrame(now => {"
    f" performance.mark('{MARK}'); performance.clearMarks();"
    " if (before) frames_.push(now - before); next(now); }) })(0)"
)
SCRIPT = ("EvaluateScript", "EventDispatch", "FireAnimationFrame", "FunctionCall", "RunMicrotasks", "TimerFire")
WORK = frozenset((*SCRIPT, "Layout", "UpdateLayoutTree"))
"""Events of a trace that are script, style or layout."""
PODS_OF_A_NODE = 200
ENDS_A_SECOND = 10


async def measured(page: Page, pods: int, ends: int, end: Callable[[], Awaitable[object]]) -> None:
    """Print the table of a page that shows `pods` Pods, of which `ends` end when `end` is called."""
    await page.eval(FRAMES)
    await page.trace("devtools.timeline", "blink.user_timing")
    await asyncio.sleep(5)
    rows = [("nothing happens", await page.eval("frames_.splice(0)"), work(await page.traced()))]
    await page.trace("devtools.timeline", "blink.user_timing")
    began = time.monotonic()
    await end()
    await page.until(f"{CELLS} === {pods - ends}", seconds=300)
    took = time.monotonic() - began
    rows.append((f"{ends} of {pods} Pods end, in {took:.1f} s", await page.eval("frames_"), work(await page.traced())))
    print("| | frames | apart: p50 | p95 | longest | script and layout, CPU: p50 | p95 | longest |")
    print("|---|---|---|---|---|---|---|---|")
    for name, apart, busy in rows:
        columns = [f"{at_share(those, 0.5)} | {at_share(those, 0.95)} | {max(those):.1f} ms" for those in (apart, busy)]
        print(f"| {name} | {len(apart)} | {columns[0]} | {columns[1]} |")


def at_share(values: list[float], share: float) -> str:
    return f"{sorted(values)[min(len(values) - 1, int(len(values) * share))]:.1f} ms"


def work(trace: list[dict[str, Any]]) -> list[float]:
    """Return the milliseconds of CPU of script, style and layout in each frame: from its mark to the next one."""
    marks = sorted((each["ts"], each["pid"], each["tid"]) for each in trace if each["name"] == MARK)
    threads = {each[1:] for each in marks}
    starts = [each[0] for each in marks]
    found = [0.0] * max(0, len(starts) - 1)
    over = 0.0
    for each in sorted(
        (each for each in trace if _is_work(each, threads)), key=lambda each: (each["ts"], -each["dur"])
    ):
        if each["ts"] < over:
            continue  # within the one that called it
        over = each["ts"] + each["dur"]
        at = bisect_right(starts, each["ts"]) - 1
        if 0 <= at < len(found):
            found[at] += each.get("tdur", each["dur"]) / 1000
    return found


def _is_work(event: dict[str, Any], threads: set[tuple[int, int]]) -> bool:
    return event["name"] in WORK and event["ph"] == "X" and (event["pid"], event["tid"]) in threads


class EndingPods:
    """The source of a page with copies of one Pod; when `end` is called, some of them end as that one did."""

    name = "replayed"

    def __init__(self, pod: dict[str, Any], records: list[Record], pods: int, ends: int) -> None:
        self._pods = [_copy(pod, number) for number in range(pods)]
        self._zero = next(each.at_ns for each in records if each.kind == "DeleteAccepted")
        self._records, self._ends = [each for each in records if each.at_ns >= self._zero], ends
        self._on_object: ObjectHandler | None = None
        self._begun, self._opened = asyncio.Event(), False

    async def open(self) -> Opened:
        if self._opened:
            raise NoMore
        self._opened = True
        facts = {"name": self.name, "kubernetesVersion": "1.36"}
        return Opened(facts, "1", Nobody(), self._each(), False, self._watch)  # type: ignore[arg-type]

    async def end(self) -> None:
        self._begun.set()

    def _watch(self, on_object: ObjectHandler) -> None:
        self._on_object = on_object
        for name in sorted({each["spec"]["nodeName"] for each in self._pods}):
            conditions = [{"type": "Ready", "status": "True"}]
            on_object(NODES, "ADDED", {"metadata": {"name": name, "uid": name}, "status": {"conditions": conditions}})
        for each in self._pods:
            on_object(PODS, "ADDED", each)

    async def _each(self) -> AsyncIterator[Record]:
        await self._begun.wait()
        assert self._on_object is not None
        began, wall = time.monotonic_ns(), time.time_ns()
        due = [
            (each.at_ns - self._zero + number * 1_000_000_000 // ENDS_A_SECOND, number, each)
            for number in range(self._ends)
            for each in self._records
        ]
        for after, number, record in sorted(due, key=lambda each: each[:2]):
            await asyncio.sleep(max(0, began + after - time.monotonic_ns()) / 1e9)
            pod = self._pods[number]
            if record.kind == "DeleteAccepted":
                self._on_object(PODS, "MODIFIED", _deleted(pod))
            at = {"at_ns": began + after, "wall_ns": wall + after}
            yield dataclasses.replace(record, id=f"{record.id}-{number}", pod_uid=pod["metadata"]["uid"], **at)
            if record is self._records[-1]:
                self._on_object(PODS, "DELETED", pod)
        await asyncio.Event().wait()


def _copy(pod: dict[str, Any], number: int) -> dict[str, Any]:
    meta = {**pod["metadata"], "name": f"p{number}", "uid": f"{number:08d}-0000-4000-8000-000000000000"}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": f"node-{number // PODS_OF_A_NODE + 1}"}}


def _deleted(pod: dict[str, Any]) -> dict[str, Any]:
    grace = pod["spec"]["terminationGracePeriodSeconds"]
    at = datetime.fromtimestamp(time.time() + grace, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": at, "deletionGracePeriodSeconds": grace}}


class Nobody:
    """The client of a page without a cluster."""

    async def close(self) -> None:
        return None
