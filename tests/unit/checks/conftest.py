"""Runs one rule over files that a test writes."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from checks.report import Report
from checks.source import SOURCES, Project

Check = Callable[[Project, Report], None]
Find = Callable[[Check, Mapping[str, str]], list[str]]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Return a function that writes files and returns the places that a rule reports, as `path:line`.

    Paths are below src/lastcall. Those that begin with a slash are below the project.
    """

    def run(check: Check, files: Mapping[str, str]) -> list[str]:
        for name, text in files.items():
            path = tmp_path / name[1:] if name.startswith("/") else tmp_path / SOURCES / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        report = Report()
        check(Project.read(tmp_path), report)
        return [f"{path.removeprefix(SOURCES + '/')}:{line}" for path, line, _ in sorted(report.violations)]

    return run
