"""Decide which tests belong to which tier, by where they are and by the time that each one took.

A pure test computes: rules, tables, whole clusters in virtual time. Its time is in CPU seconds. A test marked
`loopback` uses sockets, processes or real sleeps, and is otherwise small. A test of the kernel makes namespaces, Pods
and clusters. The time of the last two is in seconds by the clock.
"""

import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

KINDS = PURE, LOOPBACK, KERNEL = "pure", "loopback", "kernel"
"""The kinds of tests."""

SMALL = ("tests/unit/", "tests/scenarios/", "tests/fuzz/", "tests/pains/test_harness.py", "tests/pains/test_light.py")
"""Where tests are that need no kernel."""

LISTED = 0.1
"""Tests below this time (seconds) are not listed one by one in the file of times; they are added up. So are tests of
the kernel that are not marked `core`: no tier chooses among them."""

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
    """A test that needs no kernel is left out if it takes longer (seconds)."""
    loopback: bool
    one_of_the_slow: bool
    """The quickest of the tests that are too slow stays, in each file that has such."""
    kernel: str
    """`none`, `core` (those marked `core`) or `all`."""
    other_pythons: str = ""
    """The tier whose pure tests also run on each other supported Python. Empty: on none."""

    def at_once(self, kind: str, cores: int) -> int:
        """Return how many processes run tests of this kind at once.

        Tests of the kernel wait for half of their time. The tier with all of them has one more than there are cores.
        """
        return cores + 1 if kind == KERNEL and self.kernel == "all" else cores


TIERS = {
    tier.name: tier
    for tier in (
        Tier("fast", 0.2, False, False, "none"),
        Tier("main", 1.0, True, True, "core"),
        Tier("all", inf, True, True, "all", other_pythons="main"),
    )
}


def kind(path: str, loopback: bool) -> str:
    """Return the kind of a test in the file at this path below the project; `loopback`: it is marked so."""
    if not path.startswith(SMALL):
        return KERNEL
    return LOOPBACK if loopback else PURE


def may_have(tier: Tier, kind: str, path: str, text: str) -> bool:
    """Return True if the file at this path, with this content, may have tests of this kind that the tier runs."""
    small = path.startswith(SMALL)
    if kind == KERNEL:
        return not small and (tier.kernel == "all" or (tier.kernel == "core" and "mark.core" in text))
    if kind == LOOPBACK:
        return small and tier.loopback and "mark.loopback" in text
    return small


def chosen(tier: Tier, names: Iterable[str], times: FileTimes) -> set[str]:
    """Return those of a file's tests (names below it) that are quick enough for the tier; one without a time is."""
    names = list(names)
    slow = sorted((times.get(name, 0.0), name) for name in names if times.get(name, 0.0) > tier.slowest)
    left_out = {name for _, name in (slow[1:] if tier.one_of_the_slow else slow)}
    return {name for name in names if name not in left_out}


def time_of(times: Times, test: str) -> float:
    """Return the recorded time of a test by its node id, in seconds; 0 if it is not listed."""
    path, _, name = test.partition("::")
    return times.get(path, {}).get(name, 0.0)


def expected(tier: Tier, path: str, times: Times) -> float:
    """Return how many seconds a file is expected to take in this tier. Without times: 1, on the kernel 20."""
    own = times.get(path)
    if own is None:
        return 1.0 if path.startswith(SMALL) else 20.0
    if not path.startswith(SMALL):
        return sum(own.values()) - (0.0 if tier.kernel == "all" else own.get(REST, 0.0))
    kept = chosen(tier, [name for name in own if name != REST], own)
    return own.get(REST, 0.0) + sum(own[name] for name in kept)


def read_times(path: Path) -> dict[str, dict[str, float]]:
    """Read the file of times; an absent file has none."""
    try:
        return dict(json.loads(path.read_text()))
    except FileNotFoundError:
        return {}


def with_new_times(
    times: Times, measured: Mapping[str, float], added_up: Container[str] = ()
) -> dict[str, dict[str, float]]:
    """Return the times with those of the files that were measured whole replaced.

    `measured` maps node ids (`tests/a.py::test_b[c]`) to seconds; those in `added_up` are not listed.
    """
    files: dict[str, dict[str, float]] = {}
    for node_id, seconds in measured.items():
        path, _, name = node_id.partition("::")
        own = files.setdefault(path, {REST: 0.0})
        if seconds < LISTED or node_id in added_up:
            own[REST] += seconds
        else:
            own[name] = seconds
    rounded = {path: {name: round(own[name], 2) for name in sorted(own)} for path, own in files.items()}
    merged = {path: dict(own) for path, own in times.items()} | rounded
    return {path: merged[path] for path in sorted(merged)}


def as_text(times: Times) -> str:
    """Return the file of times: a line for each test that is listed, so that a change is a small one."""
    return json.dumps(times, indent=0, ensure_ascii=False) + "\n"
