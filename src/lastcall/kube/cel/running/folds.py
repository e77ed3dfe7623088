"""Comprehensions: a fold over a list or a map (cel-go interpreter/interpretable.go:evalFold).

An error of a step is kept in the accumulator, where the condition of `all` and `exists` may ignore it. Steps that only
add to a list or a map that the fold began are done in place.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from lastcall.kube.cel.operations import MAX_ITEMS, elements, find, go_name, is_list, is_map
from lastcall.kube.cel.running.state import Run, State, Step, simple
from lastcall.kube.cel.values import NOTHING, CostExceeded, EvaluationError


class Fold(NamedTuple):
    """The parts of a comprehension; `condition` None: it always goes on."""

    first: int
    second: int | None
    accumulator: int
    range: Run
    start: Run
    condition: Run | None
    step: Run
    result: Run


def entries(value: Any) -> Iterator[tuple[object, object]]:
    if is_map(value):
        return ((key, find(value, key)) for key in elements(value))
    if is_list(value):
        return enumerate(elements(value))
    raise EvaluationError(f"unsupported comprehension range type: {go_name(value)}")


def fold(parts: Fold) -> Step:
    first, second, accumulator, over, start, condition, step, result = parts

    def run(state: State) -> object:
        values = over(state)
        slots, limit = state.slots, state.limit
        try:
            slots[accumulator] = start(state)
        except EvaluationError as error:
            slots[accumulator] = error
        if second is not None:
            pairs = entries(values)
        elif values.__class__ is list:
            pairs = zip(values, values, strict=False)
        elif is_list(values) or is_map(values):
            pairs = ((value, None) for value in elements(values))
        else:
            raise EvaluationError(f"got '{go_name(values)}', expected iterable type")
        for slots[first], other in pairs:
            if second is not None:
                slots[second] = other
            if condition is not None:
                try:
                    if condition(state) is False:
                        break
                except EvaluationError:
                    pass
            try:
                slots[accumulator] = step(state)
            except EvaluationError as error:
                slots[accumulator] = error
            if state.cost > limit:
                raise CostExceeded
        return result(state)

    return simple(run)


def binding(slot: int, result: Run) -> Step:
    """Make a fold over nothing, which only names a value (`optMap`, `sortBy`); `attributes.bound` computes it."""

    def run(state: State) -> object:
        state.slots[slot] = NOTHING
        return result(state)

    return simple(run)


def appended(slot: int, item: Run, cost: int) -> Run:
    """Make the step `accumulator + [item]`, which appends to the list of the fold."""

    def run(state: State) -> object:
        state.cost += cost
        kept = state.slots[slot]
        if kept.__class__ is EvaluationError:
            with suppress(EvaluationError):
                item(state)
            raise kept.with_traceback(None)
        kept.append(item(state))
        if len(kept) > MAX_ITEMS:
            raise CostExceeded
        return kept

    return run
