"""Find the mutants of a source file, and compile one of them."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, MappingProxyType

from mutants.operators import NOT_CHANGED, changes, in_context

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

    def replace(self, new: ast.AST) -> None:
        """Put another node in the place of this one."""
        if self.position is None:
            setattr(self.parent, self.field, new)
        else:
            getattr(self.parent, self.field)[self.position] = new


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
            text = in_context(site.parent, site.replace, site.node, change)
            found.append(Mutant(path, site.function, line, text, len(found), lines))
    return found


Key = tuple[str, int]
"""A function's qualified name and first line."""

Codes = dict[Key, CodeType]


def compiled(source: str, path: str, number: int | None, kept: Mapping[Key, set[str]] = MappingProxyType({})) -> Codes:
    """Compile a file with one change (None: as it is) and return the code of its functions, nested ones included.

    `kept` names variables of surrounding functions that a function refers to, though the change took the use away.
    """
    tree = ast.parse(source)
    if number is not None:
        _change(tree, number)
    for node in ast.walk(tree):
        if isinstance(node, Function):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            for key in [key for key in kept if key[1] == first and key[0].split(".")[-1] == node.name]:
                node.body.append(_unreachable(kept[key], node.body[-1]))
    return dict(functions_in(compile(tree, path, "exec", dont_inherit=True)))


def _unreachable(names: set[str], near: ast.stmt) -> ast.stmt:
    """Return a statement that refers to the names and never runs."""
    uses: list[ast.stmt] = [ast.Expr(ast.Name(name, ast.Load())) for name in sorted(names)]
    return ast.fix_missing_locations(ast.copy_location(ast.If(ast.Constant(False), uses, []), near))


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
                site.replace(change.new)
                return
            passed += 1
    raise ValueError(f"The file has {passed} mutants, none with number {number}.")


def replacements(source: str, path: str, number: int) -> Codes:
    """Return the functions whose code a mutant replaces: the changed one and those around it.

    Empty if the change cannot be swapped in: a lambda would use other variables of the functions around it.
    """
    before, after = compiled(source, path, None), compiled(source, path, number)
    lost = _lost(before, after)
    if lost:
        after = compiled(source, path, number, lost)
    if before.keys() != after.keys() or _lost(before, after):
        return {}
    return {key: code for key, code in after.items() if code != before[key]}


def _lost(before: Codes, after: Codes) -> dict[Key, set[str]]:
    """Return the variables of surrounding functions that a function used before and does not after."""
    both = [(key, set(before[key].co_freevars), set(code.co_freevars)) for key, code in after.items() if key in before]
    return {key: old - new for key, old, new in both if old != new}
