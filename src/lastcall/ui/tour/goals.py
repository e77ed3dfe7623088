"""Whether a level's goal is reached: conditions over a Pod of `lastcall/ending`. Pure.

A condition is a path, a sign and a value. A path leads through the document, and names a container as
`containers.NAME.field`. `first.KIND` and `last.KIND` are the seconds of a record; `.FACT=VALUE` after it selects those
with that fact. The value is a literal or a path.
"""

# check: pure

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from lastcall.ui.texts import Text, texts
from lastcall.world.dataclass import dataclass

SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
}
ROOTS = ("gone", "containers", "first", "last")
"""How the paths of goals begin."""
TIMES = re.compile(r"^(first|last)\.|(^gone|At|seconds)$")
"""Paths that lead to a time."""


@dataclass(frozen=True, slots=True)
class Condition:
    """`want` is a literal or a path. `says` is the condition in words; `seen` is what was found of it, with `{left}`
    and `{right}` for the values of both sides."""

    path: str
    sign: str
    want: Any
    says: Text = field(default_factory=dict)
    seen: Text = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """A condition, `want` as it was written, and what was found for both of its sides, also in words (`found`)."""

    path: str
    sign: str
    want: Any
    says: Text
    left: Any
    right: Any
    held: bool
    found: Text


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer to what a learner expects: it was right if all of its conditions hold."""

    says: Text
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What a learner is asked before the first run."""

    ask: Text
    choices: tuple[Choice, ...]


def happened(question: Question, pod: Mapping[str, Any]) -> list[bool]:
    """Return for each choice whether it is what happened."""
    return [all(each.held for each in check_goal(choice.conditions, pod)) for choice in question.choices]


def check_goal(goal: Sequence[Condition], pod: Mapping[str, Any]) -> tuple[Check, ...]:
    """Return each condition with what was found."""
    return tuple(_check(each, pod) for each in goal)


def verdict(checks: Sequence[Check]) -> Text:
    """Return what reaches the goal, in words, or else what misses it."""
    reached = all(each.held for each in checks)
    decisive = [each.found for each in checks if each.held is reached]
    return {language: "; ".join(each[language] for each in decisive) for language in decisive[0]}


def _check(condition: Condition, pod: Mapping[str, Any]) -> Check:
    path, sign, want = condition.path, condition.sign, condition.want
    left, right = look_up(path, pod), look_up(want, pod) if is_path(want) else want
    try:
        held = SIGNS[sign](left, right)
    except TypeError:  # nothing was seen that could be compared
        held = False
    found = {language: _found(condition, left, right, held, language) for language in condition.says}
    return Check(path, sign, want, condition.says, left, right, held, found)


def _found(condition: Condition, left: Any, right: Any, held: bool, language: str) -> str:
    """Return what was found, and what was wanted where that differs. A value that nobody saw is not in a sentence."""
    path, want, says = condition.path, condition.want, condition.says[language]
    words: dict[str, str] = {key: text[language] for key, text in texts()["goals"].items()}
    if held and (left is None or isinstance(left, Mapping)):
        return says
    if left is None or (right is None and is_path(want)):
        return words["notSeen"].format(says=says)
    found = condition.seen[language].format(left=shown(left, path), right=shown(right, str(want)))
    if held or isinstance(left, Mapping):
        return found
    if is_path(want):
        return words["wantedSo"].format(found=found, says=says)
    sign = "" if condition.sign == "=" else f"{condition.sign} "
    return words["wanted"].format(found=found, wanted=sign + (words["none"] if want is None else shown(want, path)))


def shown(value: Any, path: str) -> str:
    """Return a value as the page shows it: what a time is, in seconds."""
    if isinstance(value, float | int) and TIMES.search(path):
        size = abs(value)
        digits = 0 if isinstance(value, int) or size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
        return f"{value:.{digits}f} s"
    return str(value)


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
