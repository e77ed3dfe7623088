"""What commands write to stdout and stderr: the one place, so that no caller has to quote what others wrote.

`say` prints lines, `show` a document that a renderer has quoted for its format, `cli/console.py` is rich's way here.
`tools/checks/printing.py` finds whatever writes elsewhere.
"""

# check: prints because every command prints through it

import os
import sys
from typing import IO, Any

import click

from lastcall.records.quoting import log_line, one_line

_WIPE = "\r\x1b[K"
"""Empties the line of a terminal."""


def say(*lines: str, err: bool = False) -> None:
    """Print lines, each quoted: a newline within one is shown as `\\n`. Without any, print an empty line."""
    click.echo("\n".join(map(log_line, lines)), err=err)


def say_all(text: str, *, err: bool = False) -> None:
    """Print a text whose line breaks are our own."""
    say(*text.rstrip("\n").split("\n"), err=err)


def say_from(who: str, text: str) -> None:
    """Print a text on stderr, with `who` before each of its lines."""
    say(*(f"{who}: {line}" for line in text.rstrip("\n").split("\n")), err=True)


def show(document: str) -> None:
    """Print to stdout what a renderer has made: JSON, JUnit, a page, a story. Nothing is quoted here."""
    click.echo(document, nl=False)


def say_after_wiping(line: str) -> None:
    """Print a line on stderr in place of the `^C` that a terminal shows; nothing else leaves a line unfinished."""
    click.echo(f"{_WIPE if takes_escapes(sys.stderr) else ''}{log_line(line)}", err=True)


def ask(question: str) -> str:
    """Return what the user types on a terminal; "" for nothing."""
    answer: str = click.prompt(one_line(question), err=True, default="", show_default=False)
    return answer


def takes_escapes(stream: Any) -> bool:
    """Return True for a terminal that knows escape sequences."""
    return bool(stream.isatty()) and os.environ.get("TERM", "dumb") != "dumb"


def redrawn_stderr() -> IO[str] | None:
    """Return stderr for `redraw`; None if stderr cannot change a line in place."""
    return sys.stderr if takes_escapes(sys.stderr) else None


def redraw(stream: IO[str], text: str = "") -> None:
    """Replace the line of a terminal."""
    stream.write(f"{_WIPE}{log_line(text)}")
    stream.flush()
