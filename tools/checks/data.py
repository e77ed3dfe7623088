"""Defaults of dataclasses cannot be changed."""

import ast

from checks.report import Report
from checks.source import Project

_FIELDS = ("field", "dataclasses.field")
_FIXED = ("frozenset", "tuple", "Fraction")


def defaults(project: Project, report: Report) -> None:
    """Check that a call that makes the default of a field makes something that instances can share.

    ruff's RUF009 is the same rule for `dataclasses.dataclass` alone.
    """
    classes = [(source, node) for source in project.sources for node in source.nodes(ast.ClassDef)]
    fixed = {*_FIXED, *(node.name for _, node in classes if _is_dataclass(node, frozen=True))}
    for source, node in classes:
        if not _is_dataclass(node):
            continue
        for each in node.body:
            if not isinstance(each, ast.AnnAssign) or not isinstance(each.value, ast.Call):
                continue
            called = ast.unparse(each.value.func)
            if called in _FIELDS:
                continue
            report.looked_at += 1
            if called not in fixed:
                text = f"all instances share what {called}() makes; use field(default_factory=…), or a frozen dataclass"
                report.wrong(source, each.lineno, text)


def _is_dataclass(node: ast.ClassDef, *, frozen: bool = False) -> bool:
    decorators = [ast.unparse(each) for each in node.decorator_list]
    return any(
        each.partition("(")[0].endswith("dataclass") and (not frozen or "frozen=True" in each) for each in decorators
    )
