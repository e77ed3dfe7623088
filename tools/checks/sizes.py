"""Functions and classes stay small. Exceptions stand in their files as markers, and one that is not needed fails."""

import ast
from collections.abc import Callable, Iterator

from checks.report import Report
from checks.source import Project

MOST_LINES = 60
"""Of a function, from `def` to its end without its docstring: it fits a screen."""
MOST_ATTRIBUTES = 12
"""Of an instance of a class that is not data."""
_DATA = ("TypedDict", "Protocol", "NamedTuple", "Exception", "Error", "Warning")
"""Ends of the names of bases whose classes are data."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def long_functions(project: Project, report: Report) -> None:
    """Check that a function has at most `MOST_LINES` lines."""

    def too_long(name: str, node: ast.AST) -> str:
        if not isinstance(node, _Function):
            return ""
        report.looked_at += 1
        if (lines := lines_of(node)) <= MOST_LINES:
            return ""
        return f"{name} has {lines} lines without its docstring, more than {MOST_LINES}; divide it"

    _check(project, report, "long functions", too_long)


def many_attributes(project: Project, report: Report) -> None:
    """Check that an instance of a class that is not data has at most `MOST_ATTRIBUTES` attributes."""

    def too_many(name: str, node: ast.AST) -> str:
        if not isinstance(node, ast.ClassDef) or is_data(node):
            return ""
        report.looked_at += 1
        if (count := len(attributes_of(node))) <= MOST_ATTRIBUTES:
            return ""
        return f"{name} has {count} attributes, more than {MOST_ATTRIBUTES}; give it parts that have some of them"

    _check(project, report, "many attributes", too_many)


def _check(project: Project, report: Report, word: str, problem_of: Callable[[str, ast.AST], str]) -> None:
    for source in project.sources:
        marker = source.marker(word)
        excepted = set(marker.names) if marker else set()
        for name, node in _definitions(source.tree):
            problem = problem_of(name, node)
            if problem and name not in excepted:
                report.wrong(source, node.lineno, problem)
            elif problem:
                excepted.discard(name)
        for name in sorted(excepted):
            assert marker is not None
            report.wrong(source, marker.line, f"'{word} {name}' is not needed; remove it from the marker")


def _definitions(tree: ast.AST, place: str = "") -> Iterator[tuple[str, _Function | ast.ClassDef]]:
    """Yield the functions and classes of a file by their names, `Class.method`; what a function holds is part of it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield place + node.name, node
            yield from _definitions(node, f"{place}{node.name}.")
        elif isinstance(node, _Function):
            yield place + node.name, node
        else:
            yield from _definitions(node, place)


def lines_of(function: _Function) -> int:
    """Return the number of lines of a function without its docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or 0) - docstring.lineno + 1
    return lines


def is_data(node: ast.ClassDef) -> bool:
    """Return True for a dataclass, TypedDict, NamedTuple, Protocol or exception."""
    decorators = [ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list]
    bases = [ast.unparse(each).partition("[")[0] for each in node.bases]
    return "dataclass" in decorators or any(base.endswith(_DATA) for base in bases)


def attributes_of(node: ast.ClassDef) -> set[str]:
    """Return the names of the attributes that the methods of a class set on `self`."""
    return {
        each.attr
        for method in node.body
        if isinstance(method, _Function)
        for each in ast.walk(method)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and _is_self(each.value)
    }


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
