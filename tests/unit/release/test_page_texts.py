"""Every text of the page is in a catalogue, in English and Japanese. (Those of the tour: tests/unit/ui/tour.)"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from japanese import LETTERS

SOURCES = Path(__file__).parents[3] / "ui/src"
VIEWS = sorted(SOURCES.glob("*.tsx"))
CATALOGUES = sorted(SOURCES.glob("*texts.ts"))

AS_THEY_ARE = {"lastcall", "Kubernetes", "SIGTERM", "SIGKILL", "YAML", "Status", "Reason", "Message", "Type", "From"}
"""Names, and the columns of kubectl describe."""
SAME_IN_BOTH = {"YAML", "Pod", "The DELETE", "app=web,tier in (a,b)"}
TO_TURN = ("日本語", "English")
"""The button that changes the language names the other one."""

_COMMENT = re.compile(r"^\s*(?://|/\*\*|\*).*$", re.MULTILINE)
_CHILD = re.compile(r"(?<![=-])>([^<>{}();=|:&]*[A-Za-z]{2}[^<>{}();=|:&]*)<")
_ATTRIBUTE = re.compile(r'\b(?:aria-label|title|placeholder|alt)="([^"]*)"')
_PAIR = re.compile(r'\[\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)",?\s*\]')


def literals(path: Path) -> Iterator[str]:
    """Yield the texts that a view has of its own."""
    source = _COMMENT.sub("", path.read_text("utf-8"))
    for found in (*_CHILD.finditer(source), *_ATTRIBUTE.finditer(source)):
        if not found[1].strip().startswith(":"):  # of a condition
            yield found[1].strip()


@pytest.mark.parametrize("path", VIEWS, ids=lambda path: path.name)
def test_a_view_takes_its_texts_from_a_catalogue(path: Path) -> None:
    assert set(literals(path)) - AS_THEY_ARE == set(), "give it a key in texts.ts"


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.name)
def test_each_text_of_the_page_has_its_japanese(path: Path) -> None:
    source = path.read_text("utf-8")
    pairs = {(json.loads(f'"{english}"'), json.loads(f'"{japanese}"')) for english, japanese in _PAIR.findall(source)}
    assert len(pairs) >= 20
    missing = [each for each in pairs if not LETTERS.search(each[1]) and each[0] not in SAME_IN_BOTH]
    assert set(missing) <= {TO_TURN}
    assert [each for each in pairs if names(each[0]) != names(each[1])] == []


def names(text: str) -> set[str]:
    """Return the `{values}` that a text takes."""
    return set(re.findall(r"\{(\w+)\}", text))


def test_each_word_of_the_tour_has_its_japanese() -> None:
    tour = json.loads((SOURCES / "tour.json").read_text("utf-8"))
    pairs = [*tour["words"].values(), *tour["chapters"].values(), *(each["title"] for each in tour["levels"].values())]
    assert {english for english, japanese in pairs if not LETTERS.search(japanese)} <= SAME_IN_BOTH
    assert [each for each in pairs if names(each[0]) != names(each[1])] == []
