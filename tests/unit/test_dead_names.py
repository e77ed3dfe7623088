"""Names that nothing uses: a constant, a function or a class that is only ever defined is taken out.

Read from the source itself. A name counts as used where its own module reads it, where another module imports it or
takes it as an attribute, or where a short text names it (a string annotation, the program of a subprocess).
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[2]
LOOKED_AT = ("src", "tests/support", "tools")
USERS = ("src", "tests", "tools", "bench", "examples")
GENERATED = "src/lastcall/api/types/"
"""Types of all objects of the API, whether the code reads them or not."""
HOOKS = ("pytest_", "__")
"""Called by name from elsewhere, as hooks of pytest or of Python."""


def parsed() -> dict[str, ast.Module]:
    return {
        path.relative_to(PROJECT).as_posix(): ast.parse(path.read_text())
        for folder in USERS
        for path in sorted((PROJECT / folder).rglob("*.py"))
    }


def defined(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """(line, name) of what a module defines; what is decorated may be registered by that."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try):
            yield from defined(statement.body)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not statement.decorator_list or isinstance(statement, ast.ClassDef):
                yield statement.lineno, statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
            yield from ((statement.lineno, name) for name in names if name != "_" and not name.startswith("__"))


def unused(files: dict[str, ast.Module]) -> list[str]:
    used_anywhere: Counter[str] = Counter()
    read: dict[str, set[str]] = {}
    for file, tree in files.items():
        read[file] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read[file].add(node.id)
            elif isinstance(node, ast.Attribute):
                used_anywhere[node.attr] += 1
            elif isinstance(node, ast.ImportFrom):
                used_anywhere.update((node.module or "").rpartition(".")[2] + "." + each.name for each in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
                used_anywhere.update(re.findall(r"[A-Za-z_]\w*", node.value))
    found = []
    for file, tree in files.items():
        if not file.startswith(LOOKED_AT) or file.startswith(GENERATED):
            continue
        path = Path(file)
        module = path.parent.name if path.stem == "__init__" else path.stem
        for line, name in defined(tree.body):
            used = name in read[file] or used_anywhere[name] or used_anywhere[f"{module}.{name}"]
            if not used and not name.startswith(HOOKS):
                found.append(f"{file}:{line}: {name}")
    return found


def test_every_name_of_a_module_is_used() -> None:
    files = parsed()
    assert len(files) > 900, "the folders are no longer found"
    assert unused(files) == []


def test_a_name_that_is_only_defined_is_found() -> None:
    code = "USED = 1\nDEAD = USED\ndef called(): ...\ndef dead(): ...\nclass Dead: ...\n"
    files = {"src/lastcall/a.py": ast.parse(code), "src/lastcall/b.py": ast.parse("from lastcall.a import called")}
    assert unused(files) == ["src/lastcall/a.py:2: DEAD", "src/lastcall/a.py:4: dead", "src/lastcall/a.py:5: Dead"]
