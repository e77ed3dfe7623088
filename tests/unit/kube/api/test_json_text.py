"""What is wrong with a JSON text, in the words of Kubernetes 1.36 (each row was asked there)."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.api.text import go_json as json_text
from lastcall.kube.api.text.json_bounds import MAX_DEPTH, MAX_VALUES, OutOfBoundsError


def complaint(body: bytes) -> str:
    with pytest.raises(ValueError, match=r"."):
        json_text.loads(body)
    return said(body)


def said(body: bytes) -> str:
    steps = json_text.complaint(body)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "unexpected end of JSON input"),
        (b"  ", "unexpected end of JSON input"),
        (b'{"a":1', "unexpected end of JSON input"),
        (b'{"a":"', "unexpected end of JSON input"),
        (b'{"a', "unexpected end of JSON input"),
        (b'{"a"', "unexpected end of JSON input"),
        (b"[1,", "unexpected end of JSON input"),
        (b"[1.", "unexpected end of JSON input"),
        (b"tru", "unexpected end of JSON input"),
        (b"\xff", "invalid character 'ÿ' looking for beginning of value"),
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
        (b"{}x", "invalid character 'x' after top-level value"),
        (b"{}\0", "invalid character '\\x00' after top-level value"),
        (b'{"a":1}{"b":2}', "invalid character '{' after top-level value"),
        (b'{"a":"\x01"}', "invalid character '\\x01' in string literal"),
        (b'{"a":"\n"}', "invalid character '\\n' in string literal"),
        (b'{"a":"\\x"}', "invalid character 'x' in string escape code"),
        (b'{"a":"\\u00"}', "invalid character '\"' in \\u hexadecimal character escape"),
        (b'{"a":NaN}', "invalid character 'N' looking for beginning of value"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b"{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b":1}', "invalid character '\"' after object key:value pair"),
        (b'{"a":01}', "invalid character '1' after object key:value pair"),
        (b'{"a":1]', "invalid character ']' after object key:value pair"),
        (b'{"a":1.}', "invalid character '}' after decimal point in numeric literal"),
        (b'{"a":-}', "invalid character '}' in numeric literal"),
        (b'{"a":1e}', "invalid character '}' in exponent of numeric literal"),
        (b'{"a":1e+}', "invalid character '}' in exponent of numeric literal"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"[,]", "invalid character ',' looking for beginning of value"),
        (b"[[],{},}", "invalid character '}' looking for beginning of value"),
        (b'{"a":tru}', "invalid character '}' in literal true (expecting 'e')"),
        (b"nope", "invalid character 'o' in literal null (expecting 'u')"),
    ],
)
def test_what_is_wrong_is_told_in_go_s_words(body: bytes, words: str) -> None:
    assert complaint(body) == words


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a":"\xff\xc3("}', {"a": "\ufffd\ufffd("}),
        (b'{"\xff":"\xed\xa0\x80"}', {"\ufffd": "\ufffd\ufffd\ufffd"}),
        (b'"\\ud800\\ud800\\udc00\\udfff\\\\ud800"', "\ufffd\U00010000\ufffd\\ud800"),
    ],
)
def test_what_is_no_character_is_replaced(body: bytes, value: object) -> None:
    assert json_text.loads(body) == value


def test_a_text_is_as_deep_as_is_allowed_and_no_deeper() -> None:
    for begin, end in (("[", "]"), ('{"a":', "}")):
        text = begin * MAX_DEPTH + "1" + end * MAX_DEPTH
        assert json_text.loads(text.encode()) == json.loads(text)
        words = f"invalid character '{begin[0]}' exceeded max depth"
        with pytest.raises(OutOfBoundsError, match=re.escape(words)):
            json_text.loads((begin + text + end).encode())
        for body in (begin * 5000 + "1" + end * 5000, begin * 1_000_000):
            assert complaint(body.encode()) == words
    wide = b"[" + b"[]," * 1000 + b"[]]"
    assert len(json_text.loads(wide)) == 1001


def test_a_text_of_too_many_values_is_refused_and_one_of_many_commas_is_not() -> None:
    for body in (b"[" + b"1," * MAX_VALUES + b"1]", b"[" + b"{}," * MAX_VALUES + b"1]"):
        with pytest.raises(OutOfBoundsError, match="values"):
            json_text.loads(body)
    for text in ("[,]{", ',"', ",\\", ',\\"'):
        assert json_text.loads(json.dumps([text * MAX_VALUES]).encode()) == [text * MAX_VALUES]


def test_a_big_text_is_looked_at_in_slices() -> None:
    assert sum(1 for _ in json_text.complaint(b"[" + b"1," * 10 * json_text.SLICE)) >= 10


@given(st.binary(max_size=40) | st.text(alphabet='{}[]",:\\u0123eE+-.truefalsn \n', max_size=40).map(str.encode))
def test_a_complaint_is_made_of_exactly_what_cannot_be_read(body: bytes) -> None:
    try:
        json_text.loads(body)
    except ValueError:
        assert said(body).startswith(("invalid character ", "unexpected end"))
    else:
        assert said(body) == "invalid JSON"
