"""CRI's field numbers are those of the published api.proto, where Debian's package of it is installed or unpacked."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastcall.kube.cri.v1 import schema
from lastcall.kube.cri.v1.messages import rows

PLACES = (Path(__file__).resolve().parents[5] / ".cri-api-debian", Path("/"))
PROTO = "usr/share/gocode/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto"
FOUND = next((each / PROTO for each in PLACES if (each / PROTO).exists()), None)
needs_proto = pytest.mark.skipif(FOUND is None, reason="api.proto is not here: tools/get-debian-cri-api")

_WORDS = re.compile(r'[A-Za-z_][\w.]*|\d+|"[^"]*"|[{}=;<>,\[\]()-]')
Field = tuple[int, str, bool]
"""Number, type, whether it is repeated."""


class Proto:
    """The messages and enums of a .proto file: enough of the language for this one."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
        self._words = iter(_WORDS.findall(text))
        self.messages: dict[str, dict[str, Field]] = {}
        self.enums: dict[str, dict[str, int]] = {}
        for word in self._words:
            if word == "message":
                self._message(next(self._words))
            elif word == "enum":
                self._enum(next(self._words))
            elif word == "service":
                self._skip("}")

    def _skip(self, end: str) -> None:
        depth = 0
        for word in self._words:
            depth += (word == "{") - (word == "}")
            if word == end and depth <= 0:
                return

    def _enum(self, name: str) -> None:
        assert next(self._words) == "{"
        values = self.enums[name] = {}
        while (label := next(self._words)) != "}":
            if label == "option":
                self._skip(";")
                continue
            assert next(self._words) == "="
            values[label] = int(next(self._words))
            self._skip(";")

    def _message(self, name: str) -> None:
        assert next(self._words) == "{"
        fields = self.messages[name] = {}
        while (word := next(self._words)) != "}":
            if word == "message":
                self._message(next(self._words))
            elif word == "enum":
                self._enum(next(self._words))
            elif word in ("reserved", "option"):
                self._skip(";")
            else:
                label, field = self._field(word)
                fields[label] = field

    def _field(self, word: str) -> tuple[str, Field]:
        repeated = word == "repeated"
        kind = next(self._words) if repeated else word
        if kind == "map":
            parts = [next(self._words) for _ in range(5)]  # < string , string >
            assert parts == ["<", "string", ",", "string", ">"], parts
        label = next(self._words)
        assert next(self._words) == "=", (word, label)
        number = int(next(self._words))
        self._skip(";")
        return label, (number, kind, repeated)


def ours() -> Iterator[tuple[str, str, Field]]:
    """(message, field, what it is) of each field that lastcall knows."""
    for message, fields in rows(schema.SANDBOXES_AND_CONTAINERS) + rows(schema.IMAGES) + rows(schema.STATS):
        for text in fields:
            label, _, rest = text.partition("=")
            number, _, kind = rest.replace("*", ":").partition(":")
            yield message, label, (int(number), kind or "string", "*" in rest)


@pytest.fixture(scope="module")
def published() -> Proto:
    assert FOUND is not None
    return Proto(FOUND.read_text())


@needs_proto
def test_each_field_has_the_published_number_and_type(published: Proto) -> None:
    wrong = []
    looked_at = 0
    for message, label, field in ours():
        looked_at += 1
        theirs = published.messages.get(message, {}).get(label)
        if theirs is None or (theirs[0], theirs[1].rpartition(".")[2], theirs[2]) != field:
            wrong.append((message, label, field, theirs))
    assert looked_at > 300
    assert wrong == []


@needs_proto
def test_each_enum_has_the_published_values(published: Proto) -> None:
    for name, values in rows(schema.ENUMS):
        assert {label: number for number, label in enumerate(values)} == published.enums[name], name


@needs_proto
def test_nothing_of_a_message_is_left_out_but_what_is_for_windows(published: Proto) -> None:
    known = {message: {label for each, label, _ in ours() if each == message} for message, _, _ in ours()}
    missing = {message: set(published.messages[message]) - labels for message, labels in known.items()}
    assert {message: labels for message, labels in missing.items() if labels - {"windows"}} == {}
