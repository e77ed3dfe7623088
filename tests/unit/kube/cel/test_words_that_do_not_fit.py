"""The parser goes on after a word that does not fit, as cel-go's does: what a real API server said."""

import pytest

from lastcall.kube.cel.errors import CompileError
from lastcall.kube.cel.parsing.parser import parse

START = (
    "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
    "IDENTIFIER}"
)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("*", ["1:1: mismatched '*'", "1:2: mismatched '<EOF>'"]),
        ("* / a", ["1:1: mismatched '*'", "1:3: extraneous '/'"]),
        ("* a b", ["1:1: extraneous '*'", "1:5: extraneous 'b'"]),
        ("&& true && && false", ["1:1: extraneous '&&'", "1:12: extraneous '&&'"]),
        ("== a ==", ["1:1: extraneous '=='", "1:8: mismatched '<EOF>'"]),
        ("f(*)", ["1:3: extraneous '*'"]),
        ("[*]", ["1:2: extraneous '*'"]),
        ("f(a b)", ["1:5: extraneous 'b'"]),
        ("(a b", ["1:4: mismatched 'b'"]),
        ("!*", ["1:2: extraneous '*'", "1:3: mismatched '<EOF>'"]),
        ("", ["1:0: mismatched '<EOF>'"]),
    ],
)
def test_each_word_that_does_not_fit_is_named(text: str, places: list[str]):
    with pytest.raises(CompileError) as found:
        parse(text)
    lines = [line for line in str(found.value).split("\n") if line.startswith("ERROR")]
    shown = [
        line.removeprefix("ERROR: <input>:")
        .partition(" expecting ")[0]
        .replace("Syntax error: ", "")
        .replace("input ", "")
        for line in lines
    ]
    assert shown == places


@pytest.mark.parametrize("text", ["a.*", ".*", "- ", "../a", ". 1"])
def test_what_can_begin_nothing_has_no_viable_alternative(text: str):
    with pytest.raises(CompileError, match="no viable alternative at input"):
        parse(text)


def test_an_empty_expression_has_no_place_to_show():
    with pytest.raises(CompileError) as found:
        parse("")
    assert str(found.value) == f"ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' {START}"
