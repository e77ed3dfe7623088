"""Expressions evaluate to what kube-apiserver 1.36.2 answered, or fail with its words.

Each row of `answers_*.json` is an expression, how it was shown (an index of `SHOWN`), "value" or "error", and the
text. They were recorded with validation rules of a CustomResourceDefinition, whose message expressions show values.
Many expressions are those of cel-spec's conformance tests (tests/simple/testdata), of cel-go's and of Kubernetes's own
tests, all under the Apache License 2.0.
"""

import json
from pathlib import Path

import pytest

from lastcall.kube.cel.environment import Environment
from lastcall.kube.cel.types import DYN, STRING, map_of
from lastcall.kube.cel.values import CostExceeded, EvaluationError

SHOWN = (
    "'<%s %s>'.format([type({0}), {0}])",
    "'<%s %s>'.format([type({0}), ({0}).hasValue() ? dyn(({0}).value()) : 'none'])",
    "'<%s ?>'.format([type({0})])",
)
"""A value of most types, an optional value, a value of a type that cannot be formatted."""
FILES = sorted(Path(__file__).parent.glob("answers_*.json"))
TABLE = [(name, rows) for file in FILES for name, rows in json.loads(file.read_text()).items()]
ENVIRONMENT = Environment({"self": map_of(STRING, DYN)})


def answer(expression: str, shown: int) -> list[str]:
    program = ENVIRONMENT.compile(SHOWN[shown].replace("{0}", expression))
    try:
        value = program.run({"self": {"x": "hi"}}, limit=10_000_000).value
    except (EvaluationError, CostExceeded) as error:
        return ["error", str(error)]
    assert isinstance(value, str)
    return ["value", value[1:-1]]


def test_the_table_is_there() -> None:
    assert sum(len(rows) for _, rows in TABLE) > 1500


@pytest.mark.parametrize(("name", "rows"), TABLE, ids=[name for name, _ in TABLE])
def test_expressions_evaluate_to_what_the_real_server_answered(name: str, rows: list[list[str]]) -> None:
    wrong = [
        (expression, expected, found)
        for expression, shown, *expected in rows
        if (found := answer(expression, int(shown))) != expected
    ]
    assert wrong == []
