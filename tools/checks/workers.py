"""The state of a Pod's worker is set in one place."""

import ast
from collections.abc import Iterator

from checks.report import Report
from checks.source import Project, is_in

STATUS = "PodSyncStatus"
SETTER = "move"
"""The function beside the class that sets its state."""


def worker_state(project: Project, report: Report) -> None:
    """Check that only `move` sets the state of a Pod's worker, and that only its package uses the type."""
    home = [each for each in project.sources if f"class {STATUS}" in each.text and _defines(each.tree)]
    for source in home:
        package = source.module.rpartition(".")[0]
        for other in project.sources:
            inside = is_in(other.module, [package])
            for each in other.imports:
                if each.name == STATUS and not inside:
                    report.wrong(
                        other, each.line, f"{STATUS} is imported outside of {package}; ask the workers instead"
                    )
            if not inside:
                continue
            for line, function in writers_of_state(other.tree):
                if other is source and function == SETTER:
                    report.looked_at += 1
                else:
                    text = f"{function or 'the module'} sets the state of a worker; call {SETTER} of {source.module}"
                    report.wrong(other, line, text)


def _defines(tree: ast.Module) -> bool:
    return any(isinstance(each, ast.ClassDef) and each.name == STATUS for each in tree.body)


def writers_of_state(tree: ast.AST, place: str = "") -> Iterator[tuple[int, str]]:
    """Yield (line, function) where a `state` is given to a status, or could be.

    That is as an argument of `replace` or of the status itself, by arguments that are not spelled out, by assignment,
    or past the dataclass.
    """
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else place
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            keywords = {keyword.arg for keyword in node.keywords}
            positional = called == STATUS and (
                len(node.args) > 2 or any(isinstance(each, ast.Starred) for each in node.args)
            )
            gives = called in ("replace", STATUS, "__replace__") and (keywords & {"state", None} or positional)
            if gives or called in ("setattr", "__setattr__"):
                yield node.lineno, inside
        elif isinstance(node, ast.Attribute) and node.attr == "state" and isinstance(node.ctx, ast.Store):
            yield node.lineno, inside
        yield from writers_of_state(node, inside)
