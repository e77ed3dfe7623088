"""Hold findings, where they are in the files, and whether they are suppressed. Data only."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from lastcall.lint.catalogue.rule import SEVERITIES, Severity
from lastcall.lint.subject import Finding, NotChecked, NotHere


class Spot(NamedTuple):
    """`line` and `column` count from 1, in what was rendered where Helm made it of a `template`."""

    file: str
    line: int
    column: int
    template: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}{self.of}"

    @property
    def of(self) -> str:
        """Return the template in brackets, for texts."""
        return f" ({self.template})" if self.template else ""


class Suppression(NamedTuple):
    """`by`: a comment, an annotation of the object, or the file of suppressions."""

    by: Literal["comment", "annotation", "file"]
    reason: str


class Located(NamedTuple):
    finding: Finding
    spot: Spot
    suppressed: Suppression | None = None


class LintResult(NamedTuple):
    """Hold all that lint reports. `files`: what was read; `fixed`: what `--fix` has changed."""

    findings: Sequence[Located]
    not_here: Sequence[tuple[NotHere, Spot]]
    files: Sequence[str]
    objects: int
    exit_status: int
    version: str
    fixed: Sequence[Located] = ()
    not_checked: Sequence[tuple[NotChecked, Spot]] = ()

    @property
    def open(self) -> list[Located]:
        """Return those that nobody suppressed."""
        return [each for each in self.findings if each.suppressed is None]

    def number_of(self, severity: Severity) -> int:
        return sum(each.finding.severity == severity for each in self.open)


def at_least(severity: Severity, threshold: Severity) -> bool:
    """Return whether it is as bad as `threshold`, or worse."""
    return SEVERITIES.index(severity) <= SEVERITIES.index(threshold)
