"""Typed messages of the private protocols: what may be in one, and the verbs that an end understands.

A message is a class with annotated fields, as a dataclass is. `read` makes one of the JSON object that came, and says
in words what is wrong with it; `to_wire` makes the object. On the wire a field has its name in camelCase, and the
message's verb is under `verb`.

    class Signal(Message, verb="signal"):
        id: str
        signal: int
        why: str = ""

The envelope is the same everywhere: `call` numbers a request, `answer` says whose answer this is, `error` (a text, with
`reason` where CRI has one) that it failed, `end` that no more answers follow. A verb without a number is one-way:
nobody answers.

Not `dataclasses`: the shim uses this, and that module would bring inspect along. A module with messages has to begin
with `from __future__ import annotations`: annotations are read as text. Standard library only, and little of it.
"""

# check: standard library

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar, Self, dataclass_transform

    Fields = dict[str, Any]
else:
    Fields = dict

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        """Do nothing: this is for type checkers, and `typing` need not be imported."""
        return lambda kind: kind


ENVELOPE = frozenset({"verb", "call", "answer", "error", "reason", "end", "blobs", "fds"})
"""What a protocol adds to a message's own fields."""
_SHOWN = 80
"""Characters of what came that an error repeats."""


class WrongMessage(Exception):
    """A verb or a field that is not as it has to be; the text is for the other end."""


class _Field:
    """One field: its name on the wire, and what its values have to be."""

    __slots__ = ("each", "kinds", "name", "nested", "said", "wire")

    def __init__(self, name: str, annotation: str, module: str) -> None:
        if not isinstance(annotation, str):
            raise TypeError(f"{module} has to begin with: from __future__ import annotations")
        first, *rest = name.split("_")
        self.name = name
        self.wire = first + "".join(word.capitalize() for word in rest)
        self.said = annotation
        self.each: tuple[type, ...] = ()
        """Kinds of a list's items; empty for any."""
        self.nested: type[Message] | None = None
        """Messages that a list's items are, or this is itself."""
        kinds: list[type] = []
        for part in annotation.split(" | "):
            outer, _, inner = part.partition("[")
            if outer in _KINDS:
                kinds += _KINDS[outer]
                if outer == "list" and inner:
                    item = inner.removesuffix("]")
                    self.each = _KINDS.get(item.partition("[")[0], ())
                    self.nested = None if self.each or item == "Any" else _message(item, module)
            else:
                self.nested = _message(part, module)
                kinds.append(dict)
        self.kinds = tuple(kinds)

    def read(self, value: Any) -> Any:
        """The value as the message has it. Raises WrongMessage for another kind, with what was expected."""
        # Not isinstance: JSON's true is not a number.
        kind = type(value)
        if self.kinds and kind not in self.kinds:
            raise WrongMessage(f"{self.wire} must be {self.said}, not {_show(value)}")
        if kind is list:
            if self.each and not all(type(item) in self.each for item in value):
                raise WrongMessage(f"{self.wire} must be {self.said}, not {_show(value)}")
            if self.nested is not None:
                return [self._nested(item) for item in value]
        if kind is dict and self.nested is not None:
            return self._nested(value)
        return value

    def _nested(self, value: Any) -> Message:
        assert self.nested is not None
        if type(value) is not dict:
            raise WrongMessage(f"{self.wire} must be {self.said}, not {_show(value)}")
        return self.nested.read(value)


class _Shape:
    """The fields of a class. Made with its first message: importing forty classes costs 0.5 ms less without."""

    __slots__ = ("fields", "required", "wires")

    def __init__(self, cls: type[Message]) -> None:
        self.fields = {
            name: _Field(name, annotation, kind.__module__)
            for kind in reversed(cls.__mro__[:-2])  # without Message and object
            for name, annotation in kind.__annotations__.items()
        }
        self.wires = {field.wire: field for field in self.fields.values()}
        self.required = frozenset(name for name in self.fields if not hasattr(cls, name))
        if not ENVELOPE.isdisjoint(self.wires):
            raise TypeError(f"{cls.__name__} has a field that is the envelope's")


def shape_of(cls: type[Message]) -> _Shape:
    """Compute and keep the fields of a message class. Raises TypeError for a field that cannot be checked."""
    shape = cls._shape = _Shape(cls)
    return shape


_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
    "None": (type(None),),
    "Any": (),
}


def _message(name: str, module: str) -> type[Message]:
    found = getattr(sys.modules[module], name, None)
    if not isinstance(found, type) or not issubclass(found, Message):
        raise TypeError(f"no kind of a message's field: {name}")
    return found


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=True)
class Message:
    """The base of all. Fields without a default have to be there; what was left out is not sent."""

    verb: ClassVar[str] = ""
    _shape: ClassVar[_Shape | None] = None

    def __init_subclass__(cls, *, verb: str = "") -> None:
        cls.verb = verb
        cls._shape = None

    if not TYPE_CHECKING:  # a type checker knows the fields of each

        def __init__(self, **values: object) -> None:
            shape = self._shape or shape_of(type(self))
            if not shape.required <= values.keys() <= shape.fields.keys():
                wrong = sorted((shape.required - values.keys()) | (values.keys() - shape.fields.keys()))
                raise TypeError(f"{type(self).__name__}: fields that are missing or not known: {wrong}")
            self.__dict__.update(values)

    @classmethod
    def read(cls, fields: Mapping[str, Any], *, newer: bool = False) -> Self:
        """Read a message from a JSON object. Raises WrongMessage.

        `newer`: fields that are not known are passed over, because the other end may be a newer lastcall.
        """
        shape = cls._shape or shape_of(cls)
        values: dict[str, Any] = {}
        for wire, value in fields.items():
            field = shape.wires.get(wire)
            if field is not None:
                values[field.name] = field.read(value)
            elif wire not in ENVELOPE and not newer:
                raise WrongMessage(f"{_what(cls)} has no field {wire[:_SHOWN]!r}")
        if not shape.required <= values.keys():
            missing = ", ".join(sorted(shape.fields[name].wire for name in shape.required - values.keys()))
            raise WrongMessage(f"{_what(cls)} needs {missing}")
        made = cls.__new__(cls)
        made.__dict__.update(values)
        return made

    def to_wire(self) -> Fields:
        """Return the JSON object, with the verb where there is one."""
        shape = self._shape or shape_of(type(self))
        fields: Fields = {"verb": self.verb} if self.verb else {}
        for name, value in self.__dict__.items():
            fields[shape.fields[name].wire] = _plain(value)
        return fields

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class Verbs:
    """The messages that one end understands, each with what is done about it."""

    def __init__(self, table: Mapping[type[Message], Callable[..., Any]], *, newer: bool = False) -> None:
        self._by_verb = {kind.verb: (kind, do) for kind, do in table.items()}
        self._newer = newer

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(self._by_verb)

    def read(self, fields: Mapping[str, Any]) -> tuple[Callable[..., Any], Any]:
        """Return what to do, and the message to do it with. Raises WrongMessage."""
        verb = fields.get("verb")
        found = self._by_verb.get(verb) if type(verb) is str else None
        if found is None:
            raise WrongMessage(f"unknown verb {_show(verb)}: known are {', '.join(self._by_verb)}")
        kind, do = found
        return do, kind.read(fields, newer=self._newer)


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_wire()
    if type(value) in (list, tuple):
        return [_plain(item) for item in value]
    return value


def _what(kind: type[Message]) -> str:
    return kind.verb or kind.__name__


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
