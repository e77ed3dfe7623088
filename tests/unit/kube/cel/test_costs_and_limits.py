"""Expressions cost what Kubernetes counts, and nothing grows without end.

`costs.json` has expressions and what each costs. A real kube-apiserver 1.36.2 confirmed them: a loop of N steps, each
of which evaluates the expression, stayed within the limit of a call, and one of N+1 steps did not.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from lastcall.kube.cel.environment import Environment
from lastcall.kube.cel.types import DYN, INT, STRING, Type, list_of, map_of, object_type
from lastcall.kube.cel.values import CostExceeded, EvaluationError

FIELDS: dict[str, dict[str, Type]] = {
    "Self": {
        "x": STRING,
        "u": STRING,
        "z": STRING,
        "n": INT,
        "l": list_of(STRING),
        "m": map_of(STRING, STRING),
        "o": object_type("O"),
        "items": list_of(object_type("Item")),
    },
    "O": {"p": STRING, "deep": object_type("Deep")},
    "Deep": {"r": STRING},
    "Item": {"name": STRING, "v": INT},
}
SELF = {
    "x": "hi",
    "u": "https://example.com/a",
    "n": 5,
    "l": ["a", "b", "c"],
    "m": {"a": "1", "b": "2"},
    "o": {"p": "q", "deep": {"r": "s"}},
    "items": [{"name": "a", "v": 1}, {"name": "b", "v": 2}],
}


class Schema:
    def has(self, name: str) -> bool:
        return name in FIELDS

    def field(self, name: str, field: str) -> Type | None:
        return FIELDS.get(name, {}).get(field)

    def fields(self, name: str) -> Mapping[str, Type]:
        return FIELDS[name]


ENVIRONMENT = Environment({"self": object_type("Self"), "i": INT, "d": DYN}, provider=Schema())


def cost(expression: str) -> int:
    program = ENVIRONMENT.compile(expression)
    try:
        return program.run({"self": SELF, "i": 1, "d": SELF}, limit=1_000_000).cost
    except EvaluationError as error:
        return error.cost


def test_expressions_cost_what_the_real_server_counts() -> None:
    rows = json.loads((Path(__file__).parent / "costs.json").read_text())
    assert len(rows) > 60
    assert [row for row in rows if cost(row[0]) != row[1]] == []


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000000000000).size() > 0",
        "lists.range(900).distinct().size() > 0",
        "lists.range(100000).map(x, x).size() > 0",
        "[d.l]" + "".join(f".map(v{at}, v{at} + v{at})" for at in range(40)) + "[0].size() > 0",
        "[d.x]" + "".join(f".map(v{at}, v{at} + v{at})" for at in range(40)) + "[0].size() > 0",
        "[self.x]" + "".join(f".map(v{at}, v{at}.replace('', v{at}))" for at in range(20)) + "[0].size() > 0",
        "'%.999999999f'.format([1.0]).size() > 0",
        "[[1]].flatten(9223372036854775807).size() > 0",
    ],
)
def test_what_would_be_too_big_ends_like_what_costs_too_much(expression: str) -> None:
    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        cost(expression)


def test_an_error_that_a_macro_ignores_does_not_end_an_expression() -> None:
    program = ENVIRONMENT.compile("[0, 1].exists(v, 1 / v == 1) && [0, 1].all(v, 1 / v > 0 || v == 0)")
    assert program.run({"self": SELF, "i": 1, "d": SELF}, limit=1000).value is True


def test_variables_that_are_not_there_are_named() -> None:
    with pytest.raises(EvaluationError, match=r"no such attribute\(s\): i"):
        ENVIRONMENT.compile("i > 0").run({}, limit=1000)


def test_the_sides_of_and_and_or_that_decide_hide_errors_and_not_limits() -> None:
    with pytest.raises(CostExceeded):
        ENVIRONMENT.compile("lists.range(500).map(v, v).size() < 0 || true").run({}, limit=100)
