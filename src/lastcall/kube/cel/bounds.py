"""Compute bounds of what is not known yet: the size of a value, the cost of a call (cel-go checker/cost.go).

All sums and products stop at the biggest uint64, which means "no bound".
"""

import math
from typing import Protocol

from lastcall.kube.cel.types import Type
from lastcall.world.dataclass import dataclass

UNBOUNDED = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    min: int
    max: int

    def __add__(self, other: "Bounds") -> "Bounds":
        return Bounds(min(self.min + other.min, UNBOUNDED), min(self.max + other.max, UNBOUNDED))

    def __mul__(self, other: "Bounds") -> "Bounds":
        return Bounds(min(self.min * other.min, UNBOUNDED), min(self.max * other.max, UNBOUNDED))

    def __or__(self, other: "Bounds") -> "Bounds":
        """The bounds that hold for either."""
        return Bounds(min(self.min, other.min), max(self.max, other.max))

    def times(self, factor: float) -> "Bounds":
        """Multiply each bound by a factor, rounded up."""
        return Bounds(scaled(self.min, factor), scaled(self.max, factor))


def scaled(value: int, factor: float) -> int:
    product = float(value) * factor
    return UNBOUNDED if product >= UNBOUNDED or math.isinf(product) else math.ceil(product)


UNKNOWN = Bounds(0, UNBOUNDED)


class Operand(Protocol):
    """An argument of a call whose cost is estimated (the target is the first)."""

    @property
    def type(self) -> Type: ...

    @property
    def size(self) -> Bounds:
        """Return its size; UNKNOWN without any knowledge."""

    @property
    def known_size(self) -> Bounds | None:
        """Return the size that was computed from the expression alone (cel-go's ComputedSize), if any."""

    @property
    def literal(self) -> object:
        """Return the value of a literal, None for everything else."""

    def element(self) -> "Operand | None":
        """Return the value of any element of a list; None for what is not a list."""
