"""Several strategic merge patches of one object as one. Pure."""

# check: pure

from collections.abc import Iterable
from typing import Any


def merged(patches: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Merge patches. Lists whose items have names are merged by those; of two whole numbers the larger one counts
    (replicas, grace periods, sleeps), of other values the first."""
    found: dict[str, Any] = {}
    for patch in patches:
        found = _merged(found, patch)
    return found


def _merged(first: Any, second: Any) -> Any:
    if isinstance(first, dict) and isinstance(second, dict):
        return {
            key: _merged(first[key], second[key]) if key in first and key in second else first.get(key, second.get(key))
            for key in (*first, *(key for key in second if key not in first))
        }
    if _is_named(first) and _is_named(second):
        others = {each["name"]: each for each in second}
        known = [_merged(each, others.pop(each["name"], each)) for each in first]
        return [*known, *others.values()]
    if type(first) is int and type(second) is int:
        return max(first, second)
    return first


def _is_named(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) and "name" in each for each in value)
