"""What a record claims: files that write what they observed, or what they predict, say so."""

import ast
from collections.abc import Iterator

from checks.report import Report
from checks.source import Project, Source


def record_calls(source: Source) -> Iterator[tuple[int, str]]:
    """Yield (line, evidence) of the calls that write a record. Evidence is "" where it is decided at run time."""
    for node in source.nodes(ast.Call):
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "record":
            continue
        owner = node.func.value
        name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
        if name.strip("_").endswith("recorder"):
            given = next((each.value for each in node.keywords if each.arg == "evidence"), None)
            evidence = "observed" if given is None else given.value if isinstance(given, ast.Constant) else ""
            yield node.lineno, str(evidence)


def observes(project: Project, report: Report) -> None:
    """Check that only marked files write records with evidence `observed`."""
    found = _first(project, report, ("observed", ""))
    text = (
        'it writes a record as observed; say evidence="inferred" or "predicted", '
        "or write `# check: observes because it sees or does <what>`"
    )
    report.needs_marker(project, "observes", found, text)


def predicts(project: Project, report: Report) -> None:
    """Check that only marked files write records with evidence `predicted`."""
    found = _first(project, report, ("predicted",))
    text = "it writes a record as predicted; only simulations do: `# check: predicts because <what is simulated>`"
    report.needs_marker(project, "predicts", found, text)


def _first(project: Project, report: Report, kinds: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for source in project.sources:
        for line, evidence in record_calls(source):
            if evidence in kinds:
                report.looked_at += 1
                found.setdefault(source.path, line)
    return found
