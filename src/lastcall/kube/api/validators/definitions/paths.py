"""Paths of fields in a structural schema: `.spec.name`, `.spec.named['x']`.

Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go:ValidFieldPath.
"""

import re
from typing import Any, NamedTuple

from lastcall.kube.api.meta import Object

_TOKEN = re.compile(r"'(?:[^'\\]|\\.|\\$)*'|'.*|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPath(NamedTuple):
    """`text` is the path as errors show it, without a dot before it; `schema` is what is at its end."""

    text: str
    schema: Any
    root: str


def field_path(path: str, schema: Object, *, brackets: bool = True) -> FieldPath:
    """Parse a path. Raises ValueError with Kubernetes's words."""
    tokens = _TOKEN.findall(path)
    text = root = ""
    found: Any = schema
    position = 0

    def next_piece() -> str:
        nonlocal position
        if position >= len(tokens):
            raise ValueError("unexpected end of JSON path")
        position += 1
        return str(tokens[position - 1])

    while position < len(tokens):
        piece = next_piece()
        if piece == "[":
            if not brackets:
                raise ValueError("array notation is not allowed")
            piece = next_piece()
            if len(piece) < 2 or piece[0] != "'" or piece[-1] != "'":
                raise ValueError(f"expected single quoted string but got {piece}")
            name, closes = _unescaped(piece[1:-1]), True
        elif piece == ".":
            name, closes = next_piece(), False
        else:
            raise ValueError(f"expected [ or . but got: {piece}")
        declared = found.get("properties") if isinstance(found, dict) else None
        more = found.get("additionalProperties") if isinstance(found, dict) else None
        if declared:
            if name not in declared:
                raise ValueError("does not refer to a valid field")
            text, found = f"{text}.{name}" if text else name, declared[name]
        elif more is not None:
            text, found = f"{text}[{name}]", more if isinstance(more, dict) else None
        else:
            raise ValueError("does not refer to a valid field")
        root = root or name
        if closes and (piece := next_piece()) != "]":
            raise ValueError(f"expected ] but got {piece}")
    return FieldPath(text, found, root)


def _unescaped(text: str) -> str:
    for found in _ESCAPE.finditer(text):
        if found[1] not in _ESCAPES:
            raise ValueError(f"invalid string literal: invalid escape char {found[0]}")
    return _ESCAPE.sub(lambda found: _ESCAPES[found[1]], text)
