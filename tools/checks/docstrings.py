"""Public names: the docstring of each function and method that a face offers begins with a verb (STYLE.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from checks.report import Report
from checks.source import SOURCES, Project, Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
API = "lastcall"
"""The package whose names are the Python API."""
VERBS = frozenset(
    re.findall(
        r"\w+",
        """
        Accept Account Add Announce Answer Append Apply Ask Be Begin Bring Build Call Cancel Check Choose Close
        Collect Compare Compute Connect Convert Copy Count Create Cut Decide Decode Delete Deliver Do Draw Drop
        Encode End Exit Fetch Fill Find Finish Follow Forget Fork Format Give Hand Import Install Join Judge Keep
        Let Listen Load Look Make Mark Measure Merge Move Name Note Open Parse Pass Pool Predict Print Publish Pull
        Put Raise Read Reconnect Record Register Release Remove Replace Report Reset Restart Restore Retry Return
        Run Schedule Send Serve Set Show Sign Split Start Stop Store Take Tell Test Translate Try Turn Undo Update
        Use Wait Watch Write Yield
        """,
    )
)


def verbs(project: Project, report: Report) -> None:
    """Check that the docstring of each public function and method begins with a verb."""
    seen: set[tuple[str, int]] = set()
    for module, name in sorted({*_faces(project), *_api(project)}):
        source = project.modules.get(module)
        for function in _functions(source, name) if source else ():
            text = ast.get_docstring(function)
            if source is None or text is None or (source.path, function.lineno) in seen:
                continue
            seen.add((source.path, function.lineno))
            report.looked_at += 1
            found = re.match(r"\w+", text)
            if found is None or found.group() not in VERBS:
                first = text.split()[0] if text.split() else ""
                why = f"begin the docstring of {function.name} with a verb of tools/checks/docstrings.py, not {first!r}"
                report.wrong(source, function.lineno, why)


def _faces(project: Project) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of what the faces offer: the imports of their `__init__.pyi`."""
    root = project.root / SOURCES
    for stub in sorted(root.rglob("__init__.pyi")):
        package = ".".join((API, *stub.parent.relative_to(root).parts))
        yield from _imported(stub, package)


def _api(project: Project) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of the Python API."""
    package = project.modules.get(API)
    for each in package.imports if package else ():
        if each.typing and each.name and each.module.startswith(API + "."):
            yield each.module, each.name


def _imported(stub: Path, package: str) -> Iterator[tuple[str, str]]:
    for node in ast.parse(stub.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            module = ".".join(filter(None, (above, node.module)))
            yield from ((module, alias.name) for alias in node.names)


def _functions(source: Source, name: str) -> Iterator[Function]:
    """Yield the function of this name, or the public methods of the class."""
    for node in source.tree.body:
        if isinstance(node, Function) and node.name == name:
            yield node
        elif isinstance(node, ast.ClassDef) and node.name == name:
            methods = (each for each in node.body if isinstance(each, Function))
            yield from (each for each in methods if not each.name.startswith("_"))
