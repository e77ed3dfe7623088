"""What one evaluation changes, and what a planned node is."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from lastcall.kube.cel.values import NOTHING, CostExceeded
from lastcall.world.dataclass import dataclass


class State:
    """One evaluation: its variables, the slots of its comprehensions, its cost so far and the limit of it."""

    __slots__ = ("cost", "limit", "slots", "variables")

    def __init__(self, variables: Mapping[str, object], slots: int, limit: int) -> None:
        self.variables = variables
        self.slots: list[Any] = [None] * slots
        self.cost = 0
        self.limit = limit

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded


Run: TypeAlias = Callable[[State], Any]
"""Evaluates a node. Raises EvaluationError, CostExceeded."""


@dataclass(frozen=True, slots=True)
class Step:
    """A planned node.

    An attribute (a name, a field, an element, `?:`) is read in two ways: `run` charges for the whole, `resolve` leaves
    out the one unit that reading an attribute costs by itself; `?:` and further fields go on from `resolve`.
    """

    run: Run
    resolve: Run
    attribute: bool = False
    unit: int = 0
    """What `run` charges more than `resolve`."""
    constant: object = NOTHING


def simple(run: Run) -> Step:
    return Step(run, run)


def constant(value: object) -> Step:
    def run(state: State) -> object:
        return value

    return Step(run, run, constant=value)


def attribute(resolve: Run, unit: int) -> Step:
    if not unit:
        return Step(resolve, resolve, attribute=True)

    def run(state: State) -> object:
        state.cost += 1
        return resolve(state)

    return Step(run, resolve, attribute=True, unit=1)
