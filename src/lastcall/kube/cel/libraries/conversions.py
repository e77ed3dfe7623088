"""Conversions between types (cel-go common/types: ConvertToType)."""

import math
from collections.abc import Callable

from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.cel.libraries.arithmetic import in_int, in_uint
from lastcall.kube.cel.operations import type_name
from lastcall.kube.cel.text import (
    FALSE,
    TRUE,
    in_range,
    read_duration,
    read_float,
    read_timestamp,
    read_uint,
    short_float,
    written_duration,
    written_timestamp,
)
from lastcall.kube.cel.values import Duration, EvaluationError, Timestamp, TypeValue, Uint

SECOND = 1_000_000_000


def same(value: object) -> object:
    return value


def not_convertible(target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{target}'")


def from_string(read: Callable[[str], object | None], target: str) -> Callable[[str], object]:
    """Make a conversion of texts; `read` gives None for a text that is not a `target`."""

    def convert(text: str) -> object:
        value = read(text)
        if value is None:
            raise not_convertible(target)
        return value

    return convert


def uint_of(text: str) -> Uint | None:
    value = read_uint(text)
    return None if value is None else Uint(value)


def string_to_bool(text: str) -> bool:
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise not_convertible("bool")


def string_to_timestamp(text: str) -> Timestamp:
    value = read_timestamp(text)
    if value is None:
        raise not_convertible("google.protobuf.Timestamp")
    return valid(value)


def valid(value: Timestamp) -> Timestamp:
    if not in_range(value):
        raise EvaluationError("timestamp overflow")
    return value


def double_to_int(value: float) -> int:
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def double_to_uint(value: float) -> Uint:
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def type_of(value: object) -> TypeValue:
    return TypeValue(type_name(value))


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "type": type_of,
    "dyn": same,
    "bool_to_bool": same,
    "string_to_bool": string_to_bool,
    "bytes_to_bytes": same,
    "string_to_bytes": lambda text: text.encode("utf-8", "replace"),
    "double_to_double": same,
    "int64_to_double": float,
    "uint64_to_double": float,
    "string_to_double": from_string(read_float, "double"),
    "duration_to_duration": same,
    "int64_to_duration": Duration,
    "string_to_duration": from_string(read_duration, "google.protobuf.Duration"),
    "int64_to_int64": same,
    "double_to_int64": double_to_int,
    "duration_to_int64": lambda value: value.nanoseconds,
    "string_to_int64": from_string(int_of, "int"),
    "timestamp_to_int64": lambda value: value.nanoseconds // SECOND,
    "uint64_to_int64": lambda value: in_int(int(value)),
    "string_to_string": same,
    "bool_to_string": lambda value: "true" if value else "false",
    "bytes_to_string": bytes_to_string,
    "double_to_string": short_float,
    "duration_to_string": written_duration,
    "int64_to_string": str,
    "timestamp_to_string": written_timestamp,
    "uint64_to_string": str,
    "timestamp_to_timestamp": same,
    "int64_to_timestamp": lambda value: valid(Timestamp(value * SECOND)),
    "string_to_timestamp": string_to_timestamp,
    "uint64_to_uint64": same,
    "double_to_uint64": double_to_uint,
    "int64_to_uint64": in_uint,
    "string_to_uint64": from_string(uint_of, "uint"),
}
