"""Asks before somebody's cluster is touched."""

import sys
from collections.abc import Sequence

import click

from lastcall.cli.errors import UserError
from lastcall.cli.rollout.experiments.plan import check_yes, is_allowed

yes_option = click.option(
    "--yes",
    metavar="NAME",
    default="",
    help="Do not ask: NAME is that of the context, which is touched.",
)


def confirm(context: str, lines: Sequence[str], yes: str) -> None:
    """Says what will be done, and returns when the context's name was typed or given. Raises UserError."""
    check_yes(context, yes)
    for line in lines:
        click.echo(line, err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(f"nothing was done: nobody can be asked here\nfix: --yes={context}, if that is what you want")
    answer = click.prompt("Type the name of the context to go on", err=True, default="", show_default=False)
    if not is_allowed(context, answer):
        raise UserError(f"nothing was done: {answer!r} is not {context}")
