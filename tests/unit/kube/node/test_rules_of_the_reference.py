"""Every rule of the reference is kept by a test or listed with a reason, and the pages show what is."""

import pytest
import rules_table
import workers_diagram

UPDATE = "run: python tests/support/rules_table.py"


Joined = tuple[list[rules_table.Section], list[str]]


@pytest.fixture(scope="module")
def joined() -> Joined:
    return rules_table.joined()


def test_every_rule_is_kept_or_listed_and_every_marker_names_one(joined: Joined) -> None:
    assert not joined[1], "\n".join(joined[1])


def test_the_page_shows_the_rules_of_now(joined: Joined) -> None:
    text = rules_table.PAGE.read_text()
    assert text == rules_table.written(text, joined[0]), UPDATE


def test_the_picture_of_the_workers_is_that_of_the_table() -> None:
    text = workers_diagram.PAGE.read_text()
    assert text == workers_diagram.written(text), "run: python tests/support/workers_diagram.py"


SOURCE = """
import pytest

CASES = [pytest.param(1, marks=pytest.mark.rule("node-semantics 5.4/4"))]

@pytest.mark.rule("node-semantics 5.4/1, 25/1")
def test_one(): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("node-semantics 5.4/2")), 2])
async def test_two(x): ...

class TestThree:
    @pytest.mark.rule("node-semantics 5.4/3")
    def test_three(self): ...

@pytest.mark.parametrize("x", CASES)
def test_four(x): ...
"""


def test_markers_are_found_on_tests_and_on_their_cases() -> None:
    found = [(id_.split()[1], marked.test) for id_, marked in rules_table.markers_of(SOURCE, "t.py")]
    assert sorted(found) == [
        ("25/1", "test_one"),
        ("5.4/1", "test_one"),
        ("5.4/2", "test_two"),
        ("5.4/3", "test_three"),
        ("5.4/4", "test_four"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        '@pytest.mark.rule("5.4/1")\ndef test_x(): ...',
        "@pytest.mark.rule()\ndef test_x(): ...",
        "@pytest.mark.rule(ROW)\ndef test_x(): ...",
        '@pytest.mark.rule("node-semantics 5.4/1")\ndef helper(): ...',
        'CASES = [pytest.param(1, marks=pytest.mark.rule("node-semantics 5.4/1"))]',
    ],
)
def test_a_marker_that_says_nothing_or_that_no_test_has_is_an_error(line: str) -> None:
    with pytest.raises(rules_table.BadTable, match=r"t\.py:"):
        list(rules_table.markers_of(line, "t.py"))


def judged(table: str, *ids: str) -> list[str]:
    marked = [(f"node-semantics {id_}", rules_table.Marked("t.py", "test_x")) for id_ in ids]
    return rules_table.joined(rules_table.sections(table), marked)[1]


def test_what_the_table_refuses() -> None:
    assert judged("5 S: {1: a rule}", "5/1") == []
    assert judged("5 S: {1: {what: a rule, differs: why}}", "5/1") == []
    (text,) = judged("5 S: {1: a rule}")
    assert text.startswith("node-semantics 5/1 (a rule) has no test")
    (text,) = judged("5 S: {1: a rule}", "5/1", "5/2")
    assert "is marked with 'node-semantics 5/2'" in text
    for state in ("missing", "not taken"):
        (text,) = judged(f"5 S: {{1: {{what: a rule, {state}: why}}}}", "5/1")
        assert f"node-semantics 5/1 is {state!r}" in text


@pytest.mark.parametrize("entry", ["{what: x}", "{differs: why}", "{what: x, differs: ''}", "{what: x, later: why}"])
def test_a_row_needs_a_rule_a_state_and_a_reason(entry: str) -> None:
    with pytest.raises(rules_table.BadTable, match="node-semantics 5/1"):
        rules_table.sections(f"5 S: {{1: {entry}}}")
