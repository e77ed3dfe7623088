"""Objects by their schema: the fields that a manifest names, merging it into an object, taking fields out of one.

Source: structured-merge-diff typed/tofieldset.go, merge.go, remove.go, fieldpath/set.go:EnsureNamedFieldsAreMembers.
"""

# check: pure

from typing import Any

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.fieldmanager.fields import EMPTY, SELF, FieldSet, below, is_member
from lastcall.kube.apiserver.fieldmanager.types import Type

_ABSENT: Any = object()


def named_fields(type_: Type, obj: Object) -> FieldSet:
    """Return the fields of an applied object: each leaf, each item of a list with keys, each empty map."""
    fields = _named(type_, obj) or {}
    return {key: node for key, node in fields.items() if key != SELF}


def _named(type_: Type, value: Any) -> FieldSet | None:
    """The node of a value; a struct or list that only holds others is not named itself. None: it names nothing.

    (structured-merge-diff typed/tofieldset.go)
    """
    if type_.leaf or value is None or value == {}:
        return EMPTY
    node: FieldSet = {}
    if isinstance(value, dict):
        for name, item in value.items():
            element, child = type_.child(name)
            inner = _named(child, item)
            if type_.kind == "map":
                node[element] = {SELF: EMPTY, **inner} if inner and SELF not in inner else inner or EMPTY
            elif inner is not None:
                node[element] = inner
    elif isinstance(value, list) and type_.item is not None:
        for item in value:
            inner = _named(type_.item, item)
            node[type_.element(item)] = {SELF: EMPTY, **inner} if inner else EMPTY
    return node or None


def merged(type_: Type, live: Any, applied: Any) -> Any:
    """Merge `applied` into `live`. Neither is changed, the result shares parts of both."""
    if applied is _ABSENT:
        return live
    if live is _ABSENT or type_.leaf or not (live or applied):
        return applied
    if type_.kind in ("list", "set"):
        if isinstance(live, list | None) and isinstance(applied, list | None):
            return _merged_items(type_, live or [], applied or [])
        return applied
    if not (isinstance(live, dict | None) and isinstance(applied, dict | None)):
        return applied
    result = dict(live or {})
    for name, value in (applied or {}).items():
        _, child = type_.child(name)
        result[name] = merged(child, result.get(name, _ABSENT), value)
    return result


def _merged_items(type_: Type, live: list[Any], applied: list[Any]) -> list[Any]:
    """Items in the order of `applied`; those that only `live` has keep their place between their neighbours."""
    assert type_.item is not None
    left, right = [type_.element(item) for item in live], [type_.element(item) for item in applied]
    old, new = dict(zip(left, live, strict=True)), dict(zip(right, applied, strict=True))
    shared = [element for element in right if element in old]
    taken: set[str] = set()
    result: list[Any] = []
    i = j = 0

    def take(element: str) -> None:
        taken.add(element)
        result.append(merged(type_.item, old.get(element, _ABSENT), new.get(element, _ABSENT)))  # type: ignore[arg-type]
        if shared and shared[0] == element:
            shared.pop(0)

    while i < len(left) or j < len(right):
        if i < len(left) and j < len(right):
            if left[i] == right[j]:
                take(left[i])
                i, j = i + 1, j + 1
                continue
            if left[i] in new and shared and shared[0] != left[i]:
                i += 1  # it comes later, where `applied` has it
                continue
        if i < len(left):
            if left[i] not in new:
                result.append(live[i])
                i += 1
                continue
            if left[i] in taken:
                i += 1
        if j < len(right):
            take(right[j])
            j += 1
    return result


def without(type_: Type, value: Any, fields: FieldSet) -> Any:
    """Return `value` without the elements of `fields`; None if nothing is left of a list, or it is a whole."""
    if type_.leaf:
        return None if type_.kind in ("struct", "map", "list", "set") and value else value
    if isinstance(value, dict):
        kept = {}
        for name, item in value.items():
            element, child = type_.child(name)
            node = fields.get(element)
            if node is None:
                kept[name] = item
            elif not is_member(node):
                kept[name] = without(child, item, below(fields, element))
        return kept
    if isinstance(value, list) and type_.item is not None:
        items = []
        for item in value:
            element = type_.element(item)
            node = fields.get(element)
            if node is None:
                items.append(item)
            elif not is_member(node):
                items.append(without(type_.item, item, below(fields, element)))
        return items or None
    return value


def with_named_parents(type_: Type, fields: FieldSet) -> FieldSet:
    """Return `fields` with every struct's field that something lies below as a member, too."""
    result: FieldSet = {}
    for element, node in fields.items():
        if element == SELF or not node:
            result[element] = node
            continue
        child = _type_at(type_, element)
        inner = node if child is None else with_named_parents(child, node)
        declared = type_.kind == "struct" and element[2:] in type_.fields
        result[element] = {SELF: EMPTY, **inner} if declared and SELF not in inner else inner
    return result


def _type_at(type_: Type, element: str) -> Type | None:
    if element.startswith("f:"):
        return type_.child(element[2:])[1] if type_.kind in ("struct", "map") else None
    return type_.item
