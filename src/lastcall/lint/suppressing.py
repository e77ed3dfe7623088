"""Suppressions: comments, annotations and a file, each with its reason. Pure."""

# check: pure

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.located import Located, Spot, Suppression
from lastcall.lint.subject import Subject, found
from lastcall.manifests import shown_path
from lastcall.world.dataclass import dataclass

ANNOTATION = "lint.lastcall/ignore."
"""Followed by the rule; the value is the reason. For what a comment does not reach: Helm's and kustomize's output."""

COMMENT = re.compile(r"#\s*lastcall-lint:\s*(.*)$")
_IGNORE = re.compile(r"ignore\s+(?P<rules>[A-Za-z]+(?:\s*,\s*[A-Za-z]+)*)\s*(?:--\s*(?P<reason>.*))?$")
SYNTAX = "# lastcall-lint: ignore RULE -- reason"

NEVER = ("suppressionInvalid", "suppressionUnused")


@dataclass(slots=True)
class Comment:
    """A comment of the file, with the lines that it is about (its field with everything below)."""

    spot: Spot
    first: int
    last: int
    rules: tuple[str, ...] = ()
    reason: str = ""
    problem: str = ""
    used: set[str] = field(default_factory=set)


def read_comment(spot: Spot, text: str, first: int, last: int) -> Comment:
    """Read a suppression; `text` is what follows `lastcall-lint:`."""
    match = _IGNORE.match(text.strip())
    if match is None:
        return Comment(spot, first, last, problem=f"{text.strip()!r} is not a suppression: write `{SYNTAX}`.")
    rules = tuple(each.strip() for each in match["rules"].split(","))
    unknown = [each for each in rules if each not in RULES]
    reason = (match["reason"] or "").strip()
    problem = f"There is no rule {unknown[0]}." if unknown else ""
    problem = problem or ("" if reason else f"The suppression of {rules[0]} gives no reason: write `{SYNTAX}`.")
    return Comment(spot, first, last, rules, reason, problem)


@dataclass(slots=True)
class Entry:
    """One of the file of suppressions. `object` is `Kind/name` or "" for all, `path` the beginning of a field path."""

    rule: str
    reason: str
    object: str = ""
    namespace: str = ""
    file: str = ""
    path: str = ""
    used: bool = False

    def is_about(self, located: Located) -> bool:
        finding = located.finding
        subject = finding.subject
        return (
            self.rule == finding.rule
            and self.object in ("", f"{subject.kind}/{subject.name}")
            and self.namespace in ("", subject.namespace)
            and self.file in ("", located.spot.file)
            and shown_path(finding.path).startswith(self.path)
        )


def read_entries(value: Any) -> list[Entry]:
    """Return the file's content. Raises ValueError with what is wrong, in words for a user."""
    listed = value.get("suppressions") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        raise ValueError("must have a list `suppressions`")
    names = ("rule", "reason", "object", "namespace", "file", "path")
    entries = []
    for number, each in enumerate(listed, 1):
        where = f"suppression {number}"
        if not isinstance(each, dict) or not all(isinstance(item, str) for item in each.values()):
            raise ValueError(f"{where}: must be an object of texts: {', '.join(names)}")
        if unknown := [name for name in each if name not in names]:
            raise ValueError(f"{where}: {unknown[0]!r} is not a field: there are {', '.join(names)}")
        if each.get("rule") not in RULES:
            raise ValueError(f"{where}: there is no rule {each.get('rule')!r}")
        if not str(each.get("reason") or "").strip():
            raise ValueError(f"{where} ({each['rule']}): give a reason")
        entries.append(Entry(**each))
    return entries


def suppressed(
    findings: Sequence[Located],
    comments: Sequence[Comment],
    entries: Sequence[Entry],
    subjects: Sequence[tuple[Subject, Spot]],
) -> list[Located]:
    """Return the findings, with what suppressed them, and what is wrong with the suppressions themselves."""
    located = [each._replace(suppressed=_by(each, comments, entries)) for each in findings]
    located += [_about_comment(each) for each in comments if each.problem]
    for comment in comments:
        unused = [] if comment.problem else [rule for rule in comment.rules if rule not in comment.used]
        if unused:
            text = f"There is no {unused[0]} to suppress here."
            located.append(Located(found("suppressionUnused", _nobody(), (), text), comment.spot))
    for subject, spot in subjects:
        located += _about_annotations(subject, spot)
    return located


def _by(located: Located, comments: Sequence[Comment], entries: Sequence[Entry]) -> Suppression | None:
    rule, spot = located.finding.rule, located.spot
    if rule in NEVER:
        return None
    for comment in comments:
        inside = comment.spot.file == spot.file and comment.first <= spot.line <= comment.last
        if inside and rule in comment.rules and not comment.problem:
            comment.used.add(rule)
            return Suppression("comment", comment.reason)
    reason = str(_annotations(located.finding.subject).get(f"{ANNOTATION}{rule}") or "").strip()
    if reason:
        return Suppression("annotation", reason)
    for entry in entries:
        if entry.is_about(located):
            entry.used = True
            return Suppression("file", entry.reason)
    return None


def _annotations(subject: Subject) -> dict[str, Any]:
    annotations = subject.metadata.get("annotations")
    return annotations if isinstance(annotations, dict) else {}


def _about_comment(comment: Comment) -> Located:
    return Located(found("suppressionInvalid", _nobody(), (), comment.problem), comment.spot)


def _about_annotations(subject: Subject, spot: Spot) -> Iterator[Located]:
    for key, value in _annotations(subject).items():
        if not isinstance(key, str) or not key.startswith(ANNOTATION):
            continue
        rule = key.removeprefix(ANNOTATION)
        problem = "" if rule in RULES else f"Annotation {key}: there is no rule {rule}."
        problem = problem or ("" if str(value or "").strip() else f"Annotation {key} gives no reason.")
        if problem:
            path = ("metadata", "annotations", key)
            yield Located(found("suppressionInvalid", subject, path, problem), spot)


def _nobody() -> Subject:
    return Subject({}, None)
