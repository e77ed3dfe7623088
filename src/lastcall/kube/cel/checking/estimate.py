"""What an expression will cost before it runs (cel-go checker/cost.go).

Sizes of variables come from the caller: those of a definition's fields, from its schema.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from lastcall.kube.cel.ast import (
    Call,
    Comprehension,
    Constant,
    Expression,
    ListLiteral,
    MapLiteral,
    Name,
    Select,
    Struct,
)
from lastcall.kube.cel.bounds import UNBOUNDED, UNKNOWN, Bounds
from lastcall.kube.cel.checked import Checked
from lastcall.kube.cel.libraries.library import Estimate
from lastcall.kube.cel.libraries.measures import LIST, MAP, STRUCT
from lastcall.kube.cel.parsing.builder import ACCUMULATOR
from lastcall.kube.cel.types import Type
from lastcall.world.dataclass import dataclass

Path: TypeAlias = tuple[str, ...]
Sizes: TypeAlias = Callable[[Path, Type], Bounds | None]
"""How big a value may be that is found by a path from a variable (`@items`, `@values`, `@keys`, `@indices` stand for
the parts of lists and maps); None where nothing is known. The path is empty for what no variable has."""

_NOTHING, _ONE = Bounds(0, 0), Bounds(1, 1)
_NONE_YET = Bounds(UNBOUNDED, 0)
_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


@dataclass(frozen=True, slots=True)
class _Entries:
    """How big the keys and the values of a list or map are that an expression makes."""

    kind: str
    key: Bounds
    value: Bounds


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of a macro."""

    path: Path
    size: Bounds | None
    entries: _Entries | None = None


@dataclass(frozen=True, slots=True)
class _Operand:
    """(`lastcall.kube.cel.bounds.Operand`)"""

    type: Type
    path: Path
    known_size: Bounds | None
    literal: object
    sizes: Sizes

    @property
    def size(self) -> Bounds:
        return self.known_size or self.sizes(self.path, self.type) or UNKNOWN

    def element(self) -> "_Operand | None":
        if not self.type.parameters:
            return None
        path = (*self.path, "@items") if self.path else ()
        return _Operand(self.type.parameters[0], path, None, None, self.sizes)


def estimate(checked: Checked, estimates: Mapping[str, Estimate], sizes: Sizes) -> Bounds:
    """Estimate the least and the most that the expression costs. `estimates` are those of functions, by overload id."""
    return _Estimator(checked, estimates, sizes).cost(checked.tree.root)


class _Estimator:
    def __init__(self, checked: Checked, estimates: Mapping[str, Estimate], sizes: Sizes) -> None:
        self._checked, self._estimates, self._sizes = checked, estimates, sizes
        self._paths: dict[int, Path] = {}
        self._locals: dict[str, list[_Local]] = {}
        self._known: dict[int, Bounds] = {}
        self._entries: dict[int, _Entries] = {}
        self._costs: Mapping[type, Callable[..., Bounds]] = {
            Constant: lambda node: _NOTHING,
            Name: self._name,
            Select: self._select,
            Call: self._call,
            ListLiteral: self._list,
            MapLiteral: self._map,
            Struct: self._struct,
            Comprehension: self._comprehension,
        }

    def cost(self, node: Expression) -> Bounds:
        return self._costs[type(node)](node)

    # -- what is known of a node ---------------------------------------------------------------------------------------

    def _type(self, node: Expression) -> Type:
        return self._checked.types[node.id]

    def _local(self, node: Expression) -> _Local | None:
        found = self._locals.get(node.name) if isinstance(node, Name) else None
        return found[-1] if found else None

    def _path(self, node: Expression) -> Path:
        local = self._local(node)
        return local.path if local is not None else self._paths.get(node.id, ())

    def _size(self, node: Expression) -> Bounds | None:
        if node.id in self._known:
            return self._known[node.id]
        match node:
            case Constant():
                return _fixed(len(node.value) if isinstance(node.value, str | bytes) else 1)
            case ListLiteral():
                return _fixed(len(node.elements))
            case MapLiteral():
                return _fixed(len(node.entries))
        found = self._sizes(self._path(node), self._type(node))
        if found is not None:
            self._known[node.id] = found
            return found
        if _is_scalar(self._type(node)):
            return _ONE
        local = self._local(node)
        return None if local is None else local.size

    def _size_or_unknown(self, node: Expression) -> Bounds:
        return self._size(node) or UNKNOWN

    def _entry_sizes(self, node: Expression) -> _Entries | None:
        found = self._entries.get(node.id)
        if found is not None:
            return found
        local = self._local(node)
        return None if local is None else local.entries

    def _operand(self, node: Expression) -> _Operand:
        path = self._path(node)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        literal = node.value if isinstance(node, Constant) else None
        return _Operand(self._type(node), path, self._size(node), literal, self._sizes)

    @contextmanager
    def _bound(self, name: str, local: _Local) -> Iterator[None]:
        self._locals.setdefault(name, []).append(local)
        yield
        self._locals[name].pop()

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _name(self, node: Name) -> Bounds:
        local = self._local(node)
        self._paths[node.id] = (node.name,) if local is None else local.path
        return _ONE

    def _select(self, node: Select) -> Bounds:
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if self._type(node.operand).kind in ("map", "object", "parameter"):
            cost += _ONE
        self._paths[node.id] = (*self._path(node.operand), node.field)
        return cost

    def _call(self, node: Call) -> Bounds:
        if node.function == "dyn":
            cost = self.cost(node.arguments[0])
            self._copy_sizes(node, node.arguments[0])
            return _ONE + cost
        costs = [self.cost(each) for each in node.arguments]
        reference = self._checked.references.get(node.id)
        if reference is None or not reference.overloads:
            return _NOTHING
        total = _NOTHING if node.target is None else self.cost(node.target)
        call, result = _NONE_YET, None
        for overload in reference.overloads:
            one, size = self._overload(node, overload, costs)
            call |= one
            if size is not None:
                result = size if result is None else result | size
            if overload in ("index_list", "index_map"):
                container = node.arguments[0]
                entries = self._entry_sizes(container)
                result = None if entries is None else entries.value
                part = "@items" if overload == "index_list" else "@values"
                self._paths[node.id] = (*self._path(container), part)
            if result is None:
                result = self._size(node)
        if result is not None:
            self._known[node.id] = result
        return total + call

    def _overload(self, node: Call, overload: str, costs: Sequence[Bounds]) -> tuple[Bounds, Bounds | None]:
        """(cost of the call with its arguments, size of the result if that is known)"""
        if overload in ("logical_and", "logical_or"):
            return Bounds(costs[0].min, (costs[0] + costs[1]).max), None
        if overload == "conditional":
            one, two = node.arguments[1:]
            self._join_entries(node, one, two)
            return costs[0] + (costs[1] | costs[2]), self._size_or_unknown(one) | self._size_or_unknown(two)
        if overload in ("add_string", "add_bytes", "add_list"):
            self._join_entries(node, *node.arguments)
        every = sum(costs, _NOTHING)
        estimated = self._estimates.get(overload)
        if estimated is None:
            return _ONE + every, None
        operands = ([node.target] if node.target is not None else []) + list(node.arguments)
        cost, size = estimated([self._operand(each) for each in operands])
        return cost + every, size

    def _join_entries(self, node: Expression, one: Expression, two: Expression) -> None:
        first, second = self._entry_sizes(one), self._entry_sizes(two)
        if first is not None and second is not None:
            self._entries[node.id] = _Entries(first.kind, first.key | second.key, first.value | second.value)

    def _copy_sizes(self, node: Expression, source: Expression) -> None:
        size, entries = self._size(source), self._entry_sizes(source)
        if size is not None:
            self._known[node.id] = size
        if entries is not None:
            self._entries[node.id] = entries

    def _list(self, node: ListLiteral) -> Bounds:
        cost = _fixed(LIST)
        item = _NONE_YET if node.elements else _NOTHING
        for element in node.elements:
            cost += self.cost(element)
            item |= self._size_or_unknown(element)
        self._entries[node.id] = _Entries("list", _ONE, item)
        return cost

    def _map(self, node: MapLiteral) -> Bounds:
        cost = _fixed(MAP)
        key = value = _NONE_YET if node.entries else _NOTHING
        for entry in node.entries:
            assert not isinstance(entry.key, str), "only structs have names as keys"
            cost += self.cost(entry.key) + self.cost(entry.value)
            key |= self._size_or_unknown(entry.key)
            value |= self._size_or_unknown(entry.value)
        self._entries[node.id] = _Entries("map", key, value)
        return cost

    def _struct(self, node: Struct) -> Bounds:
        return sum((self.cost(entry.value) for entry in node.entries), _fixed(STRUCT))

    def _comprehension(self, node: Comprehension) -> Bounds:
        if _is_binding(node):
            return self._binding(node)
        cost = self.cost(node.range) + self.cost(node.start)
        accumulated = _Local(self._path(node.start), self._size(node.start), self._entry_sizes(node.start))
        with self._bound(node.accumulator, accumulated):
            names = self._iterated(node)
            with self._bound(*names[0]), self._bound(*names[-1]):
                each = self.cost(node.condition) + self.cost(node.step)
            cost += self.cost(node.result)
        times = self._size_or_unknown(node.range)
        if isinstance(node.start, Constant):
            size = self._size(node.start)
            if size is not None:
                self._known[node.id] = size
        elif isinstance(node.start, ListLiteral | MapLiteral):
            self._known[node.id] = times
            entries = self._entry_sizes(node.step)
            if entries is not None:
                self._entries[node.id] = entries
        return cost + times * each

    def _iterated(self, node: Comprehension) -> list[tuple[str, _Local]]:
        """The variables of a macro, for one element of what it goes through."""
        entries, path = self._entry_sizes(node.range), self._path(node.range)
        is_list = (self._type(node.range).kind if entries is None else entries.kind) == "list"
        key = _Local((*path, "@indices" if is_list else "@keys"), None if entries is None else entries.key)
        value = _Local((*path, "@items" if is_list else "@values"), None if entries is None else entries.value)
        if node.second_variable is not None:
            return [(node.variable, key), (node.second_variable, value)]
        return [(node.variable, value if is_list else key)]

    def _binding(self, node: Comprehension) -> Bounds:
        """A macro that only names a value."""
        cost = self.cost(node.range) + self.cost(node.start)
        local = _Local(self._path(node.start), self._size(node.start), self._entry_sizes(node.start))
        with self._bound(node.accumulator, local):
            cost += self.cost(node.result)
        self._copy_sizes(node, node.result)
        return cost


def _fixed(size: int) -> Bounds:
    return Bounds(size, size)


def _is_scalar(type_: Type) -> bool:
    if type_.kind == "opaque" and type_.name == "optional_type":
        return _is_scalar(type_.parameters[0])
    return type_.kind in _SCALARS


def _is_binding(node: Comprehension) -> bool:
    return (
        isinstance(node.range, ListLiteral)
        and not node.range.elements
        and isinstance(node.condition, Constant)
        and node.condition.value is False
        and node.accumulator != ACCUMULATOR
    )
