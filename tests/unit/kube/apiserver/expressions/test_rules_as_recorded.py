"""Rules of declared kinds (x-kubernetes-validations), and what Kubernetes 1.36.2 said of them and by them."""

import asyncio
import copy
import json
import re
from pathlib import Path

import pytest

from lastcall.kube.apiserver.expressions.checks import rule_errors
from lastcall.kube.apiserver.expressions.rules import QUICK, Evaluation, TooDearError, evaluated, rules_of
from lastcall.world.world import World

RECORDED = json.loads(Path(__file__).with_name("data").joinpath("rules.json").read_text())
RULES = "x-kubernetes-validations"
EVALUATED = RECORDED["evaluated"]
SCHEMA = EVALUATED["schema"]


def definition(rules: dict) -> dict:
    """`rules` by their place in the spec's schema, or at the root; or a whole schema."""
    if "whole" in rules:
        return {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": rules["whole"]}}]}}
    spec = copy.deepcopy(RECORDED["spec"])
    schema = {"type": "object", "properties": {"spec": spec}}
    for place, given in rules.items():
        node = schema if place == "root" else spec
        for step in [] if place == "root" else place.split("/")[1:]:
            node = node[step]
        node[RULES] = given
    return {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}


@pytest.mark.parametrize("row", RECORDED["written"], ids=lambda row: row["name"])
def test_a_rule_that_cannot_be_evaluated_is_refused_in_kubernetess_words(row: dict) -> None:
    found = [re.sub(r"selfType\d*", "selfType", str(each)) for each in rule_errors(definition(row["rules"]))]
    assert sorted(found) == sorted(row["causes"])


@pytest.mark.parametrize("number", range(len(EVALUATED["rows"])))
def test_rules_say_of_an_object_what_kubernetes_says(number: int) -> None:
    row = EVALUATED["rows"][number]
    rules = rules_of(SCHEMA)
    assert rules is not None
    new, old = ({"metadata": {"name": "x"}, "spec": spec} if spec else None for spec in (row["new"], row["old"]))
    evaluation = Evaluation()
    for _ in evaluation.of(rules, new, old):
        pass
    assert sorted(map(str, evaluation.errors)) == sorted(row["causes"])
    assert len(evaluation.warnings) == row["warnings"]


def test_rules_end_with_the_budget_of_the_object() -> None:
    rule = {"rule": "self.all(x, self.all(y, x != 'b' || y != 'b'))"}
    schema = {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "string"}, RULES: [rule, {"rule": "false"}]}},
    }
    rules = rules_of(schema)
    assert rules is not None
    evaluation = Evaluation()
    stops = sum(1 for _ in evaluation.of(rules, {"l": ["a"] * 2000}, None))
    assert stops == 0
    (error,) = evaluation.errors
    assert "call cost exceeds limit for rule" in error.detail


def test_others_get_their_turn_between_rules_that_cost_much() -> None:
    rule = {"rule": "self.l.all(x, self.l.all(y, x != 'b' || y != 'b'))"}
    inner = {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}, RULES: [rule]}
    rules = rules_of({"type": "object", "properties": {"a": inner, "b": inner}})
    assert rules is not None
    many = {"l": ["a"] * 120}  # each costs more than may be spent at once
    assert len(list(Evaluation().of(rules, {"a": many, "b": many}, None))) == 2


def test_what_is_dear_is_evaluated_in_a_thread() -> None:
    given = [{"rule": "self.all(x, self.all(y, x != 'b' || y != 'b'))"}, {"rule": "self.size() < 3"}]
    inner = {"type": "array", "items": {"type": "string"}, RULES: given}
    rules = rules_of({"type": "object", "properties": {"l": inner}})
    assert rules is not None
    evaluation = asyncio.run(evaluated(rules, {"l": ["a"] * 120}, None, World().clock))
    assert [each.detail for each in evaluation.errors] == ["failed rule: self.size() < 3"]
    with pytest.raises(TooDearError):
        list(Evaluation(most=QUICK).of(rules, {"l": ["a"] * 120}, None))
