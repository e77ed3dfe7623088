"""Run inside pytest: leave out what the tier does not run, and write each result to a file at once.

`-p testrun.plugin --tier=main --test-log=FILE`. The runner reads the file (`outcomes.py`).
"""

import json
import os
import resource
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

from testrun import tiers
from testrun.heartbeat import Heartbeat


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", default="all", choices=list(tiers.TIERS), help="Run the tests of this tier.")
    parser.addoption("--kind", default="", choices=["", *tiers.KINDS], help="Run only tests of this kind.")
    parser.addoption("--test-log", default="", help="Write each result to this file, a JSON object a line.")


def _cpu() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(each.ru_utime + each.ru_stime for each in both)


def _kind(item: pytest.Item) -> str:
    return tiers.kind(item.nodeid, item.get_closest_marker("loopback") is not None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = tiers.TIERS[config.getoption("--tier")]
    only = config.getoption("--kind")
    times = tiers.read_times(config.rootpath / "tests/times.json")
    names: dict[str, list[str]] = defaultdict(list)
    for item in items:
        path, _, name = item.nodeid.partition("::")
        names[path].append(name)
    quick = {path: tiers.chosen(tier, own, times.get(path, {})) for path, own in names.items()}

    def runs(item: pytest.Item) -> bool:
        path, _, name = item.nodeid.partition("::")
        kind = _kind(item)
        if only not in ("", kind):
            return False
        if kind == tiers.KERNEL:
            return tier.kernel == "all" or (tier.kernel == "core" and item.get_closest_marker("core") is not None)
        return name in quick[path] and (kind == tiers.PURE or tier.loopback)

    others = [item for item in items if not runs(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if runs(item)]


class Results:
    """Writes the log. One process writes it: with pytest-xdist the one that hands out the tests."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._parts: dict[str, list[pytest.TestReport]] = defaultdict(list)

    def _write(self, entry: dict[str, Any]) -> None:
        with open(self._path, "a") as file:
            file.write(json.dumps(entry) + "\n")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._write({"selected": [item.nodeid for item in session.items], "cpu": round(_cpu(), 2)})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write({"error": f"{report.nodeid}: {_why(report)}"})

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write({"started": nodeid})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        parts = self._parts[report.nodeid]
        parts.append(report)
        crashed = report.when not in ("setup", "call", "teardown")  # pytest-xdist about a worker that died
        if report.when == "teardown" or crashed:
            self._write(_outcome(report.nodeid, self._parts.pop(report.nodeid), crashed))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
            self._write({"finished": True})


def _outcome(test: str, parts: list[pytest.TestReport], crashed: bool) -> dict[str, Any]:
    failed = [part for part in parts if part.failed]
    skipped = [part for part in parts if part.skipped]
    why = "\n".join(f"({part.when}) {_why(part)}" for part in failed) or "".join(_skipped(part) for part in skipped)
    return {
        "test": test,
        "result": "failed" if failed else "skipped" if skipped else "passed",
        "seconds": round(sum(part.duration for part in parts), 3),
        "cpu": round(sum(getattr(part, "cpu", 0.0) for part in parts), 3),
        "why": why,
        "core": any(getattr(part, "core", False) for part in parts),
        "pure": any(getattr(part, "pure", False) for part in parts),
        "stall": round(max((getattr(part, "stall", 0.0) for part in parts), default=0.0), 2),
        "proof": bool(failed) and (crashed or any(getattr(part, "proof", False) for part in parts) or _hung(why)),
    }


def _hung(why: str) -> bool:
    return "Timeout (>" in why or "Timeout >" in why


def _why(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return what failed: pytest's own text, shortened in the middle."""
    lines = [line[:400] for line in str(report.longrepr).splitlines()]
    left_out = len(lines) - 120
    return "\n".join([*lines[:50], f"… {left_out} lines …", *lines[-70:]] if left_out > 0 else lines)


def _skipped(report: pytest.TestReport) -> str:
    return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[_STARTED] = _cpu()
    item.config.stash[_HEARTBEAT].reset()
    return (yield)


_STARTED = pytest.StashKey[float]()
_HEARTBEAT = pytest.StashKey[Heartbeat]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the CPU time, and whether one failure is proof. With CI=true a skipped test of the kernel is a failure."""
    report = yield
    now = _cpu()
    extra: Any = report  # attributes of a report travel with it, also from a worker of pytest-xdist
    extra.cpu = now - item.stash[_STARTED]
    item.stash[_STARTED] = now
    extra.pure = _kind(item) == tiers.PURE
    extra.core = item.get_closest_marker("core") is not None
    extra.stall = item.config.stash[_HEARTBEAT].longest
    error = call.excinfo.value if call.excinfo else None
    extra.proof = item.get_closest_marker("proof") is not None or getattr(error, "proof", False)
    skipped = report.skipped and not hasattr(report, "wasxfail")
    if skipped and item.get_closest_marker("real_kernel") and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"With CI=true a test of the kernel is not skipped: {_skipped(report)}"
    return report


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_HEARTBEAT] = Heartbeat()
    if config.getoption("--kind") != tiers.PURE:  # a test that computes holds the interpreter for long
        config.stash[_HEARTBEAT].start()
    path = config.getoption("--test-log")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(path))
