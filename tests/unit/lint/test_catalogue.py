"""The catalogue of rules: stable ids, whole sentences."""

import re

import pytest

from lastcall.lint.catalogue.api import API
from lastcall.lint.catalogue.endings import ENDINGS
from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.catalogue.together import TOGETHER


def test_an_id_is_there_once():
    assert len(RULES) == len(API) + len(ENDINGS) + len(TOGETHER)


@pytest.mark.parametrize("id_", RULES)
def test_a_rule_is_told_in_whole_sentences(id_):
    rule = RULES[id_]
    assert re.fullmatch(r"[a-z][A-Za-z]+", rule.id)
    for text in (rule.title, rule.why, rule.fix):
        assert text.endswith("."), text
    assert rule.source
    assert not any(word in f"{rule.title} {rule.why} {rule.fix}" for word in ("could not be had", "in vain", "way out"))


@pytest.mark.parametrize("id_", [id_ for id_ in RULES if RULES[id_].severity == "error"])
def test_an_error_is_certain_or_becomes_one_when_the_files_are_the_whole_cluster(id_):
    assert RULES[id_].certainty != "dependsOnApplication"
