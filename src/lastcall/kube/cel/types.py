"""Types of CEL (cel-go common/types/types.go) and the declarations that the checker resolves calls with."""

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """`kind` is the word of this module's constants below; `parameters` are those of list, map, optional_type, type
    and opaque types; `name` is what a person reads for object and opaque types and for type parameters."""

    kind: str
    name: str = ""
    parameters: tuple["Type", ...] = ()


DYN = Type("dyn", "dyn")
ERROR = Type("error", "!error!")
NULL = Type("null", "null")
BOOL = Type("bool", "bool")
INT = Type("int", "int")
UINT = Type("uint", "uint")
DOUBLE = Type("double", "double")
STRING = Type("string", "string")
BYTES = Type("bytes", "bytes")
TIMESTAMP = Type("timestamp", "timestamp")
DURATION = Type("duration", "duration")
ANY = Type("any", "any")


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def optional_of(inner: Type) -> Type:
    return Type("opaque", "optional_type", (inner,))


def type_of(inner: Type) -> Type:
    return Type("type", "type", (inner,))


def opaque(name: str, *parameters: Type) -> Type:
    """Make a type that only functions know (`net.IP`, `kubernetes.Quantity`)."""
    return Type("opaque", name, parameters)


def parameter(name: str) -> Type:
    """Make a type variable of a declaration (`T`)."""
    return Type("parameter", name)


def object_type(name: str) -> Type:
    """Make a type with fields; a TypeProvider knows them."""
    return Type("object", name)


class TypeProvider(Protocol):
    """Knows the fields of object types: of a CRD's schema, of a kind, of `request`."""

    def has(self, name: str) -> bool: ...

    def field(self, name: str, field: str) -> Type | None:
        """Return the type of a field of the object type `name`; None: no such field."""

    def fields(self, name: str) -> Mapping[str, Type]:
        """Return all fields of an object type (a struct literal needs them)."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function. `id` is cel-go's overload id: interpreter and cost tables find it by that."""

    id: str
    arguments: tuple[Type, ...]
    result: Type
    member: bool = False
    """The first argument is the target (`a.f(b)`)."""


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    overloads: tuple[Overload, ...] = field(default=())


_SHOWN = {"null": "null", "any": "any", "error": "!error!"}
_DECLARED = {"null": "null_type", "timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}


def shown(type_: Type) -> str:
    """Return a type as messages of the checker name it. (cel-go checker/format.go:FormatCELType)"""
    return _text(type_, _SHOWN)


def text(type_: Type) -> str:
    """Return a type as Go prints it (`Type.String`): what an expression evaluates to."""
    return _text(type_, _DECLARED)


def _text(type_: Type, words: Mapping[str, str]) -> str:
    name = words.get(type_.kind) or type_.name
    if not type_.parameters:
        return name
    return f"{name}({', '.join(_text(each, words) for each in type_.parameters)})"
