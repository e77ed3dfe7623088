"""Derive JSON from dataclasses: the keys of their objects, the values, and the types for a schema.

The key of a field is its name in camelCase. `key` and HIDDEN, as metadata of the field, state what differs. A `Layout`
holds what no single field can state. Times are rounded to the microsecond.
"""

# check: standard library

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """How the JSON of one field differs from the field."""

    name: str = ""
    hidden: bool = False
    flat: bool = False
    """The keys of its object stand beside those of the field's own dataclass."""
    null: bool = False
    """An empty string is null."""
    optional: bool = False
    """The key is missing where the value is None."""
    schema: Mapping[str, object] | None = None
    """What JSON Schema has to know beside the type."""
    write: Callable[[Any], object] | None = None
    """Convert the value. Its return type is that of the JSON."""


_KEY = "json"
_PLAIN = Note()
HIDDEN: Mapping[str, Note] = {_KEY: Note(hidden=True)}


def key(
    name: str = "",
    *,
    flat: bool = False,
    null: bool = False,
    optional: bool = False,
    schema: Mapping[str, object] | None = None,
    write: Callable[[Any], object] | None = None,
) -> Mapping[str, Note]:
    """Return the metadata of a field."""
    return {_KEY: Note(name, False, flat, null, optional, schema, write)}


class Key(NamedTuple):
    """One key of an object, for its schema."""

    name: str
    type: Any
    required: bool = True


@dataclass(frozen=True, slots=True)
class Layout:
    """What a document adds to its dataclasses: the order of keys where it is not that of the fields, and keys whose
    values are computed from the whole object."""

    order: Mapping[type, tuple[str, ...]] = field(default_factory=dict)
    computed: Mapping[type, Mapping[str, Callable[[Any], object]]] = field(default_factory=dict)

    def to_json(self, value: Any) -> Any:
        """Return what JSON shows of a value. Mappings are shown as they are."""
        if isinstance(value, float):
            return round(value, 6)
        if isinstance(value, tuple | list):
            return [self.to_json(each) for each in value]
        return self._object(value) if is_dataclass(value) else value

    def keys_of(self, shape: type) -> list[Key]:
        """Return the keys of a dataclass's object in their order."""
        found = {each.name: each for each in self._keys(shape)}
        return [found[name] for name in self._ordered(shape, found)]

    def _object(self, value: Any) -> dict[str, Any]:
        shape: type = type(value)
        made: dict[str, Any] = {}
        for attribute, name, note in _notes(shape):
            found = getattr(value, attribute)
            if note.flat:
                made |= self._object(found)
            elif not (note.optional and found is None):
                found = note.write(found) if note.write else found
                made[name] = None if note.null and found == "" else self.to_json(found)
        made |= {name: self.to_json(of(value)) for name, of in self.computed.get(shape, {}).items()}
        return {name: made[name] for name in self._ordered(shape, made)}

    def _keys(self, shape: type) -> Iterator[Key]:
        types = get_type_hints(shape, include_extras=True)
        for attribute, name, note in _notes(shape):
            if note.flat:
                yield from self._keys(types[attribute])
            else:
                yield Key(name, _type(types[attribute], note), not note.optional)
        for name, of in self.computed.get(shape, {}).items():
            yield Key(name, get_type_hints(of, include_extras=True)["return"])

    def _ordered(self, shape: type, names: Mapping[str, object]) -> tuple[str, ...]:
        order = self.order.get(shape)
        if order is None:
            return tuple(names)
        if len(order) != len(names):
            raise ValueError(f"{shape.__name__}: the order has not the same keys: {sorted(set(order) ^ set(names))}")
        return order


@cache
def _notes(shape: type) -> tuple[tuple[str, str, Note], ...]:
    """Return attribute, key and note of each field that is shown."""
    noted = [(each.name, each.metadata.get(_KEY, _PLAIN)) for each in fields(shape)]
    return tuple((name, note.name or _camel(name), note) for name, note in noted if not note.hidden)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _type(hint: Any, note: Note) -> Any:
    """Return the type of the JSON of a field of type `hint`."""
    if note.write:
        hint = get_type_hints(note.write, include_extras=True)["return"]
    if note.optional:
        hint = Union[tuple(each for each in get_args(hint) if each is not type(None))]  # noqa: UP007
    if note.null:
        values = tuple(each for each in get_args(hint) if each != "") if get_origin(hint) is Literal else ()
        hint = (Literal[values] if values else hint) | None
    return Annotated[hint, dict(note.schema)] if note.schema else hint


Wall = Annotated[str | None, {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"}]


def rfc3339(wall_ns: int | None) -> Wall:
    """Return RFC 3339 in UTC with microseconds."""
    # late: the shim never needs it
    from datetime import UTC, datetime

    if wall_ns is None:
        return None
    return datetime.fromtimestamp(wall_ns / 1e9, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
