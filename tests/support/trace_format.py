"""Checks a document against the Trace Event Format, where Perfetto insists on it."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

FIELDS = {
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "B": {"name", "cat", "pid", "tid", "ts"},
    "E": {"pid", "tid", "ts"},
    "i": {"name", "cat", "pid", "tid", "ts", "s"},
    "s": {"name", "cat", "pid", "tid", "ts", "id"},
    "f": {"name", "cat", "pid", "tid", "ts", "id", "bp"},
    "M": {"name", "pid", "tid", "args"},
}
METADATA = {"process_name", "process_sort_index", "process_labels", "thread_name", "thread_sort_index"}


def trace_problems(trace: dict[str, Any]) -> Iterator[str]:
    """What is wrong, one sentence each."""
    events = trace["traceEvents"]
    timed = [event for event in events if event["ph"] != "M"]
    for event in events:
        if event["ph"] not in FIELDS:
            yield f"unknown phase {event['ph']!r}"
        elif missing := FIELDS[event["ph"]] - set(event):
            yield f"{event['ph']} {event.get('name')}: {sorted(missing)} missing"
        if not isinstance(event["pid"], int) or not isinstance(event["tid"], int):
            yield f"{event.get('name')}: pid and tid must be whole numbers"
        if event["ph"] == "M" and event["name"] not in METADATA:
            yield f"unknown metadata {event['name']}"
        if event["ph"] == "i" and event["s"] not in ("g", "p", "t"):
            yield f"unknown scope {event['s']}"
        if event["ph"] != "M" and not event["ts"] >= 0:
            yield f"{event['name']}: at {event['ts']}"
        if event["ph"] == "X" and not event["dur"] > 0:
            yield f"{event['name']}: lasts {event['dur']}"
    times = [event["ts"] for event in timed]
    if times != sorted(times):
        yield "events are not sorted by time"
    yield from _names(events, timed)
    yield from _nesting(timed)
    yield from _flows(timed)


def _names(events: list[dict[str, Any]], timed: list[dict[str, Any]]) -> Iterator[str]:
    named = [(event["name"], event["pid"], event["tid"]) for event in events if event["ph"] == "M"]
    if len(set(named)) != len(named):
        yield "metadata twice"
    for pid in {event["pid"] for event in timed}:
        if ("process_name", pid, 0) not in named:
            yield f"process {pid} has no name"
    threads = {(event["pid"], event["tid"]) for event in timed}
    if len({tid for _, tid in threads}) < len(threads):
        yield "two processes have a track of the same number"
    for pid, tid in threads:
        if ("thread_name", pid, tid) not in named:
            yield f"track {pid}/{tid} has no name"


def _nesting(timed: list[dict[str, Any]]) -> Iterator[str]:
    """Slices of a track lie beside or inside one another, never across."""
    tracks: dict[tuple[int, int], list[tuple[float, float, str]]] = defaultdict(list)
    for event in timed:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
    for track, slices in tracks.items():
        open_: list[float] = []
        for start, end, name in sorted(slices, key=lambda each: (each[0], -each[1])):
            while open_ and open_[-1] <= start + 1e-6:
                open_.pop()
            if open_ and end > open_[-1] + 1e-6:
                yield f"{name} on {track} at {start} crosses the end of another slice"
            open_.append(end)


def _flows(timed: list[dict[str, Any]]) -> Iterator[str]:
    """Every arrow has one beginning and one end, in this order, and both lie on a slice."""
    begins = {event["id"]: event for event in timed if event["ph"] == "s"}
    ends = {event["id"]: event for event in timed if event["ph"] == "f"}
    if len(begins) + len(ends) != sum(event["ph"] in "sf" for event in timed):
        yield "an id of an arrow is used twice"
    if odd := [number for number in begins if not isinstance(number, int)]:
        yield f"Perfetto reads numbers only as ids of arrows: {odd}"
    if set(begins) != set(ends):
        yield f"arrows without both ends: {sorted(set(begins) ^ set(ends), key=str)}"
    slices = {(e["pid"], e["tid"], e["ts"]) for e in timed if e["ph"] == "X"}
    for number, end in ends.items():
        begin = begins.get(number)
        if begin is None:
            continue
        if begin["ts"] > end["ts"] or timed.index(begin) > timed.index(end):
            yield f"arrow {number} runs backwards"
        for event in (begin, end):
            if (event["pid"], event["tid"], event["ts"]) not in slices:
                yield f"arrow {number} does not lie on a slice"
