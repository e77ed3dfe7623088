"""How deep what clients write may be nested, and how many values it may have.

Kubernetes reads 10 000 levels. Python's stack, and that of the libraries written in C, have room for some hundred: what
comes in is measured before anything that calls itself reads it. And it reads with all processors what here stops all
others: as much is let in as takes about a second.
"""

from itertools import chain
from typing import Any

MAX_DEPTH = 200
"""Lists and objects in one another, the object itself included. The deepest object known in the wild has about 40."""

MAX_VALUES = 100_000
"""Keys, items and values. A CustomResourceDefinition as big as may be stored has some 70 000."""


class OutOfBoundsError(ValueError):
    """What is wrong, in Go's words where it has any."""


def check_bounds(value: Any, levels: int = MAX_DEPTH) -> None:
    """Raise OutOfBoundsError for decoded JSON that is too deep or too much."""
    level: list[Any] = [value]
    count = 1
    for _ in range(levels):
        inside: list[Any] = []
        for above in level:
            if type(above) is dict:
                count += 2 * len(above)
                inside.append(above.values())
            elif type(above) is list:
                count += len(above)
                inside.append(above)
        if count > MAX_VALUES:
            raise OutOfBoundsError(f"more than {MAX_VALUES} values")
        level = [each for each in chain.from_iterable(inside) if type(each) is dict or type(each) is list]
        if not level:
            return
    raise OutOfBoundsError(f"invalid character '{'{' if type(level[0]) is dict else '['}' exceeded max depth")
