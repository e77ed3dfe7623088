"""A test that sleeps in real time says why: a sleep is a guess how long something takes."""

import ast

from checks.report import Report
from checks.source import Project, Source

APPLICATIONS = "tests/pains/apps/"
"""Programs that run in containers. They sleep as applications do."""


def sleeps(project: Project, report: Report) -> None:
    """Check that each sleep in `tests` has its reason on its line or on the line above."""
    for source in project.others():
        if source.path.startswith("tests/") and not source.path.startswith(APPLICATIONS):
            _check(source, report)


def _check(source: Source, report: Report) -> None:
    for call in source.nodes(ast.Call):
        if source.full_name(call.func) not in ("time.sleep", "asyncio.sleep") or _is_zero(call):
            continue
        report.looked_at += 1
        above = source.lines[call.lineno - 2].strip() if call.lineno > 1 else ""
        if "#" not in source.lines[call.lineno - 1] and not above.startswith("#"):
            text = "a test sleeps; wait for a condition (tests/support/waiting.py), or write why it sleeps as a comment"
            report.wrong(source, call.lineno, text)


def _is_zero(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
