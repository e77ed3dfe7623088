"""The rule that a sleep in a test says why (tools/checks/sleeps.py)."""

from pathlib import Path

import pytest
from checks.report import Report
from checks.sleeps import sleeps
from checks.source import Project


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("time.sleep(1)\n", [2]),
        ("asyncio.sleep(0.1)\n", [2]),
        ("time.sleep(1)  # a server that hangs\n", []),
        ("# A server that hangs.\ntime.sleep(1)\n", []),
        ("asyncio.sleep(0)\n", []),
        ("other.sleep(1)\n", []),
    ],
)
def test_a_sleep_needs_its_reason_beside_it(tmp_path: Path, code: str, wrong: list[int]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text("import asyncio, time\n" + code)
    report = Report()
    sleeps(Project.read(tmp_path), report)
    assert [each.line for each in report.violations] == wrong
