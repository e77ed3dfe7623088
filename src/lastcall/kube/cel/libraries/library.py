"""What a library is, and the notation that its declarations are written in.

A row is `function  overload_id  signature`; a signature is `(int, int) -> int`, or `string.(int) -> string` for a
method. A single capital letter is a type parameter; `OBJECTS` has the words of Kubernetes's own types.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from lastcall.kube.cel.bounds import Bounds, Operand
from lastcall.kube.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Function,
    Overload,
    Type,
    object_type,
    opaque,
    parameter,
)
from lastcall.world.dataclass import dataclass

Implementation: TypeAlias = Callable[..., object]
"""Computes a call from the values of its arguments (the target first); raises EvaluationError."""

RuntimeCost: TypeAlias = Callable[[Sequence[object]], int]
"""What a call costs: of the arguments (the target first). It is charged before the call."""

ResultCost: TypeAlias = Callable[[object], int]
"""What a call cost, of its result."""

Estimate: TypeAlias = Callable[[Sequence[Operand]], tuple[Bounds, Bounds | None]]
"""What a call will cost, and how big its result will be (None: not known), before it runs."""


@dataclass(frozen=True, slots=True)
class Library:
    name: str
    declarations: tuple[Function, ...]
    implementations: Mapping[str, Implementation] = field(default_factory=dict)
    """By overload id."""
    costs: Mapping[str, RuntimeCost] = field(default_factory=dict)
    """By overload id; a call without a row costs 1."""
    result_costs: Mapping[str, ResultCost] = field(default_factory=dict)
    """By overload id, for calls whose cost is known by their result only."""
    dispatched: frozenset[str] = frozenset()
    """Functions with one implementation for all overloads (by the function's name, in `implementations`)."""
    unguarded: frozenset[str] = frozenset()
    """Functions that look at the types of their arguments themselves."""
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    """By overload id; a call without a row costs 1 and its result has no known size."""
    types: Mapping[str, Type] = field(default_factory=dict)
    """Types that an expression may name (`type(x) == net.IP`)."""


SIMPLE = {
    "dyn": DYN,
    "any": ANY,
    "null": NULL,
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
}
OBJECTS = {
    "URL": object_type("kubernetes.URL"),
    "Quantity": object_type("kubernetes.Quantity"),
    "Semver": object_type("kubernetes.Semver"),
    "NamedFormat": object_type("kubernetes.NamedFormat"),
    "IP": opaque("net.IP"),
    "CIDR": opaque("net.CIDR"),
    **{
        word: object_type(f"kubernetes.authorization.{word}")
        for word in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
    },
}
KINDS = {"list": "list", "map": "map", "type": "type", "optional_type": "opaque"}
WORD = re.compile(r"[\w.]+")


def declared(rows: str) -> tuple[Function, ...]:
    """Return the functions that `rows` describe, in their order."""
    functions: dict[str, list[Overload]] = {}
    for row in rows.strip().splitlines():
        name, overload_id, signature = row.split(None, 2)
        functions.setdefault(name, []).append(overload(overload_id, signature))
    return tuple(Function(name, tuple(overloads)) for name, overloads in functions.items())


def overload(overload_id: str, signature: str) -> Overload:
    arguments, result = signature.split(" -> ")
    target, _, rest = arguments.partition(".(")
    if rest:
        return Overload(
            overload_id, (type_of_text(target), *types_of_text(rest[:-1])), type_of_text(result), member=True
        )
    return Overload(overload_id, types_of_text(arguments[1:-1]), type_of_text(result))


def type_of_text(text: str) -> Type:
    (one,) = types_of_text(text)
    return one


def types_of_text(text: str) -> tuple[Type, ...]:
    """Parse the types of a list such as `int, map(K, list(V))`."""
    found, rest = [], text.strip()
    while rest:
        word = WORD.match(rest)
        assert word, text
        name, rest = word[0], rest[word.end() :]
        inner, rest = bracketed(rest)
        found.append(named(name, types_of_text(inner)))
        rest = rest.lstrip(", ")
    return tuple(found)


def bracketed(text: str) -> tuple[str, str]:
    """Return the content of the brackets that a text begins with, and what comes after them."""
    depth = 0
    for end, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return text[1:end], text[end + 1 :] if end else text
    return "", text


def named(name: str, inner: tuple[Type, ...]) -> Type:
    if name in KINDS:
        return Type(KINDS[name], name, inner)
    if name in SIMPLE:
        return SIMPLE[name]
    if len(name) == 1:
        return parameter(name)
    return OBJECTS[name]


def merged(libraries: Iterable[Library]) -> dict[str, Function]:
    """Merge the functions of several libraries by name. A function of two libraries has the overloads of both."""
    functions: dict[str, Function] = {}
    for library in libraries:
        for one in library.declarations:
            known = functions.get(one.name)
            functions[one.name] = one if known is None else Function(one.name, known.overloads + one.overloads)
    return functions
