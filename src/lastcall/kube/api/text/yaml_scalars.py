"""Read YAML scalars: YAML 1.1 as Kubernetes reads it, and keys as the texts that JSON needs.

Sources: sigs.k8s.io/yaml (goyaml.v2/resolve.go; yaml.go:convertToJSONableObject), tried on Kubernetes 1.36.
"""

import base64
import binascii
import math
import re
import struct
from datetime import date
from typing import Any

from lastcall.kube.api.field import go_quote

LONG = "tag:yaml.org,2002:"
STR, BOOL, INT, FLOAT, NULL = (LONG + name for name in ("str", "bool", "int", "float", "null"))
BINARY, TIMESTAMP, MERGE = (LONG + name for name in ("binary", "timestamp", "merge"))

_RESOLVED = frozenset({"", STR, BOOL, INT, FLOAT, NULL, TIMESTAMP})
_HINTS = frozenset("+-.0123456789yYnNtTfFoO~")
"""What a scalar that is not plain text begins with."""

_WORDS: dict[str, tuple[str, Any]] = {
    **{f(word): (BOOL, True) for word in ("yes", "true", "on") for f in (str, str.title, str.upper)},
    **{f(word): (BOOL, False) for word in ("no", "false", "off") for f in (str, str.title, str.upper)},
    **{word: (BOOL, word in "yY") for word in "yYnN"},
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (FLOAT, math.nan)),
    **{sign + word: (FLOAT, float(f"{sign}inf")) for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|([0-9]+))")
_LONGEST_INTEGER = 66
"""Characters: `-0b` and 63 digits. A longer one does not fit 64 bits, or has zeros in front that nobody writes."""
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_CLOCK = r"(\d\d?):(\d\d?):(\d\d?)(?:\.\d+)?"
_TIMESTAMP = re.compile(rf"(\d{{4}})-(\d\d?)-(\d\d?)(?:[Tt]{_CLOCK}(?:Z|[-+]\d\d:\d\d)| {_CLOCK})?")


class ScalarError(ValueError):
    """A scalar that is not what its tag says. The message is Go's."""


class NotInJSON(ValueError):
    """A value that JSON does not have. The message is Go's, from `json: ` on."""


def implicit_tag(text: str) -> str:
    """Return the tag of a plain scalar that has none."""
    return STR if text and text[0] not in _HINTS else _untagged(text)[0]


def resolve(tag: str, text: str, *, plain: bool) -> Any:
    """Return the value of a scalar whose explicit tag is `tag` ("" for none); `plain`: without quotes. Raises
    ScalarError."""
    if not tag:
        if not plain or (text and text[0] not in _HINTS):
            return text
        return _untagged(text)[1]
    if tag == BINARY:
        return _binary(text)
    if tag not in _RESOLVED or tag == STR:
        return text
    found, value = _untagged(text)
    if tag == TIMESTAMP and _is_timestamp(text):
        return text
    if tag == FLOAT and found == INT and value < 1 << 63:
        return float(value)
    if found != tag:
        raise ScalarError(f"cannot decode {_short(found)} `{text}` as a {_short(tag)}")
    return value


def _untagged(text: str) -> tuple[str, Any]:
    if (word := _WORDS.get(text)) is not None:
        return word
    if text[0] == ".":
        if _FLOAT.fullmatch(text) and math.isfinite(value := float(text)):
            return FLOAT, value
    elif text[0] in "+-0123456789":
        plain = text.replace("_", "")
        if len(plain) <= _LONGEST_INTEGER and (integer := _integer(plain)) is not None:
            return INT, integer
        if _FLOAT.fullmatch(plain) and math.isfinite(value := float(plain)):
            return FLOAT, value
    return STR, text


def _integer(plain: str) -> int | None:
    """As Go's ParseInt and, above 63 bits, ParseUint take it with base 0."""
    found = _INTEGER.fullmatch(plain)
    if found is None:
        return None
    sign, *digits = found.groups()
    for base, text in zip((16, 8, 2, 10), digits, strict=True):
        if text is not None:
            if base == 10 and text[0] == "0" and len(text) > 1:
                return None  # 089 is a float
            value = int(text, base)
            value = -value if sign == "-" else value
            return value if -(1 << 63) <= value < (1 << 64 if not sign else 1 << 63) else None
    return None


def _binary(text: str) -> str:
    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise ScalarError("!!binary value contains invalid base64 data") from None
    return data.decode(errors="replace")


def _is_timestamp(text: str) -> bool:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return False
    year, month, day, *clock = (int(part) for part in found.groups() if part is not None)
    try:
        date(max(year, 1), month, day)
    except ValueError:
        return False
    return all(part < limit for part, limit in zip(clock, (24, 60, 60), strict=False))


def _short(tag: str) -> str:
    return "!!" + tag.removeprefix(LONG) if tag.startswith(LONG) else tag


def as_json(value: Any) -> Any:
    """Return a scalar as it is after Go wrote it as JSON and read it again. Raises NotInJSON."""
    kind = type(value)
    if kind is float:
        if value != value or value in (float("inf"), float("-inf")):
            shown = "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
            raise NotInJSON(f"json: unsupported value: {shown}")
        return int(value) if value.is_integer() and abs(value) < 1 << 63 else value
    if kind is int and value >= 1 << 63:
        return float(value)
    return value


def key_text(key: Any) -> str | None:
    """Return a key as JSON has it; None for one that cannot be a key there."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key) if key < 1 << 63 else None
    return _float_key(key) if isinstance(key, float) else None


def _float_key(key: float) -> str:
    """The shortest text that is the same number of 32 bits (`strconv.FormatFloat(key, 'g', -1, 32)`)."""
    try:
        single = struct.unpack("f", struct.pack("f", key))[0]
    except OverflowError:
        single = math.copysign(math.inf, key)
    if math.isnan(single):
        return ".nan"
    if math.isinf(single):
        return ".inf" if single > 0 else "-.inf"
    for digits in range(9):
        mantissa, _, exponent = f"{single:.{digits}e}".partition("e")
        if struct.pack("f", float(f"{mantissa}e{exponent}")) == struct.pack("f", single):
            break
    power = int(exponent)
    if power < -4 or power >= 6:
        return f"{mantissa}e{exponent}"
    return f"{single:.{max(digits - power, 0)}f}"


def go_value(value: Any) -> str:
    """Format as Go's `%#v` shows what its YAML decoder made."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(go_value(item) for item in value) + "}"
    if isinstance(value, dict):
        pairs = ", ".join(f"{go_value(key)}:{go_value(value[key])}" for key in sorted(value))
        return "map[interface {}]interface {}{" + pairs + "}"
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, int):
        return str(value) if value < 1 << 63 else hex(value)
    return f"{value:g}"
