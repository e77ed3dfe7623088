"""What is wrong with an expression before it runs, in cel-go's words and form (common/error.go, common/errors.go)."""

from collections.abc import Iterable

from lastcall.world.dataclass import dataclass

MOST_SHOWN = 100
LONGEST_LINE = 16384
"""Characters of a line of the source that is shown."""


@dataclass(frozen=True, slots=True)
class Issue:
    """`offset` counts code points from the start of the source; None: nowhere in it."""

    offset: int | None
    message: str


class CompileError(Exception):
    """An expression that cannot be compiled."""

    def __init__(self, source: str, issues: Iterable[Issue]) -> None:
        self.source = source
        self.issues = tuple(issues)
        super().__init__(shown(source, self.issues))


class ProgramError(Exception):
    """An expression that is well typed and can never be evaluated."""


def shown(source: str, issues: Iterable[Issue]) -> str:
    """Format each issue with its line and a mark below it, in the order of their places."""
    lines = source.split("\n")
    placed = sorted(((*_place(source, issue.offset), issue.message) for issue in issues), key=lambda each: each[:2])
    texts = [_text(lines, *each) for each in placed[:MOST_SHOWN]]
    if len(placed) > MOST_SHOWN:
        texts.append(f"{len(placed) - MOST_SHOWN} more errors were truncated")
    return "\n".join(texts)


def _place(source: str, offset: int | None) -> tuple[int, int]:
    """(line, from 1; column, from 0)"""
    if offset is None:
        return -1, -1
    if not source:
        return 1, -1  # its end has no place
    before = source[:offset]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1)


def _text(lines: list[str], line: int, column: int, message: str) -> str:
    text = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if not 1 <= line <= len(lines) or column < 0 or len(lines[line - 1]) > LONGEST_LINE:
        return text
    snippet = lines[line - 1].replace("\t", " ")
    dots = "".join("\uff0e" if ord(char) > 127 else "." for char in snippet[:column])
    here = snippet[column : column + 1]
    mark = "\uff3e" if here and ord(here) > 127 else "^"
    return f"{text}\n | {snippet}\n | {dots}{mark}"
