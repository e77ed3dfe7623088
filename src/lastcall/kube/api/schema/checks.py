"""Kinds, and decoding as Go does it: unknown fields and wrong types.

Sources: sigs.k8s.io/json (strict decoding), encoding/json (texts), the UnmarshalJSON methods of Quantity, Time and
IntOrString.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object
from lastcall.kube.api.quantity import FORMAT_ERROR, QuantityError, parse_quantity
from lastcall.kube.api.resources import SERVED, Resource
from lastcall.kube.api.schema import newer
from lastcall.kube.api.schema.types import Field, Struct, known_types, struct, struct_for, struct_of
from lastcall.kube.api.text.times import TimeError, canonical_time

MAX_PROBLEMS = 100
"""Strict decoding stops counting here. (`sigs.k8s.io/json: d.saveStrictError`)"""

_INTEGER_LIMITS = {"int32": 2**31, "int64": 2**63}
TIMES = ("time", "microtime")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*")


@cache
def _served() -> dict[tuple[str, str], Resource]:
    return {(resource.api_version, resource.kind): resource for resource in SERVED}


def resource_for(api_version: str, kind: str) -> Resource | None:
    """Return the served resource of this apiVersion and kind."""
    return _served().get((api_version, kind))


def known_kind(api_version: str, kind: str) -> bool:
    """Return True for every kind of Kubernetes, served or not."""
    name = f"{api_version}/{kind}"
    return name in known_types() or name in newer.KINDS


class DecodeError(ValueError):
    """The JSON does not fit the type. The message is Go's, without the `… cannot be handled as a …` around it.

    `unconverted` says it as a strategic merge does, which makes no JSON in between.
    """

    def __init__(self, message: str, unconverted: str = "") -> None:
        super().__init__(message)
        self.unconverted = unconverted or message


def check_fields(resource: Resource, obj: Object) -> list[str]:
    """Return the problems strict decoding would find: `unknown field "spec.foo"`, in document order.

    Raises `DecodeError` for a value of the wrong type, which no decoding accepts.
    """
    problems = _Problems()
    with problems.raise_saved():
        _check_struct(struct_for(resource), obj, "", "", problems)
    return problems[:MAX_PROBLEMS]


def check_value(field: Field, value: Any) -> list[str]:
    """Check the value of one field as `check_fields` does; messages have no path. Raises DecodeError."""
    problems = _Problems()
    with problems.raise_saved():
        _check(field, value, "", "", Struct("", {"f": {}}, {}), problems)
    return problems


class _Problems(list[str]):
    """What strict decoding finds, and the first value of a wrong type.

    Go goes on after a wrong type and reports the first at the end, but what a type of its own cannot read (a time, a
    quantity) it reports at once. (`encoding/json: decodeState.saveError`)
    """

    saved: DecodeError | None = None

    def save(self, error: DecodeError) -> None:
        if self.saved is None:
            self.saved = error

    @contextmanager
    def raise_saved(self) -> Iterator[None]:
        """Raise DecodeError at the end. Without JSON in between this is the first error, of any kind."""
        try:
            yield
        except DecodeError as error:
            if self.saved is not None:
                error.unconverted = self.saved.unconverted
            raise
        if self.saved is not None:
            raise self.saved


def check_scalar(format_: str, value: Any) -> None:
    """Raise DecodeError for a value that is not a `quantity`, `intstr`, `time`, `microtime` or `byte`."""
    _SCALARS[format_](value)


def _check_struct(struct: Struct, value: Object, path: str, names: str, problems: _Problems) -> None:
    """`path` has indices and ends in a dot (`spec.containers[0].`), `names` has none (`spec.containers.`), and has the
    names of embedded types (`spec.PersistentVolumeSource.`)."""
    for key, item in value.items():
        field = struct.fields.get(key)
        if field is None:
            problems.append(f"unknown field {go_quote(path + key)}")
        elif item is not None:
            _check(field, item, path + key, names + _embedded(struct.name).get(key, "") + key, struct, problems)


@cache
def _embedded(name: str) -> dict[str, str]:
    """By field: the embedded types that it is in, each with a dot (`PersistentVolumeSource.`); others are absent."""
    # late: most objects are in order
    from lastcall.kube.api.protobuf.decoding import fields_of, has_message

    found: dict[str, str] = {}
    for field in fields_of(name).values() if has_message(name) else ():
        if field.inline:
            prefix = f"{field.type.rsplit('.', 1)[-1]}."
            inner = _embedded(field.type)
            found |= {each.name: prefix + inner.get(each.name, "") for each in fields_of(field.type).values()}
            found |= {key: prefix + rest for key, rest in inner.items()}
    if has_message(name):
        # Kind and version of a type, which protobuf leaves out.
        own = {field.name for field in fields_of(name).values()}
        found |= {key: "TypeMeta." for key in ("kind", "apiVersion") if key not in own and key not in found}
    return found


_SCHEMA = "apiextensions.v1.JSONSchemaProps"
SCHEMA_OR = {f"{_SCHEMA}Or{other}": other for other in ("Array", "Bool", "StringArray")}
"""Types of which a value may be a schema, or something else (apiextensions/v1/marshal.go)."""


def schemas_in(value: Any) -> Iterable[Any]:
    """Return the schemas of a value whose type is one of `SCHEMA_OR`."""
    return (value,) if isinstance(value, dict) else value if isinstance(value, list) else ()


def _check_schema_or(other: str, value: Any, names: str, owner: Struct) -> None:
    """What is unknown in such a schema is dropped without a word."""
    if other == "Bool" and not isinstance(value, bool | dict):
        raise DecodeError("boolean or JSON schema expected")
    if other == "StringArray" and not isinstance(value, dict):
        return
    for each in schemas_in(value):
        if each is not None:
            problems = _Problems()
            with problems.raise_saved():
                _check(schema_field(), each, "", names, owner, problems)


@cache
def schema_field() -> Field:
    """Return the field of a schema."""
    return struct("apiextensions.v1.CustomResourceValidation").fields["openAPIV3Schema"]


def _check(field: Field, value: Any, path: str, names: str, owner: Struct, problems: _Problems) -> None:
    if field.ref in SCHEMA_OR:
        _check_schema_or(SCHEMA_OR[field.ref], value, names, owner)
    elif field.shape == "struct":
        if isinstance(value, dict):
            _check_struct(struct_of(field), value, path + ".", names + ".", problems)
        else:
            problems.save(_mismatch(value, owner, names, _go_type(field)))
    elif field.shape == "list":
        if isinstance(value, list):
            _check_items(
                field, ((f"{path}[{index}]", item) for index, item in enumerate(value)), names, owner, problems
            )
        else:
            problems.save(_mismatch(value, owner, names, _go_type(field), "[]"))
    elif field.shape == "map":
        if isinstance(value, dict):
            _check_items(field, ((f"{path}.{key}", item) for key, item in value.items()), names, owner, problems)
        else:
            problems.save(_mismatch(value, owner, names, _go_type(field), "map["))
    elif field.shape == "scalar":
        _check_own_json(field, value, names, owner, problems)
    elif field.shape in _PLAIN and not _PLAIN[field.shape](field, value):
        problems.save(_plain_mismatch(field, value, names, owner))


def _check_items(
    field: Field, items: Iterable[tuple[str, Any]], names: str, owner: Struct, problems: _Problems
) -> None:
    assert field.item is not None
    for path, item in items:
        if item is not None:
            _check(field.item, item, path, names, owner, problems)


def _is_string(_: Field, value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(field: Field, value: Any) -> bool:
    limit = _INTEGER_LIMITS.get(field.format, 2**63)
    return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


def _is_boolean(_: Field, value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(_: Field, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_PLAIN: dict[str, Callable[[Field, Any], bool]] = {
    "string": _is_string,
    "integer": _is_integer,
    "boolean": _is_boolean,
    "number": _is_number,
}


def _plain_mismatch(field: Field, value: Any, names: str, owner: Struct) -> DecodeError:
    if field.shape == "integer":
        return _mismatch(value, owner, names, _go_type(field), shows_number=True)
    if field.shape == "string":
        return _mismatch(value, owner, names, _go_type(field), "string")
    return _mismatch(value, owner, names, "bool" if field.shape == "boolean" else "float64")


def _check_own_json(field: Field, value: Any, names: str, owner: Struct, problems: _Problems) -> None:
    """Check a value whose type reads its own JSON. Raises DecodeError, but for bytes."""
    if field.format == "byte":
        _check_byte(value, names, owner, problems)
        return
    if not isinstance(value, str) and field.format in TIMES:
        raise _of_itself(value, _mismatch(value, owner, names, "string"))
    if field.format == "intstr" and not is_int_or_string(value):
        raise _of_itself(value, _mismatch(value, owner, names, "int32", shows_number=True))
    _SCALARS[field.format](value)


def _check_byte(value: Any, names: str, owner: Struct, problems: _Problems) -> None:
    if isinstance(value, list):
        for item in value:
            if item is not None and not (type(item) is int and 0 <= item < 256):
                problems.save(_mismatch(item, owner, names, "uint8", shows_number=True))
    elif isinstance(value, str):
        try:
            _check_bytes(value)
        except DecodeError as error:
            problems.save(error)
    else:
        problems.save(_mismatch(value, owner, names, "[]uint8"))


def _mismatch(
    value: Any, owner: Struct, names: str, go_type: str, plain: str = "", *, shows_number: bool = False
) -> DecodeError:
    """`plain` is what a type with a name of its own is, or begins with."""
    shown = json_type(value)
    if shows_number and shown == "number":
        shown = f"number {value}"
    struct_name = owner.name.rsplit(".", 1)[-1]
    why = f"json: cannot unmarshal {shown} into Go struct field {struct_name}.{names} of type {go_type}"
    return DecodeError(why, unconverted(value, go_type, plain))


def _of_itself(value: Any, error: DecodeError) -> DecodeError:
    """A time or an IntOrString reads its own JSON, also in a strategic merge."""
    shown, _, type_ = str(error).partition(" into Go struct field ")
    if (to := type_.rpartition(" ")[2]) != "[]uint8":
        error.unconverted = f"{shown} into Go value of type {to}"
    return error


_GO_KINDS = {"bool": "bool", "string": "string", "object": "map", "array": "slice"}


def unconverted(value: Any, go_type: str, plain: str = "") -> str:
    """Return why `value` cannot become a `go_type`, which is a `plain`, without JSON in between.

    (`runtime.DefaultUnstructuredConverter`)
    """
    plain = plain or go_type
    kind = _GO_KINDS.get(json_type(value)) or ("int64" if isinstance(value, int) else "float64")
    for what, start in (("slice", "[]"), ("map", "map[")):
        if plain.startswith(start):
            return f"cannot restore {what} from {kind}"
    if "." in plain:
        return f"cannot restore struct from: {kind}"
    if (kind == "int64" and plain == "string") or (kind == "float64" and plain.startswith(("int", "float"))):
        return f"cannot convert {kind} to {go_type}"
    return f"unrecognized type: {plain}"


def json_type(value: Any) -> str:
    """Return what Go calls a decoded JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "number"


def _go_type(field: Field) -> str:
    """`[]v1.Container`, `map[string]string`, `int64`, `v1.PullPolicy`, …"""
    if field.go_type:
        return field.go_type
    if field.shape == "list":
        assert field.item is not None
        return "[]" + _go_type(field.item)
    if field.shape == "map":
        assert field.item is not None
        return "map[string]" + _go_type(field.item)
    if field.ref:
        parts = field.ref.split(".")
        return ".".join(parts[-2:]) if len(parts) > 1 else f"resource.{field.ref}"
    if field.shape == "integer":
        return field.format or "int64"
    if field.shape == "scalar":
        return "[]uint8"
    return {"string": "string", "boolean": "bool", "number": "float64"}.get(field.shape, "interface {}")


def _check_quantity(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DecodeError(FORMAT_ERROR)
    try:
        parse_quantity(value)
    except QuantityError as error:
        raise DecodeError(str(error)) from None


def is_int_or_string(value: Any) -> bool:
    """Return whether a value can be an IntOrString."""
    return isinstance(value, str) or (
        isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31
    )


def _check_int_or_string(value: Any) -> None:
    if not is_int_or_string(value):
        shown = json_type(value)
        shown = f"number {value}" if shown == "number" else shown
        raise DecodeError(f"json: cannot unmarshal {shown} into Go value of type int32")


def _check_time(value: Any, *, micro: bool = False) -> None:
    if not isinstance(value, str):
        raise DecodeError(f"json: cannot unmarshal {json_type(value)} into Go value of type string")
    try:
        canonical_time(value, micro=micro)
    except TimeError as error:
        raise DecodeError(str(error)) from None


def _illegal_base64(at: int) -> DecodeError:
    why = f"illegal base64 data at input byte {at}"
    return DecodeError(why, f"error decoding from json: {why}")


def _check_bytes(value: Any) -> None:
    """Standard base64; Go ignores line ends."""
    text = value.replace("\n", "").replace("\r", "")
    good = _BASE64.match(text)
    assert good is not None
    end = good.end()
    rest, over = text[end:], end % 4
    if not rest:
        if over:
            raise _illegal_base64(end - over)
        return
    if rest[0] != "=" or over < 2:
        raise _illegal_base64(end)
    if over == 2 and len(rest) == 1:
        raise _illegal_base64(len(text))
    if over == 2 and rest[1] != "=":
        raise _illegal_base64(end)
    padding = 4 - over
    if len(rest) > padding:
        raise _illegal_base64(end + padding)


_SCALARS: dict[str, Callable[[Any], None]] = {
    "quantity": _check_quantity,
    "intstr": _check_int_or_string,
    "time": _check_time,
    "microtime": lambda value: _check_time(value, micro=True),
    "byte": _check_bytes,
}
