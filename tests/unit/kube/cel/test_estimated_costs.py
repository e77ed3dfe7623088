"""What expressions will cost, by cel-go's own numbers (checker/cost_test.go of v0.26, Apache-2.0).

`has` costs nothing, as in Kubernetes.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.cel.bounds import Bounds
from lastcall.kube.cel.environment import Environment
from lastcall.kube.cel.libraries.library import type_of_text
from lastcall.kube.cel.types import Type

ESTIMATES: list[Any] = json.loads((Path(__file__).parent / "estimates.json").read_text())
"""[expression, types of variables, sizes by path, [least, most]]"""


@pytest.mark.parametrize(
    ("text", "variables", "known", "wanted"), ESTIMATES, ids=[f"{each[0][:40]} {each[2]}" for each in ESTIMATES]
)
def test_expressions_are_estimated_as_cel_go_does_it(
    text: str, variables: dict[str, str], known: dict[str, int], wanted: list[int]
) -> None:
    def sizes(path: tuple[str, ...], type_: Type) -> Bounds | None:
        most = known.get(".".join(path))
        return None if most is None else Bounds(0, most)

    program = Environment({name: type_of_text(each) for name, each in variables.items()}).compile(text)
    assert program.estimate(sizes) == Bounds(*wanted)
