"""Markers are well formed. The rules that ask for a marker report one that has no effect."""

from checks.doors import DOORS, LIBRARIES
from checks.report import Report
from checks.source import Project


def markers(project: Project, report: Report) -> None:
    """Check that each marker has a known word, its names and its reason, and is in one place only."""
    for source in project.sources:
        words: set[str] = set()
        for marker in source.markers:
            report.looked_at += 1
            if marker.problem:
                report.wrong(source, marker.line, marker.problem)
            if marker.word and marker.word != "allow" and marker.word in words:
                report.wrong(source, marker.line, f"there are two markers '{marker.word}'; write one")
            words.add(marker.word)
            for name in marker.names if marker.word == "allow" else ():
                if name not in DOORS and name not in LIBRARIES:
                    report.wrong(source, marker.line, f"no rule forbids {name}; remove it from the marker")
