"""Costs that several libraries share (cel-go common/cost.go, ext/lists.go; apiserver pkg/cel/library/cost.go)."""

import math
from collections.abc import Iterable, Sequence

from lastcall.kube.cel.bounds import Bounds, Operand
from lastcall.kube.cel.libraries.library import Estimate, RuntimeCost
from lastcall.kube.cel.operations import cost_size, elements, find, is_list, is_map

TRAVERSAL = 0.1
"""The share of a unit that one character costs."""
PATTERN = 0.25
"""The share of a unit that one character of a regular expression costs."""
LIST, MAP, STRUCT = 10, 30, 40
"""What making a list, a map, a struct costs."""


def traversal(value: object, factor: float = TRAVERSAL) -> int:
    return math.ceil(cost_size(value) * factor)


def first_traversed(factor: float = TRAVERSAL) -> RuntimeCost:
    """Return the cost of reading the first argument once (or `factor` / 0.1 times)."""
    return lambda arguments: traversal(arguments[0], factor)


def matching(text: object, pattern_size: int) -> int:
    """Return the cost of matching a text with a regular expression."""
    return math.ceil((1.0 + cost_size(text)) * TRAVERSAL) * math.ceil(pattern_size * PATTERN)


def find_cost(arguments: Sequence[object]) -> int:
    return matching(arguments[0], cost_size(arguments[1]))


def deep_traversal(value: object) -> int:
    """Return the cost of reading all that a list or map holds; strings count their bytes here."""
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "replace")) * TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * TRAVERSAL)
    if is_map(value):
        return sum(deep_traversal(key) + deep_traversal(find(value, key)) for key in elements(value))
    if is_list(value):
        return sum(map(deep_traversal, elements(value)))
    return 1


def one(arguments: Sequence[object]) -> int:
    return 1


def for_all(overloads: Iterable[str], cost: RuntimeCost) -> dict[str, RuntimeCost]:
    return dict.fromkeys(overloads, cost)


def read_once(factor: float = TRAVERSAL, *, same_size: bool = False) -> Estimate:
    """Return the estimate of a function that reads its first argument; `same_size`: its result is as big."""

    def estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
        size = operands[0].size
        return size.times(factor), size if same_size else None

    return estimate


def always(cost: int) -> Estimate:
    return lambda operands: (Bounds(cost, cost), None)


def find_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    size = operands[0].size
    cost = (size + Bounds(1, 1)).times(TRAVERSAL) * operands[1].size.times(PATTERN)
    return cost, Bounds(0, size.max)
