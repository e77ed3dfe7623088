"""`lastcall kubeconfig`: how kubectl reaches a cluster that stays."""

import click

from lastcall.cli.errors import WorldError
from lastcall.cli.staying.clusters import cluster_errors, name_argument
from lastcall.cluster.control.socket import ControlClient
from lastcall.cluster.directory import KUBECONFIG, ClusterDirectory


@click.command()
@name_argument
@click.option("--print", "text", is_flag=True, help="Print the contents (with credentials) instead of the path.")
def kubeconfig(name: str, text: bool) -> None:
    """Say where the kubeconfig of the cluster NAME (default: lastcall) is: KUBECONFIG=$(lastcall kubeconfig)."""
    with cluster_errors():
        ControlClient(name).connect().close()
        directory = ClusterDirectory.find(name)
        if directory is None:
            raise WorldError(f"cluster {name!r} ended meanwhile")
        with directory:
            try:
                content = directory.read(KUBECONFIG)
            except FileNotFoundError:
                raise WorldError(f"cluster {name!r} is just starting: it has no kubeconfig yet") from None
            click.echo(content if text else f"{directory.path}/{KUBECONFIG}", nl=not text)
