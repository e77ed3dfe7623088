"""What a rule found: violations, and how much it looked at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from checks.source import Project, Source


class Violation(NamedTuple):
    """A place that breaks a rule. `text` says what is wrong and what to do."""

    path: str
    line: int
    text: str


@dataclass
class Report:
    """What one rule found. A rule counts in `looked_at` what it looked at."""

    looked_at: int = 0
    violations: list[Violation] = field(default_factory=list)

    def wrong(self, where: Source | str, line: int, text: str) -> None:
        """Add a violation."""
        path = where if isinstance(where, str) else where.path
        self.violations.append(Violation(path, line, text))

    def needs_marker(self, project: Project, word: str, found: Mapping[str, int], text: str) -> None:
        """Add a violation for each file in `found` (path → line) without the marker, and each marker without need."""
        for source in project.sources:
            marker = source.marker(word)
            if source.path in found and not marker:
                self.wrong(source, found[source.path], text)
            elif marker and source.path not in found:
                self.wrong(source, marker.line, f"the marker '{word}' has no effect; remove it")


class Rule(NamedTuple):
    """A rule with its name, its function and what it counts; it fails if it looked at less than `least`."""

    name: str
    check: Callable[[Project, Report], None]
    unit: str
    least: int = 1

    def run(self, project: Project) -> Report:
        """Return what the rule finds in the project."""
        report = Report()
        self.check(project, report)
        if report.looked_at < self.least:
            text = f"it looked at {report.looked_at} {self.unit}, fewer than {self.least}; correct how it finds them"
            report.wrong("tools/checks", 1, text)
        return report
