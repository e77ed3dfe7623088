"""Findings where they are in the files, and whether somebody suppressed them. Data only."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from lastcall.lint.catalogue.rule import SEVERITIES, Severity
from lastcall.lint.subject import Finding, NotHere


@dataclass(frozen=True, slots=True)
class Spot:
    """`line` and `column` count from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Suppression:
    """`by`: a comment, an annotation of the object, or the file of suppressions."""

    by: Literal["comment", "annotation", "file"]
    reason: str


@dataclass(frozen=True, slots=True)
class Located:
    finding: Finding
    spot: Spot
    suppressed: Suppression | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """All that there is to tell. `files`: what was read; `fixed`: what `--fix` has changed."""

    findings: Sequence[Located]
    not_here: Sequence[tuple[NotHere, Spot]]
    files: Sequence[str]
    objects: int
    exit_status: int
    version: str
    fixed: Sequence[Located] = field(default=())

    @property
    def open(self) -> list[Located]:
        """Those that nobody suppressed."""
        return [each for each in self.findings if each.suppressed is None]

    def count(self, severity: Severity) -> int:
        return sum(each.finding.severity == severity for each in self.open)


def at_least(severity: Severity, threshold: Severity) -> bool:
    """Whether it is as bad as `threshold`, or worse."""
    return SEVERITIES.index(severity) <= SEVERITIES.index(threshold)
