"""`lastcall down`: ends clusters that stay."""

import click

from lastcall.cli.clusters import checked_name, cluster_errors
from lastcall.cli.errors import UserError
from lastcall.cluster.control import ControlClient
from lastcall.cluster.directory import DEFAULT_NAME, names
from lastcall.cluster.errors import NotRunning


@click.command()
@click.argument("name", required=False, callback=checked_name)
@click.option("--all", "all_of_them", is_flag=True, help="All clusters of this user.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=86400),
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    help="How long a cluster may take; then it is killed.",
)
def down(name: str | None, all_of_them: bool, timeout: float) -> None:
    """End the cluster NAME (default: lastcall) and return when all of it is gone.

    Nothing running is fine: exit status 0.
    """
    if name is not None and all_of_them:
        raise UserError(f"{name!r} and --all: name one cluster, or take them all")
    with cluster_errors():
        chosen = names() if all_of_them else [name or DEFAULT_NAME]
        for each in chosen:
            _end(each, timeout)
        if not chosen:
            click.echo("no cluster is running")


def _end(name: str, timeout: float) -> None:
    try:
        how = ControlClient(name).stop(timeout)
    except NotRunning as error:
        click.echo(str(error))
        return
    click.echo(f"cluster {name} is gone" + (f" (killed: it took more than {timeout:g} s)" if how == "killed" else ""))
