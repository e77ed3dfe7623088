"""`lastcall logs`: what the processes of a cluster that stays printed."""

import re
import sys

import click

from lastcall.cli.staying.clusters import cluster_errors
from lastcall.cli.staying.names import name_argument
from lastcall.cli.terminal import say
from lastcall.kube.cluster import ControlClient, ControlError, Logs

_ROLE = re.compile(r"front|init|control-plane|(shim|node)-[1-9][0-9]?")


def checked_role(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check what may be a role of some cluster (a click callback)."""
    if value is not None and not _ROLE.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a role: front, init, control-plane, shim-1, node-1 …")
    return value


@click.command()
@name_argument
@click.option(
    "--role",
    metavar="ROLE",
    callback=checked_role,
    help="Only this process: front, init, control-plane, shim-1, node-1 … Default: all, each line with its name.",
)
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the cluster ends, or Ctrl-C.")
def logs(name: str, role: str | None, follow: bool) -> None:
    """Show recent logs of the processes of the cluster NAME (default: lastcall).

    For logs of containers use kubectl logs.
    """
    with cluster_errors(), ControlClient(name).connect() as connection:
        try:
            for message in connection.ask(Logs(role=role or "", follow=follow)):
                if "text" in message:
                    say(message["text"] if role else f"{message['role']:13} | {message['text']}")
                    sys.stdout.flush()
        except ControlError:
            if not follow:
                raise
