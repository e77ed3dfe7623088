"""Findings as data: `lastcall/lint/v1` (docs/lint-v1.schema.json), SARIF 2.1.0, GitHub annotations, JUnit. Pure."""

from typing import Any
from urllib.parse import quote

from lastcall.endings.render import Check, Level, checks
from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.catalogue.rule import Severity
from lastcall.lint.located import LintResult, Located, Spot
from lastcall.lint.render.text import CERTAINTY, shown_op
from lastcall.lint.subject import Op, Subject
from lastcall.manifests import Path, shown_path

SCHEMA = "lastcall/lint/v1"
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
SITE = "https://lastcall-k8s.github.io/lastcall"
"""Where the repository's site is: GitHub Pages. Each rule has a page at an address that stays."""


def pointer(path: Path) -> str:
    """Convert a path to a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def _op(op: Op) -> dict[str, Any]:
    value = {} if op.op == "remove" else {"value": op.value}
    return {"op": op.op, "path": pointer(op.path), **value}


def _spot(spot: Spot) -> dict[str, Any]:
    return {"file": spot.file, "line": spot.line, "column": spot.column, "template": spot.template or None}


def _object(subject: Subject) -> dict[str, Any] | None:
    if not subject.kind:
        return None
    return {
        "apiVersion": str(subject.raw.get("apiVersion") or ""),
        "kind": subject.kind,
        "namespace": subject.namespace or None,
        "name": subject.name,
    }


def _finding(located: Located) -> dict[str, Any]:
    finding = located.finding
    rule, by = RULES[finding.rule], located.suppressed
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "certainty": finding.certainty,
        **_spot(located.spot),
        "object": _object(finding.subject),
        "path": shown_path(finding.path),
        "message": finding.message,
        "why": rule.why,
        "source": rule.source,
        "fix": finding.fix,
        "patch": [_op(each) for each in finding.patch],
        "automatic": finding.automatic,
        "suppressed": None if by is None else {"by": by.by, "reason": by.reason},
    }


def as_json(result: LintResult) -> dict[str, Any]:
    """Return the document that docs/lint-v1.schema.json describes."""
    # late: only with --output json
    from lastcall.endings.render import envelope

    return {
        **envelope(SCHEMA),
        "lastcallVersion": result.version,
        "exitStatus": result.exit_status,
        "files": list(result.files),
        "objects": result.objects,
        "summary": {
            "error": result.number_of("error"),
            "warning": result.number_of("warning"),
            "info": result.number_of("info"),
            "suppressed": len(result.findings) - len(result.open),
        },
        "findings": [_finding(each) for each in result.findings],
        "fixed": [_finding(each) for each in result.fixed],
        "notHere": [
            {
                "kind": each.kind,
                "namespace": each.namespace,
                "name": each.name,
                "for": _object(each.subject),
                **_spot(spot),
            }
            for each, spot in result.not_here
        ],
        "notChecked": [
            {"object": _object(each.subject), "why": each.why, **_spot(spot)} for each, spot in result.not_checked
        ],
    }


# -- SARIF -----------------------------------------------------------------------------------------------------------

PROGRAMS = ("helm template", "kustomize")
"""What a name begins with that is no file: `<kustomize overlays/prod>`."""
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def as_sarif(result: LintResult) -> dict[str, Any]:
    """Return one run. Files are relative to where lastcall was started."""
    used = list(dict.fromkeys(each.finding.rule for each in result.findings))
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "lastcall lint",
                        "version": result.version,
                        "rules": [_sarif_rule(id_) for id_ in used],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(each, used.index(each.finding.rule)) for each in result.findings],
            }
        ],
    }


def _sarif_message(text: str) -> dict[str, str]:
    """A text whose braces are no placeholders, and which holds no link (SARIF 2.1.0, 3.11.5 and 3.11.6)."""
    return {"text": text.replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def page_of(id_: str) -> str:
    """Return the address of a rule's page."""
    return f"{SITE}/rules/{id_}.html"


def _sarif_rule(id_: str) -> dict[str, Any]:
    rule = RULES[id_]
    return {
        "id": id_,
        "shortDescription": _sarif_message(rule.title),
        "fullDescription": _sarif_message(f"{rule.title} {rule.why}"),
        "help": _sarif_message(f"{rule.fix} (Source of the rule: {rule.source})"),
        "helpUri": page_of(id_),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(located: Located, index: int) -> dict[str, Any]:
    finding, spot, by = located.finding, located.spot, located.suppressed
    text = f"{finding.message} Fix: {finding.fix} ({CERTAINTY[finding.certainty].capitalize()}.)"
    logical = {"fullyQualifiedName": f"{finding.subject} {shown_path(finding.path)}".strip()}
    place: dict[str, Any] = {"physicalLocation": _physical(spot)}
    if spot.file.startswith("<"):
        logical["fullyQualifiedName"] = f"{spot} {logical['fullyQualifiedName']}".strip()
    if logical["fullyQualifiedName"]:
        place["logicalLocations"] = [logical]
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": _sarif_message(text),
        "locations": [place],
        "properties": {"certainty": finding.certainty, "patch": [_op(each) for each in finding.patch]},
    }
    if by is not None:
        kind = "external" if by.by == "file" else "inSource"
        result["suppressions"] = [{"kind": kind, "justification": by.reason}]
    return result


def _physical(spot: Spot) -> dict[str, Any]:
    """Return the file of a finding; code scanning refuses a result without one.

    stdin is the file `stdin`. What Helm or kustomize printed is the chart or directory, without a line.
    """
    region = {"startLine": spot.line, "startColumn": spot.column}
    if spot.file == "<stdin>":
        return {"artifactLocation": {"uri": "stdin"}, "region": region}
    for program in PROGRAMS:
        if spot.file.startswith(f"<{program} "):
            return {"artifactLocation": {"uri": _uri(spot.file.removeprefix(f"<{program} ").removesuffix(">"))}}
    return {"artifactLocation": {"uri": _uri(spot.file)}, "region": region}


def _uri(file: str) -> str:
    """Return the URI of a file's name, which may have bytes that are not UTF-8 (RFC 3986 2.1)."""
    name = quote(file.removeprefix("./").encode("utf-8", "surrogateescape"))
    return f"file://{name}" if file.startswith("/") else name


# -- GitHub, JUnit ---------------------------------------------------------------------------------------------------

_COMMANDS: dict[Severity, Level] = {"error": "error", "warning": "warning", "info": "notice"}


def as_github(result: LintResult) -> str:
    """Return workflow commands, which GitHub Actions shows beside the lines of a pull request."""
    return checks.as_github(map(_annotation, result.open))


def _annotation(each: Located) -> Check:
    finding, spot = each.finding, each.spot
    return Check(
        suite=spot.file,
        name=finding.rule,
        title=f"{finding.rule} ({finding.subject})" if finding.subject.kind else finding.rule,
        level=_COMMANDS[finding.severity],
        message=f"{finding.message}\nfix: {finding.fix}\n{CERTAINTY[finding.certainty]}",
        place=None if spot.file.startswith("<") else (spot.file, spot.line, spot.column),
    )


def as_junit(result: LintResult) -> str:
    """Return a test suite: a case for each object's findings, failed for errors and warnings; notes are system-out."""
    return checks.as_junit("lastcall lint", [_case(each) for each in result.findings])


def _case(each: Located) -> Check:
    finding = each.finding
    patch = "".join(f"\n  {shown_op(op)}" for op in finding.patch)
    where = str(each.spot)
    return Check(
        suite=each.spot.file,
        name=f"{finding.rule} {finding.subject} {shown_path(finding.path)}".strip(),
        level=_COMMANDS[finding.severity],
        kind=finding.severity,
        message=finding.message,
        body=f"{where}: {finding.message}\nfix: {finding.fix}{patch}\n{CERTAINTY[finding.certainty]}\n",
        skipped=None if each.suppressed is None else each.suppressed.reason,
    )
