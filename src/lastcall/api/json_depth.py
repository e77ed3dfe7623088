"""How deep what clients write may be nested.

Kubernetes reads 10 000 levels. Python's stack, and that of the libraries written in C, have room for some hundred: what
comes in is measured before anything that calls itself reads it. The deepest object known in the wild has about 40.
"""

from itertools import chain
from typing import Any

MAX_DEPTH = 200
"""Lists and objects in one another, the object itself included."""


def too_deep(value: Any, levels: int = MAX_DEPTH) -> str:
    """The bracket with which the first level too many begins, "" when there is none."""
    level: list[Any] = [value]
    for _ in range(levels):
        level = [
            each
            for each in chain.from_iterable(
                (above.values() if type(above) is dict else above) for above in level if type(above) in (dict, list)
            )
            if type(each) in (dict, list)
        ]
        if not level:
            return ""
    return "{" if type(level[0]) is dict else "["
