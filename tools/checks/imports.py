"""Who imports what, where import-linter cannot say it (its contracts are in pyproject.toml)."""

import ast
import sys
from collections.abc import Iterator

from checks.report import Report
from checks.source import Project, Source, is_in, root_name

ROOT = "lastcall"
SHARED = ("records", "world", "errors", "_version")
LAZY = "lazy_loader"
"""What makes a package a face: it imports a module when one of its names is first used (`__init__.pyi` has them)."""
TYPES = "lastcall.kube.api.types"
AIOHTTP = ("aiohttp", "aiohttp.web", "aiohttp.abc")
"""Modules that aiohttp documents by these names."""
AIOHTTP_INSIDE = "aiohttp_inside"
"""The package that may use the rest of it."""


def package_files(project: Project, report: Report) -> None:
    """Check that an `__init__.py` loads no module of its package: its names, if it has any, come when they are used.

    That of lastcall names the API: it imports when a name is first used, and for type checkers. It has the version.
    """
    for source in project.sources:
        if source.is_package:
            report.looked_at += 1
            for each in source.imports:
                lazy = source.module == ROOT and (each.late or each.typing or each.module == f"{ROOT}._version")
                if each.module not in ("__future__", LAZY) and not lazy:
                    report.wrong(source, each.line, f"a package file imports {each.full}; import it where it is used")


def faces(project: Project, report: Report) -> None:
    """Check that a wing imports another from its faces, the packages whose `__init__.py` has names.

    What all of them share, and processes without other libraries load, has none: `SHARED`.
    """
    found: dict[str, int] = {}
    for source in project.sources:
        own = _wing(source.module)
        for each in source.imports:
            wing = _wing(each.module)
            if not own or not wing or wing in (own, *SHARED):
                continue
            report.looked_at += 1
            package = project.modules.get(each.module)
            if package is None or not any(one.module == LAZY for one in package.imports):
                found.setdefault(source.path, each.line)
    text = "it imports from inside another wing; use a face, or write `# check: reaches inside because …`"
    report.needs_marker(project, "reaches inside", found, text)


def names_of_wings(project: Project, report: Report) -> None:
    """Check that `kube` does not name a module of the product in a string, by which it would start or load it."""
    for source in project.below(f"{ROOT}.kube"):
        for node in source.nodes(ast.Constant):
            if isinstance(node.value, str) and node.value in project.modules:
                report.looked_at += 1
                if _wing(node.value) not in ("", "kube", *SHARED):
                    text = f"it names {node.value}, which is above kube; have it handed over, or move what uses it"
                    report.wrong(source, node.lineno, text)


def _wing(module: str) -> str:
    """Return the folder below `lastcall` that a module is in, "" for what is not in one."""
    parts = module.split(".")
    return parts[1] if parts[0] == ROOT and len(parts) > 1 else ""


def standard_library(project: Project, report: Report) -> None:
    """Check that marked files import the standard library and marked files only, as the shim starts without others."""
    for source in project.sources:
        if not project.marked(source, "standard library"):
            continue
        report.looked_at += 1
        for each in source.imports:
            if each.typing:
                continue
            if each.module.split(".")[0] != ROOT:
                if each.module.split(".")[0] not in sys.stdlib_module_names:
                    report.wrong(source, each.line, f"{each.module} is not in the standard library; do without it")
                continue
            other = project.module_of(each)
            if not other or not project.marked(project.modules[other], "standard library"):
                text = f"{each.full} is not marked `# check: standard library`; mark it, or do without it"
                report.wrong(source, each.line, text)


def types(project: Project, report: Report) -> None:
    """Check that types of objects are imported for type checkers only, as making the TypedDicts takes tens of ms."""
    for source in project.sources:
        if is_in(source.module, [TYPES]):
            continue
        for each in source.imports:
            if is_in(each.module, [TYPES]):
                report.looked_at += 1
                if not each.typing:
                    report.wrong(source, each.line, f"{each.full} is a type; import it below `if TYPE_CHECKING:`")


def aiohttp(project: Project, report: Report) -> None:
    """Check that only the package for it uses parts of aiohttp that its documentation does not name."""
    for source in _users_of_aiohttp(project, report):
        for each in source.imports:
            if is_in(each.module, ["aiohttp"]) and each.module not in AIOHTTP:
                report.wrong(source, each.line, f"{each.module} is private; use world.{AIOHTTP_INSIDE}")
        for node in source.nodes(ast.Attribute):
            if node.attr.startswith("_") and root_name(node) == "aiohttp":
                report.wrong(source, node.lineno, f"{node.attr} of aiohttp is private; use world.{AIOHTTP_INSIDE}")


def aiohttp_loading(project: Project, report: Report) -> None:
    """Check that no module but those of the package loads aiohttp by its own name.

    The first one would read the machine's certificates twice, by which a start took 40 ms more.
    """
    for source in _users_of_aiohttp(project, report):
        for node in source.tree.body:
            plain = isinstance(node, ast.Import) and any(each.name in ("aiohttp", "aiohttp.abc") for each in node.names)
            names = [each.name for each in node.names] if isinstance(node, ast.ImportFrom) else []
            from_ = isinstance(node, ast.ImportFrom) and node.module in ("aiohttp", "aiohttp.abc")
            if plain or (from_ and any(name not in ("web", "WSMsgType") for name in names)):
                text = f"aiohttp is imported by its own name; import from world.{AIOHTTP_INSIDE}, or inside a function"
                report.wrong(source, node.lineno, text)


def _users_of_aiohttp(project: Project, report: Report) -> Iterator[Source]:
    for source in project.sources:
        if "aiohttp" in source.text and AIOHTTP_INSIDE not in source.module.split("."):
            report.looked_at += 1
            yield source
