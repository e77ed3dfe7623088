"""Findings for people: where, what, why, the fix, and how sure. `text` quotes every line. Pure."""

import json
from collections.abc import Callable, Iterator

from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.catalogue.rule import Certainty, Severity
from lastcall.lint.located import LintResult, Located, Spot
from lastcall.lint.subject import NotChecked, Op
from lastcall.manifests import shown_path
from lastcall.records.quoting import log_line, one_line, without_commands

CERTAINTY: dict[Certainty, str] = {
    "certain": "certain from the manifests",
    "dependsOnApplication": "depends on the application: try `lastcall run` for how it ends, `lastcall rollout` for "
    "lost requests",
    "dependsOnCluster": "depends on what else is in the cluster",
}
_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}

Style = Callable[..., str]
"""`click.style`, or something that leaves the text as it is."""
_Line = str | tuple[str, Severity, str]
"""A line, or the text before, in and after its coloured word."""


_NOT_CHECKED = {
    "kind": "Custom kinds, not checked:",
    "hook": "Hooks that Helm runs, not checked as parts of the application:",
}


def plain(text: str, **style: object) -> str:
    return text


def text(result: LintResult, style: Style = plain) -> str:
    """Return everything, with a summary at its end."""
    lines: list[_Line] = [f"{_where(each)}: fixed: {each.finding.message}" for each in result.fixed]
    for each in result.open:
        lines += _finding(each)
    if result.not_here:
        lines += ["Not in these files, and therefore not checked:", *_not_here(result), ""]
    for why, head in _NOT_CHECKED.items():
        if listed := [_not_checked(each, spot) for each, spot in result.not_checked if each.why == why]:
            lines += [head, *listed, ""]
    return "".join(f"{_shown(line, style)}\n" for line in (*lines, _summary(result)))


def _shown(line: _Line, style: Style) -> str:
    if isinstance(line, str):
        return log_line(line)
    before, severity, after = line
    coloured = style(severity, fg=_COLOURS[severity], bold=True)
    return without_commands(f"{one_line(before)}{coloured}{one_line(after)}")


def _where(located: Located) -> str:
    return str(located.spot)


def _finding(located: Located) -> Iterator[_Line]:
    finding = located.finding
    yield f"{_where(located)}: ", finding.severity, f" {finding.rule}: {finding.message}"
    path = shown_path(finding.path)
    if path:
        yield f"    at: {finding.subject} {path}"
    if finding.severity != "info":
        yield f"    why: {RULES[finding.rule].why}"
    yield f"    fix: {finding.fix}"
    for op in finding.patch:
        yield f"      {shown_op(op)}"
    yield f"    {CERTAINTY[finding.certainty]} (rule: {RULES[finding.rule].source})"
    yield ""


def shown_op(op: Op) -> str:
    """Return an operation as one would say it: `spec.replicas: 2`."""
    if op.op == "remove":
        return f"remove {shown_path(op.path)}"
    return f"{shown_path(op.path)}: {json.dumps(op.value, ensure_ascii=False)}"


def _not_here(result: LintResult) -> Iterator[str]:
    for each, spot in result.not_here:
        what = f"Pods with {each.name}" if each.kind == "Pod" else f"{each.kind} {each.name}"
        yield f"    {what} (namespace {each.namespace}), for {each.subject}, {spot.file}:{spot.line}{spot.of}"


def _not_checked(each: NotChecked, spot: Spot) -> str:
    return f"    {each.subject} ({each.subject.raw.get('apiVersion')}), {spot.file}:{spot.line}{spot.of}"


def _summary(result: LintResult) -> str:
    counts = [
        _count(result.number_of("error"), "error"),
        _count(result.number_of("warning"), "warning"),
        _count(result.number_of("info"), "note"),
    ]
    suppressed = len(result.findings) - len(result.open)
    said = ", ".join(each for each in counts if not each.startswith("0 ")) or "nothing found"
    more = f"; {suppressed} suppressed" if suppressed else ""
    return f"{said} in {_count(result.objects, 'object')} of {_count(len(result.files), 'file')}{more}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
