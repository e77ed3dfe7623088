"""Decide which tests belong to which tier, by where they are and by the time that each one took.

A pure test computes: rules, tables, whole clusters in virtual time. Its time is in CPU seconds.
Every other test uses the real kernel and real time; its time is seconds by the clock.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

PURE = ("tests/unit/", "tests/scenarios/", "tests/fuzz/", "tests/pains/test_harness.py", "tests/pains/test_light.py")

LISTED = 0.1
"""Tests below this time (seconds) are not listed one by one in the file of times; they are added up."""

REST = ""
"""The key of that sum."""

FileTimes = Mapping[str, float]
"""The name of a test below its file (`test_a[b]`), or `REST`, and its time in seconds."""

Times = Mapping[str, FileTimes]
"""The path of a test file below the project, and the times of its tests."""


@dataclass(frozen=True)
class Tier:
    """A set of tests with one purpose."""

    name: str
    slowest: float
    """A pure test above this time (CPU seconds) is left out."""
    one_of_the_slow: bool
    """The quickest of the tests that are too slow stays, in each file that has such."""
    kernel: str
    """`none`, `core` (those marked `core`) or `all`."""
    all_pythons: bool = False
    """The pure tests run on each supported Python, not on one."""


TIERS = {
    tier.name: tier
    for tier in (
        Tier("fast", 0.2, False, "none"),
        Tier("main", 1.0, True, "core"),
        Tier("all", inf, True, "all", all_pythons=True),
    )
}


def is_pure(path: str) -> bool:
    """Return True if the test, or the test file, at this path below the project computes only."""
    return path.startswith(PURE)


def chosen(tier: Tier, names: Iterable[str], times: FileTimes) -> set[str]:
    """Return those of a pure file's tests (names below the file) that the tier runs. A test without a time is quick."""
    names = list(names)
    slow = sorted((times.get(name, 0.0), name) for name in names if times.get(name, 0.0) > tier.slowest)
    left_out = {name for _, name in (slow[1:] if tier.one_of_the_slow else slow)}
    return {name for name in names if name not in left_out}


def expected(tier: Tier, path: str, times: Times) -> float:
    """Return how long a file is expected to take in this tier, in seconds; 1 for a file without times."""
    own = times.get(path)
    if own is None:
        return 1.0
    if not is_pure(path):
        return sum(own.values())
    kept = chosen(tier, [name for name in own if name != REST], own)
    return own.get(REST, 0.0) + sum(own[name] for name in kept)


def read_times(path: Path) -> dict[str, dict[str, float]]:
    """Read the file of times; an absent file has none."""
    try:
        return dict(json.loads(path.read_text()))
    except FileNotFoundError:
        return {}


def with_new_times(times: Times, measured: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the times with those of the files that were measured whole replaced.

    `measured` maps node ids (`tests/a.py::test_b[c]`) to seconds.
    """
    files: dict[str, dict[str, float]] = {}
    for node_id, seconds in measured.items():
        path, _, name = node_id.partition("::")
        own = files.setdefault(path, {REST: 0.0})
        if seconds < LISTED:
            own[REST] += seconds
        else:
            own[name] = seconds
    rounded = {path: {name: round(own[name], 2) for name in sorted(own)} for path, own in files.items()}
    merged = {path: dict(own) for path, own in times.items()} | rounded
    return {path: merged[path] for path in sorted(merged)}


def as_text(times: Times) -> str:
    """Return the file of times: a line for each test that is listed, so that a change is a small one."""
    return json.dumps(times, indent=0, ensure_ascii=False) + "\n"
