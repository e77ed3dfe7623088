"""The types of Kubernetes 1.36.2 with the fields of 1.37: which there are, of which type, and how their lists merge.

The data is `schema.json` (made by tools/make_schema.py) and is read at the first question. In the file a field has the
keys `t` type, `f` format, `r` reference to a type, `i` items of a list, `m` values of a map, `e` enum, `d` default,
`lt` listType, `lk` listMapKeys, `mt` mapType, `mk` merge key, `ps` patchStrategy, `z` 1 for a struct that is not a
pointer in Go and therefore always there, `o` 1 for a value that Go leaves out when it is zero or empty, `g` the Go type
of a string, list or map that has one of its own; a type has `f` fields, `req` required, `n` fields that Go writes as
null when there is nothing in them, `a` fields that it writes although nobody set them, `u` unions, or `t` and `fmt`
when it is not an object. `prefixes` has what the short type names lack. `o`, `g`, `n` and `a` are of
tools/make_go_fields.py.
"""

# check: many attributes Field because it is data: each is a fact that the schema has of a field

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema import newer

Shape = Literal["struct", "list", "map", "string", "integer", "number", "boolean", "scalar", "any"]
"""`scalar` is a type with its own decoder (Quantity, Time, IntOrString, bytes), `any` is free-form JSON."""

SCALARS = {"Quantity": "quantity", "IntOrString": "intstr", "meta.v1.Time": "time", "meta.v1.MicroTime": "microtime"}


class Field:
    """One field, or the items of a list or map."""

    __slots__ = (
        "always", "atomic", "default", "enum", "format", "go_type", "item", "list_keys", "list_type", "merge_key",
        "omitted", "ref", "shape", "strategy",
    )  # fmt: skip

    def __init__(self, facts: dict[str, Any], types: dict[str, Any]) -> None:
        self.ref = cast(str, facts.get("r", ""))
        self.format = cast(str, facts.get("f", ""))
        """`int32`, `int64`, `double`, `byte`; for a scalar the decoder: `quantity`, `intstr`, `time`, `microtime`,
        `byte`."""
        self.go_type = cast(str, facts.get("g", ""))
        """`v1.PullPolicy` for a string, list or map whose Go type has a name; "" for any other."""
        self.enum = cast(list[str], facts.get("e") or [])
        self.list_type = cast(str, facts.get("lt", ""))
        self.list_keys = cast(list[str], facts.get("lk") or [])
        self.merge_key = cast(str, facts.get("mk", ""))
        self.default: Any = facts.get("d")
        """The schema's own default, None without one; most defaults are rules (`kube/api/defaults/kinds.py`)."""
        self.always = "z" in facts
        """Whether the struct is there even when nobody wrote it."""
        self.omitted = "o" in facts
        """Whether a zero value (0, "", false, an empty list or map) is not encoded."""
        self.atomic = (facts.get("mt") or types.get(self.ref, {}).get("mt")) == "atomic"  # the field has the last word
        """Whether a map or struct is one value for field managers; lists say it with `list_type`."""
        self.strategy: frozenset[str] = frozenset(facts["ps"].split(",")) if "ps" in facts else frozenset()
        self.item: Field | None = None
        self.shape: Shape
        if "i" in facts:
            self.shape, self.item = "list", Field(facts["i"], types)
        elif "m" in facts:
            self.shape, self.item = "map", Field(facts["m"], types)
        elif self.ref in SCALARS:
            self.shape, self.format = "scalar", SCALARS[self.ref]
        elif self.ref:
            self.shape = "struct" if "f" in types.get(self.ref, {}) else "any"
        elif facts.get("t") == "string":
            self.shape = "scalar" if self.format == "byte" else "string"
        elif facts.get("t") in ("integer", "number", "boolean"):
            self.shape = facts["t"]
        else:
            self.shape = "any"


class Struct:
    """An object type. `name` is like `core.v1.Container`; fields are looked up with `fields.get(name)`."""

    __slots__ = ("always", "fields", "name", "nulls", "required")

    def __init__(self, name: str, facts: dict[str, Any], types: dict[str, Any]) -> None:
        self.name = name
        self.required = frozenset(facts.get("req") or ())
        self.nulls: tuple[str, ...] = tuple(facts.get("n") or ())
        """Fields that are encoded as null when there is nothing in them."""
        self.always: tuple[str, ...] = tuple(facts.get("a") or ())
        """Fields that are encoded although nobody set them: plain values without omitempty, structs."""
        self.fields = {key: Field(value, types) for key, value in facts["f"].items()}


@cache
def _data() -> dict[str, Any]:
    data = cast(dict[str, Any], orjson.loads(Path(__file__).with_name("schema.json").read_bytes()))
    newer.add_to(data["types"])
    return data


@cache
def struct(name: str) -> Struct:
    """Return the object type of this name (`core.v1.PodSpec`). Raises KeyError."""
    types = _data()["types"]
    return Struct(name, types[name], types)


@cache
def struct_for(resource: Resource) -> Struct:
    """Return the type of a resource's objects."""
    return struct(_data()["gvk"][f"{resource.api_version}/{resource.kind}"])


def struct_of(field: Field) -> Struct:
    return struct(field.ref)


def empty(of: Struct) -> dict[str, Any]:
    """Return a new value of this type without any field set, as Go encodes it."""
    return {name: _zero(of.fields[name]) for name in of.always} | dict.fromkeys(of.nulls)


def _zero(field: Field) -> Any:
    if field.shape == "struct":
        return empty(struct(field.ref))
    if field.shape == "scalar":
        return {"quantity": "0", "intstr": 0}.get(field.format)
    return {"string": "", "integer": 0, "boolean": False}.get(field.shape)


def known_types() -> Mapping[str, str]:
    """Return `apiVersion/kind` of every kind of Kubernetes, and the name of its type."""
    return cast(Mapping[str, str], _data()["gvk"])


def facts_of(name: str) -> Mapping[str, Any]:
    """Return what the file says of the type of this short name. Raises KeyError."""
    return cast(Mapping[str, Any], _data()["types"][name])


def full_name(name: str) -> str:
    """Return the name in OpenAPI documents: `core.v1.Pod` is `io.k8s.api.core.v1.Pod`."""
    return cast(str, _data()["prefixes"].get(name.split(".", 1)[0], "io.k8s.api.")) + name
