"""From a checked tree to functions (cel-go interpreter/planner.go and decorators.go).

What is known already is computed here: lists and maps of literals, conversions of literals, sets for `in`. So they
cost nothing when the expression runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from lastcall.kube.api.custom.patterns import pattern
from lastcall.kube.cel import ast
from lastcall.kube.cel.checked import Checked
from lastcall.kube.cel.libraries.comprehensions import insert_all_into, insert_into, key_of
from lastcall.kube.cel.libraries.library import Implementation, Library, ResultCost, RuntimeCost, merged
from lastcall.kube.cel.libraries.measures import LIST, MAP, STRUCT
from lastcall.kube.cel.operations import go_name
from lastcall.kube.cel.running import attributes, calls, folds
from lastcall.kube.cel.running.program import TOO_DEEP, Plan
from lastcall.kube.cel.running.state import Run, State, Step, constant, simple
from lastcall.kube.cel.text import shown
from lastcall.kube.cel.types import Function, Overload
from lastcall.kube.cel.values import NONE, NOTHING, EvaluationError, Optional, Record, TypeValue, Uint
from lastcall.world.dataclass import dataclass

CONVERSIONS = frozenset(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"])
PATTERNS = frozenset(("matches", "find", "findAll"))
"""Functions whose second argument is a regular expression: a literal is read when the expression is compiled."""
BY_OVERLOAD = frozenset(("standard", "lists", "sets", "optionals", "comprehensions"))
"""Libraries whose costs cel-go finds by the overload: a call that may mean several of them costs 1."""
MEMBERS = frozenset((str, int, Uint, float, bool))


@dataclass(frozen=True, slots=True)
class Bindings:
    """All functions of an environment: declarations, what they do, what they cost, each by overload id."""

    functions: Mapping[str, Function]
    overloads: Mapping[str, tuple[str, Overload]]
    """The function and the declaration of each overload."""
    implementations: Mapping[str, Implementation]
    dispatched: frozenset[str]
    unguarded: frozenset[str]
    costs: Mapping[str, RuntimeCost]
    result_costs: Mapping[str, ResultCost]
    ambiguous_costs: frozenset[str]
    """Overloads that cost the same when they are only found at run time."""


def bindings_of(libraries: Iterable[Library]) -> Bindings:
    libraries = tuple(libraries)
    functions = merged(libraries)
    implementations: dict[str, Implementation] = {}
    costs: dict[str, RuntimeCost] = {}
    result_costs: dict[str, ResultCost] = {}
    for library in libraries:
        implementations.update(library.implementations)
        costs.update(library.costs)
        result_costs.update(library.result_costs)
    return Bindings(
        functions,
        {overload.id: (function.name, overload) for function in functions.values() for overload in function.overloads},
        implementations,
        frozenset().union(*(library.dispatched for library in libraries)),
        frozenset().union(*(library.unguarded for library in libraries)),
        costs,
        result_costs,
        frozenset(
            overload.id
            for library in libraries
            if library.name not in BY_OVERLOAD
            for function in library.declarations
            for overload in function.overloads
        ),
    )


def plan(checked: Checked, known: Bindings) -> Plan:
    """Return the plan of an expression. Raises EvaluationError for one that cannot run, such as a bad pattern."""
    planner = Planner(checked, known)
    try:
        step = planner.step(checked.tree.root)
    except RecursionError:
        raise EvaluationError(TOO_DEEP) from None
    return Plan(step.run, planner.slots)


@dataclass
class Planner:
    checked: Checked
    known: Bindings
    slots: int = 0
    scope: dict[str, Step] = field(default_factory=dict)
    """The variables of the comprehensions around a node."""

    def step(self, node: ast.Expression) -> Step:
        planned: Callable[[Any], Step] = PLANNERS[node.__class__](self)
        return planned(node)

    def run(self, node: ast.Expression) -> Run:
        return self.step(node).run

    def slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    # -- names --------------------------------------------------------------------------------------------------------

    def literal(self, node: ast.Constant) -> Step:
        return constant(node.value)

    def name(self, node: ast.Name) -> Step:
        if node.name in self.scope:
            return self.scope[node.name]
        return self.global_name(node.id, node.name.removeprefix("."))

    def global_name(self, node_id: int, name: str) -> Step:
        reference = self.checked.references.get(node_id)
        if reference is not None:
            if reference.value is not NOTHING:
                return constant(reference.value)
            name = reference.name or name
        type_ = self.checked.types.get(node_id)
        if type_ is not None and type_.kind == "type":
            return constant(TypeValue(name))
        return attributes.variable(name)

    def select(self, node: ast.Select) -> Step:
        if node.id in self.checked.references:
            return self.global_name(node.id, node.field)
        operand = self.step(node.operand)
        return attributes.presence(operand, node.field) if node.test else attributes.field(operand, node.field)

    # -- literals -----------------------------------------------------------------------------------------------------

    def list_literal(self, node: ast.ListLiteral) -> Step:
        steps = [self.step(element) for element in node.elements]
        runs = [step.run for step in steps]
        if not node.optional:
            if all(step.constant is not NOTHING for step in steps):
                return constant([step.constant for step in steps])

            def run(state: State) -> list[object]:
                state.cost += LIST
                return [each(state) for each in runs]

            return simple(run)
        optional = node.optional

        def run_optional(state: State) -> list[object]:
            state.cost += LIST
            values = []
            for at, each in enumerate(runs):
                value = each(state)
                if at in optional:
                    if not isinstance(value, Optional):
                        raise EvaluationError(
                            f"cannot initialize optional list element from non-optional value {shown(value)}"
                        )
                    if value is NONE or value.value is NOTHING:
                        continue
                    value = value.value
                values.append(value)
            return values

        if all(step.constant is not NOTHING for step in steps):
            return constant(run_optional(State({}, 0, 0)))
        return simple(run_optional)

    def map_literal(self, node: ast.MapLiteral) -> Step:
        entries = []
        fixed = True
        for entry in node.entries:
            assert not isinstance(entry.key, str)
            key, value = self.step(entry.key), self.step(entry.value)
            fixed = fixed and key.constant is not NOTHING and value.constant is not NOTHING
            entries.append((key.run, value.run, entry.optional))

        def run(state: State) -> dict[object, object]:
            state.cost += MAP
            made: dict[object, object] = {}
            for read_key, read_value, optional in entries:
                key, value = read_key(state), read_value(state)
                if key.__class__ not in MEMBERS:
                    raise EvaluationError("unsupported key type")
                if optional:
                    value = initial(key, value)
                    if value is NOTHING:
                        made.pop(key_of(key), None)
                        continue
                made[key_of(key)] = value
            return made

        return constant(run(State({}, 0, 0))) if fixed else simple(run)

    def struct(self, node: ast.Struct) -> Step:
        fields = [(str(entry.key), self.run(entry.value), entry.optional) for entry in node.entries]
        name = node.type_name.removeprefix(".")

        def run(state: State) -> Record:
            state.cost += STRUCT
            made: dict[str, object] = {}
            for field_name, read, optional in fields:
                value = read(state)
                if optional:
                    value = initial(field_name, value)
                    if value is NOTHING:
                        continue
                made[field_name] = value
            return Record(name, made)

        return simple(run)

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Step:
        reference = self.checked.references.get(node.id)
        overloads = reference.overloads if reference else ()
        function, declared = node.function, self.known.overloads.get(overloads[0]) if overloads else None
        arguments = list(node.arguments)
        if declared is not None:
            function = declared[0]
            if node.target is not None and declared[1].member:
                arguments.insert(0, node.target)
        elif node.target is not None:
            arguments.insert(0, node.target)
        steps = [self.step(argument) for argument in arguments]
        special = self.special(function, overloads, steps)
        if special is not None:
            return special
        return self.function(node, function, overloads, arguments, steps)

    def special(self, function: str, overloads: tuple[str, ...], steps: list[Step]) -> Step | None:
        """Plan operators that do not evaluate all their arguments, or that read an attribute."""
        if function == "_&&_":
            return simple(calls.logical(steps[0].run, steps[1].run, False))
        if function == "_||_":
            return simple(calls.logical(steps[0].run, steps[1].run, True))
        if function == "_?_:_":
            return attributes.conditional(*steps)
        if function == "@not_strictly_false":
            return simple(calls.not_strictly_false(steps[0].run))
        if function in ("_[_]", "_[?_]", "_?._"):
            if steps[1].constant is not NOTHING and steps[1].constant.__class__ not in MEMBERS:
                raise EvaluationError(f"invalid qualifier type: {go_name(steps[1].constant)}")
            return attributes.element(steps[0], steps[1], optional=function != "_[_]")
        if function == "or" and set(overloads) <= {"optional_or_optional"}:
            return simple(or_else(steps[0].run, steps[1].run, unwrap=False))
        if function == "orValue" and set(overloads) <= {"optional_orValue_value"}:
            return simple(or_else(steps[0].run, steps[1].run, unwrap=True))
        if function == "@in" and overloads == ("in_list",) and steps[1].constant is not NOTHING:
            return member(steps[0].run, steps[1].constant)
        return None

    def function(
        self,
        node: ast.Call,
        name: str,
        overloads: tuple[str, ...],
        arguments: Sequence[ast.Expression],
        steps: list[Step],
    ) -> Step:
        runs = [step.run for step in steps]
        if name in PATTERNS and isinstance(steps[1].constant, str) and pattern(steps[1].constant).error:
            raise EvaluationError(pattern(steps[1].constant).error)
        cost: RuntimeCost | None = None
        result: ResultCost | None = None
        if name in ("_==_", "_!=_"):
            overloads = ("equals",) if name == "_==_" else ("not_equals",)
        if len(overloads) == 1:
            cost, result = self.known.costs.get(overloads[0]), self.known.result_costs.get(overloads[0])
        if name in self.known.dispatched:
            do = self.known.implementations[name]
        elif len(overloads) == 1:
            do = self.known.implementations[overloads[0]]
            declared = self.known.overloads[overloads[0]][1]
            if name not in self.known.unguarded and any(map(self.unsure, arguments)):
                do, cost = calls.guarded(name, declared, do, cost)
        else:
            candidates = [
                (overload, self.known.implementations[overload.id])
                for overload in self.known.functions[name].overloads
                if overload.id in self.known.implementations
            ]
            do, which = calls.dispatched(name, candidates)
            cost = self.ambiguous(which)
        made = calls.call(runs, do, cost, result)
        if name in CONVERSIONS and len(steps) == 1 and steps[0].constant is not NOTHING:
            return constant(made(State({}, 0, 2**63)))
        return simple(made)

    def unsure(self, argument: ast.Expression) -> bool:
        """Return whether the type of an argument only shows when it is evaluated."""
        type_ = self.checked.types.get(argument.id)
        while type_ is not None and type_.kind in ("list", "opaque") and type_.parameters:
            type_ = type_.parameters[0]
        return type_ is None or type_.kind in ("dyn", "any", "map", "parameter")

    def ambiguous(self, which: Callable[[Sequence[object]], str | None]) -> RuntimeCost:
        costs, counted = self.known.costs, self.known.ambiguous_costs

        def cost(values: Sequence[object]) -> int:
            overload = which(values)
            return costs[overload](values) if overload in counted and overload in costs else 1

        return cost

    # -- comprehensions -----------------------------------------------------------------------------------------------

    def comprehension(self, node: ast.Comprehension) -> Step:
        outer = self.scope
        accumulator = self.slot()
        start = self.run(node.start)
        if isinstance(node.range, ast.ListLiteral) and not node.range.elements:
            self.scope = {**outer, node.accumulator: attributes.bound(accumulator, start)}
            result = self.run(node.result)
            self.scope = outer
            return folds.binding(accumulator, result)
        over = self.run(node.range)
        first, second = self.slot(), self.slot() if node.second_variable else None
        with_accumulator = {**outer, node.accumulator: attributes.local(accumulator)}
        self.scope = {**with_accumulator, node.variable: attributes.local(first)}
        if node.second_variable and second is not None:
            self.scope[node.second_variable] = attributes.local(second)
        self.scope[node.accumulator] = with_accumulator[node.accumulator]
        condition = self.step(node.condition)
        fresh, step = self.growing(node, accumulator)
        self.scope = with_accumulator
        result = self.run(node.result)
        self.scope = outer
        return folds.fold(
            folds.Fold(
                first,
                second,
                accumulator,
                over,
                fresh or start,
                None if condition.constant is True else condition.run,
                step,
                result,
            )
        )

    def growing(self, node: ast.Comprehension, slot: int) -> tuple[Run | None, Run]:
        """Return the start and the step of a fold that only adds to a list or a map: both in place."""
        step, make = node.step, fresh_map if isinstance(node.start, ast.MapLiteral) else fresh_list
        condition = None
        if isinstance(step, ast.Call) and step.function == "_?_:_" and is_name(step.arguments[2], node.accumulator):
            condition, step = step.arguments[0], step.arguments[1]
        added = self.added(step, node, slot)
        if added is None:
            return None, self.run(node.step)
        if condition is None:
            return make, added
        kept = attributes.local(slot)
        return make, attributes.conditional(self.step(condition), simple(added), kept).run

    def added(self, step: ast.Expression, node: ast.Comprehension, slot: int) -> Run | None:
        if not isinstance(step, ast.Call) or step.target is not None or not step.arguments:
            return None
        if not is_name(step.arguments[0], node.accumulator):
            return None
        if isinstance(node.start, ast.ListLiteral) and not node.start.elements and step.function == "_+_":
            items = step.arguments[1]
            if isinstance(items, ast.ListLiteral) and len(items.elements) == 1 and not items.optional:
                item = self.step(items.elements[0])
                return folds.appended(slot, item.run, 2 if item.constant is not NOTHING else 2 + LIST)
        if isinstance(node.start, ast.MapLiteral) and not node.start.entries and step.function == "cel.@mapInsert":
            do: Implementation = insert_into if len(step.arguments) == 3 else insert_all_into
            return calls.call([self.run(argument) for argument in step.arguments], do, None, None)
        return None


def fresh_list(state: State) -> object:
    return []


def fresh_map(state: State) -> object:
    return {}


def is_name(node: ast.Expression, name: str) -> bool:
    return isinstance(node, ast.Name) and node.name == name


def initial(name: object, value: object) -> object:
    """Return the value of an optional entry, NOTHING for none."""
    if isinstance(value, Optional):
        return value.value
    raise EvaluationError(f"cannot initialize optional entry '{shown(name)}' from non-optional value {shown(value)}")


def or_else(left: Run, right: Run, *, unwrap: bool) -> Run:
    """Plan `or` and `orValue`: the right side is evaluated only for an optional without a value."""

    def run(state: State) -> object:
        value = left(state)
        if not isinstance(value, Optional) or value.value is not NOTHING:
            return value.value if unwrap and isinstance(value, Optional) else value
        return right(state)

    return run


def member(element: Run, items: Any) -> Step | None:
    """Plan `in` a list of literals, which costs nothing; None if they are not all numbers, strings and bools."""
    if not items:
        return constant(False)
    if any(item.__class__ not in MEMBERS for item in items):
        return None
    wanted = frozenset(map(key_of, items))

    def run(state: State) -> bool:
        value = element(state)
        return value.__class__ in MEMBERS and key_of(value) in wanted

    return simple(run)


PLANNERS: dict[type, Callable[[Planner], Callable[[Any], Step]]] = {
    ast.Constant: lambda planner: planner.literal,
    ast.Name: lambda planner: planner.name,
    ast.Select: lambda planner: planner.select,
    ast.Call: lambda planner: planner.call,
    ast.ListLiteral: lambda planner: planner.list_literal,
    ast.MapLiteral: lambda planner: planner.map_literal,
    ast.Struct: lambda planner: planner.struct,
    ast.Comprehension: lambda planner: planner.comprehension,
}
