"""Everything that findings and advice say can be told in Japanese: a fixture that looks at each that is made."""

import re
import sys
from collections.abc import Iterator
from string import Template
from typing import Any

import pytest

from lastcall.endings.story import Finding
from lastcall.records.language import catalogue_of
from lastcall.records.said import Said, fact_of
from lastcall.traffic.proposal import Advice
from lastcall.traffic.verdict import Judgement

TEXTS: dict[type, tuple[str, ...]] = {Finding: ("text", "advice"), Advice: ("sentence",), Judgement: ("sentence",)}
"""What is made of sentences → its fields with them."""

FROM_ELSEWHERE = frozenset(
    {"alone", "bash", "command", "error", "hook", "how", "line", "message", "output", "substitute"}
)
"""Facts that may have English words: what programs print, commands, and what Kubernetes and the kernel say."""

_WORDS = (
    "a|an|and|after|are|at|because|before|by|did|for|from|had|has|in|is|it|its|more|not|of|on|or|so|the|times|to|was"
    "|were"
)
_PROSE = re.compile(rf"(?:\A| )(?:{_WORDS}) |(?:exit code|finalizers?) ")
_LETTERS = re.compile("[A-Za-z]{2}")


def not_translated(text: str) -> list[str]:
    """The templates that Japanese lacks, and facts that look like English."""
    if not text:
        return []
    if not isinstance(text, Said):
        return [f"not a template: {text}"]
    words = _LETTERS.search(Template.pattern.sub("", text.template))
    found = [text.template] if words and text.template not in catalogue_of("ja") else []
    for name in sorted(set(Template(text.template).get_identifiers())):
        fact = fact_of(text, name)
        if isinstance(fact, Said):
            found += not_translated(fact)
        elif name not in FROM_ELSEWHERE and _PROSE.search(fact):
            found.append(f"${name} of {text.template!r}: {fact}")
    return found


@pytest.fixture(autouse=True)
def what_is_made_can_be_told_in_japanese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of what lastcall makes; a test may write what it likes."""
    found: list[str] = []
    for kind, fields in TEXTS.items():
        _look_at(kind, fields, found, monkeypatch)
    yield
    assert list(dict.fromkeys(found)) == [], (
        "make it a template (`tell`), with its Japanese (endings/catalogue/japanese)"
    )


def _look_at(kind: Any, fields: tuple[str, ...], found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made = kind.__init__

    def looked_at(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        if sys._getframe(1).f_globals["__name__"].startswith("lastcall."):
            for each in fields:
                found.extend(not_translated(getattr(self, each)))

    monkeypatch.setattr(kind, "__init__", looked_at)
