"""What a real Kubernetes 1.36.2 said of expressions of a policy's variables, and what is said here."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.kube.cel import types
from lastcall.kube.cel.environment import Environment
from lastcall.kube.cel.errors import CompileError, ProgramError
from lastcall.kube.cel.parsing.parser import parse
from lastcall.kube.cel.types import Type

RECORDED: list[tuple[str, str]] = json.loads((Path(__file__).parent / "compile_errors.json").read_text())
"""(expression, what the server says of it; "" where it compiles)"""


class Variables:
    """The variables that the recorded policy had."""

    FIELDS: Mapping[str, Type] = {
        "s": types.STRING,
        "l": types.list_of(types.INT),
        "m": types.map_of(types.STRING, types.INT),
    }

    def has(self, name: str) -> bool:
        return name == "kubernetes.variables"

    def field(self, name: str, field: str) -> Type | None:
        return self.FIELDS.get(field)

    def fields(self, name: str) -> Mapping[str, Type]:
        return self.FIELDS


ENVIRONMENT = Environment(
    {
        "object": types.DYN,
        "request": types.DYN,
        "variables": types.object_type("kubernetes.variables"),
        "authorizer": types.object_type("kubernetes.authorization.Authorizer"),
        "authorizer.requestResource": types.object_type("kubernetes.authorization.ResourceCheck"),
    },
    provider=Variables(),
)


def said_of(text: str) -> str:
    try:
        ENVIRONMENT.compile(text)
    except CompileError as error:
        return str(error)
    except ProgramError as error:
        return f"ProgramError{error}"
    return ""


@pytest.mark.parametrize(("text", "said"), RECORDED, ids=[text[:40] or "nothing" for text, _ in RECORDED])
def test_expressions_compile_or_not_as_on_a_real_server(text: str, said: str) -> None:
    assert said_of(text) == said


PIECES = st.sampled_from(
    ["a", "object", "variables.l", "1", "'x'", "1.5", "2u", "true", "null", "(", ")", "[", "]", "{", "}", ".", ",", ":",
     "?", "+", "-", "!", "&&", "||", "==", "in", ".all(x, ", ".map(x, ", "has(", "'", '"', "b'", "\\", "\n", "@", "//"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=20).map("".join)))
@settings(max_examples=300, deadline=None)
def test_no_text_makes_anything_but_a_program_or_a_compile_error(text: str) -> None:
    said_of(text)


@pytest.mark.parametrize("text", ["(" * 240 + "1" + ")" * 240, "!" * 300 + "true", "1" + "+1" * 900, "a" + ".b" * 900])
def test_deep_expressions_are_read_or_refused(text: str) -> None:
    said_of(text)


@pytest.mark.parametrize("text", ["(" * 251 + "1" + ")" * 251, "[" * 400 + "]" * 400])
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(CompileError, match="recursion limit exceeded: 250"):
        parse(text)


def test_an_expression_that_is_too_long_is_refused() -> None:
    with pytest.raises(CompileError, match="code point size exceeds limit: size: 100001, limit 100000"):
        parse("1" * 100_001)


def test_macros_that_double_what_they_are_applied_to_are_stopped() -> None:
    with pytest.raises(CompileError, match="more than 200000 parts"):
        parse("a" + ".optMap(x, x)" * 40)
