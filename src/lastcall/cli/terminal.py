"""What commands write to stdout and stderr: the one place, so that no caller has to quote what others wrote.

`say` prints lines, `show` a document that a renderer has quoted for its format, `cli/console.py` is rich's way here.
`tools/checks/printing.py` finds whatever writes elsewhere.
"""

# check: prints because every command prints through it

import sys

import click

from lastcall.endings.render import WIPE, takes_escapes
from lastcall.records.quoting import log_line, one_line


def say(*lines: str, err: bool = False) -> None:
    """Print lines, each quoted: a newline within one is shown as `\\n`. Without any, print an empty line."""
    click.echo("\n".join(map(log_line, lines)), err=err)


def note(line: str) -> None:
    """Print a line on stderr."""
    say(line, err=True)


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
    click.echo(f"{WIPE if takes_escapes(sys.stderr) else ''}{log_line(line)}", err=True)


def ask(question: str) -> str:
    """Return what the user types on a terminal; "" for nothing."""
    answer: str = click.prompt(one_line(question), err=True, default="", show_default=False)
    return answer
