"""Every text of the page and its tour is in the catalogue, one file per language."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from japanese import LETTERS

SOURCES = Path(__file__).parents[3] / "ui/src"
VIEWS = sorted(SOURCES.glob("*.tsx"))
SCRIPTS = [*VIEWS, *sorted(SOURCES.glob("*.ts"))]

AS_THEY_ARE = {"lastcall", "Kubernetes", "SIGTERM", "SIGKILL", "YAML", "Status", "Reason", "Message", "Type", "From"}
"""Names, and the columns of kubectl describe."""

_COMMENT = re.compile(r"^\s*(?://|/\*\*|\*).*$", re.MULTILINE)
_CHILD = re.compile(r"(?<![=-])>([^<>{}();=|:&]*[A-Za-z]{2}[^<>{}();=|:&]*)<")
_ATTRIBUTE = re.compile(r'\b(?:aria-label|title|placeholder|alt)="([^"]*)"')


def literals(path: Path) -> Iterator[str]:
    """Yield the texts that a view has of its own."""
    source = _COMMENT.sub("", path.read_text("utf-8"))
    for found in (*_CHILD.finditer(source), *_ATTRIBUTE.finditer(source)):
        if not found[1].strip().startswith(":"):  # of a condition
            yield found[1].strip()


@pytest.mark.parametrize("path", VIEWS, ids=lambda path: path.name)
def test_a_view_takes_its_texts_from_a_catalogue(path: Path) -> None:
    assert set(literals(path)) - AS_THEY_ARE == set(), "give it a key in src/lastcall/ui/catalogue"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_of_the_page_names_a_language_but_english(path: Path) -> None:
    """A third language is a file of the catalogue, and nothing else."""
    assert not re.search(r"\bja\b", path.read_text("utf-8"))
    assert not LETTERS.search(path.read_text("utf-8"))
