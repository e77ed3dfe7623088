"""The catalogue of what lastcall says is whole, and in step with the code that asks it."""

import re
from string import Template

import pytest

from lastcall.endings.catalogue.lookup import CATALOGUE
from lastcall.lint.catalogue.lookup import RULES

VAGUE = re.compile(r"could not be had|in vain|\bis none\b|way out:|\bmends?\b", re.IGNORECASE)


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
