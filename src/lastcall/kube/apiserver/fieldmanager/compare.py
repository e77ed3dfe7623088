"""What a write changed: the fields that came or differ, and those that went.

The work is proportional to the change: parts that are equal are found by one comparison and never walked.

Source: structured-merge-diff typed/compare.go.
"""

# check: pure

from collections.abc import Mapping
from typing import Any

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.fieldmanager.fields import EMPTY, SELF, FieldSet
from lastcall.kube.apiserver.fieldmanager.types import KNOWN_WHOLES, Type

UNMANAGED = frozenset(
    {
        "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
        "resourceVersion",
    }
)  # fmt: skip
"""Fields of metadata that nobody manages (stripmeta.go)."""

_ABSENT: Any = object()
_Change = tuple[FieldSet | None, FieldSet | None]
_NOTHING: _Change = (None, None)


def compare(type_: Type, old: Object, new: Object) -> tuple[FieldSet, FieldSet]:
    """Return (added or modified, removed) from `old` to `new`, except for what nobody manages."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    if old.get("metadata") is new.get("metadata"):
        _diff_members(type_, _other_parts(old), _other_parts(new), changed, removed)
    else:
        _diff_members(type_, _managed_parts(old), _managed_parts(new), changed, removed)
    return changed, removed


def _other_parts(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion", "metadata")}


def _managed_parts(obj: Object) -> Object:
    parts = _other_parts(obj)
    meta = obj.get("metadata")
    known = meta if isinstance(meta, Mapping) else {}
    parts["metadata"] = {name: value for name, value in known.items() if name not in UNMANAGED}
    return parts


def whole(type_: Type, value: Any) -> FieldSet:
    """Return the node of a value that is there as a whole: itself and everything below it."""
    if type_.leaf or not value:
        return EMPTY
    node: FieldSet = {SELF: EMPTY}
    if isinstance(value, dict):
        if type_.kind == "struct":
            names = tuple(value)
            if (known := type_.wholes.get(names)) is not None:
                return known
            fields, flat = type_.fields, True
            for name, item in value.items():
                element, child = fields.get(name) or type_.child(name)
                node[element] = EMPTY if child.leaf or not item else whole(child, item)
                flat = flat and child.leaf
            if flat and len(type_.wholes) < KNOWN_WHOLES:
                type_.wholes[names] = node
        else:
            for name, item in value.items():
                element, child = type_.child(name)
                node[element] = whole(child, item)
    elif isinstance(value, list) and type_.item is not None:
        for item in value:
            element = type_.element(item)
            # Items that occur twice count as one value, without parts.
            node[element] = EMPTY if element in node else whole(type_.item, item)
    return node


def _note(change: _Change, element: str, changed: FieldSet, removed: FieldSet) -> None:
    more, less = change
    if more is not None:
        changed[element] = more
    if less is not None:
        removed[element] = less


def _diff(type_: Type, old: Any, new: Any) -> _Change:
    """The nodes of what changed and of what went, None where there is nothing. One of the two may be absent."""
    if old is new or old == new:
        return _NOTHING
    if old is _ABSENT:
        return whole(type_, new), None
    if new is _ABSENT:
        return None, whole(type_, old)
    if type_.leaf or not (old or new):
        return EMPTY, None
    changed: FieldSet = {}
    removed: FieldSet = {}
    if type_.kind in ("list", "set"):
        _diff_items(type_, old or [], new or [], changed, removed)
    else:
        _diff_members(type_, old or {}, new or {}, changed, removed)
    return changed or None, removed or None


def _diff_members(type_: Type, old: Any, new: Any, changed: FieldSet, removed: FieldSet) -> None:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return
    fields = type_.fields if type_.kind == "struct" else {}
    for name, after in new.items():
        before = old.get(name, _ABSENT)
        if before is after or before == after:
            continue
        element, child = fields.get(name) or type_.child(name)
        if child.leaf:
            changed[element] = EMPTY
        elif before is _ABSENT and not child.always:
            changed[element] = whole(child, after)
        else:
            # In a struct that is there what Go has no pointer for is there, too.
            _note(_diff(child, {} if before is _ABSENT else before, after), element, changed, removed)
    if len(new) == len(old) and new.keys() == old.keys():
        return
    for name, before in old.items():
        if name not in new:
            element, child = fields.get(name) or type_.child(name)
            _note(_diff(child, before, {} if child.always else _ABSENT), element, changed, removed)


def _diff_items(type_: Type, old: list[Any], new: list[Any], changed: FieldSet, removed: FieldSet) -> None:
    """Distinguish items by their keys. Those that occur twice count as one value."""
    assert type_.item is not None
    if (names := type_.names(new)) is not None and (had := type_.names(old)) is not None:
        left = dict(zip(had, old, strict=True))
        for name, item in zip(names, new, strict=True):
            _note(_diff(type_.item, left.pop(name, _ABSENT), item), type_.named(name), changed, removed)
        for name, item in left.items():
            removed[type_.named(name)] = whole(type_.item, item)
        return
    before, after = _by_element(type_, old), _by_element(type_, new)
    for element in {**before, **after}:
        olds, news = before.get(element, []), after.get(element, [])
        if len(olds) <= 1 and len(news) <= 1:
            change = _diff(type_.item, olds[0] if olds else _ABSENT, news[0] if news else _ABSENT)
            _note(change, element, changed, removed)
        elif len(olds) >= 2 and len(news) >= 2:
            if olds != news:
                changed[element] = EMPTY
        elif len(olds) >= 2:
            removed[element] = EMPTY
            if news:
                changed[element] = whole(type_.item, news[0])
        else:
            changed[element] = EMPTY
            if olds:
                removed[element] = whole(type_.item, olds[0])


def _by_element(type_: Type, items: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(type_.element(item), []).append(item)
    return found
