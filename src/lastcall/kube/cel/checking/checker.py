"""The type of each node of a tree, and what each name and call refers to (cel-go checker/{checker.go, errors.go}).

The tree that comes out has qualified names resolved: `a.b.c` may be one variable, `strings.quote(x)` one function.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from lastcall.kube.cel import types
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
    Struct,
    Tree,
)
from lastcall.kube.cel.checked import Checked, Reference
from lastcall.kube.cel.checking.unification import (
    Bindings,
    all_assigned,
    assigned,
    is_dyn,
    is_dyn_or_error,
    more_general,
    substitute,
    unwrapped,
)
from lastcall.kube.cel.checking.validators import issues_of
from lastcall.kube.cel.errors import CompileError, Issue
from lastcall.kube.cel.types import Function, Overload, Type, TypeProvider, shown
from lastcall.kube.cel.values import Scalar, Uint
from lastcall.world.dataclass import dataclass

TOO_DEEP = "expression recursion limit exceeded: 250"


@dataclass(frozen=True, slots=True)
class Declarations:
    """What expressions may name. `named_types` are those that have a name (`int`, `net.IP`)."""

    variables: Mapping[str, Type]
    functions: Mapping[str, Function]
    named_types: Mapping[str, Type]
    provider: TypeProvider | None = None

    def type_named(self, name: str) -> Type | None:
        found = self.named_types.get(name)
        if found is None and self.provider is not None and self.provider.has(name):
            return types.object_type(name)
        return found


def check(tree: Tree, declarations: Declarations) -> Checked:
    """Check the types of an expression. Raises CompileError."""
    checker = _Checker(tree, declarations)
    try:
        root = checker.check(tree.root)
    except RecursionError:
        raise CompileError(tree.source, [Issue(None, TOO_DEEP)]) from None
    if checker.issues:
        raise CompileError(tree.source, checker.issues)
    checked = Checked(Tree(tree.source, root, tree.offsets, tree.macros), checker.final_types(), checker.references)
    if issues := issues_of(checked):
        raise CompileError(tree.source, issues)
    return checked


class _Checker:
    def __init__(self, tree: Tree, declarations: Declarations) -> None:
        self._offsets = tree.offsets
        self._declared = declarations
        self._scopes: list[dict[str, Type]] = []
        self._bindings: Bindings = {}
        self._types: dict[int, Type] = {}
        self._free = 0
        self.references: dict[int, Reference] = {}
        self.issues: list[Issue] = []
        self._checks: Mapping[type, Callable[..., Expression]] = {
            Constant: self._constant,
            Name: self._name,
            Select: self._select,
            Call: self._call,
            ListLiteral: self._list,
            MapLiteral: self._map,
            Struct: self._struct,
            Comprehension: self._comprehension,
        }

    def check(self, node: Expression) -> Expression:
        """The node as it is resolved; its type is known then."""
        return self._checks[type(node)](node)

    def final_types(self) -> dict[int, Type]:
        return {id_: substitute(self._bindings, each, free_as_dyn=True) for id_, each in self._types.items()}

    # -- helpers -------------------------------------------------------------------------------------------------------

    def _issue(self, node: Expression | Entry, message: str) -> None:
        self.issues.append(Issue(self._offsets.get(node.id), message))

    def _mismatch(self, node: Expression, expected: Type, found: Type) -> None:
        self._issue(node, f"expected type '{shown(expected)}' but found '{shown(found)}'")

    def _type(self, node: Expression) -> Type:
        return self._types[node.id]

    def _new_parameter(self) -> Type:
        self._free += 1
        return types.parameter(f"_var{self._free - 1}")

    def _fits(self, actual: Type, wanted: Type) -> bool:
        found = assigned(self._bindings, actual, wanted)
        if found is not None:
            self._bindings = found
        return found is not None

    def _join(self, before: Type | None, now: Type) -> Type:
        """The type of elements so far and one more. (That they have one type is asked by `validators`.)"""
        if before is None:
            return now
        return more_general(before, now) if self._fits(before, now) else types.DYN

    def _variable(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return self._declared.variables.get(name)

    def _identifier(self, name: str) -> tuple[Type, Reference] | None:
        """Return the type of what a name refers to: a variable, or a type."""
        name = name.removeprefix(".")
        variable = self._variable(name)
        if variable is not None:
            return variable, Reference(name)
        named = self._declared.type_named(name)
        return None if named is None else (types.type_of(named), Reference(name))

    @contextmanager
    def _scope(self, **names: Type) -> Iterator[None]:
        self._scopes.append(names)
        yield
        self._scopes.pop()

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _constant(self, node: Constant) -> Expression:
        self._types[node.id] = type_of_constant(node.value)
        return node

    def _name(self, node: Name) -> Expression:
        found = self._identifier(node.name)
        if found is None:
            self._types[node.id] = types.ERROR
            self._issue(node, f"undeclared reference to '{node.name}' (in container '')")
            return node
        self._types[node.id], self.references[node.id] = found
        return Name(node.id, found[1].name)

    def _select(self, node: Select) -> Expression:
        qualified = "" if node.test else _qualified(node)
        if qualified:
            found = self._identifier(qualified)
            if found is not None:
                self._types[node.id], self.references[node.id] = found
                return Name(node.id, found[1].name)
        operand = self.check(node.operand)
        result = self._field(node, operand, node.field, optional=False)
        if node.test:
            result = types.BOOL
        self._types[node.id] = substitute(self._bindings, result, free_as_dyn=False)
        return Select(node.id, operand, node.field, node.test)

    def _field(self, node: Expression, operand: Expression, field: str, *, optional: bool) -> Type:
        target, was_optional = unwrapped(substitute(self._bindings, self._type(operand), free_as_dyn=False))
        result = types.ERROR
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "object":
            result = self._field_of_object(node, target.name, field) or types.ERROR
        elif target.kind == "parameter":
            self._fits(types.DYN, target)
            result = types.DYN
        else:
            if not is_dyn_or_error(target):
                self._issue(node, f"type '{shown(target)}' does not support field selection")
            result = types.DYN
        return types.optional_of(result) if optional or was_optional else result

    def _field_of_object(self, node: Expression | Entry, name: str, field: str) -> Type | None:
        provider = self._declared.provider
        if provider is None or not provider.has(name):
            self._issue(node, f"unexpected failed resolution of '{name}'")
            return None
        found = provider.field(name, field)
        if found is None:
            self._issue(node, f"undefined field '{field}'")
        return found

    def _call(self, node: Call) -> Expression:
        if node.function == "_?._":
            return self._optional_select(node)
        arguments = tuple(self.check(each) for each in node.arguments)
        if node.target is None:
            name = node.function.removeprefix(".")
            function = self._declared.functions.get(name)
            if function is None:
                return self._undeclared(node, node.function)
            self._resolve(node, function, arguments, member=False)
            return Call(node.id, function.name, arguments)
        prefix = _qualified(node.target)
        if prefix:
            function = self._declared.functions.get(f"{prefix}.{node.function}".removeprefix("."))
            if function is not None:
                self._resolve(node, function, arguments, member=False)
                return Call(node.id, function.name, arguments)
        target = self.check(node.target)
        function = self._declared.functions.get(node.function)
        if function is None:
            return self._undeclared(node, node.function)
        self._resolve(node, function, (target, *arguments), member=True)
        return Call(node.id, node.function, arguments, target)

    def _undeclared(self, node: Expression, name: str) -> Expression:
        self._types[node.id] = types.ERROR
        self._issue(node, f"undeclared reference to '{name}' (in container '')")
        return node

    def _optional_select(self, node: Call) -> Expression:
        operand, field = node.arguments
        operand = self.check(operand)
        if not (isinstance(field, Constant) and isinstance(field.value, str)):
            self._issue(field, "unsupported optional field selection")
            self._types[node.id] = types.ERROR
            return node
        self._types[field.id] = types.STRING
        result = self._field(node, operand, field.value, optional=True)
        self._types[node.id] = substitute(self._bindings, result, free_as_dyn=False)
        self.references[node.id] = Reference(overloads=("select_optional_field",))
        return Call(node.id, node.function, (operand, field))

    def _resolve(self, node: Call, function: Function, arguments: tuple[Expression, ...], *, member: bool) -> None:
        """Find the overloads that fit, and with them the type of the call."""
        if function.name in ("_&&_", "_||_"):
            self._both_bool(node, function, arguments)
            return
        actual = [self._type(each) for each in arguments]
        fitting: list[str] = []
        result: Type | None = None
        for overload in function.overloads:
            if overload.member != member:
                continue
            wanted, made = self._instantiated(overload)
            found = all_assigned(self._bindings, actual, wanted)
            if found is None:
                continue
            self._bindings = found
            fitting.append(overload.id)
            one = substitute(self._bindings, made, free_as_dyn=False)
            if result is None:
                result = one
            elif not is_dyn(result) and one != result:
                result = types.DYN
        if result is None:
            given = [shown(substitute(self._bindings, each, free_as_dyn=True)) for each in actual]
            applied = f"{given[0]}.({', '.join(given[1:])})" if member else f"({', '.join(given)})"
            self._issue(node, f"found no matching overload for '{function.name}' applied to '{applied}'")
            self._types[node.id] = types.ERROR
            return
        self._types[node.id] = result
        self.references[node.id] = Reference(overloads=tuple(fitting))

    def _both_bool(self, node: Call, function: Function, arguments: tuple[Expression, ...]) -> None:
        """`&&` and `||` say of each operand that it is not a bool."""
        result = types.BOOL
        for each in arguments:
            if not self._fits(self._type(each), types.BOOL):
                self._mismatch(each, types.BOOL, self._type(each))
                result = types.ERROR
        self._types[node.id] = result
        self.references[node.id] = Reference(overloads=tuple(each.id for each in function.overloads))

    def _instantiated(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """The overload's types with parameters of their own for this call."""
        fresh: Bindings = {}
        for each in (*overload.arguments, overload.result):
            for name in _parameters(each):
                fresh.setdefault(name, types.DYN)
        if not fresh:
            return overload.arguments, overload.result
        fresh = {name: self._new_parameter() for name in fresh}
        arguments = tuple(substitute(fresh, each, free_as_dyn=False) for each in overload.arguments)
        return arguments, substitute(fresh, overload.result, free_as_dyn=False)

    def _list(self, node: ListLiteral) -> Expression:
        element: Type | None = None
        elements = []
        for index, each in enumerate(node.elements):
            each = self.check(each)
            elements.append(each)
            one = self._type(each)
            if index in node.optional:
                one = self._unwrapped(each, one)
            element = self._join(element, one)
        self._types[node.id] = types.list_of(element or self._new_parameter())
        return ListLiteral(node.id, tuple(elements), node.optional)

    def _unwrapped(self, node: Expression, type_: Type) -> Type:
        inner, is_optional = unwrapped(type_)
        if not is_optional and not is_dyn(type_):
            self._mismatch(node, types.optional_of(type_), type_)
        return inner

    def _map(self, node: MapLiteral) -> Expression:
        key: Type | None = None
        value: Type | None = None
        entries = []
        for entry in node.entries:
            assert not isinstance(entry.key, str), "only structs have names as keys"
            made_key, made_value = self.check(entry.key), self.check(entry.value)
            entries.append(Entry(entry.id, made_key, made_value, entry.optional))
            key = self._join(key, self._type(made_key))
            one = self._type(made_value)
            if entry.optional:
                one = self._unwrapped(made_value, one)
            value = self._join(value, one)
        self._types[node.id] = types.map_of(key or self._new_parameter(), value or self._new_parameter())
        return MapLiteral(node.id, tuple(entries))

    def _struct(self, node: Struct) -> Expression:
        found = self._identifier(node.type_name)
        if found is None:
            return self._undeclared(node, node.type_name)
        declared, reference = found
        self.references[node.id] = reference
        result = types.ERROR
        if declared.kind != "type":
            self._issue(node, f"'{shown(declared)}' is not a type")
        elif declared.parameters[0].kind != "object":
            self._issue(node, f"'{types.text(declared.parameters[0])}' is not a message type")
        else:
            result = declared.parameters[0]
        self._types[node.id] = result
        entries = []
        for entry in node.entries:
            assert isinstance(entry.key, str), "a struct has names as keys"
            value = self.check(entry.value)
            entries.append(Entry(entry.id, entry.key, value, entry.optional))
            field = self._field_of_object(entry, reference.name, entry.key) or types.ERROR
            given = self._type(value)
            if entry.optional:
                given = self._unwrapped(value, given)
            if not self._fits(field, given):
                why = f"expected type of field '{entry.key}' is '{shown(field)}' but provided type is '{shown(given)}'"
                self._issue(entry, why)
        return Struct(node.id, reference.name, tuple(entries))

    def _comprehension(self, node: Comprehension) -> Expression:
        over = self.check(node.range)
        range_type = substitute(self._bindings, self._type(over), free_as_dyn=False)
        start = self.check(node.start)
        accumulated = self._type(start)
        one, two = self._range_types(over, range_type)
        names = {node.variable: one}
        if node.second_variable is not None:
            names = {node.variable: types.INT if range_type.kind == "list" else one, node.second_variable: two}
        with self._scope(**{node.accumulator: accumulated}):
            with self._scope(**names):
                condition = self.check(node.condition)
                self._expect(condition, types.BOOL)
                step = self.check(node.step)
                self._expect(step, accumulated)
            result = self.check(node.result)
        self._types[node.id] = substitute(self._bindings, self._type(result), free_as_dyn=False)
        return Comprehension(
            node.id, node.variable, node.second_variable, over, node.accumulator, start, condition, step, result
        )

    def _range_types(self, over: Expression, range_type: Type) -> tuple[Type, Type]:
        """Of what is gone through: the type of elements or keys, and of elements or values."""
        if range_type.kind == "list":
            return range_type.parameters[0], range_type.parameters[0]
        if range_type.kind == "map":
            return range_type.parameters[0], range_type.parameters[1]
        if range_type.kind in ("dyn", "any", "error", "parameter"):
            self._fits(types.DYN, range_type)
            return types.DYN, types.DYN
        why = "cannot be range of a comprehension (must be list, map, or dynamic)"
        self._issue(over, f"expression of type '{shown(range_type)}' {why}")
        return types.ERROR, types.ERROR

    def _expect(self, node: Expression, wanted: Type) -> None:
        if not self._fits(self._type(node), wanted):
            self._mismatch(node, wanted, self._type(node))


def type_of_constant(value: Scalar) -> Type:
    if value is None:
        return types.NULL
    if isinstance(value, Uint):
        return types.UINT
    return _CONSTANTS[type(value)]


_CONSTANTS: Mapping[type, Type] = {
    bool: types.BOOL, int: types.INT, float: types.DOUBLE, str: types.STRING, bytes: types.BYTES
}  # fmt: skip


def _parameters(type_: Type) -> Iterator[Type]:
    if type_.kind == "parameter":
        yield type_
    for each in type_.parameters:
        yield from _parameters(each)


def _qualified(node: Expression) -> str:
    """`a.b.c` for a chain of selections that begins with a name; "" for everything else."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Name):
        return ""
    return ".".join((node.name, *reversed(names)))
