"""An import inside a function saves at least 5 ms of a start, or says why else it stands there.

A comment above it tells: `# late: 43 ms of run --help`, measured with `python -X importtime`, or `# late: REASON`. The
small ones stay because all of them together would cost a command more than 10 ms. Their number only goes down.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "lastcall"
LEAST_MS = 5.0
MOST_SMALL = 44
"""How many save less than `LEAST_MS`."""

_LATE = re.compile(r"# late: (?:(?P<ms>\d+(?:\.\d)?) ms(?: of |, ).+|(?P<why>[a-z`].{10,}))")


def blocks(body: ast.AST, inside: bool = False) -> Iterator[int]:
    """The first line of each run of imports inside a function."""
    before = False
    for each in ast.iter_child_nodes(body):
        is_import = isinstance(each, ast.Import | ast.ImportFrom)
        if is_import and inside and not before:
            yield each.lineno
        before = is_import
        if isinstance(each, ast.If) and "TYPE_CHECKING" in ast.unparse(each.test):
            continue
        yield from blocks(each, inside or isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def late(text: str) -> Iterator[tuple[int, re.Match[str] | None]]:
    """(line, what its comment says) of every import inside a function."""
    lines = text.splitlines()
    for number in blocks(ast.parse(text)):
        yield number, _LATE.search(lines[number - 2])


def test_an_import_inside_a_function_says_what_it_saves():
    silent, small = [], []
    for path in sorted(ROOT.rglob("*.py")):
        for number, said in late(path.read_text()):
            where = f"{path.relative_to(ROOT)}:{number}"
            if said is None:
                silent.append(where)
            elif said["ms"] and float(said["ms"]) < LEAST_MS:
                small.append(where)
    assert silent == [], "`# late: … ms of …` or `# late: why` on the line above"
    assert len(small) <= MOST_SMALL, small


def test_an_import_without_a_reason_is_found():
    text = "def a():\n    import json\n\ndef b():\n    # late: 7 ms of run --help\n    import re\n    import io\n"
    assert [(number, said and said["ms"]) for number, said in late(text)] == [(2, None), (6, "7")]
