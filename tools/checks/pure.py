"""Pure modules: rules that wait for nothing and do no I/O. They are called `decide.py` or have the marker `pure`."""

import ast
from collections import defaultdict

from checks.report import Report
from checks.source import Import, Project, Source, is_in

FOUND_BY_NAME = "decide"
CONTROLLERS = "lastcall.kube.controllers"
NO_RULE_USES = (
    "aiohttp",
    "asyncio",
    "lastcall.kube.client",
    "lastcall.kube.store",
    "lastcall.world",
    "os",
    "random",
    "select",
    "socket",
    "subprocess",
    "threading",
    "time",
)
BUT = ("os.path", "random.Random")
"""The one computes with names of files, the other is the type of what a rule is given."""
WAITS = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


def is_pure(source: Source) -> bool:
    """Return True if the file declares that it is pure."""
    return source.module.endswith("." + FOUND_BY_NAME) or source.marker("pure") is not None


def pure(project: Project, report: Report) -> None:
    """Check that pure modules have no coroutines and import nothing that has time, tasks, clients or the kernel.

    They import each other, and names of other modules that a marker `pure names` gives them.
    """
    taken: dict[str, set[str]] = defaultdict(set)
    for source in project.sources:
        if not is_pure(source):
            continue
        report.looked_at += 1
        if source.module.endswith("." + FOUND_BY_NAME) and (marker := source.marker("pure")):
            report.wrong(source, marker.line, f"{FOUND_BY_NAME}.py is pure by its name; remove the marker")
        for kind in WAITS:
            for node in source.nodes(kind):
                report.wrong(
                    source, getattr(node, "lineno", 1), f"a pure module waits ({kind.__name__}); do that elsewhere"
                )
        for each in source.imports:
            if is_in(each.full, NO_RULE_USES) and not is_in(each.full, BUT) and not _given(project, each, taken):
                text = f"a pure module imports {each.full}; take what it gives as an argument, or do that elsewhere"
                report.wrong(source, each.line, text)
    _needless(project, report, taken)


def _given(project: Project, each: Import, taken: dict[str, set[str]]) -> bool:
    """Return True if the import is of a pure module or of a name that its module gives; note the name in `taken`."""
    name = project.module_of(each)
    if not name:
        return False
    source = project.modules[name]
    marker = source.marker("pure names")
    if marker and each.name in marker.names:
        taken[name].add(each.name)
        return True
    return is_pure(source)


def _needless(project: Project, report: Report, taken: dict[str, set[str]]) -> None:
    for source in project.sources:
        if marker := source.marker("pure names"):
            for name in sorted(set(marker.names) - taken[source.module]):
                report.wrong(source, marker.line, f"no pure module imports {name}; remove it from the marker")


def plain_objects(project: Project, report: Report) -> None:
    """Check that rules of controllers say of which kind their objects are.

    `Object` is `dict[str, Any]`, in which mypy finds no misspelt field.
    """
    found: dict[str, int] = {}
    for source in project.below(CONTROLLERS):
        if is_pure(source):
            report.looked_at += 1
            for node in source.nodes(ast.Name):
                if node.id == "Object":
                    found.setdefault(source.path, node.lineno)
    text = "`Object` has fields of any name; take the type of the kind from lastcall.kube.api.types"
    report.needs_marker(project, "plain objects", found, text)
