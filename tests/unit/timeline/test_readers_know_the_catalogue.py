"""Whoever reads a record's facts by name reads a field that the catalogue has: one that was renamed is found here.

Writers are typed; readers get records of any age from a tape, so that they look fields up.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tools"))

import make_catalogue  # noqa: E402
import typed_docs  # noqa: E402

READERS = ("timeline", "traffic", "cluster/health", "cli/run", "cli/rollout", "cli/waiting", "cli/story.py")
NAME = "facts"


def fields_of(shape: Any) -> Iterator[str]:
    """Of a kind's facts and of every object in them."""
    for each in typed_docs.fields(shape):
        yield each.name
        yield from fields_in(each.type)


def fields_in(hint: Any) -> Iterator[str]:
    hint, _ = typed_docs.stripped(hint)
    if typed_docs.is_shape(hint):
        yield from fields_of(hint)
    for each in get_args(hint):
        if not isinstance(each, str | int | bool | float):
            yield from fields_in(each)


def is_facts(node: ast.AST, names: set[str]) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == NAME) or (isinstance(node, ast.Name) and node.id in names)


def names_for_facts(tree: ast.AST) -> set[str]:
    """Variables that are given a record's facts, and parameters of that name; not those that are made as a dict."""
    found, made = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            if is_facts(node.value, set()):
                found |= names
            elif isinstance(node.value, ast.Dict):
                made |= names
        elif isinstance(node, ast.arg) and node.arg == NAME:
            found.add(NAME)
    return found - made


def read_in(text: str) -> Iterator[tuple[int, str]]:
    """(line, field) of each `facts.get("field")`, `facts["field"]` and `"field" in facts`."""
    tree = ast.parse(text)
    names = names_for_facts(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[ast.Constant(value=str(key)), *_]):
                pass
            case ast.Subscript(value=of, slice=ast.Constant(value=str(key))):
                pass
            case ast.Compare(left=ast.Constant(value=str(key)), comparators=[of]):
                pass
            case _:
                continue
        if is_facts(of, names):
            yield node.lineno, key


def sources() -> Iterator[Path]:
    for each in READERS:
        path = ROOT / "src" / "lastcall" / each
        yield from [path] if path.suffix else sorted(path.rglob("*.py"))


def test_every_field_that_is_read_is_one_of_the_catalogue() -> None:
    known = {name for shape in make_catalogue.all_kinds().values() for name in fields_of(shape)}
    read = [(path, line, key) for path in sources() for line, key in read_in(path.read_text())]
    assert len(read) > 80, "the readers have moved: this test has to look elsewhere"
    unknown = [f"{path.relative_to(ROOT)}:{line}: {key}" for path, line, key in read if key not in known]
    assert unknown == []


def test_each_way_to_read_a_field_is_found() -> None:
    text = (
        "def a(record):\n    facts = record.facts\n    b = record.facts['one']\n"
        "    if 'two' in facts: return facts.get('three', 0)\n    return b.get('other')\n"
    )
    assert sorted(read_in(text)) == [(3, "one"), (4, "three"), (4, "two")]
