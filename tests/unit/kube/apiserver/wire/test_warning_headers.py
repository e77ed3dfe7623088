"""`Warning` headers of names that hold anything (asked of Kubernetes 1.36)."""

import json

import pytest
from api_server import running_server
from asker import Asker
from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.apiserver.wire.warning_headers import MOST_CHARACTERS, warning_headers

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a\r\nX: 1", '299 - "unknown field \\"a\\\\r\\\\nX: 1\\""'),
        ("a\0b", '299 - "unknown field \\"a\\\\x00b\\""'),
        ("a\x1b[31mb\x7f", '299 - "unknown field \\"a\\\\x1b[31mb\\\\x7f\\""'),
        ("a\u202e\ufeff\ue000", '299 - "unknown field \\"a\\\\u202e\\\\ufeff\\\\ue000\\""'),
        ('a"b\\c', '299 - "unknown field \\"a\\\\\\"b\\\\\\\\c\\""'),
        ("é日😀", '299 - "unknown field \\"é日😀\\""'),
        ("", '299 - "unknown field \\"\\""'),
        ("a" * 10_000, '299 - "unknown field \\"' + "a" * 241 + '"'),
    ],
)
async def test_a_write_with_an_odd_field_is_answered_and_warned_of(name: str, header: str) -> None:
    async with running_server() as running:
        ask = Asker(running)
        body = json.dumps({"metadata": {"name": "w"}, name: 1})
        assert (await ask("POST", CONFIGMAPS, body))[0] == 201
        assert [value.encode("latin-1").decode() for value in ask.warnings] == [header]
        status, answer = await ask("POST", f"{CONFIGMAPS}?fieldValidation=Strict", body)
        assert status == 400
        assert "strict decoding error: unknown field" in json.loads(answer)["message"]


@pytest.mark.loopback
async def test_of_many_warnings_only_so_much_is_said_as_clients_read() -> None:
    async with running_server() as running:
        ask = Asker(running)
        for length, told in ((60, 54), (1000, 16)):
            fields = {f"x{number}".ljust(length, "x"): 1 for number in range(100)}
            assert (await ask("POST", f"{CONFIGMAPS}?dryRun=All", {"metadata": {"name": "w"}, **fields}))[0] == 201
            assert len(ask.warnings) == told


@given(st.lists(st.text(), max_size=5))
def test_a_header_never_holds_what_ends_it(texts: list[str]) -> None:
    headers = warning_headers(texts)
    assert len(headers) <= len(set(texts))
    for header in headers:
        assert header.startswith('299 - "')
        assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in header)
        header.encode()


def test_what_is_too_much_is_cut_and_said_once() -> None:
    assert warning_headers(["a", "b", "a"]) == ['299 - "a"', '299 - "b"']
    assert warning_headers(["x" * MOST_CHARACTERS]) == [f'299 - "{"x" * MOST_CHARACTERS}"']
    assert warning_headers(["y", "x" * MOST_CHARACTERS]) == ['299 - "y"', f'299 - "{"x" * 256}"']
    assert len(warning_headers([f"{number:0300}" for number in range(100)])) == 16
    assert warning_headers(["a\x00b", "", "\ud800"]) == []
