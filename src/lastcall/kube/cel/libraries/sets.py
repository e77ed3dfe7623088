"""Lists as sets (cel-go ext/sets.go)."""

from collections.abc import Callable, Sequence
from typing import Any

from lastcall.kube.cel.bounds import Bounds, Operand
from lastcall.kube.cel.libraries.library import Estimate, Library, RuntimeCost, declared
from lastcall.kube.cel.operations import contains, cost_size, elements

ROWS = """
sets.contains    list_sets_contains_list    (list(T), list(T)) -> bool
sets.equivalent  list_sets_equivalent_list  (list(T), list(T)) -> bool
sets.intersects  list_sets_intersects_list  (list(T), list(T)) -> bool
"""


def has_all(items: Any, wanted: Any) -> bool:
    return all(contains(items, item) for item in elements(wanted))


def equivalent(left: Any, right: Any) -> bool:
    return has_all(left, right) and has_all(right, left)


def intersects(left: Any, right: Any) -> bool:
    return any(contains(right, item) for item in elements(left))


def product(factor: int) -> RuntimeCost:
    def cost(arguments: Sequence[object]) -> int:
        return 1 + cost_size(arguments[0]) * cost_size(arguments[1]) * factor

    return cost


def product_estimate(factor: int) -> Estimate:
    def estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
        return (operands[0].size * operands[1].size).times(factor) + Bounds(1, 1), None

    return estimate


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "list_sets_contains_list": has_all,
    "list_sets_equivalent_list": equivalent,
    "list_sets_intersects_list": intersects,
}
FACTORS = {"list_sets_contains_list": 1, "list_sets_equivalent_list": 2, "list_sets_intersects_list": 1}
LIBRARY = Library(
    "sets",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs={overload: product(factor) for overload, factor in FACTORS.items()},
    estimates={overload: product_estimate(factor) for overload, factor in FACTORS.items()},
)
