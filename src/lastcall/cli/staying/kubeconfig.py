"""`lastcall kubeconfig`: how kubectl reaches a cluster that stays."""

import click

from lastcall.cli.staying.clusters import cluster_errors
from lastcall.cli.staying.names import name_argument
from lastcall.cli.terminal import say, show
from lastcall.errors import UserError, WorldError
from lastcall.kube.cluster import KUBECONFIG, ClusterDirectory, ControlClient


@click.command()
@name_argument
@click.option("--print", "text", is_flag=True, help="Print the contents (with credentials) instead of the path.")
@click.option("--merge", "merged", is_flag=True, help="Add the cluster to your kubeconfig, as context lastcall-NAME.")
@click.option(
    "--unmerge", "unmerged", is_flag=True, help="Remove the cluster from your kubeconfig; it need not be running."
)
@click.option(
    "--kubeconfig",
    "file",
    metavar="FILE",
    default="",
    help="Your kubeconfig. Default: $KUBECONFIG or ~/.kube/config.",
)
def kubeconfig(name: str, text: bool, merged: bool, unmerged: bool, file: str) -> None:
    """Print the path of the kubeconfig of cluster NAME (default: lastcall): KUBECONFIG=$(lastcall kubeconfig).

    --merge and --unmerge change your own kubeconfig, with kubectl's file lock; other entries stay as they are.
    """
    if merged + unmerged + text > 1:
        raise UserError("--print, --merge and --unmerge do not work together: use one")
    if unmerged:
        took_away(name, file)
        return
    with cluster_errors():
        ControlClient(name).connect().close()
        directory = ClusterDirectory.find(name)
        if directory is None:
            raise WorldError(f"cluster {name!r} has just ended")
        with directory:
            try:
                content = directory.read(KUBECONFIG)
            except FileNotFoundError:
                raise WorldError(f"cluster {name!r} is still starting and has no kubeconfig yet: try again") from None
            path = f"{directory.path}/{KUBECONFIG}"
    if merged:
        add(name, content, file)
    else:
        show(content if text else f"{path}\n")


def add(name: str, content: str, file: str) -> None:
    """Merge a cluster's kubeconfig, and say so."""
    # late: 190 ms of `kubeconfig`
    import yaml

    from lastcall.kube.client import KubeconfigError, entry_name, merge, users_kubeconfig

    path = users_kubeconfig(file)
    try:
        merge(path, name, yaml.safe_load(content))
    except KubeconfigError as error:
        raise WorldError(str(error)) from error
    say(f"context {entry_name(name)} is in {path}, and the current one")


def took_away(name: str, file: str) -> None:
    """Unmerge a cluster's kubeconfig, and say so."""
    # late: 190 ms of `kubeconfig`
    from lastcall.kube.client import KubeconfigError, entry_name, unmerge, users_kubeconfig

    path = users_kubeconfig(file)
    try:
        was_there = unmerge(path, name)
    except KubeconfigError as error:
        raise WorldError(str(error)) from error
    say(f"context {entry_name(name)} is {'no longer' if was_there else 'not'} in {path}")
