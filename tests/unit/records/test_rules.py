"""Every rule has one name, one source, and something that names it."""

from pathlib import Path

import orjson

from lastcall.records import rules
from lastcall.records.rules import SAYS
from lastcall.records.words import KINDS
from lastcall.ui.tour.levels import levels

LESSON = Path(__file__).parents[3] / "ui" / "src" / "tour.json"
RULES = {name: value for name, value in vars(rules).items() if name.isupper() and isinstance(value, str)}


def test_each_rule_has_a_source_and_a_sentence_of_its_own() -> None:
    assert len(set(RULES.values())) == len(RULES) <= len(SAYS)
    assert [each for each in RULES.values() if not rules.explanation(each)] == []
    assert [each for each, says in SAYS.items() if ".go:" not in each or not says.endswith(".")] == []


def test_each_rule_is_that_of_a_kind_of_record_or_is_shown_by_the_page() -> None:
    shown = {step["rule"] for step in orjson.loads(LESSON.read_bytes())["steps"]}
    shown |= {level.rule for level in levels().values()} | {rules.WAIT_FOR_TURN}  # the live page's predictions
    recorded = {rule for kind in KINDS.values() for rule in kind.rules}
    assert sorted(set(RULES.values()) - recorded - {rules.WAIT_FOR_TURN}) == []
    assert set(SAYS) == {each.rpartition("/")[2] for each in recorded | shown}
