"""The source files of the project, each read and parsed once, with what most rules ask for."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from checks.markers import WORDS, Marker, read_markers

SOURCES = "src/lastcall"
USERS = ("tests", "tools", "bench", "examples")
"""Folders with code that may use a name of the sources."""

Node = TypeVar("Node", bound=ast.AST)


class Import(NamedTuple):
    """One imported name. `late` is true inside a function, `typing` below `if TYPE_CHECKING:`."""

    line: int
    module: str
    name: str
    late: bool
    typing: bool

    @property
    def full(self) -> str:
        """Return `asyncio.sleep` for `from asyncio import sleep`, `os.path` for `import os.path`."""
        return f"{self.module}.{self.name}" if self.name else self.module


class Source:
    """A Python file. `path` is relative to the project, `module` is the name by which it is imported."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text)
        pure = PurePosixPath(path)
        self.is_package = pure.name == "__init__.py"
        parts = pure.parts[1:] if pure.parts[0] == "src" else pure.parts
        self.module = ".".join(parts).removesuffix(".py").removesuffix(".__init__")

    @cached_property
    def lines(self) -> list[str]:
        """Return the lines of the file."""
        return self.text.splitlines()

    @cached_property
    def markers(self) -> list[Marker]:
        """Return the markers of the file (`markers.py`)."""
        return read_markers(self.text, self.tree)

    def marker(self, word: str) -> Marker | None:
        """Return the marker with this word, or None."""
        return next((each for each in self.markers if each.word == word), None)

    @cached_property
    def _nodes(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        todo: list[ast.AST] = [self.tree]
        for node in todo:
            found[type(node)].append(node)
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    todo += [each for each in value if isinstance(each, ast.AST)]
                elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                    todo.append(value)
        return found

    def nodes(self, kind: type[Node]) -> list[Node]:
        """Return all nodes of exactly this kind."""
        return self._nodes.get(kind, [])  # type: ignore[return-value]

    @cached_property
    def imports(self) -> list[Import]:
        """Return every imported name, wherever the statement is. Relative imports do not occur here."""
        found: list[Import] = []
        for statement, late, typing in _statements(self.tree.body):
            if isinstance(statement, ast.Import):
                found += [Import(statement.lineno, each.name, "", late, typing) for each in statement.names]
            elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
                module = statement.module
                found += [Import(statement.lineno, module, each.name, late, typing) for each in statement.names]
        return found

    @cached_property
    def meanings(self) -> dict[str, str]:
        """Return what each imported name means: `sleep` → `asyncio.sleep`, `dt` → `datetime`."""
        names: dict[str, str] = {}
        for node in self.nodes(ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        for from_ in self.nodes(ast.ImportFrom):
            if from_.module and not from_.level:
                names |= {alias.asname or alias.name: f"{from_.module}.{alias.name}" for alias in from_.names}
        return names

    @cached_property
    def used(self) -> list[tuple[int, str]]:
        """Return (line, full name) of all that the file imports from elsewhere or uses of what it imported.

        A parameter hides the module of its name in the whole file.
        """
        found = [(each.line, each.full) for each in self.imports if each.name]
        hidden = {
            argument.arg
            for each in self.nodes(ast.arguments)
            for argument in (*each.posonlyargs, *each.args, *each.kwonlyargs)
        }
        for node in self.nodes(ast.Attribute):
            name = self.full_name(node)
            if name and root_name(node) not in hidden:
                found.append((node.lineno, name))
        return found

    def full_name(self, node: ast.expr) -> str:
        """Return `asyncio.sleep` for the expression that means it, "" for an expression of another kind."""
        if isinstance(node, ast.Attribute):
            owner = self.full_name(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return self.meanings.get(node.id, "") if isinstance(node, ast.Name) else ""


def root_name(node: ast.expr) -> str:
    """Return `asyncio` for `asyncio.tasks.sleep`, "" if the expression does not begin with a name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _statements(
    body: Iterable[ast.AST], late: bool = False, typing: bool = False
) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Yield every statement with whether a function holds it and whether only type checkers read it."""
    for each in body:
        yield each, late, typing
        if isinstance(each, ast.If) and is_type_checking(each):
            yield from _statements(each.body, late, True)
            yield from _statements(each.orelse, late, typing)
            continue
        inside = late or isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in ("body", "handlers", "cases", "orelse", "finalbody"):
            yield from _statements(getattr(each, name, ()), inside, typing)


def is_type_checking(node: ast.If) -> bool:
    """Return True for `if TYPE_CHECKING:`."""
    return "TYPE_CHECKING" in ast.unparse(node.test)


def is_in(name: str, modules: Iterable[str]) -> bool:
    """Return True if the full name is one of these modules or belongs to one."""
    return any(name == each or name.startswith(each + ".") for each in modules)


@dataclass
class Project:
    """The files that the rules look at."""

    root: Path
    sources: list[Source] = field(default_factory=list)

    @classmethod
    def read(cls, root: Path) -> "Project":
        """Return the project below `root` with every file of `SOURCES` parsed."""
        return cls(root, list(_read(root, SOURCES)))

    def others(self) -> Iterator[Source]:
        """Yield every Python file of `USERS`. None of them is kept."""
        for folder in USERS:
            yield from _read(self.root, folder)

    @cached_property
    def modules(self) -> dict[str, Source]:
        """Return the sources by their modules' names."""
        return {each.module: each for each in self.sources}

    def below(self, *packages: str) -> list[Source]:
        """Return the sources in these packages (and the modules of these names)."""
        return [each for each in self.sources if is_in(each.module, packages)]

    def marked(self, source: Source, word: str) -> bool:
        """Return True if the file has this marker, or the `__init__.py` of a folder above for words of folders."""
        if source.marker(word):
            return True
        names = re.split(r"\.", source.module)[:-1] if WORDS[word].folder else []
        above = (self.modules.get(".".join(names[:count])) for count in range(1, len(names) + 1))
        return any(each.marker(word) for each in above if each)

    def module_of(self, each: Import) -> str:
        """Return the module of the project that an import loads, "" if it loads none."""
        return next((name for name in (each.full, each.module) if name in self.modules), "")


def _read(root: Path, folder: str) -> Iterator[Source]:
    for path in sorted((root / folder).rglob("*.py")):
        yield Source(path.relative_to(root).as_posix(), path.read_text("utf-8"))
