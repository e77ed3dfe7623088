"""Which rules of a Kubernetes reference are kept, and by which tests: a table, a scan of markers, a page.

`@pytest.mark.rule("node-semantics 5.4/3, 25/7")` on a test says that it fails when row 3 of section 5.4 or row 7 of
section 25 is broken. One case of a parametrized test has `marks=pytest.mark.rule(...)`. The table is tests/rules.yaml:

    section number and title:
      row: what the rule says, in a few words     kept: at least one test must be marked with it
      row: {what: …, differs: why}                not as in Kubernetes, and stays so; tests may say how it differs
      row: {what: …, not taken: why}              out of scope
      row: {what: …, missing: why}                will be kept; once a test is marked with it, the line must go

`python tests/support/rules_table.py` writes the page (docs/fidelity.md). Markers are found by reading the source: no
test is imported or run.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
TABLE = TESTS / "rules.yaml"
PAGE = ROOT / "docs" / "fidelity.md"
BEGIN, END = "<!-- node rules: begin -->\n", "<!-- node rules: end -->\n"
REFERENCE = "node-semantics"
STATES = ("differs", "not taken", "missing")
SHOWN_TESTS = 3


@dataclass(frozen=True)
class Marked:
    """A test function that carries a marker. `path` is relative to tests/."""

    path: str
    test: str


@dataclass
class Rule:
    """One row. `state` is "done", "differs", "not taken" or "missing"; `why` is "" for "done"."""

    id: str
    what: str
    state: str = "done"
    why: str = ""
    tests: list[Marked] = field(default_factory=list)


@dataclass
class Section:
    number: str
    title: str
    rules: list[Rule]


class BadTable(ValueError):
    """The table or a marker is not what it should be; the text says where."""


def sections(text: str | None = None) -> list[Section]:
    """The table as it is written. Raises BadTable."""
    found = []
    for heading, rows in yaml.safe_load(TABLE.read_text() if text is None else text).items():
        number, _, title = str(heading).partition(" ")
        section = Section(number, title, [])
        for row, entry in rows.items():
            section.rules.append(_rule(f"{REFERENCE} {number}/{row}", entry))
        found.append(section)
    return found


def _rule(id_: str, entry: Any) -> Rule:
    if isinstance(entry, str):
        return Rule(id_, entry)
    states = [key for key in entry if key in STATES]
    if "what" not in entry or len(states) != 1 or len(entry) != 2 or not entry[states[0]]:
        raise BadTable(f"{id_}: wanted are `what` and one of {', '.join(STATES)} with a reason, found {entry}")
    return Rule(id_, entry["what"], states[0], entry[states[0]])


# -- markers ----------------------------------------------------------------------------------------------------------


def markers(root: Path = TESTS) -> Iterator[tuple[str, Marked]]:
    """(rule id, test) of every marker below `root`, in the order of files and lines. Raises BadTable."""
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        if "mark.rule" in text:
            yield from markers_of(text, path.relative_to(root).as_posix())


def markers_of(text: str, path: str) -> Iterator[tuple[str, Marked]]:
    """The markers in one source text."""
    tree = ast.parse(text)
    used: set[ast.Call] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                for call in _marker_calls(decorator):
                    used.add(call)
                    for id_ in _ids(call, path):
                        yield id_, Marked(path, node.name)
    # A table of cases that has a name of its own: the cases belong to the tests that are parametrized with it.
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            calls = list(_marker_calls(node.value))
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            users = [
                test
                for test in tree.body
                if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef)
                and any(isinstance(n, ast.Name) and n.id in names for d in test.decorator_list for n in ast.walk(d))
            ]
            for call in calls if users else ():
                used.add(call)
                for id_ in _ids(call, path):
                    yield from ((id_, Marked(path, test.name)) for test in users)
    for call in _marker_calls(tree):
        if call not in used:
            raise BadTable(f"{path}:{call.lineno}: a rule marker that no test has")


def _marker_calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule":
            yield node


def _ids(call: ast.Call, path: str) -> list[str]:
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if len(texts) != 1 or len(call.args) != 1 or call.keywords or not texts[0].startswith(REFERENCE + " "):
        raise BadTable(f"{path}:{call.lineno}: a rule marker takes one text such as {REFERENCE + ' 5.4/3, 25/7'!r}")
    return [f"{REFERENCE} {row.strip()}" for row in texts[0].removeprefix(REFERENCE).split(",")]


# -- judgement --------------------------------------------------------------------------------------------------------


def joined(
    table: list[Section] | None = None, marked_tests: Iterable[tuple[str, Marked]] | None = None
) -> tuple[list[Section], list[str]]:
    """The table with its tests, and everything that is wrong with it. Those of the repository without arguments."""
    table = sections() if table is None else table
    rules = {rule.id: rule for section in table for rule in section.rules}
    wrong = []
    for id_, marked in markers() if marked_tests is None else marked_tests:
        rule = rules.get(id_)
        if rule is None:
            wrong.append(f"{marked.path}::{marked.test} is marked with {id_!r}, which tests/rules.yaml does not have")
        elif marked not in rule.tests:
            rule.tests.append(marked)
    for rule in rules.values():
        if rule.state == "done" and not rule.tests:
            wrong.append(f"{rule.id} ({rule.what}) has no test; mark one, or say differs, not taken or missing")
        if rule.state in ("missing", "not taken") and rule.tests:
            wrong.append(f"{rule.id} is {rule.state!r} in tests/rules.yaml, yet {rule.tests[0].test} is marked with it")
    return table, wrong


# -- the page ---------------------------------------------------------------------------------------------------------


def page(table: list[Section]) -> str:
    """The table as Markdown."""
    every = [rule for section in table for rule in section.rules]
    counts = {state: sum(rule.state == state for rule in every) for state in ("done", *STATES)}
    numbers = ", ".join(f"{count} {state}" for state, count in counts.items())
    out = [f"{len(every)} rules: {numbers}.\n"]
    for section in table:
        out += [f"### {section.number} {section.title}\n", "| | rule | |", "|---|---|---|"]
        out += [f"| {rule.id.rpartition('/')[2]} | {_cell(rule.what)} | {_held(rule)} |" for rule in section.rules]
        out.append("")
    return "\n".join(out)


def _held(rule: Rule) -> str:
    tests = [f"[{m.test.removeprefix('test_').replace('_', ' ')}](../tests/{m.path})" for m in rule.tests]
    more = len(tests) - SHOWN_TESTS
    shown = "; ".join(tests[:SHOWN_TESTS]) + (f"; {more} more" if more > 0 else "")
    if rule.state == "done":
        return shown
    return f"**{rule.state}**: {_cell(rule.why)}" + (f" ({shown})" if shown else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def written(text: str, table: list[Section]) -> str:
    """`text` of docs/fidelity.md with the table of now."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise BadTable(f"docs/fidelity.md has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{head}{BEGIN}{page(table)}{END}{tail}"


if __name__ == "__main__":
    result, problems = joined()
    PAGE.write_text(written(PAGE.read_text(), result))
    print("\n".join(problems) or "every rule is kept or listed")
