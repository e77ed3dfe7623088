"""Names, fields, elements: what they read and what that costs (cel-go interpreter/attributes.go).

A field or an element costs 1 when it is looked for; one that an optional `a.?b` does not find costs nothing.
"""

from typing import Any

from lastcall.kube.cel.operations import LISTS, find, go_name, is_list, is_map, type_name
from lastcall.kube.cel.running.state import Run, State, Step, attribute, simple
from lastcall.kube.cel.text import shown
from lastcall.kube.cel.values import NONE, NOTHING, EvaluationError, Optional, Record, Uint

KEYS = frozenset((str, int, Uint, float, bool))


def variable(name: str) -> Step:
    def resolve(state: State) -> object:
        try:
            value = state.variables[name]
        except KeyError:
            raise EvaluationError(f"no such attribute(s): {name}") from None
        if value.__class__ is EvaluationError:
            raise value.with_traceback(None)
        return value

    return attribute(resolve, 1)


def local(slot: int) -> Step:
    """Return the step that reads a variable of a comprehension; an accumulator may hold an error."""

    def resolve(state: State) -> object:
        value = state.slots[slot]
        if value.__class__ is EvaluationError:
            raise value.with_traceback(None)
        return value

    def run(state: State) -> object:
        state.cost += 1
        value = state.slots[slot]
        if value.__class__ is EvaluationError:
            raise value.with_traceback(None)
        return value

    return Step(run, resolve, attribute=True, unit=1)


def bound(slot: int, start: Run) -> Step:
    """Return the step of a variable whose value is computed when it is first read (`optMap`, `sortBy`)."""

    def resolve(state: State) -> object:
        value = state.slots[slot]
        if value is NOTHING:
            try:
                value = start(state)
            except EvaluationError as error:
                value = error
            state.slots[slot] = value
        if value.__class__ is EvaluationError:
            raise value.with_traceback(None)
        return value

    return attribute(resolve, 1)


def field(operand: Step, name: str, *, optional: bool = False) -> Step:
    resolve_operand = operand.resolve

    def resolve(state: State) -> object:
        value = resolve_operand(state)
        if value.__class__ is dict:
            state.cost += 1
            try:
                return value[name]
            except KeyError:
                raise EvaluationError(f"no such key: {name}") from None
        return qualified(state, value, name, optional=False)

    def resolve_optional(state: State) -> object:
        return qualified(state, resolve_operand(state), name, optional=True)

    return attribute(resolve_optional if optional else resolve, operand.unit if operand.attribute else 1)


def element(operand: Step, index: Step, *, optional: bool = False) -> Step:
    resolve_operand, resolve_index = operand.resolve, index.resolve

    def resolve(state: State) -> object:
        value = resolve_operand(state)
        if value is NONE:
            return NONE
        try:
            key = resolve_index(state)
        except EvaluationError:
            state.cost += 1
            raise
        if key.__class__ not in KEYS:
            state.cost += 1
            raise EvaluationError(f"invalid qualifier type: {go_name(key)}")
        if not optional:
            if value.__class__ is dict and key.__class__ is str:
                state.cost += 1
                try:
                    return value[key]
                except KeyError:
                    raise EvaluationError(f"no such key: {key}") from None
            if value.__class__ is list and key.__class__ is int:
                state.cost += 1
                if 0 <= key < len(value):
                    return value[key]
                raise EvaluationError(f"index out of bounds: {key}")
        return qualified(state, value, key, optional=optional)

    return attribute(resolve, operand.unit if operand.attribute else 1)


def qualified(state: State, value: Any, key: Any, *, optional: bool) -> object:
    """Return a field or an element; an Optional, when the operand is one or the question is."""
    if value.__class__ is Optional:
        if value.value is NOTHING:
            return NONE
        value, optional = value.value, True
    if optional:
        found = looked_up(value, key)
        if found is NOTHING:
            return NONE
        state.cost += 1
        return Optional(found)
    state.cost += 1
    found = looked_up(value, key)
    if found is NOTHING:
        raise EvaluationError(f"{'index out of bounds' if is_list(value) else 'no such key'}: {shown(key)}")
    return found


def looked_up(value: Any, key: object) -> object:
    """Return a field or an element. NOTHING is for what is not there, also for a field of a number, a string, null."""
    if value.__class__ is dict:
        return find(value, key)
    if is_list(value):
        index = index_of_list(key)
        if not 0 <= index < len(value):
            return NOTHING
        return value[index] if value.__class__ in LISTS else value.at(index)
    if isinstance(value, Record):
        return value.fields.get(key, NOTHING)  # type: ignore[call-overload]
    return find(value, key) if is_map(value) else NOTHING


def index_of_list(index: object) -> int:
    """Return a number as an index. Raises EvaluationError for every other value."""
    if index.__class__ is int or index.__class__ is Uint:
        return index
    if isinstance(index, float):
        if index.is_integer() and abs(index) < 2.0**63:
            return int(index)
        raise EvaluationError(f"unsupported index value {shown(index)} in list")
    raise EvaluationError(f"unsupported index type '{type_name(index)}' in list")


def presence(operand: Step, name: str) -> Step:
    """Return the step of `has(operand.field)`: it costs 1, and its operand one unit less than reading that."""
    resolve_operand = operand.resolve

    def run(state: State) -> bool:
        value = resolve_operand(state)
        if value.__class__ is dict:
            state.cost += 1
            return name in value
        if value.__class__ is Optional:
            if value.value is NOTHING:
                return False
            value = value.value
        state.cost += 1
        return looked_up(value, name) is not NOTHING

    return simple(run)


def conditional(condition: Step, then: Step, otherwise: Step) -> Step:
    """Return the step of `?:`. It costs its condition and its branch, one unit less if the branch is an attribute."""
    test, when_true, when_false = condition.run, then.resolve, otherwise.resolve

    def resolve(state: State) -> object:
        value = test(state)
        if value is True:
            return when_true(state)
        if value is False:
            return when_false(state)
        raise EvaluationError("no such overload")

    return attribute(resolve, 0)
