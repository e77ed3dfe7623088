"""Markers: one comment line that declares what a file is, or which rule it may break and why.

    # check: <word>[ <names>][ because <reason>]

A marker is between the docstring of a module and its first statement. `WORDS` has the words. Some words hold for a
whole folder when they are in its `__init__.py`.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple


class Word(NamedTuple):
    """What a marker with this word declares, and which parts it has."""

    about: str
    names: bool = False
    reason: bool = True
    folder: bool = False


WORDS = {
    "allow": Word("uses these names directly, not through their door", names=True),
    "asks for kinds": Word("has a rule of the API server for a single kind"),
    "long functions": Word("has these functions of more lines than others may have", names=True),
    "many attributes": Word("has these classes of more attributes than others may have", names=True),
    "observes": Word("writes records with evidence `observed`: its code saw or did what they say"),
    "plain objects": Word("a rule of a controller that reads objects of any kind"),
    "predicts": Word("writes records with evidence `predicted`"),
    "prints": Word("writes to stdout, stderr or a terminal itself"),
    "pure": Word("a rule: waits for nothing and does no I/O", reason=False),
    "pure names": Word("gives pure modules these names", names=True),
    "reaches inside": Word("imports from inside another wing, past its faces"),
    "reads facts": Word("reads the facts of a record without their type"),
    "repeats its folder": Word("has a name that begins with that of its folder"),
    "standard library": Word("imports the standard library and its own kind only", reason=False, folder=True),
    "starts processes": Word("starts a process"),
}
"""Each word, in the order of the alphabet."""

_START = re.compile(r"#\s*check:")
_PARTS = re.compile(r"# check: (?P<said>.+?)(?: because (?P<reason>.*))?")


class Marker(NamedTuple):
    """One marker. `problem` is empty if it is well formed."""

    line: int
    word: str
    names: tuple[str, ...] = ()
    reason: str = ""
    problem: str = ""


def read_markers(text: str, tree: ast.Module) -> list[Marker]:
    """Return every marker of a file, including those that are not well formed."""
    if "check:" not in text:
        return []
    first, last = _header(tree)
    return [
        _parse(line, number, inside=first < number < last)
        for number, line in enumerate(text.splitlines(), 1)
        if _START.search(line)
    ]


def _header(tree: ast.Module) -> tuple[int, float]:
    """Return the last line of the docstring and the line of the first statement after it."""
    first = 0
    body = tree.body
    if body and ast.get_docstring(tree, clean=False) is not None:
        first, body = body[0].end_lineno or 0, body[1:]
    return first, body[0].lineno if body else float("inf")


def _parse(line: str, number: int, inside: bool) -> Marker:
    if not inside:
        return Marker(number, "", problem="move the marker between the docstring and the first statement")
    parts = _PARTS.fullmatch(line)
    if parts is None:
        return Marker(number, "", problem="write `# check: <word>[ <names>][ because <reason>]`")
    said, reason = parts["said"], parts["reason"] or ""
    fitting = [each for each in WORDS if said == each or said.startswith(each + " ")]
    if not fitting:
        return Marker(number, "", problem=f"'{said}' is an unknown word; the words are: {', '.join(WORDS)}")
    word = max(fitting, key=len)
    names = tuple(each.strip() for each in said[len(word) :].split(",") if each.strip())
    return Marker(number, word, names, reason, "; ".join(_problems(word, names, reason)))


def _problems(word: str, names: tuple[str, ...], reason: str) -> Iterator[str]:
    form = WORDS[word]
    if form.names and not names:
        yield f"'{word}' needs names: `# check: {word} <name>, <name> because <reason>`"
    if names and not form.names:
        yield f"'{word}' takes no names; remove '{', '.join(names)}'"
    if form.reason and len(reason.split()) < 2:
        names_too = " <names>" if form.names else ""
        yield f"'{word}' needs a reason: `# check: {word}{names_too} because <reason>`"
