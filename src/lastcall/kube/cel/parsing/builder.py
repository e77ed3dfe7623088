"""Nodes with their ids and places."""

from lastcall.kube.cel.ast import (
    Call,
    Comprehension,
    Constant,
    Entry,
    Expression,
    ListLiteral,
    MapLiteral,
    Name,
    Select,
)
from lastcall.kube.cel.ast import Struct as StructLiteral
from lastcall.kube.cel.values import Scalar

ACCUMULATOR = "@result"
OLD_ACCUMULATOR = "__result__"


MOST_NODES = 200_000
"""Of one expression: each `optMap` writes what it is applied to twice, and so chains of it grow fast."""


class TooManyNodes(Exception):
    """The expression would become too big."""


class Builder:
    """Makes nodes. `here` is where nodes are that a macro makes: the place of the macro's call."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.macros: dict[int, Call] = {}
        self.here = 0

    def id(self, offset: int) -> int:
        made = len(self.offsets) + 1
        if made > MOST_NODES:
            raise TooManyNodes
        self.offsets[made] = offset
        return made

    def constant(self, value: Scalar) -> Expression:
        return Constant(self.id(self.here), value)

    def name(self, name: str) -> Expression:
        return Name(self.id(self.here), name)

    def accumulator(self) -> Expression:
        return self.name(ACCUMULATOR)

    def list(self, *elements: Expression) -> Expression:
        return ListLiteral(self.id(self.here), elements)

    def map(self) -> Expression:
        return MapLiteral(self.id(self.here), ())

    def call(self, function: str, *arguments: Expression) -> Expression:
        return Call(self.id(self.here), function, arguments)

    def method(self, target: Expression, function: str, *arguments: Expression) -> Expression:
        return Call(self.id(self.here), function, arguments, target)

    def presence(self, operand: Expression, field: str) -> Expression:
        return Select(self.id(self.here), operand, field, test=True)

    def fold(
        self,
        over: Expression,
        variable: str,
        start: Expression,
        condition: Expression,
        step: Expression,
        result: Expression,
        *,
        second: str | None = None,
        accumulator: str = ACCUMULATOR,
    ) -> Expression:
        return Comprehension(self.id(self.here), variable, second, over, accumulator, start, condition, step, result)

    def copy(self, node: Expression) -> Expression:
        """Copy an expression with ids of its own, at the same places."""
        made = self.id(self.offsets.get(node.id, self.here))
        match node:
            case Constant():
                return Constant(made, node.value)
            case Name():
                return Name(made, node.name)
            case Select():
                return Select(made, self.copy(node.operand), node.field, node.test)
            case Call():
                target = None if node.target is None else self.copy(node.target)
                return Call(made, node.function, tuple(self.copy(each) for each in node.arguments), target)
            case ListLiteral():
                return ListLiteral(made, tuple(self.copy(each) for each in node.elements), node.optional)
            case MapLiteral():
                return MapLiteral(made, tuple(self._entry(each) for each in node.entries))
            case StructLiteral():
                return StructLiteral(made, node.type_name, tuple(self._entry(each) for each in node.entries))
            case Comprehension():
                return Comprehension(
                    made,
                    node.variable,
                    node.second_variable,
                    self.copy(node.range),
                    node.accumulator,
                    self.copy(node.start),
                    self.copy(node.condition),
                    self.copy(node.step),
                    self.copy(node.result),
                )

    def _entry(self, entry: Entry) -> Entry:
        key = entry.key if isinstance(entry.key, str) else self.copy(entry.key)
        return Entry(self.id(self.offsets.get(entry.id, self.here)), key, self.copy(entry.value), entry.optional)
