"""Every rule that a record names has its words in `--explain`."""

import ast
import re
from pathlib import Path

import lastcall
from lastcall.timeline.explain import explain

SOURCES = Path(lastcall.__file__).parent
RULE = re.compile(r"^[\w./ -]+\.go:[A-Za-z](?:[\w.]*\w)?$")


def rules_in(source: str) -> set[str]:
    """String constants that are a rule, and f-strings that put one together from a constant of the module."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = [_part(part, constants) for part in node.values]
            if None not in parts:
                found.add("".join(parts))
    return {text for text in found if RULE.match(text)}


def _part(node, constants):
    if isinstance(node, ast.Constant):
        return node.value
    name = node.value.id if isinstance(node.value, ast.Name) else ""
    return constants.get(name)


def test_every_rule_in_the_source_is_explained():
    # A finding of lint names its rule as the source of what it says in words itself.
    files = [p for p in SOURCES.rglob("*.py") if p.name != "explain.py" and not p.is_relative_to(SOURCES / "lint")]
    found = {(rule, path.name) for path in files for rule in rules_in(path.read_text())}
    assert len(found) > 10
    assert sorted(pair for pair in found if not explain(pair[0])) == []


def test_the_scan_reads_f_strings_of_module_constants():
    assert rules_in('RULES = "pkg/a.go"\nx = f"{RULES}:Do"\ny = f"{unknown}:Do"\n"""doc of pkg/a.go:No, more"""') == {
        "pkg/a.go:Do"
    }
