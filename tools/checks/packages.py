"""Packages: each says what it holds, modules do not repeat its name, and no entries of a folder import each other."""

import ast
from collections.abc import Mapping

from checks.report import Report
from checks.source import Project

Edge = tuple[str, str]


def docstrings(project: Project, report: Report) -> None:
    """Check that each package says what it holds."""
    for source in project.sources:
        if source.is_package:
            report.looked_at += 1
            if not ast.get_docstring(source.tree):
                report.wrong(source, 1, "the package has no docstring; say what it holds")


def stutters(project: Project, report: Report) -> None:
    """Check that no module's name begins with that of its package."""
    found: dict[str, int] = {}
    for source in project.sources:
        report.looked_at += 1
        *_, folder, name = ("", *source.module.split("."))
        if not source.is_package and name.startswith(folder + "_") and folder != "lastcall":
            found[source.path] = 1
    text = "its name begins with that of its folder; shorten it, or write `# check: repeats its folder because …`"
    report.needs_marker(project, "repeats its folder", found, text)


def circles(project: Project, report: Report) -> None:
    """Check that no entries of one folder (modules and packages) import each other when they are loaded."""
    edges: dict[Edge, tuple[str, int]] = {}
    for source in project.sources:
        for each in source.imports:
            if each.late or each.typing:
                continue
            report.looked_at += 1
            if edge := _between_entries(source.module, project.module_of(each)):
                edges.setdefault(edge, (source.path, each.line))
    graph: dict[str, set[str]] = {}
    for start, end in edges:
        graph.setdefault(start, set()).add(end)
    for group in groups(graph):
        inside = sorted((place, edge) for edge, place in edges.items() if set(edge) <= group)
        (path, line), (start, end) = inside[0]
        names = ", ".join(sorted(group))
        text = f"{names} import each other; here {start} imports {end}. Move what both need to a module of its own"
        report.wrong(path, line, text)


def _between_entries(module: str, other: str) -> Edge | None:
    """Return the entries of one folder that an import connects: there is one such folder, or none."""
    ours, theirs = module.split("."), other.split(".")
    common = 0
    for one, two in zip(ours, theirs, strict=False):
        if one != two:
            break
        common += 1
    if not common or common in (len(ours), len(theirs)):
        return None
    return ".".join(ours[: common + 1]), ".".join(theirs[: common + 1])


def groups(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """Return the groups of two and more nodes of which each leads to all others."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, todo = set[str](), [start]
        while todo:
            for each in graph.get(todo.pop(), ()):
                if each not in seen:
                    seen.add(each)
                    todo.append(each)
        reached[start] = seen
    found = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in graph if a in reached[a]}
    return sorted((group for group in found if len(group) > 1), key=sorted)
