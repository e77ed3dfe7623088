"""How a kind of record is put into words, and what the words of several kinds have in common. Pure."""

# check: pure

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from lastcall.records.recalled import recalled
from lastcall.records.rules import Rule
from lastcall.records.said import Said, tell
from lastcall.records.text import seconds
from lastcall.world.dataclass import dataclass

Facts = Mapping[str, Any]
"""Of any kind."""
Style = Literal["", "dim", "good", "bad", "signal", "api", "endpoint", "output"]

STEP = 1
"""Shown in every story."""
DETAIL = 2
"""Shown with --explain only."""
NOISE = 3
"""In the JSON only."""


@dataclass(frozen=True, slots=True)
class Words:
    """`level` is STEP, DETAIL or NOISE. `text` is `Said`, for a kind that is known."""

    text: str
    level: int = STEP
    style: Style = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A kind's words, what it means (the docstring of its definition), and the rules that a record of it may name."""

    kind: str
    words: Callable[[Any], Words]
    meaning: str
    rules: tuple[Rule, ...]


FactsT = TypeVar("FactsT", bound=Mapping[str, object])


def row(definition: type[FactsT], words: Callable[[FactsT], Words], *rules: Rule) -> Sentence:
    """Return the sentence of a kind; mypy sees that the words read the facts of that kind."""
    return Sentence(definition.__name__, words, " ".join((definition.__doc__ or "").split()), rules)


def sentences(*rows: Sentence) -> dict[str, Sentence]:
    """Return the sentences by kind."""
    return {each.kind: each for each in rows}


def fixed(
    template: str, level: int = STEP, style: Style = "", recall: tuple[str, ...] = ()
) -> Callable[[Facts], Words]:
    """Return a function that words a kind without decisions. A missing fact is `?`, those in `recall` are sentences."""
    names = Said.names(template)

    def words(facts: Facts) -> Words:
        known = {name: facts.get(name, "?") for name in names}
        known.update((name, recalled(known[name])) for name in recall)
        return Words(Said(template, known), level, style)

    return words


def after(facts: Facts) -> str:
    """Return ` after 3.0 s`, or nothing."""
    return tell(" after $time", time=seconds(facts["seconds"])) if facts.get("seconds") is not None else ""


def took(facts: Facts) -> str:
    """Return ` in 3.0 s`, or nothing."""
    return tell(" in $time", time=seconds(facts["seconds"])) if facts.get("seconds") is not None else ""


def yes(value: Any) -> str:
    """Return a boolean as a field's value: "true" or "false"."""
    return "true" if value else "false"


def conditions(facts: Facts) -> str:
    """Return the conditions of an endpoint, by their names."""
    return " ".join(f"{name}={yes(facts.get(name))}" for name in ("ready", "serving", "terminating"))
