"""Unit tests are where their subject is: a folder of tests has the name of a package, a module or a tool."""

from pathlib import Path

from checks.report import Report
from checks.source import SOURCES, Project

TESTS = "tests/unit"
OTHERS = ("tools", ".")
"""Where else a folder of tests may have its subject: programs for the project itself, and `bench`."""


def mirror(project: Project, report: Report) -> None:
    """Check that each folder with unit tests has the path of what they test."""
    for folder in sorted({path.parent for path in (project.root / TESTS).rglob("test_*.py")}):
        name = folder.relative_to(project.root / TESTS)
        report.looked_at += 1
        if not any(_exists(project.root / top / name) for top in (SOURCES, *OTHERS)):
            text = f"{SOURCES}/{name.as_posix()} does not exist; move the tests to the folder of the package they test"
            report.wrong(min(folder.glob("test_*.py")).relative_to(project.root).as_posix(), 1, text)


def _exists(path: Path) -> bool:
    return path.is_dir() or path.with_name(f"{path.name}.py").is_file()
