"""The catalogue of what lastcall says is whole, and in step with the code that asks it."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from string import Template

import pytest

from lastcall.lint.catalogue.lookup import RULES
from lastcall.timeline.catalogue.lookup import CATALOGUE

SOURCE = Path(__file__).resolve().parents[4] / "src" / "lastcall"
ASKERS = {"said": "texts", "fix": "fixes"}
VAGUE = re.compile(r"could not be had|in vain|\bis none\b|way out:|mend that", re.IGNORECASE)


def calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if "catalogue" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield node.func.id, node


def test_every_finding_that_the_source_makes_stands_in_the_catalogue() -> None:
    made = {
        node.args[0].value
        for name, node in calls()
        if name == "Finding" and node.args and isinstance(node.args[0], ast.Constant)
    }
    assert len(made) > 20
    assert made <= set(CATALOGUE)


def test_every_text_that_is_asked_for_by_a_literal_is_there() -> None:
    asked: dict[str, set[str]] = defaultdict(set)
    for name, node in calls():
        if name not in ASKERS or not node.args or not isinstance(node.args[0], ast.Constant):
            continue
        id_ = str(node.args[0].value)
        assert id_ in CATALOGUE, id_
        variant = node.args[1] if len(node.args) > 1 else ast.Constant("")
        if isinstance(variant, ast.Constant):
            assert variant.value in getattr(CATALOGUE[id_], ASKERS[name]), (id_, variant.value)
        asked[name].add(id_)
    assert len(asked["said"]) > 20 and len(asked["fix"]) > 5


@pytest.mark.parametrize("id_", sorted(CATALOGUE))
def test_an_entry_is_an_id_a_sentence_and_templates_that_can_be_filled(id_: str) -> None:
    cause = CATALOGUE[id_]
    assert re.fullmatch(r"[a-z][a-zA-Z0-9]*", id_)
    assert cause.title[0].isupper() and cause.title.endswith(".")
    assert not cause.remedy or cause.remedy[0].isalpha() or cause.remedy[0] == "`"
    for text in (cause.title, cause.remedy, *cause.texts.values(), *cause.fixes.values()):
        assert not VAGUE.search(text), text
        assert Template(text).is_valid(), text


def test_whatever_has_a_fix_for_one_pod_has_a_remedy_in_general() -> None:
    assert not [id_ for id_, cause in CATALOGUE.items() if cause.fixes and not cause.remedy]


def test_the_rules_of_lint_that_predict_a_cause_exist() -> None:
    assert {rule for cause in CATALOGUE.values() for rule in cause.lint} <= set(RULES)
