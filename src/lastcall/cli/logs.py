"""`lastcall logs`: what the processes of a cluster that stays printed."""

import sys

import click

from lastcall.cli.clusters import cluster_errors, name_argument
from lastcall.cluster.control import ControlClient
from lastcall.cluster.errors import ControlError


@click.command()
@name_argument
@click.option("--role", metavar="ROLE", help="Of this one alone. Default: all, each line with its name.")
@click.option("--follow", "-f", is_flag=True, help="Go on with new lines until the cluster ends, or Ctrl-C.")
def logs(name: str, role: str | None, follow: bool) -> None:
    """Show what the processes of the cluster NAME (default: lastcall) printed, the last of it.

    What containers print is shown by kubectl logs.
    """
    with cluster_errors(), ControlClient(name).connect() as connection:
        try:
            for message in connection.ask("logs", role=role or "", follow=follow):
                if "text" in message:
                    click.echo(message["text"] if role else f"{message['role']:13} | {message['text']}")
                    sys.stdout.flush()
        except ControlError:
            if not follow:
                raise
