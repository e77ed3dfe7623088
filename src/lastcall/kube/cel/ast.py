"""The tree of an expression. Macros are expanded by the parser, so that only these nodes are left.

Every node has an `id`, unique within one tree: types, references, costs and positions are kept by id beside the tree.
"""

from typing import TypeAlias

from lastcall.kube.cel.values import Scalar
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: None, bool, int, Uint, float, str or bytes."""

    id: int
    value: Scalar


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier; a leading dot stays part of it (`.a`)."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`; with `test` it is what `has(operand.field)` asks. (`a.?b` is a Call of `_?._`.)"""

    id: int
    operand: "Expression"
    field: str
    test: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function, an operator (`_+_`, `_[_]`, `_&&_`, `_?_:_`, `@in` …) or a method."""

    id: int
    function: str
    arguments: tuple["Expression", ...]
    target: "Expression | None" = None


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, ?b]`; `optional` has the indices of elements with a question mark."""

    id: int
    elements: tuple["Expression", ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key: value` of a map, or `field: value` of a struct (the key is a str then)."""

    id: int
    key: "Expression | str"
    value: "Expression"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MapLiteral:
    """`{k: v, ?k: v}`."""

    id: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """`Type{field: value}`."""

    id: int
    type_name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Comprehension:
    """What a macro such as `all` becomes: a fold over `range` (cel-spec langdef.md, Macros)."""

    id: int
    variable: str
    second_variable: str | None
    range: "Expression"
    accumulator: str
    start: "Expression"
    condition: "Expression"
    step: "Expression"
    result: "Expression"


Expression: TypeAlias = Constant | Name | Select | Call | ListLiteral | MapLiteral | Struct | Comprehension


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed expression: its source, its root, where each node began (offset in code points, by id), and which
    call of a macro each comprehension came from (by the id of what replaced it)."""

    source: str
    root: Expression
    offsets: dict[int, int]
    macros: dict[int, Call]
