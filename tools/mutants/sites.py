"""Find the mutants of a source file, and compile one of them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

from mutants.operators import NOT_CHANGED, changes

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """One change in one function."""

    path: str
    """Of the source file below the project."""
    function: str
    """Its qualified name: `Class.method`, `outer.<locals>.inner`."""
    line: int
    change: str
    """What a reader is shown: "`a < b` → `a <= b`"."""
    number: int
    """Its position among the mutants of the file."""
    lines: tuple[int, int]
    """First and last line that are executed with it."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}"


@dataclass(frozen=True)
class _Site:
    parent: ast.AST
    field: str
    position: int | None
    node: ast.AST
    function: str
    first: int


def _sites(tree: ast.Module) -> Iterator[_Site]:
    """Yield each node in the bodies of functions, with its place."""

    def below(node: ast.AST, prefix: str, function: str, first: int) -> Iterator[_Site]:
        for field, value in ast.iter_fields(node):
            if field in NOT_CHANGED:
                continue
            for position, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    yield from seen(node, field, position, child, prefix, function, first)

    def seen(
        parent: ast.AST, field: str, position: int | None, node: ast.AST, prefix: str, function: str, first: int
    ) -> Iterator[_Site]:
        if isinstance(node, ast.Constant | ast.JoinedStr) and isinstance(parent, ast.Expr | ast.JoinedStr):
            return
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            first = getattr(node, "lineno", first)
        if function:
            yield _Site(parent, field, position, node, function, first)
        if isinstance(node, Function):
            own = f"{prefix}{node.name}"
            for number, statement in enumerate(node.body):
                yield from seen(node, "body", number, statement, f"{own}.<locals>.", own, statement.lineno)
        elif isinstance(node, ast.ClassDef):
            for number, statement in enumerate(node.body):
                if isinstance(statement, Function | ast.ClassDef | ast.If):
                    yield from seen(node, "body", number, statement, f"{prefix}{node.name}.", "", statement.lineno)
        elif function or isinstance(node, ast.If | ast.Try | ast.With):
            yield from below(node, prefix, function, first)

    yield from below(tree, "", "", 1)


def mutants(source: str, path: str) -> list[Mutant]:
    """Return all mutants of a source file."""
    found = list[Mutant]()
    for site in _sites(ast.parse(source)):
        for change in changes(site.node):
            line = getattr(site.node, "lineno", site.first)
            # a changed `if` is its condition; other nodes end where they end
            last = (
                site.node.test.end_lineno if isinstance(site.node, ast.If) else getattr(site.node, "end_lineno", line)
            )
            lines = site.first, max(site.first, last or line)
            found.append(Mutant(path, site.function, line, change.text, len(found), lines))
    return found


Key = tuple[str, int]
"""A function's qualified name and first line."""


def compiled(source: str, path: str, number: int | None) -> dict[Key, CodeType]:
    """Compile a file with one change (None: as it is) and return the code of its functions, nested ones included."""
    tree = ast.parse(source)
    if number is not None:
        _change(tree, number)
    return dict(functions_in(compile(tree, path, "exec", dont_inherit=True)))


def functions_in(code: CodeType) -> Iterator[tuple[Key, CodeType]]:
    """Yield the code of each function within."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & 1:  # CO_OPTIMIZED: a function's, not a class's body
                yield (each.co_qualname, each.co_firstlineno), each
            yield from functions_in(each)


def _change(tree: ast.Module, number: int) -> None:
    passed = 0
    for site in _sites(tree):
        for change in changes(site.node):
            if passed == number:
                if site.position is None:
                    setattr(site.parent, site.field, change.new)
                else:
                    getattr(site.parent, site.field)[site.position] = change.new
                return
            passed += 1
    raise ValueError(f"The file has {passed} mutants, none with number {number}.")


def replacements(source: str, path: str, number: int) -> dict[Key, CodeType]:
    """Return the functions whose code a mutant replaces: the changed one and those around it.

    Empty if the change cannot be swapped in: the function would use other variables of the functions around it.
    """
    before, after = compiled(source, path, None), compiled(source, path, number)
    if before.keys() != after.keys():
        return {}
    different = {key: code for key, code in after.items() if code != before[key]}
    if any(code.co_freevars != before[key].co_freevars for key, code in different.items()):
        return {}
    return different
