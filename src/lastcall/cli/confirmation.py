"""Asks before somebody's cluster is touched."""

import sys
from collections.abc import Sequence

import click

from lastcall.cli.terminal import ask, say
from lastcall.errors import UserError
from lastcall.experiment.existing import check_yes, is_allowed

yes_option = click.option(
    "--yes",
    metavar="NAME",
    default="",
    help="Do not ask: NAME is that of the context, which is touched.",
)


def confirm(context: str, lines: Sequence[str], yes: str) -> None:
    """Says what will be done, and returns when the context's name was typed or given. Raises UserError."""
    check_yes(context, yes)
    say(*lines, err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(f"nothing was done: nobody can be asked here\nfix: --yes={context}, if that is what you want")
    answer = ask("Type the name of the context to go on")
    if not is_allowed(context, answer):
        raise UserError(f"nothing was done: {answer!r} is not {context}")
