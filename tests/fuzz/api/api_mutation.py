"""Mutation along the types: what is changed, added or taken away is a field that the kind has."""

import copy
import random
from typing import Any

from api_values import Values

from lastcall.kube.api.meta import Object
from lastcall.kube.api.schema.types import Field, Struct, struct_of

MANY = (1, 1, 1, 2, 3, 6)
LONG = (1, 3, 60)
"""How often an item is said again."""


class Mutator:
    """`mutated(obj, struct)` is a changed copy; without a struct (a declared kind) its values tell the types."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.values = Values(rng)

    def mutated(self, obj: Object, struct: Struct | None) -> Object:
        """A copy of `obj` with one to six changes."""
        found = copy.deepcopy(obj)
        for _ in range(self.rng.choice(MANY)):
            self._struct(found, struct)
        return found

    def _struct(self, obj: Object, struct: Struct | None) -> None:
        """Go on in one field, or change it."""
        present = [key for key in obj if key not in ("kind", "apiVersion")]
        rng = self.rng
        if struct is not None and (not present or rng.random() < 0.2):
            absent = [key for key in struct.fields if key not in obj and key not in ("kind", "apiVersion")]
            if absent:
                key = rng.choice(absent)
                obj[key] = self.made(struct.fields[key])
                return
        if rng.random() < 0.02:
            obj[self.values.key()] = self.values.anything()
            return
        if not present:
            return
        key = rng.choice(present)
        field = struct.fields.get(key) if struct is not None else None
        if rng.random() < 0.04:
            del obj[key]
            return
        self._value(obj, key, field)

    def _value(self, holder: Any, key: Any, field: Field | None) -> None:
        """Change what `holder[key]` is, or something inside."""
        value, rng = holder[key], self.rng
        if isinstance(value, dict) and rng.random() < 0.9:
            if field is not None and field.shape == "map":
                self._map(value, field)
            else:
                self._struct(value, struct_of(field) if field is not None and field.shape == "struct" else None)
        elif isinstance(value, list) and value and rng.random() < 0.85:
            self._list(value, field if field is not None and field.shape == "list" else None)
        elif field is not None:
            holder[key] = self.made(field)
        else:
            holder[key] = self._alike(value)

    def _map(self, value: dict[str, Any], field: Field) -> None:
        assert field.item is not None
        if value and self.rng.random() < 0.5:
            self._value(value, self.rng.choice(list(value)), field.item)
        else:
            value[self.values.key()] = self.made(field.item)

    def _list(self, value: list[Any], field: Field | None) -> None:
        rng = self.rng
        chance = rng.random()
        if chance < 0.7:
            self._value(value, rng.randrange(len(value)), field.item if field is not None else None)
        elif chance < 0.8:
            del value[rng.randrange(len(value))]
        elif chance < 0.9 or field is None:
            value.extend(copy.deepcopy([rng.choice(value)]) * rng.choice(LONG))
        else:
            assert field.item is not None
            value.append(self.made(field.item))

    def _alike(self, value: Any) -> Any:
        """For a field without a type: something of the kind it was."""
        if self.rng.random() < self.values.wild * 2:
            return self.values.anything()
        shape = {bool: "boolean", int: "integer", float: "number", str: "string"}.get(type(value))
        if shape is None:
            return self.values.anything()
        return self.values.of(Field({"t": shape, **({"f": "int64"} if shape == "integer" else {})}, {}))

    def made(self, field: Field, depth: int = 0) -> Any:
        """A value for a field that was not there."""
        rng = self.rng
        if rng.random() < self.values.wild:
            return self.values.anything()
        if field.shape == "struct":
            struct = struct_of(field)
            names = [
                key
                for key in struct.fields
                if key in struct.required or rng.random() < (0.5, 0.25, 0.1, 0.0)[min(depth, 3)]
            ]
            if not names and struct.fields:
                names = [rng.choice(list(struct.fields))]
            return {name: self.made(struct.fields[name], depth + 1) for name in names if depth < 5}
        if field.shape == "list":
            assert field.item is not None
            return [self.made(field.item, depth + 1) for _ in range(rng.choice((0, 1, 1, 2)))]
        if field.shape == "map":
            assert field.item is not None
            return {self.values.key(): self.made(field.item, depth + 1) for _ in range(rng.choice((0, 1, 2)))}
        return self.values.of(field)
