"""Readers of a record's facts say of which kind they are (`facts_as`): mypy then knows the fields."""

import ast
from collections.abc import Iterator

from checks.report import Report
from checks.source import Project, Source

NAME = "facts"


def facts(project: Project, report: Report) -> None:
    """Check that only marked files read `….facts` by key."""
    found: dict[str, int] = {}
    for source in project.sources:
        for line, _key in read_in(source):
            report.looked_at += 1
            found.setdefault(source.path, line)
    text = "it reads facts by key; take them from `record.facts_as(kinds.…)`, or write `# check: reads facts because …`"
    report.needs_marker(project, "reads facts", found, text)


def read_in(source: Source) -> Iterator[tuple[int, str]]:
    """Yield (line, field) of each `….facts.get("field")`, `….facts["field"]` and `"field" in ….facts`."""
    if NAME not in source.text:
        return
    names = _names_for_facts(source)
    for node in (*source.nodes(ast.Call), *source.nodes(ast.Subscript), *source.nodes(ast.Compare)):
        match node:
            case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[key, *_]):
                pass
            case ast.Subscript(value=of, slice=key):
                pass
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[of]):
                pass
            case _:
                continue
        if _is_facts(of, names):
            yield node.lineno, ast.unparse(key)


def _is_facts(node: ast.AST, names: set[str]) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == NAME) or (isinstance(node, ast.Name) and node.id in names)


def _names_for_facts(source: Source) -> set[str]:
    """Return variables that are given `….facts` as it is."""
    found = set()
    given = [(node.targets, node.value) for node in source.nodes(ast.Assign)]
    given += [([node.target], node.value) for node in source.nodes(ast.NamedExpr)]
    for targets, value in given:
        if _is_facts(value, set()):
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found
