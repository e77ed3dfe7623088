"""Ask before a command changes an existing cluster."""

import sys
from collections.abc import Sequence

import click

from lastcall.cli.terminal import ask, say
from lastcall.errors import UserError

yes_option = click.option(
    "--yes",
    metavar="NAME",
    default="",
    help="Skip the confirmation. NAME must match the context.",
)


def confirm(context: str, lines: Sequence[str], yes: str) -> None:
    """Print the plan, and return when the context's name was typed or given. Raise UserError otherwise."""
    # late: only with --context
    from lastcall.experiment.existing import check_yes, is_allowed

    check_yes(context, yes)
    say(*lines, err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(
            f"nothing was done: there is no terminal to ask on\nfix: --yes={context}, if that is what you want"
        )
    answer = ask("Type the name of the context to go on")
    if not is_allowed(context, answer):
        raise UserError(f"nothing was done: {answer!r} is not {context}")
