"""The schema as the management of fields sees it: what is one value, and what is managed part by part.

Source: structured-merge-diff schema/elements.go; the facts are those of `lastcall.kube.api.schema.types`.
"""

from typing import Any, Literal

import orjson

from lastcall.kube.api.schema.types import Field, Struct, struct
from lastcall.kube.apiserver.fieldmanager.fields import EMPTY, FieldSet

Kind = Literal["scalar", "any", "struct", "map", "list", "set"]
"""`list` is a list whose items have keys, or one that is a single value; `set` one of distinct scalars."""

_KNOWN_ELEMENTS, _LONGEST_KNOWN = 256, 64
"""How many path elements of a list are remembered, and of how many characters."""
KNOWN_WHOLES = 64
"""Of how many structs, which differ in their fields, the set is remembered."""


class Type:
    """The type of a value. `leaf` says that it is one value for field managers, however large it is."""

    __slots__ = (
        "_elements", "_fields", "_key", "_struct", "always", "field", "item", "keys", "kind", "leaf", "open",
        "wholes",
    )  # fmt: skip

    def __init__(self, field: Field | None, of: Struct | None = None) -> None:
        self.field = field
        self._struct = of
        self._fields: dict[str, tuple[str, Type]] | None = None
        self.item: Type | None = None
        self.keys: tuple[tuple[str, Any], ...] = ()
        """Name and default of each key of a list's items, by name."""
        self.open = False
        """Whether a struct may have fields that nobody declared."""
        self._key = ""
        """The one key of a list's items, where there are not several."""
        self._elements: dict[str, str] = {}
        self.wholes: dict[tuple[str, ...], FieldSet] = {}
        """Of a struct: by the names of its fields, each of which is one value, the set of all of them."""
        self.always = field is not None and field.always and field.shape == "struct"
        """Whether a struct is there even when nobody wrote it."""
        self.kind: Kind
        if field is None:
            self.kind, self.leaf = ("struct", False) if of is not None else ("any", True)
            return
        self.leaf = field.atomic or field.shape not in ("struct", "map", "list")
        if field.shape == "struct":
            self.kind = "struct"
        elif field.shape == "map":
            self.kind, self.item = "map", Type(field.item)
        elif field.shape == "list":
            self.kind, self.item = "list", Type(field.item)
            if field.list_type == "set":
                self.kind = "set"
            elif field.list_type == "map":
                self.keys = _keys(field)
                self._key = self.keys[0][0] if len(self.keys) == 1 else ""
            else:
                self.leaf = True
        else:
            self.kind = "any" if field.shape == "any" else "scalar"

    @property
    def fields(self) -> dict[str, tuple[str, "Type"]]:
        """Return the path element and the type of a struct's fields by name."""
        if self._fields is None:
            if self._struct is None:
                if self.field is None:
                    return {}
                self._struct = struct(self.field.ref)
            self._fields = {name: (f"f:{name}", Type(field)) for name, field in self._struct.fields.items()}
        return self._fields

    def declare(self, fields: dict[str, tuple[str, "Type"]]) -> None:
        """Make this a struct of these fields."""
        self._fields = fields

    def with_keys(self, keys: tuple[tuple[str, Any], ...]) -> None:
        """Make this a list whose items have keys."""
        self.keys, self.leaf = keys, not keys
        self._key = keys[0][0] if len(keys) == 1 else ""

    def child(self, name: str) -> tuple[str, "Type"]:
        """Return path element and type of a struct's field or a map's key; an undeclared field is one value."""
        if self.kind == "map":
            assert self.item is not None
            return f"f:{name}", self.item
        return self.fields.get(name) or (f"f:{name}", UNKNOWN)

    def element(self, item: Any) -> str:
        """Return the path element of a list's item. Raises ValueError for an item without any of its keys."""
        if self.kind == "set":
            return "v:" + orjson.dumps(item).decode()
        if self._key and isinstance(item, dict) and type(name := item.get(self._key)) is str:
            return self.named(name)
        names = item if isinstance(item, dict) else EMPTY
        keys = {name: names.get(name, default) for name, default in self.keys if name in names or default is not None}
        if not keys:
            shown = " ".join(f'"{name}"' for name, _ in self.keys)
            raise ValueError(
                f"associative list with keys has an element that omits all key fields [{shown}] (and doesn't have "
                "default values for any key fields)"
            )
        return "k:" + orjson.dumps(keys).decode()

    def names(self, items: list[Any]) -> list[str] | None:
        """Return the one key of each of a list's items; None where they have several keys, or it is not a string."""
        if not self._key:
            return None
        found = [item[self._key] for item in items if isinstance(item, dict) and type(item.get(self._key)) is str]
        return found if len(set(found)) == len(items) else None

    def named(self, name: str) -> str:
        """Return the path element of an item with one key."""
        element = self._elements.get(name)
        if element is None:
            element = "k:" + orjson.dumps({self._key: name}).decode()
            if len(self._elements) < _KNOWN_ELEMENTS and len(name) <= _LONGEST_KNOWN:
                self._elements[name] = element
        return element


UNKNOWN = Type(None)


def _keys(field: Field) -> tuple[tuple[str, Any], ...]:
    assert field.item is not None
    fields = struct(field.item.ref).fields
    return tuple((name, fields[name].default) for name in sorted(field.list_keys))
