"""What of an object is the same as before: an update may leave it as wrong as it was. Pure.

Source: apiserver pkg/cel/common/{equality,maplist}.go.
"""

from typing import Any

import orjson


class Correlated:
    """A value, and the one that was in its place."""

    __slots__ = ("_children", "_items", "_same", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: Any) -> None:
        self.new, self.old = new, old
        self.schema = schema if isinstance(schema, dict) else {}
        self._same: bool | None = None
        self._items: OldItems | None = None
        self._children: dict[str | int, Correlated | None] = {}

    def unchanged(self) -> bool:
        """Return whether the value is as before. For an item of a list that is not of type map the whole list
        counts."""
        if self._same is None:
            self._same = self._compare()
        return self._same

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, dict) and isinstance(old, dict):
            if len(new) != len(old):
                return False
            return all((child := self.key(name)) is not None and child.unchanged() for name in new)
        if isinstance(new, list) and isinstance(old, list):
            if len(new) != len(old):
                return False
            if self.schema.get("x-kubernetes-list-type") == "map":
                return all((child := self.index(at)) is not None and child.unchanged() for at in range(len(new)))
        return _text(new) == _text(old)

    def key(self, name: str) -> "Correlated | None":
        """Return a field; None where there was none."""
        if name not in self._children:
            self._children[name] = self._key(name)
        return self._children[name]

    def _key(self, name: str) -> "Correlated | None":
        new, old = self.new, self.old
        if not (isinstance(new, dict) and isinstance(old, dict) and name in new and name in old):
            return None
        declared, more = self.schema.get("properties") or {}, self.schema.get("additionalProperties")
        inner = declared.get(name, more if isinstance(more, dict) else None)
        return None if inner is None else Correlated(new[name], old[name], inner)

    def index(self, at: int) -> "Correlated | None":
        """Return an item with what it was before; None where that is unknown."""
        if at not in self._children:
            if self._items is None:
                self._items = OldItems(self.schema, self.old)
            before = self._items.get(self.new[at]) if isinstance(self.new, list) else None
            made = None if before is None else Correlated(self.new[at], before, self.schema.get("items"))
            self._children[at] = made
        return self._children[at]


class OldItems:
    """The items of a list of type map, found by their keys; of other lists none."""

    __slots__ = ("_found", "_names")

    def __init__(self, schema: Any, old: Any) -> None:
        given = schema if isinstance(schema, dict) and isinstance(old, list) else {}
        is_map = given.get("x-kubernetes-list-type") == "map"
        self._names: list[str] = (given.get("x-kubernetes-list-map-keys") or []) if is_map else []
        self._found: dict[bytes, Any] = {}
        if self._names:
            for each in reversed(old):
                if (key := self._key(each)) is not None:
                    self._found[key] = each

    def get(self, item: Any) -> Any:
        """Return the item that had the keys of `item`, None without one."""
        key = self._key(item) if self._found else None
        return None if key is None else self._found.get(key)

    def _key(self, item: Any) -> bytes | None:
        if not isinstance(item, dict) or not all(name in item for name in self._names):
            return None
        values = [item[name] for name in self._names]
        return None if any(isinstance(each, dict | list | None) for each in values) else _text(values)


def _text(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
