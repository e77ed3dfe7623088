"""Whoever reads a record's facts by name says of which kind they are (`told`): mypy then knows the fields."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastcall.timeline import kinds
from lastcall.timeline.said import Said

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "lastcall"
sys.path.append(str(ROOT / "tools"))

import make_catalogue  # noqa: E402
import typed_docs  # noqa: E402

NAME = "facts"

OTHERS = {
    "exporting/spans.py": "any kind of record may stand at the top of what decided an end",
    "cli/showing/fed.py": "what a command tells the page of its cluster is not a record",
    "testing/link.py": "what a cluster tells of itself",
    "ui/story.py": "any record in the lane of the service proxies may name its node",
    "timeline/causes/join.py": "any kind of record may carry the version that it wrote or saw",
    "timeline/said.py": "facts of a sentence, not of a record",
}
"""Files that read `.facts` by key, and why."""


def is_facts(node: ast.AST, names: set[str]) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == NAME) or (isinstance(node, ast.Name) and node.id in names)


def names_for_facts(tree: ast.AST) -> set[str]:
    """Variables that are given `….facts` as it is."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.NamedExpr) and node.value is not None and is_facts(node.value, set()):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def read_in(text: str) -> Iterator[tuple[int, str]]:
    """(line, field) of each `….facts.get("field")`, `….facts["field"]` and `"field" in ….facts`."""
    tree = ast.parse(text)
    names = names_for_facts(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[key, *_]):
                pass
            case ast.Subscript(value=of, slice=key):
                pass
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[of]):
                pass
            case _:
                continue
        if is_facts(of, names):
            yield node.lineno, ast.unparse(key)


def test_facts_are_read_as_those_of_their_kind() -> None:
    untyped = {
        str(path.relative_to(SOURCE)): [f"{line}: {key}" for line, key in read_in(path.read_text())]
        for path in sorted(SOURCE.rglob("*.py"))
    }
    found = {path: reads for path, reads in untyped.items() if reads}
    assert {path: reads for path, reads in found.items() if path not in OTHERS} == {}
    assert found.keys() == OTHERS.keys(), "an exception that nobody needs any more"


def test_each_way_to_read_a_field_is_found() -> None:
    text = (
        "def a(record):\n    facts = record.facts\n    b = record.facts['one']\n"
        "    if 'two' in facts: return facts.get('three', 0)\n    return b.get('other')\n"
    )
    assert sorted(read_in(text)) == [(3, "'one'"), (4, "'three'"), (4, "'two'")]


def rows() -> Iterator[tuple[str, str]]:
    """(kind, text) of each fixed text in the table of words."""
    tree = ast.parse((SOURCE / "timeline" / "wording" / "words.py").read_text())
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name(id="_row"),
                args=[
                    ast.Attribute(attr=kind),
                    ast.Call(func=ast.Name(id="fixed"), args=[ast.Constant(value=str(text)), *_]),
                ],
            ):
                yield str(getattr(kinds, kind)), text


def test_the_table_of_words_is_found() -> None:
    assert len(list(rows())) > 20


@pytest.mark.parametrize(("kind", "text"), list(rows()))
def test_the_placeholders_of_a_fixed_text_are_fields_of_its_kind(kind: str, text: str) -> None:
    fields = {each.name for each in typed_docs.fields(make_catalogue.all_kinds()[kind])}
    assert set(Said.names(text)) <= fields
