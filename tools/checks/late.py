"""An import inside a function saves at least 20 ms of a start, or says why else it is there.

A comment above it says: `# late: 43 ms of run --help`, measured with `python -X importtime`, or `# late: REASON`. The
small ones stay because a test of what is loaded needs them (test_modules_of_commands.py, test_what_a_role_imports.py).
Their number only goes down.
"""

import ast
import re
from collections.abc import Iterable, Iterator

from checks.report import Report
from checks.source import Project, Source, is_type_checking

LEAST_MS = 20.0
MOST_SMALL = 30
"""How many save less than `LEAST_MS`."""

_LATE = re.compile(r"# late: (?:(?P<ms>\d+(?:\.\d)?) ms(?: of |, ).+|(?P<why>[a-z`].{10,}))")


def late_imports(project: Project, report: Report) -> None:
    """Check that each import inside a function has its comment, and that few of them save little."""
    small = 0
    for source in project.sources:
        for line, said in late(source):
            report.looked_at += 1
            if said is None:
                text = "an import inside a function; write `# late: <n> ms of <command>` or `# late: <why>` above it"
                report.wrong(source, line, text)
            elif said["ms"] and float(said["ms"]) < LEAST_MS:
                small += 1
                if small > MOST_SMALL:
                    text = f"late import number {small} that saves less than {LEAST_MS:g} ms; move one to the top"
                    report.wrong(source, line, text)


def late(source: Source) -> Iterator[tuple[int, re.Match[str] | None]]:
    """Yield (line, what its comment says) of each run of imports inside a function."""
    if any(each.late for each in source.imports):
        for number in _blocks(source.tree.body):
            yield number, _LATE.search(source.lines[number - 2])


def _blocks(body: Iterable[ast.AST], inside: bool = False) -> Iterator[int]:
    """Yield the first line of each run of imports inside a function."""
    before = False
    for each in body:
        is_import = isinstance(each, ast.Import | ast.ImportFrom)
        if is_import and inside and not before:
            yield each.lineno  # type: ignore[attr-defined]
        before = is_import
        if isinstance(each, ast.If) and is_type_checking(each):
            continue
        now_inside = inside or isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in ("body", "handlers", "cases", "orelse", "finalbody"):
            yield from _blocks(getattr(each, name, ()), now_inside)
