"""Take out of a module what Python does not run, for the wheel: comments, and texts that only readers of it see.

That is a tenth of the wheel. Every statement keeps its line, so tracebacks name the lines of the repository. Texts of
packages and classes stay. So does everything in `cli` (click shows a function's text as its help) and in `testing` (the
API: `help()` and editors show it).
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

AS_THEY_ARE = ("lastcall/cli", "lastcall/testing")

Place = tuple[int, int]
"""A line from 1, and a character of it from 0."""


def is_trimmed(name: str) -> bool:
    """Return whether a file of the wheel is a module that loses its comments."""
    return name.endswith(".py") and not any(PurePosixPath(name).is_relative_to(each) for each in AS_THEY_ARE)


def trim(source: str, *, package: bool = False) -> str:
    """Return the module without them; what is left compiles to the same code, but for texts.

    `package`: it is an `__init__.py`, whose own text stays.
    """
    lines = io.StringIO(source).readlines()
    keep = (ast.Module, ast.ClassDef) if package else (ast.ClassDef,)
    for (first, start), (last, end) in sorted([*_comments(source), *_texts(source, lines, keep)], reverse=True):
        before, after = lines[first - 1][:start], lines[last - 1][end:]
        lines[first - 1 : last] = [f"{(before + after).rstrip()}\n", *["\n"] * (last - first)]
    return "".join(lines)


def _comments(source: str) -> Iterator[tuple[Place, Place]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            yield token.start, token.end


def _texts(source: str, lines: list[str], keep: tuple[type[ast.AST], ...]) -> Iterator[tuple[Place, Place]]:
    """Yield texts of what is not of a kind to `keep`, and those below attributes; one that is a whole body stays."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or len(body) < 2:
            continue
        kept = isinstance(node, keep)
        for each in body[kept:]:
            match each:
                case ast.Expr(value=ast.Constant(value=str()), lineno=int(first), end_lineno=int(last)):
                    yield (
                        (first, _character(lines[first - 1], each.col_offset)),
                        (last, _character(lines[last - 1], each.end_col_offset or 0)),
                    )


def _character(line: str, byte: int) -> int:
    """Return which character begins at a byte of the line: `ast` counts in UTF-8."""
    return len(line.encode()[:byte].decode())
