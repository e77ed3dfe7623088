"""Markers: what is well formed, what is not, and that one without effect is reported."""

import ast
from pathlib import Path

import pytest
from checks.marker_rule import markers
from checks.markers import read_markers
from checks.report import Report, Rule
from checks.source import Project


def problems(text: str) -> list[str]:
    return [each.problem for each in read_markers(text, ast.parse(text))]


def test_the_parts_of_a_marker_are_read() -> None:
    text = (
        '"""Doc.\n\nMore."""\n\n# check: allow time.time, asyncio.sleep because it is a test\n# check: pure\n\nx = 1\n'
    )
    allow, pure = read_markers(text, ast.parse(text))
    assert (allow.line, allow.word, allow.names) == (5, "allow", ("time.time", "asyncio.sleep"))
    assert (allow.reason, allow.problem) == ("it is a test", "")
    assert (pure.line, pure.word, pure.names, pure.reason, pure.problem) == (6, "pure", (), "", "")


def test_the_longest_word_is_taken() -> None:
    text = '"""Doc."""\n\n# check: pure names REQUEST because it is a word\n'
    (marker,) = read_markers(text, ast.parse(text))
    assert (marker.word, marker.names) == ("pure names", ("REQUEST",))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("# check: impure", "unknown word"),
        ("# check:", "write `# check: <word>"),
        ("#check: pure", "write `# check: <word>"),
        ("# check: observes", "needs a reason"),
        ("# check: observes because", "needs a reason"),
        ("# check: allow because it must", "needs names"),
        ("# check: pure x", "takes no names"),
    ],
)
def test_a_marker_that_is_not_well_formed_says_what_to_write(line: str, problem: str) -> None:
    (found,) = problems(f'"""Doc."""\n\n{line}\n\nx = 1\n')
    assert problem in found


@pytest.mark.parametrize(
    "text", ['"""Doc."""\n\nx = 1\n# check: pure\n', "x = 1  # check: pure\n", "# check: pure\n'''Doc.'''\n"]
)
def test_a_marker_elsewhere_is_to_be_moved(text: str) -> None:
    assert problems(text) == ["move the marker between the docstring and the first statement"]


def test_the_rule_reports_bad_markers_names_without_a_rule_and_doubles(find) -> None:
    files = {
        "bad.py": '"""Doc."""\n\n# check: impure\n',
        "double.py": '"""Doc."""\n\n# check: pure\n# check: pure\n',
        "names.py": '"""Doc."""\n\n# check: allow os.getpid because it is harmless\n',
        "good.py": '"""Doc."""\n\n# check: allow time.time because it is a test\n',
    }
    assert find(markers, files) == ["bad.py:3", "double.py:4", "names.py:3"]


def test_a_rule_that_looks_at_nothing_fails(tmp_path: Path) -> None:
    def sees_two(project: Project, report: Report) -> None:
        report.looked_at += 2

    assert Rule("r", sees_two, "files", 2).run(Project(tmp_path)).violations == []
    (violation,) = Rule("r", sees_two, "files", 3).run(Project(tmp_path)).violations
    assert violation.text == "it looked at 2 files, fewer than 3; correct how it finds them"
