"""Read JSON as Go does: what is not UTF-8 becomes U+FFFD, and errors have Go's words.

Source: encoding/json (scanner.go, decode.go:unquoteBytes).
"""

import re
from collections.abc import Generator
from typing import Any

import orjson

from lastcall.kube.api.field import go_quote
from lastcall.kube.api.text.json_bounds import MAX_DEPTH, MAX_VALUES, OutOfBoundsError, check_bounds

SLICE = 10_000
"""Tokens between two turns of others."""

_LONE = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u])|\\u[dD][89a-fA-F][0-9a-fA-F]{2}", re.DOTALL
)
_SPACE = re.compile(rb"[ \t\r\n]*")
_DIGIT = rb"[0-9a-fA-F]"
# Python before 3.11.5 (Debian 12's) goes on behind the digits that a `{4}` within a possessive repetition had taken.
_PIECE = re.compile(rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u%b%b%b%b)*+' % (_DIGIT, _DIGIT, _DIGIT, _DIGIT))
_NUMBER = re.compile(rb"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)?")
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}


def loads(body: bytes) -> Any:
    """Decode JSON. Raises ValueError: OutOfBoundsError for too deep or too much; of all else `complaint` says why."""
    # Most bodies have less brackets than levels are allowed, and less commas than values.
    is_big = len(body) > MAX_VALUES
    if is_big and body.count(b",") > MAX_VALUES and _outside_of_strings(body).count(b",") > MAX_VALUES:
        raise OutOfBoundsError(f"more than {MAX_VALUES} values")
    try:
        decoded = orjson.loads(body)
    except ValueError:
        decoded = orjson.loads(_mended(body))
    brackets = body.count(b"{") + body.count(b"[")
    if brackets > MAX_DEPTH or (is_big and brackets + 2 * body.count(b",") > MAX_VALUES):
        check_bounds(decoded)
    return decoded


def _outside_of_strings(body: bytes) -> bytes:
    if b"\\" in body:
        body = _ESCAPED.sub(b"", body)
    return b"".join(body.split(b'"')[::2])


_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_REPLACED = dict.fromkeys(range(0xDC80, 0xDD00), 0xFFFD)


def _mended(body: bytes) -> bytes:
    """With U+FFFD for each byte that is not UTF-8 and each half of a surrogate pair. Raises ValueError without any."""
    mended = body.decode(errors="surrogateescape").translate(_REPLACED).encode()
    mended = _LONE.sub(lambda found: found.group(1) or b"\\ufffd", mended)
    if mended == body:
        raise ValueError("no JSON")
    return mended


def complaint(body: bytes) -> Generator[None, None, str]:
    """Return, as a generator, what is wrong with a text that `loads` does not read. Each `yield` gives others a
    turn."""
    try:
        yield from _Scanner(body).scan()
    except _WrongError as wrong:
        return str(wrong)
    return "invalid JSON"


class _WrongError(Exception):
    pass


class _Scanner:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def scan(self) -> Generator[None, None, None]:
        """Raises _WrongError at the first thing wrong."""
        open_: list[bytes] = []
        where = "looking for beginning of value"
        steps = 0
        while True:
            if (steps := steps + 1) % SLICE == 0:
                yield
            char = self._next()
            if not char and not open_ and where == "after top-level value":
                return
            if where.startswith("looking"):
                closes = b"]" if where.endswith("value") else b"}"
                if open_ and char == closes and self._empty:
                    open_.pop()
                    self._at += 1
                elif where.endswith("string"):
                    self._key(char, where)
                    where = "looking for beginning of value"
                    continue
                elif char in (b"{", b"["):
                    open_.append(char)
                    if len(open_) > MAX_DEPTH:
                        raise self._wrong("exceeded max depth")
                    self._at += 1
                    self._empty = True
                    if char == b"{":
                        where = "looking for beginning of object key string"
                    continue
                else:
                    self._value(char, where)
            elif char == b",":
                self._at += 1
                self._empty = False
                where = f"looking for beginning of {'value' if open_[-1] == b'[' else 'object key string'}"
                continue
            else:
                open_.pop()
                self._at += 1
            where = self._after_value(open_)

    def _key(self, char: bytes, where: str) -> None:
        if char != b'"':
            raise self._wrong(where)
        self._string()
        if self._next() != b":":
            raise self._wrong("after object key")
        self._at += 1
        self._empty = False

    def _after_value(self, open_: list[bytes]) -> str:
        """Check that what follows a value may follow it there. Returns where that is, in Go's words."""
        where = "after top-level value"
        if open_:
            where = "after array element" if open_[-1] == b"[" else "after object key:value pair"
        char = self._next()
        if char and (not open_ or char not in (b",", b"]" if open_[-1] == b"[" else b"}")):
            raise self._wrong(where)
        if not char and open_:
            raise _WrongError("unexpected end of JSON input")
        return where

    _empty = False
    """Whether nothing has been read since the last bracket was opened."""

    def _next(self) -> bytes:
        """The next character that is not space, b"" at the end."""
        found = _SPACE.match(self._body, self._at)
        self._at = found.end() if found else self._at
        return self._body[self._at : self._at + 1]

    def _value(self, char: bytes, where: str) -> None:
        if char == b'"':
            self._string()
        elif (word := _LITERALS.get(char)) is not None:
            for expected in word:
                if self._body[self._at : self._at + 1] != bytes((expected,)):
                    raise self._wrong(f"in literal {word.decode()} (expecting '{chr(expected)}')")
                self._at += 1
        elif char and char in b"-0123456789":
            found = _NUMBER.match(self._body, self._at)
            start, self._at = self._at, found.end() if found else self._at
            self._rest_of_number(self._body[start : self._at])
        else:
            raise self._wrong(where)

    def _rest_of_number(self, read: bytes) -> None:
        """Raises _WrongError for a number that breaks off."""
        char = self._body[self._at : self._at + 1]
        if read == b"-":
            raise self._wrong("in numeric literal")
        if char == b"." and not set(b".eE") & set(read):
            self._at += 1
            raise self._wrong("after decimal point in numeric literal")
        if char and char in b"eE" and not set(b"eE") & set(read):
            self._at += 2 if self._body[self._at + 1 : self._at + 2] in (b"+", b"-") else 1
            raise self._wrong("in exponent of numeric literal")

    def _string(self) -> None:
        found = _PIECE.match(self._body, self._at + 1)
        self._at = found.end() if found else self._at
        char = self._body[self._at : self._at + 1]
        if char == b'"':
            self._at += 1
        elif char != b"\\":
            raise self._wrong("in string literal")
        else:
            self._at += 1
            if self._body[self._at : self._at + 1] != b"u":
                raise self._wrong("in string escape code")
            for _ in range(4):
                self._at += 1
                if self._body[self._at : self._at + 1] not in _HEX:
                    raise self._wrong("in \\u hexadecimal character escape")

    def _wrong(self, where: str) -> _WrongError:
        char = self._body[self._at : self._at + 1]
        return _WrongError(f"invalid character {_shown(char)} {where}" if char else "unexpected end of JSON input")


_HEX = frozenset(bytes((each,)) for each in b"0123456789abcdefABCDEF")


def _shown(char: bytes) -> str:
    if char == b"'":
        return "'\\''"
    return "'\"'" if char == b'"' else f"'{go_quote(char.decode('latin-1'))[1:-1]}'"
