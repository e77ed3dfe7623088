"""A constant, a function or a class that is only ever defined is removed.

A name counts as used where its own module reads it, where another module imports it or takes it as an attribute, or
where a short text names it (a string annotation, the program of a subprocess).
"""

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from checks.report import Report
from checks.source import SOURCES, Project, Source

LOOKED_AT = ("src", "tests/support", "tools")
HOOKS = ("pytest_", "__")
"""Names that pytest or Python calls."""
LONGEST_TEXT = 200

_NAME = re.compile(r"[A-Za-z_]\w*")


class Names(NamedTuple):
    """What a file defines, reads itself, and uses of others."""

    defined: list[tuple[int, str]]
    read: set[str]
    used: set[str]


def dead_names(project: Project, report: Report) -> None:
    """Check that every name of a module is used."""
    used: set[str] = set()
    looked_at: list[tuple[str, Names]] = []
    for source in chain(project.sources, project.others()):
        report.looked_at += 1
        names = names_of(source)
        used |= names.used
        if source.path.startswith(LOOKED_AT):
            looked_at.append((source.path, names))
    for stub in sorted((project.root / SOURCES).rglob("__init__.pyi")):
        for line, face, module, name in _shown(stub):
            if f"{face}.{name}" in used:
                used.add(f"{module}.{name}")
            else:
                report.wrong(stub.relative_to(project.root).as_posix(), line, f"nothing uses {name}; remove it")
    for path, names in looked_at:
        for line, name in _unused(path, names, used):
            report.wrong(path, line, f"nothing uses {name}; remove it")


def _shown(stub: Path) -> Iterator[tuple[int, str, str, str]]:
    """Yield (line, face, module, name) of what a face shows, with the last parts of the modules' names."""
    for statement in ast.parse(stub.read_text("utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            module = (statement.module or "").rpartition(".")[2]
            yield from ((statement.lineno, stub.parent.name, module, each.name) for each in statement.names)


def _unused(path: str, names: Names, used: set[str]) -> Iterator[tuple[int, str]]:
    folder, _, stem = path.removesuffix(".py").rpartition("/")
    module = folder.rpartition("/")[2] if stem == "__init__" else stem
    for line, name in names.defined:
        if name not in names.read and name not in used and f"{module}.{name}" not in used:
            yield line, name


def names_of(source: Source) -> Names:
    """Return the names of one file."""
    used = {node.attr for node in source.nodes(ast.Attribute)}
    for from_ in source.nodes(ast.ImportFrom):
        used |= {(from_.module or "").rpartition(".")[2] + "." + each.name for each in from_.names}
    for text in {str(node.value) for node in source.nodes(ast.Constant) if isinstance(node.value, str)}:
        if len(text) < LONGEST_TEXT:
            used.update(_NAME.findall(text))
    read = {node.id for node in source.nodes(ast.Name) if isinstance(node.ctx, ast.Load)}
    return Names(list(_defined(source.tree.body)), read, used)


def _defined(body: Sequence[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of what a module defines. A decorated function may be registered by its decorator."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try):
            yield from _defined(statement.body)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            decorated = statement.decorator_list and not isinstance(statement, ast.ClassDef)
            if not decorated and not statement.name.startswith(HOOKS):
                yield statement.lineno, statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
            yield from ((statement.lineno, name) for name in names if name != "_" and not name.startswith(HOOKS))
