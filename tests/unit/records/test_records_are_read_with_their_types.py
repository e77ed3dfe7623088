"""The placeholders of a record's fixed text are fields of its kind."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastcall.records.said import Said

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "lastcall"
sys.path.append(str(ROOT / "tools"))

import make_catalogue  # noqa: E402
import typed_docs  # noqa: E402


def rows() -> Iterator[tuple[str, str]]:
    """(kind, text) of each fixed text in the table of words."""
    for file in sorted((SOURCE / "records" / "definitions").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id="row"),
                    args=[
                        ast.Name(id=kind),
                        ast.Call(func=ast.Name(id="fixed"), args=[ast.Constant(value=str(text)), *_]),
                        *_,
                    ],
                ):
                    yield kind, text


def test_the_table_of_words_is_found() -> None:
    assert len(list(rows())) > 20


@pytest.mark.parametrize(("kind", "text"), list(rows()))
def test_the_placeholders_of_a_fixed_text_are_fields_of_its_kind(kind: str, text: str) -> None:
    fields = {each.name for each in typed_docs.fields(make_catalogue.all_kinds()[kind])}
    assert set(Said.names(text)) <= fields
