"""Calls: arguments, the overload that their types choose, costs (cel-go interpreter/interpretable.go)."""

from collections.abc import Callable, Sequence
from typing import Any

from lastcall.kube.cel.libraries.library import Implementation, ResultCost, RuntimeCost
from lastcall.kube.cel.operations import elements, find, type_name
from lastcall.kube.cel.running.state import Run, State
from lastcall.kube.cel.types import Overload, Type
from lastcall.kube.cel.values import CostExceeded, EvaluationError

RUNTIME_NAMES = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}
"""Kinds whose values have another name."""


def logical(left: Run, right: Run, absorbing: bool) -> Run:
    """Make `&&` (`absorbing` is False) or `||` (True): that value on one side decides, and hides an error."""

    def run(state: State) -> bool:
        failure = None
        try:
            value: object = left(state)
            if value is absorbing:
                return absorbing
            if not isinstance(value, bool):
                failure = EvaluationError("no such overload")
        except EvaluationError as error:
            failure = error
        try:
            value = right(state)
        except EvaluationError as error:
            raise (failure or error).with_traceback(None) from None
        if value is absorbing:
            return absorbing
        if failure is not None:
            raise failure.with_traceback(None)
        if not isinstance(value, bool):
            raise EvaluationError("no such overload")
        return not absorbing

    return run


def not_strictly_false(argument: Run) -> Run:
    """Make a test that is True for all but false, also for an error."""

    def run(state: State) -> bool:
        state.cost += 1
        try:
            return argument(state) is not False
        except EvaluationError:
            return True

    return run


def call(arguments: Sequence[Run], do: Implementation, cost: RuntimeCost | None, result: ResultCost | None) -> Run:
    """Make a call that evaluates all its arguments; without a cost of its own it costs 1."""
    if result is not None:
        return counted_by_result(arguments, do, result)
    if cost is not None:
        return counted(arguments, do, cost)
    if len(arguments) == 1:
        return unary(arguments[0], do)
    if len(arguments) == 2:
        return binary(arguments[0], arguments[1], do)
    return counted(arguments, do, lambda values: 1)


def unary(argument: Run, do: Implementation) -> Run:
    def run(state: State) -> object:
        state.cost += 1
        return do(argument(state))

    return run


def binary(left: Run, right: Run, do: Implementation) -> Run:
    def run(state: State) -> object:
        state.cost += 1
        try:
            value: object = left(state)
        except EvaluationError:
            spent(right, state)
            raise
        return do(value, right(state))

    return run


def spent(run: Run, state: State) -> None:
    """Evaluate for the cost alone: the other side has failed already."""
    try:
        run(state)
    except EvaluationError:
        return


def evaluated(arguments: Sequence[Run], state: State, cost: RuntimeCost) -> list[Any]:
    """Evaluate the arguments. Of two, the second is evaluated (and charged) even if the first fails."""
    values: list[Any] = []
    for at, argument in enumerate(arguments):
        try:
            values.append(argument(state))
        except EvaluationError:
            if len(arguments) > 2:
                raise
            sized: list[Any] = [*values, None]
            if at == 0 and len(arguments) == 2:
                sized.append(value_or_none(arguments[1], state))
            state.charge(failed_cost(cost, sized))
            raise
    return values


def value_or_none(run: Run, state: State) -> Any:
    """Return the value, None for an error."""
    try:
        return run(state)
    except EvaluationError:
        return None


def failed_cost(cost: RuntimeCost, values: list[Any]) -> int:
    """Return what a call costs when an argument is an error, which counts as a value of size 1."""
    try:
        return cost(values)
    except (TypeError, AttributeError, ValueError):
        return 1


def counted(arguments: Sequence[Run], do: Implementation, cost: RuntimeCost) -> Run:
    """Make a call whose arguments give its cost, which is charged first so that the call cannot be too much work."""
    if len(arguments) == 2:
        return counted_pair(arguments[0], arguments[1], do, cost)

    def run(state: State) -> object:
        values = evaluated(arguments, state, cost)
        state.cost += cost(values)
        if state.cost > state.limit:
            raise CostExceeded
        return do(*values)

    return run


def counted_pair(left: Run, right: Run, do: Implementation, cost: RuntimeCost) -> Run:
    """Make the call of `counted` for two arguments, which most calls have."""

    def run(state: State) -> object:
        try:
            first = left(state)
        except EvaluationError:
            state.charge(failed_cost(cost, [None, value_or_none(right, state)]))
            raise
        try:
            second = right(state)
        except EvaluationError:
            state.charge(failed_cost(cost, [first, None]))
            raise
        state.cost += cost((first, second))
        if state.cost > state.limit:
            raise CostExceeded
        return do(first, second)

    return run


def counted_by_result(arguments: Sequence[Run], do: Implementation, cost: ResultCost) -> Run:
    def run(state: State) -> object:
        values = evaluated(arguments, state, lambda _: 1)
        try:
            result = do(*values)
        except EvaluationError:
            state.charge(1)
            raise
        state.charge(cost(result))
        return result

    return run


def fits(type_: Type, value: Any) -> bool:
    """Return whether a value may be an argument of a type; of a list or a map the first element decides.
    (cel-go types.go:IsAssignableRuntimeType)"""
    kind = type_.kind
    if kind in ("dyn", "any", "parameter"):
        return True
    name = type_name(value)
    if kind == "list":
        return name == "list" and (not len(value) or fits(type_.parameters[0], next(elements(value))))
    if kind == "map":
        if name != "map":
            return False
        key = next(elements(value)) if len(value) else None
        return not len(value) or (fits(type_.parameters[0], key) and fits(type_.parameters[1], find(value, key)))
    return name == RUNTIME_NAMES.get(kind, type_.name or kind)


def guarded(
    function: str, overload: Overload, do: Implementation, cost: RuntimeCost | None
) -> tuple[Implementation, RuntimeCost | None]:
    """Return the implementation and the cost of one overload, for arguments whose types only show now."""
    types = overload.arguments

    def guarded_call(*values: object) -> object:
        if all(map(fits, types, values)):
            return do(*values)
        raise no_such_overload(function, values)

    def guarded_cost(values: Sequence[object]) -> int:
        return cost(values) if cost and all(map(fits, types, values)) else 1

    return guarded_call, guarded_cost if cost else None


def no_such_overload(function: str, values: Sequence[object]) -> EvaluationError:
    return EvaluationError(f"no such overload: {function}({', '.join(map(type_name, values))})")


def dispatched(
    function: str, candidates: Sequence[tuple[Overload, Implementation]]
) -> tuple[Implementation, Callable[[Sequence[object]], str | None]]:
    """Return the call of whichever overload fits, and which one that is."""

    def chosen(values: Sequence[object]) -> tuple[Overload, Implementation] | None:
        for overload, do in candidates:
            if len(overload.arguments) == len(values) and all(map(fits, overload.arguments, values)):
                return overload, do
        return None

    def run(*values: object) -> object:
        found = chosen(values)
        if found is None:
            raise no_such_overload(function, values)
        return found[1](*values)

    def which(values: Sequence[object]) -> str | None:
        found = chosen(values)
        return found[0].id if found else None

    return run, which
