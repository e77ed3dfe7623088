"""No modules import each other, not even inside functions or for type checkers."""

from collections.abc import Mapping

from checks.packages import Edge, groups
from checks.report import Report
from checks.source import Project


def import_circles(project: Project, report: Report) -> None:
    """Check that no modules lead to each other by any of their imports."""
    edges: dict[Edge, tuple[str, int]] = {}
    for source in project.sources:
        for each in source.imports:
            other = project.module_of(each)
            if other and other != source.module:
                report.looked_at += 1
                edges.setdefault((source.module, other), (source.path, each.line))
    for group in groups(_without_ends(edges)):
        (path, line), (start, end) = min((place, edge) for edge, place in edges.items() if set(edge) <= group)
        text = f"{', '.join(sorted(group))} import each other; here {start} imports {end}. Move what both need"
        report.wrong(path, line, f"{text} to another module")


def _without_ends(edges: Mapping[Edge, object]) -> dict[str, set[str]]:
    """Return the graph of these edges without nodes that begin or end all their paths: few are left to search."""
    left = set(edges)
    while True:
        inner = {start for start, _ in left} & {end for _, end in left}
        fewer = {(start, end) for start, end in left if start in inner and end in inner}
        if fewer == left:
            break
        left = fewer
    graph: dict[str, set[str]] = {}
    for start, end in left:
        graph.setdefault(start, set()).add(end)
    return graph
