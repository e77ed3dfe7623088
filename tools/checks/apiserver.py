"""The API server: what admission reads is noted, and a rule for one kind does not stand on every request's way."""

import ast
from collections.abc import Iterator

from checks.report import Report
from checks.source import Project, is_in

ADMISSION = "lastcall.kube.apiserver.admission"
NOT_NOTED = ("lastcall.kube.store", "lastcall.kube.apiserver.registry")
CHARGE = "charge"
"""The step that is run for each object, remembered or not."""
ATTRIBUTES = "Attributes"
APISERVER = "lastcall.kube.apiserver"
STRATEGIES = "lastcall.kube.apiserver.strategies"
WORDS = ("Pod", "Namespace", "Node", "Service", "Secret", "Event", "Job")
NAMES = ("resource", "info", "roles", "rest", "rest[0]", "kind", "self")
"""What begins an expression for the kind of a request, in contrast to a kind that an object names."""


def admission_reads(project: Project, report: Report) -> None:
    """Check that admission reads only what can be noted.

    What is made of a Pod is remembered with what its admission read (`admission/reader.py`).
    """
    advice = "read objects through the reader of Attributes, which notes them"
    for source in project.below(ADMISSION):
        report.looked_at += 1
        for each in source.imports:
            if not each.late and not each.typing and is_in(each.full, NOT_NOTED):
                report.wrong(source, each.line, f"admission imports {each.full}; {advice}")
        for line, name, what in _reads_unnoted(source.tree):
            if name != CHARGE:
                report.wrong(source, line, f"{name} reads `{what}`; {advice}")


def _reads_unnoted(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield line, function and what it reads of stores, or of another reader than that of its Attributes."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        annotations = [ast.unparse(each.annotation) for each in function.args.args if each.annotation is not None]
        for node in ast.walk(function):
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            if node.attr == "kinds" or (ATTRIBUTES in annotations and ast.unparse(node) == "self.reader"):
                yield node.lineno, function.name, node.attr


def asks_for_kinds(project: Project, report: Report) -> None:
    """Check that only marked files of the API server ask for a single kind.

    What one kind does otherwise on the way of each request is in its strategy or in a table by kind.
    """
    constants, words = kinds_of(project)
    found: dict[str, int] = {}
    for source in project.below(APISERVER):
        if is_in(source.module, [STRATEGIES]):
            continue
        for node in source.nodes(ast.Compare):
            report.looked_at += 1
            if asks_for_a_kind(node, constants, words):
                found.setdefault(source.path, node.lineno)
    text = "it asks for a single kind; use the kind's strategy or a table, or write `# check: asks for kinds because …`"
    report.needs_marker(project, "asks for kinds", found, text)


def kinds_of(project: Project) -> tuple[set[str], set[str]]:
    """Return the names of all constants that are a kind (`PODS`), and the words for kinds (`pods`, `Pod`)."""
    constants, words = set[str](), set(WORDS)
    for source in project.sources:
        for node in source.tree.body if "Resource(" in source.text else ():
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Call(func=ast.Name(id="Resource"), args=[_, _, ast.Constant(value=plural), *_]),
                ) if name.isupper():
                    constants.add(name)
                    words.add(str(plural))
    return constants, words


def asks_for_a_kind(node: ast.Compare, constants: set[str], words: set[str]) -> bool:
    """Return True for `resource is PODS`, `resource in (PODS, NODES)` and comparisons with a kind's plural or word."""

    def single(node: ast.expr) -> bool:
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return any(single(each) for each in node.elts)
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and node.value in words
        return ast.unparse(node).rpartition(".")[2] in constants

    return ast.unparse(node.left).split(".")[0] in NAMES and any(single(each) for each in node.comparators)
