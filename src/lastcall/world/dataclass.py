"""Make dataclasses whose methods are compiled when they are first called.

`dataclasses.dataclass` writes the source of up to six methods for each class and compiles it on import: 1.2 ms for a
frozen class, and a start of a cluster imports 385 in its processes. Most are never compared or printed, many never
made. Here the first call of `__init__`, `__eq__` and `__hash__` compiles the same code, and classes share the rest.
The fields, and all that reads them (`fields`, `replace`, `asdict`, `match`), are those of the standard library.
"""

# check: pure
# check: standard library

from __future__ import annotations

import dataclasses
from reprlib import recursive_repr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import dataclass as dataclass
    from typing import Any
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, kw_only=False):
        """Return the class as a dataclass, as `dataclasses.dataclass` does. There is no `InitVar` and no `order`."""

        def make(cls):
            return _make(cls, frozen=frozen, slots=slots, eq=eq, kw_only=kw_only)

        return make if cls is None else make(cls)


_DEFAULT: Any = object()
"""Stands for a default that a factory makes."""


def _make(cls: type, *, frozen: bool, slots: bool, eq: bool, kw_only: bool) -> type:
    doc, hash_is_own = cls.__doc__, _hash_is_own(cls)
    cls.__doc__ = doc or cls.__name__  # the standard library would write the signature there, which is slow
    options: dict[str, Any] = {"init": False, "repr": False, "eq": False, "slots": slots, "kw_only": kw_only}
    made: Any = dataclasses.dataclass(cls, **options)
    made.__doc__ = doc
    methods: dict[str, Any] = {"__init__": _init_stub(made, frozen=frozen), "__repr__": _repr}
    if eq:
        methods["__eq__"] = _eq_stub(made)
        methods["__hash__"] = _hash_stub(made) if frozen else None
    for name, method in methods.items():
        if not (hash_is_own if name == "__hash__" else name in made.__dict__):
            setattr(made, name, method)
    if frozen:
        _freeze(made, slots=slots)
    return made  # type: ignore[no-any-return]


def _hash_is_own(cls: type) -> bool:
    """Python sets `__hash__` to None in a class that has an `__eq__` of its own."""
    own = cls.__dict__
    return own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)


def _init_stub(made: Any, *, frozen: bool) -> Callable[..., None]:
    def __init__(self: object, /, *args: object, **kwargs: object) -> None:
        made.__init__ = _compiled(made, "__init__", *_init_source(made, frozen=frozen))
        made.__init__(self, *args, **kwargs)

    return __init__


def _eq_stub(made: Any) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        names = [each.name for each in dataclasses.fields(made) if each.compare]
        made.__eq__ = _compiled(
            made,
            "__eq__",
            "self, other",
            [
                "if other.__class__ is self.__class__:",
                f" return {_values('self', names)} == {_values('other', names)}",
                "return NotImplemented",
            ],
            {},
        )
        return made.__eq__(self, other)  # type: ignore[no-any-return]

    return __eq__


def _hash_stub(made: Any) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        compared = [each for each in dataclasses.fields(made) if (each.compare if each.hash is None else each.hash)]
        values = _values("self", [each.name for each in compared])
        made.__hash__ = _compiled(made, "__hash__", "self", [f"return hash({values})"], {})
        return made.__hash__(self)  # type: ignore[no-any-return]

    return __hash__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _values(one: str, names: Sequence[str]) -> str:
    return f"({''.join(f'{one}.{name}, ' for name in names)})"


def _init_source(made: Any, *, frozen: bool) -> tuple[str, list[str], dict[str, Any]]:
    """Return parameters, the lines of the body, and what these name."""
    known: dict[str, Any] = {"_DEFAULT": _DEFAULT, "_set": object.__setattr__}
    positional, by_name, body = ["self"], list[str](), list[str]()
    for each in dataclasses.fields(made):
        parameter = value = name = each.name
        if each.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = each.default_factory
            parameter += "=_DEFAULT"
            value = f"_make_{name}() if {name} is _DEFAULT else {name}" if each.init else f"_make_{name}()"
        elif each.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = each.default
            parameter += f"=_default_{name}"
            value = name if each.init else f"_default_{name}"
        elif not each.init:
            continue
        if each.init:
            (by_name if each.kw_only else positional).append(parameter)
        body.append(_frozen_assignment(made, name, value, known) if frozen else f"self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    return ", ".join([*positional, *(["*", *by_name] if by_name else [])]), body or ["pass"], known


def _frozen_assignment(made: Any, name: str, value: str, known: dict[str, Any]) -> str:
    slot: Any = getattr(made, name, None)
    if type(slot) is not _SLOT:
        return f"_set(self, {name!r}, {value})"
    known[f"_set_{name}"] = slot.__set__  # twice as fast
    return f"_set_{name}(self, {value})"


class _Slotted:
    __slots__ = ("one",)


_SLOT = type(_Slotted.__dict__["one"])


def _compiled(made: Any, name: str, parameters: str, body: Sequence[str], known: dict[str, Any]) -> Any:
    lines = [f"def {name}({parameters}):", *(f" {line}" for line in body)]
    exec("\n".join(lines), known)  # noqa: S102 (as dataclasses does; all of it is from the class)
    known[name].__qualname__ = f"{made.__qualname__}.{name}"
    known[name].__module__ = made.__module__
    return known[name]


def _freeze(made: Any, *, slots: bool) -> None:
    names = frozenset(each.name for each in dataclasses.fields(made))

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    made.__setattr__, made.__delattr__ = __setattr__, __delattr__
    if slots and "__getstate__" not in made.__dict__:
        made.__getstate__, made.__setstate__ = _get_state, _set_state


def _get_state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[object]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
