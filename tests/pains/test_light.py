"""The light pains' own book-keeping, without a cluster: every rule of lint is proven, or says why it is not."""

import pytest
from light import Light, exempted, judge_apply, judge_lint, load_lights
from pain import load_all

from lastcall.lint.catalogue.lookup import RULES

LIGHTS = load_lights()


def test_every_rule_is_proven_by_a_pain_or_says_why_not() -> None:
    proven = {rule for each in load_all() if not each.known for rule in each.lint} | {each.rule for each in LIGHTS}
    assert set(RULES) == proven | set(exempted())
    assert not proven & set(exempted())
    assert all(len(why) > 40 for why in exempted().values())


@pytest.mark.parametrize("light", LIGHTS, ids=lambda each: each.rule)
def test_lint_names_it_where_it_is_and_is_content_with_the_fix(light: Light, tmp_path) -> None:
    assert list(judge_lint(light, tmp_path)) == []


@pytest.mark.parametrize("light", LIGHTS, ids=lambda each: each.rule)
def test_it_says_what_happens(light: Light) -> None:
    assert bool(light.refused) + bool(light.warned) + bool(light.happens) == 1
    assert light.what.endswith(".") and light.words.endswith(".")
    assert light.manifest(fixed=True) != light.manifest(fixed=False)


def test_a_refusal_that_does_not_come_fails_and_so_does_one_of_the_fixed_manifest() -> None:
    light = Light("unknownField", "api", "x", "x", "x", "", refused="unknown field")
    for status, said, fixed, passes in (
        (1, "unknown field", False, True),
        (1, "another text", False, False),
        (0, "created", False, False),
        (0, "created", True, True),
        (1, "unknown field", True, False),
    ):
        assert (not list(judge_apply(light, status, said, fixed=fixed))) is passes


def test_a_warning_has_to_come_and_to_go() -> None:
    light = Light("apiWarning", "api", "x", "x", "x", "", warned="deprecated")
    for said, fixed, passes in (
        ("deprecated", False, True),
        ("", False, False),
        ("", True, True),
        ("deprecated", True, False),
    ):
        assert (not list(judge_apply(light, 0, said, fixed=fixed))) is passes
