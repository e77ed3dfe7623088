"""What literals are worth (cel-go parser/unescape.go)."""

import re

from lastcall.kube.cel.values import Uint

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"',
    "`": "`", "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL)


def integer(text: str) -> int:
    """Parse an int literal; `text` may begin with a minus. Raises ValueError for what does not fit 64 bits."""
    sign = -1 if text.startswith("-") else 1
    digits = text.removeprefix("-")
    value = sign * (int(digits[2:], 16) if digits.startswith("0x") else int(digits))
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError("invalid int literal")
    return value


def unsigned(text: str) -> Uint:
    """Parse a uint literal. Raises ValueError."""
    digits = text[:-1]
    value = int(digits[2:], 16) if digits.startswith("0x") else int(digits)
    if value > UINT_MAX:
        raise ValueError("invalid uint literal")
    return Uint(value)


def double(text: str) -> float:
    """Parse a double literal. Raises ValueError for what is too big."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("invalid double literal")
    return value


def _content(literal: str) -> tuple[str, bool]:
    """(what is between the quotes, whether it is raw)"""
    raw = literal[0] in "rR"
    quoted = literal[1:] if raw else literal
    width = 3 if quoted[:3] in ('"""', "'''") else 1
    return re.sub(r"\r\n?", "\n", quoted[width:-width]), raw


def string(literal: str) -> str:
    """Parse a string literal. Raises ValueError."""
    text, raw = _content(literal)
    if raw or "\\" not in text:
        return text

    def char(match: re.Match[str]) -> str:
        two, four, eight, octal, simple = match.groups()
        if simple is not None:
            return _SIMPLE[simple]
        code = int(octal, 8) if octal else int(two or four or eight, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise ValueError("unable to unescape string")
        return chr(code)

    return _ESCAPE.sub(char, text)


def octets(literal: str) -> bytes:
    """Parse a bytes literal after its `b`: an escape of two hexadecimal or three octal digits is a byte."""
    text, raw = _content(literal)
    if raw or "\\" not in text:
        return text.encode()
    made, at = bytearray(), 0
    for match in _ESCAPE.finditer(text):
        made += text[at : match.start()].encode()
        two, four, eight, octal, simple = match.groups()
        if four or eight:
            raise ValueError("unable to unescape string")
        if simple is not None:
            made += _SIMPLE[simple].encode()
        else:
            made.append(int(octal, 8) if octal else int(two, 16))
        at = match.end()
    return bytes(made + text[at:].encode())
