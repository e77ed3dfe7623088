"""One problem with one field of an object, in Kubernetes's words.

Source: apimachinery pkg/util/validation/field/errors.go.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from lastcall.world.dataclass import dataclass

REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
NOT_SUPPORTED = "FieldValueNotSupported"
FORBIDDEN = "FieldValueForbidden"
DUPLICATE = "FieldValueDuplicate"
NOT_FOUND = "FieldValueNotFound"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
TYPE_INVALID = "FieldValueTypeInvalid"
INTERNAL = "InternalError"

OMITTED: Any = object()
"""A bad value that is not shown. (`field.OmitValueType`)"""

_TITLES = {
    REQUIRED: "Required value",
    INVALID: "Invalid value",
    NOT_SUPPORTED: "Unsupported value",
    FORBIDDEN: "Forbidden",
    DUPLICATE: "Duplicate value",
    NOT_FOUND: "Not found",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
    TYPE_INVALID: "Invalid value",
    INTERNAL: "Internal error",
}
_WITHOUT_VALUE = frozenset({REQUIRED, FORBIDDEN, TOO_LONG, INTERNAL})
_GO_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def go_quote(text: str) -> str:
    """Format `text` as Go's `%q` prints it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    out = []
    for char in text:
        if char in _GO_ESCAPES:
            out.append(_GO_ESCAPES[char])
        elif char.isprintable():
            out.append(char)
        elif (point := ord(char)) < 0x80:
            out.append(f"\\x{point:02x}")
        elif point < 0x10000:
            out.append(f"\\u{point:04x}")
        else:
            out.append(f"\\U{point:08x}")
    return '"' + "".join(out) + '"'


def go_json(value: Any) -> str:
    """Format `value` as Go's `json.Marshal` prints it (HTML characters escaped)."""
    text = orjson.dumps(value).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@dataclass(frozen=True, slots=True)
class FieldError:
    """`type` is the reason of the Status cause (`FieldValueInvalid`), `field` the path (`spec.containers[0].name`).

    `bad_value` is plain JSON data; it is shown by the types that show a value. `detail` may be "".
    """

    type: str
    field: str
    bad_value: Any
    detail: str

    @property
    def body(self) -> str:
        """Return the text without the path, which `details.causes[].message` holds. (`field.Error.ErrorBody`)"""
        text = _TITLES[self.type]
        if self.type not in _WITHOUT_VALUE and self.bad_value is not OMITTED:
            value = self.bad_value
            text += ": " + (go_quote(value) if isinstance(value, str) else go_json(value))
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(REQUIRED, path, "", detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(INVALID, path, value, detail)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Make the error for a value that is not in `supported`, which is shown in the order given."""
    listed = ", ".join(go_quote(item) for item in supported)
    return FieldError(NOT_SUPPORTED, path, value, f"supported values: {listed}" if listed else "")


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(FORBIDDEN, path, "", detail)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(DUPLICATE, path, value, "")


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    return FieldError(NOT_FOUND, path, value, detail)


def too_long(path: str, maximum: int) -> FieldError:
    """Make the error for a value that is too long; `maximum` in bytes."""
    return FieldError(TOO_LONG, path, "", f"may not be more than {maximum} bytes")


def too_many(path: str, actual: int, maximum: int) -> FieldError:
    item = "item" if maximum == 1 else "items"
    return FieldError(TOO_MANY, path, actual, f"must have at most {maximum} {item}")


def each(path: str, value: Any, problems: Iterable[str]) -> list[FieldError]:
    """Make one `Invalid` per problem text."""
    return [invalid(path, value, problem) for problem in problems]


def message_of(errors: Iterable[FieldError]) -> str:
    """Return one message for all: `a` or `[a, b]`, equal texts once. (`ErrorList.ToAggregate`)"""
    messages = list(dict.fromkeys(str(error) for error in errors))
    return messages[0] if len(messages) == 1 else "[" + ", ".join(messages) + "]" if messages else ""


def causes_of(errors: Iterable[FieldError]) -> list[dict[str, str]]:
    """Return `details.causes`: every error, equal ones too."""
    return [{"reason": error.type, "message": error.body, "field": error.field} for error in errors]
