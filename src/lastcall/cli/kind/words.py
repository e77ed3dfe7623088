"""kind's words for what lastcall has other words for: `create cluster`, `delete cluster`, `get clusters`, `load …`."""

from typing import Any

import click

from lastcall.cli.down import down
from lastcall.cli.kind.loading import docker_image, image_archive
from lastcall.cli.options import Seconds
from lastcall.cli.sectioned_help import SectionedCommand
from lastcall.cli.staying.clusters import cluster_errors
from lastcall.cli.staying.kubeconfig import kubeconfig
from lastcall.cli.staying.names import name_argument
from lastcall.cli.terminal import say
from lastcall.cli.up import up
from lastcall.kube.cluster import ControlClient, names


@click.group()
def create() -> None:
    """Create as kind does: create cluster [NAME]."""


@click.group()
def delete() -> None:
    """Delete as kind does: delete cluster [NAME], delete clusters --all."""


@click.group()
def get() -> None:
    """Get as kind does: get clusters, get kubeconfig, get nodes."""


@click.group()
def load() -> None:
    """Load as kind does: load docker-image NAME…, load image-archive FILE…."""


@click.pass_context
def _create_cluster(context: click.Context, /, *, wait: float | None, **options: Any) -> None:
    applies = bool(options["filenames"] or options["kustomizations"])
    options["timeout"] = wait or options["timeout"]
    context.invoke(up, **{**options, "wait": wait is not None and applies, "detached": True})


_wait = click.Option(
    ["--wait"],
    metavar="[TIME]",
    is_flag=False,
    flag_value="0",
    type=Seconds(0),
    help="As --timeout TIME; 0: 60s. The command waits until the nodes are Ready. With -f or -k it also waits until "
    "everything in them is ready.",
)
create.add_command(
    SectionedCommand(
        "cluster",
        params=[_wait if each.name == "wait" else each for each in up.params if each.name != "detached"],
        callback=_create_cluster,
        help="Start the cluster NAME (default: lastcall) in the background: lastcall up --detach.",
    )
)
delete.add_command(down, "cluster")
delete.add_command(down, "clusters")
load.add_command(docker_image)
load.add_command(image_archive)


@get.command("clusters")
def clusters() -> None:
    """Print the names of this user's clusters, a line each."""
    for name in names():
        say(name)
    if not names():
        say("No lastcall clusters found.", err=True)


@get.command("nodes")
@name_argument
def nodes(name: str) -> None:
    """Print the names of a cluster's nodes, a line each."""
    with cluster_errors():
        for node in ControlClient(name).status()["nodes"]:
            say(node["name"])


@get.command("kubeconfig")
@name_argument
@click.pass_context
def get_kubeconfig(context: click.Context, name: str) -> None:
    """Print the kubeconfig itself, as kind does."""
    context.invoke(kubeconfig, name=name, text=True, merged=False, unmerged=False, file="")
