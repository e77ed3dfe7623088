"""Whether a level's goal is reached: conditions over a Pod of `lastcall/ending`. Pure.

A condition is `[PATH, SIGN, VALUE]`. A path leads through the document, and names a container as
`containers.NAME.field`. `first.KIND` and `last.KIND` are the seconds of a record; `.FACT=VALUE` after it selects those
with that fact. The value is a literal or a path.
"""

# check: pure

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
}
ROOTS = ("gone", "containers", "first", "last")
"""How the paths of goals begin."""

Condition = tuple[str, str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """One condition, `want` as it was written, and what was found for both of its sides."""

    path: str
    sign: str
    want: Any
    left: Any
    right: Any
    held: bool


def check_goal(goal: Sequence[Condition], pod: Mapping[str, Any]) -> tuple[Check, ...]:
    """Return each condition with what was found."""
    return tuple(_check(*each, pod) for each in goal)


def _check(path: str, sign: str, want: Any, pod: Mapping[str, Any]) -> Check:
    left, right = look_up(path, pod), look_up(want, pod) if is_path(want) else want
    try:
        held = SIGNS[sign](left, right)
    except TypeError:  # nothing was seen that could be compared
        held = False
    return Check(path, sign, want, left, right, held)


def is_path(value: Any) -> bool:
    return isinstance(value, str) and value.split(".")[0] in ROOTS


def look_up(path: str, pod: Mapping[str, Any]) -> Any:
    """Return what `path` leads to, None where it leads to nothing."""
    first, *rest = path.split(".")
    if first in ("first", "last"):
        times = [each["at"] for each in pod["records"] if each["at"] >= 0 and _is(each, *rest)]
        return (min(times) if first == "first" else max(times)) if times else None
    found: Any = pod.get(first)
    for name in rest:
        if isinstance(found, list):
            found = next((each for each in found if each["name"] == name), None)
        elif isinstance(found, Mapping):
            found = found.get(name)
        else:
            return None
    return found


def _is(record: Mapping[str, Any], kind: str, *facts: str) -> bool:
    wanted = (each.partition("=") for each in facts)
    return record["kind"] == kind and all(str(record["facts"].get(name)).lower() == value for name, _, value in wanted)
