"""Sets of fields, in the form in which managedFields keep them (FieldsV1).

A set is a dict from path elements to nodes. A path element is `f:name` (a field or a map's key), `k:{"name":"main"}`
(an item of a list with keys), `v:"x"` (an item of a set) or `i:0`. A node is a dict, too: `{}` says that the element
itself is in the set, `{".": {}, …}` that it is and so are things below it, `{…}` without `.` that only those are.
No function changes what it is given; results share what stayed the same.

Source: structured-merge-diff fieldpath/set.go, serialize.go, path.go.
"""

# check: pure

from collections.abc import Mapping
from typing import Any

import orjson

from lastcall.kube.api.field import go_json

FieldSet = dict[str, Any]
Path = tuple[str, ...]

EMPTY: FieldSet = {}
"""Shared by all leaves: never to be changed."""
SELF = "."


def is_member(node: FieldSet) -> bool:
    """Return whether the element of this node is itself in the set."""
    return not node or SELF in node


def _node(member: bool, children: FieldSet) -> FieldSet | None:
    if not children:
        return EMPTY if member else None
    return {SELF: EMPTY, **children} if member else children


def _children(node: FieldSet) -> FieldSet:
    return {key: child for key, child in node.items() if key != SELF} if SELF in node else node


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return both sets together, or `one` itself when nothing is added."""
    if not one:
        return other
    result: FieldSet | None = None
    for key, node in other.items():
        known = one.get(key)
        both = node if known is None else _union(known, node)
        if both is not known:
            result = dict(one) if result is None else result
            result[key] = both
    return one if result is None else result


def _union(one: FieldSet, other: FieldSet) -> FieldSet:
    if one is other or one == other:
        return one
    if not one or not other:
        filled = one or other
        return filled if SELF in filled else {SELF: EMPTY, **filled}
    return union(one, other)


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the elements of `one` that are not in `other`, whatever is below. `one` itself when nothing goes."""
    if not other:
        return one
    result: FieldSet | None = None
    for key, gone in other.items():
        node = one.get(key)
        if node is None:
            continue
        member, children = is_member(node), _children(node)
        kept, left = member and not is_member(gone), difference(children, gone)
        if kept == member and left is children:
            continue
        result = dict(one) if result is None else result
        remaining = _node(kept, left)
        if remaining is None:
            del result[key]
        else:
            result[key] = remaining
    return one if result is None else result


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for key, node in one.items():
        also = other.get(key)
        if also is not None:
            both = _node(is_member(node) and is_member(also), intersection(_children(node), _children(also)))
            if both is not None:
                result[key] = both
    return result


def exclude(fields: FieldSet, ignored: FieldSet) -> FieldSet:
    """Return `fields` without the elements of `ignored` and all that lies below them (RecursiveDifference)."""
    if not ignored:
        return fields
    result: FieldSet = {}
    for key, node in fields.items():
        without = ignored.get(key)
        if without is None:
            result[key] = node
        elif not is_member(without):
            left = _node(is_member(node), exclude(_children(node), without))
            if left is not None:
                result[key] = left
    return result


def has(fields: FieldSet, path: Path) -> bool:
    node: FieldSet | None = fields
    for element in path:
        node = (node or {}).get(element)
        if node is None:
            return False
    return node is not None and is_member(node)


def below(fields: FieldSet, element: str) -> FieldSet:
    """Return the set of what lies below an element."""
    return _children(fields.get(element) or EMPTY)


def paths(fields: FieldSet) -> list[Path]:
    """Return every element in the order in which the original walks a set: a level before what is below it."""
    keys = sorted((key for key in fields if key != SELF), key=_order)
    found: list[Path] = [(key,) for key in keys if is_member(fields[key])]
    for key in keys:
        found += [(key, *rest) for rest in paths(_children(fields[key]))]
    return found


def set_of(*members: Path) -> FieldSet:
    """Return the set of these paths."""
    result: FieldSet = {}
    for path in members:
        node: FieldSet = EMPTY
        for element in reversed(path):
            node = {element: node}
        result = union(result, node)
    return result


_RANKS = {"f": 0, "k": 1, "v": 2, "i": 3}


def _order(element: str) -> tuple[Any, ...]:
    kind, _, text = element.partition(":")
    rank = _RANKS.get(kind, 4)
    if kind == "k":
        return rank, tuple((key, *_value_order(value)) for key, value in sorted(orjson.loads(text).items()))
    if kind in ("v", "i"):
        return rank, _value_order(orjson.loads(text))
    return rank, text


def _value_order(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, go_json(value))


def path_text(path: Path) -> str:
    """Return `.spec.containers[name="main"].image`."""
    return "".join(element_text(element) for element in path)


def element_text(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "k":
        return f"[{','.join(_key_texts(orjson.loads(text)))}]"
    return f"[={text}]" if kind == "v" else f"[{text}]"


def _key_texts(fields: Mapping[str, Any]) -> list[str]:
    return [f"{key}={_key_text(value)}" for key, value in sorted(fields.items())]


def _key_text(value: Any) -> str:
    """A key's value, which is rarely a list or an object. (structured-merge-diff value/value.go:ToString)"""
    if isinstance(value, dict):
        return "".join(_key_texts(value))
    if isinstance(value, list):
        return f"[{','.join(map(_key_text, value))}]"
    return go_json(value)


def check(fields: Any) -> bool:
    """Return whether something is a set, by its form."""
    return isinstance(fields, Mapping) and all(
        isinstance(key, str) and (key == SELF or key[:2] in ("f:", "k:", "v:", "i:")) and check(node)
        for key, node in fields.items()
    )
