"""Names that are nearly the same: a typing error, or another thing? Pure."""

# check: pure

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

_SHORT = 5
"""Names below so many letters are another thing when two letters differ."""
_FIELDS_ALIKE = 0.8


def closest(name: str, others: Iterable[str]) -> str | None:
    """Return the name of an object or a label that was probably meant; None where nothing is near, or several are.

    Near is a slip of one letter (two in longer names). What differs in a number, or in a part of one letter, is another
    thing on purpose: `db-1` and `db-2`, `shard-a` and `shard-b`.
    """
    names = list(dict.fromkeys(each for each in others if each and each != name))
    near = [each for each in names if _slip(name, each)]
    return near[0] if len(near) == 1 else None


def _slip(one: str, other: str) -> bool:
    if one.casefold() == other.casefold():
        return True
    if re.sub(r"\d+", "0", one) == re.sub(r"\d+", "0", other):
        return False
    parts, others = re.split(r"[-._/]", one), re.split(r"[-._/]", other)
    if len(parts) == len(others):
        differing = [pair for pair in zip(parts, others, strict=True) if pair[0] != pair[1]]
        if any(min(map(len, pair)) < 2 for pair in differing):
            return False
    most = 2 if min(len(one), len(other)) >= _SHORT else 1
    return _distance(one, other, most) <= most


def _distance(one: str, other: str, most: int) -> int:
    """Letters to insert, remove, replace or swap; more than `most` when it is more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before, last = [0] * (len(other) + 1), list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now = [row]
        for column, target in enumerate(other, 1):
            cost = min(last[column] + 1, now[column - 1] + 1, last[column - 1] + (letter != target))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == target:
                cost = min(cost, before[column - 2] + 1)
            now.append(cost)
        before, last = last, now
    return last[-1]


def closest_field(name: str, fields: Iterable[str]) -> str | None:
    """Return the field that was probably meant. The first call imports difflib."""
    found = get_close_matches(name, [each for each in fields if each != name], n=1, cutoff=_FIELDS_ALIKE)
    return found[0] if found else None


def similar_labels(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Return whether a selector differs from labels in one value (or key), and in that only a little."""
    wrong = [key for key, value in selector.items() if labels.get(key) != value]
    if len(wrong) != 1:
        return False
    key = wrong[0]
    if key in labels:
        return closest(selector[key], [labels[key]]) is not None
    return closest(key, [each for each in labels if labels[each] == selector[key]]) is not None


def labels_text(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items()) or "no labels"
