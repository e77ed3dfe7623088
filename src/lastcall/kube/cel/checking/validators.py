"""Literals that are of the right type and still wrong (cel-go cel/validator.go, ext/formatting.go)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lastcall.kube.api.custom.patterns import pattern
from lastcall.kube.cel.ast import (
    Call,
    Comprehension,
    Constant,
    Entry,
    Expression,
    ListLiteral,
    MapLiteral,
    Select,
    Struct,
)
from lastcall.kube.cel.checked import Checked
from lastcall.kube.cel.checking.unification import is_dyn, unwrapped
from lastcall.kube.cel.errors import Issue
from lastcall.kube.cel.libraries.formatting import clause
from lastcall.kube.cel.text import read_duration, read_timestamp
from lastcall.kube.cel.types import Type, shown
from lastcall.kube.cel.values import CostExceeded, Duration, EvaluationError, Record, Timestamp, TypeValue, Uint


def issues_of(checked: Checked) -> list[Issue]:
    found = list(_wrong_literals(checked, checked.tree.root, formatted=False))
    return [Issue(checked.tree.offsets.get(id_), message) for id_, message in found]


def _wrong_literals(checked: Checked, node: Expression, *, formatted: bool) -> Iterator[tuple[int, str]]:
    """(id of the node, message); `formatted`: the node is an argument of `format`, whose lists may be mixed."""
    if isinstance(node, Call):
        if (check := _CHECKS.get(node.function)) and node.arguments:
            literal = node.arguments[0]
            if isinstance(literal, Constant) and not check(literal.value):
                yield literal.id, f"invalid {node.function} argument"
        if node.function == "format" and node.target is not None:
            formatted = True
            yield from _wrong_format(checked, node)
    elif isinstance(node, ListLiteral) and not formatted:
        yield from _mixed_elements(checked, node)
    elif isinstance(node, MapLiteral) and not formatted:
        yield from _mixed_entries(checked, node)
    for child in _children(node):
        yield from _wrong_literals(checked, child, formatted=formatted)


def _children(node: Expression) -> Iterator[Expression]:
    match node:
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.arguments
        case ListLiteral():
            yield from node.elements
        case MapLiteral() | Struct():
            for entry in node.entries:
                if not isinstance(entry.key, str):
                    yield entry.key
                yield entry.value
        case Comprehension():
            yield from (node.range, node.start, node.condition, node.step, node.result)
        case _:
            pass


# -- arguments that are literals ---------------------------------------------------------------------------------------


def _is_pattern(value: object) -> bool:
    return not isinstance(value, str) or not pattern(value).error


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    "duration": lambda value: isinstance(value, str) and read_duration(value) is not None,
    "timestamp": lambda value: not isinstance(value, str) or read_timestamp(value) is not None,
    "matches": _is_pattern,
}


# -- lists and maps of one type ----------------------------------------------------------------------------------------


def _differ(one: Type, other: Type) -> bool:
    return one != other and not (is_dyn(one) or is_dyn(other))


def _mismatch(node: Expression, expected: Type, found: Type) -> tuple[int, str]:
    return node.id, f"expected type '{shown(expected)}' but found '{shown(found)}'"


def _mixed_elements(checked: Checked, node: ListLiteral) -> Iterator[tuple[int, str]]:
    first: Type | None = None
    for index, element in enumerate(node.elements):
        type_ = checked.types[element.id]
        if index in node.optional:
            type_, _ = unwrapped(type_)
        if first is None:
            first = type_
        elif _differ(first, type_):
            yield _mismatch(element, first, type_)
            return


def _mixed_entries(checked: Checked, node: MapLiteral) -> Iterator[tuple[int, str]]:
    first: tuple[Type, Type] | None = None
    for entry in node.entries:
        key, value = _entry_types(checked, entry)
        if first is None:
            first = key, value
            continue
        assert not isinstance(entry.key, str)
        if _differ(first[0], key):
            yield _mismatch(entry.key, first[0], key)
        if _differ(first[1], value):
            yield _mismatch(entry.value, first[1], value)


def _entry_types(checked: Checked, entry: Entry) -> tuple[Type, Type]:
    assert not isinstance(entry.key, str)
    value = checked.types[entry.value.id]
    return checked.types[entry.key.id], unwrapped(value)[0] if entry.optional else value


# -- formats -----------------------------------------------------------------------------------------------------------

_EXAMPLES: Mapping[str, Any] = {
    "bool": False, "int": 0, "uint": Uint(0), "double": 0.0, "string": "", "bytes": b"", "null": None, "list": [],
    "map": {}, "timestamp": Timestamp(0), "duration": Duration(0), "type": TypeValue("int"),
}  # fmt: skip
"""A value of each type that a format may have."""


def _wrong_format(checked: Checked, node: Call) -> Iterator[tuple[int, str]]:
    """(`stringFormatValidator`)"""
    text, arguments = node.target, node.arguments
    if not (isinstance(text, Constant) and isinstance(text.value, str) and isinstance(arguments[0], ListLiteral)):
        return
    values, used, at = arguments[0].elements, 0, 0
    while (at := text.value.find("%", at)) >= 0:
        if text.value[at + 1 : at + 2] == "%":
            at += 2
            continue
        if used >= len(values):
            yield node.id, f"index {used} out of range"
            return
        if at + 1 >= len(text.value):
            yield node.id, "unexpected end of string"
            return
        value = values[used]
        for part in _parts(value) if text.value[at + 1] == "s" else (value,):
            wrong, end = _wrong_clause(text.value, at, checked.types[part.id])
            if wrong:
                yield (part if "error during formatting" in wrong else node).id, wrong
                return
        at = end
        used += 1
    if len(values) > used:
        yield node.id, f"too many arguments supplied to string.format (expected {used}, got {len(values)})"


def _parts(node: Expression) -> Iterator[Expression]:
    """A value and, in a literal, all that it holds."""
    yield node
    if isinstance(node, ListLiteral):
        for element in node.elements:
            yield from _parts(element)
    if isinstance(node, MapLiteral):
        for entry in node.entries:
            assert not isinstance(entry.key, str)
            yield from _parts(entry.key)
            yield from _parts(entry.value)


def _wrong_clause(text: str, at: int, type_: Type) -> tuple[str, int]:
    """What is wrong with a clause for a value of the type, and where the clause ends."""
    if type_.kind in _EXAMPLES:
        examples = ["", "NaN"] if type_.kind == "string" else [_EXAMPLES[type_.kind]]
    else:
        examples = [Record(type_.name, {})] if type_.kind in ("opaque", "object") else [0, 0.0, ""]
    wrong, end = "", at + 2
    for example in examples:
        try:
            return "", clause(text, at, example)[1]
        except CostExceeded:
            return "", end
        except EvaluationError as error:
            wrong = str(error)
    return wrong, end
