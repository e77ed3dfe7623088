"""Documents: the paths that they name exist, and their links lead somewhere."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from checks.report import Report
from checks.source import Project

WITH_CODE = ("src", "tests", "bench", "tools")
WITH_FOLDERS = (*WITH_CODE, "docs")
ON_A_HOST = "/durable/"
"""A folder of a state directory that documents name."""
PATH = re.compile(r"`((?:[\w.-]+/)*[\w-]+(?:\.py|/))(?::\w+(?:\.\w+)?)?`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def paths(project: Project, report: Report) -> None:
    """Check that each file and folder that the documents for contributors name exists."""
    root = project.root
    pages = [root / "ARCHITECTURE.md", *sorted((root / "docs").glob("architecture/*.md"))]
    pages += sorted((root / "docs").glob("contributing/*.md"))
    existing = {f"/{each}" for each in _entries(root)} | {ON_A_HOST}
    ends = {each[start:] for each in existing for start in _slashes(each)}
    for page in pages:
        for number, line in _lines(page):
            for path in PATH.findall(line):
                report.looked_at += 1
                if f"/{path}" not in ends:
                    report.wrong(_name(root, page), number, f"`{path}` does not exist; write where it is now")


def links(project: Project, report: Report) -> None:
    """Check that links between documents lead to a file."""
    root = project.root
    for page in (*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))):
        for number, line in _lines(page):
            for link in LINK.findall(line):
                if link.startswith(("http", "#")):
                    continue
                report.looked_at += 1
                if not (page.parent / link.split("#")[0]).exists():
                    report.wrong(_name(root, page), number, f"the link to {link} leads nowhere; correct it")


def _entries(root: Path) -> Iterator[str]:
    """Yield the Python files and the folders that documents may name, folders with a slash at the end."""
    for top in WITH_FOLDERS:
        for folder, folders, files in os.walk(root / top):
            if "__pycache__" in folders:
                folders.remove("__pycache__")
            relative = Path(folder).relative_to(root).as_posix()
            yield from (f"{relative}/{each}/" for each in folders)
            if top in WITH_CODE:
                yield from (f"{relative}/{each}" for each in files if each.endswith(".py"))


def _slashes(path: str) -> Iterator[int]:
    return (position for position, each in enumerate(path.rstrip("/")) if each == "/")


def _lines(page: Path) -> Iterator[tuple[int, str]]:
    return enumerate(page.read_text("utf-8").splitlines() if page.exists() else [], 1)


def _name(root: Path, page: Path) -> str:
    return page.relative_to(root).as_posix()
