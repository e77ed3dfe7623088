"""`lastcall node`: what is done to a node of a cluster that stays."""

import click

from lastcall.cli.options import Seconds, duration_option
from lastcall.cli.staying.clusters import cluster_errors, cluster_option
from lastcall.cli.staying.nodes import ask_node, change_nodes, checked_capacity, checked_periods
from lastcall.cli.terminal import say
from lastcall.kube.cluster import AddNode, RemoveNode

_node_argument = click.argument("name", metavar="NODE")


@click.group()
def node() -> None:
    """Add a node to a running cluster, remove one, disconnect it from the network, or shut it down."""


@node.command()
@click.argument("name", metavar="[NODE]", required=False, default="")
@cluster_option
@click.option(
    "--node-capacity",
    "capacity",
    metavar="RESOURCE=QUANTITY,…",
    default="",
    help="The size of the node, as for `lastcall up`: cpu=2,memory=4Gi. By default that of the cluster's other nodes.",
)
@duration_option(
    "--timeout", 60, "How long the node may take to become Ready. A later one is removed again.", Seconds()
)
def add(name: str, cluster: str, capacity: str, timeout: float) -> None:
    """Add a node to a running cluster, by default with the next free name.

    It returns when the node is Ready and takes Pods. Pods, Services and connections of other nodes do not notice. A
    cluster has up to 64 nodes; with `up --state` the next start has the same ones.
    """
    sizes = checked_capacity(capacity)
    with cluster_errors():
        for text in change_nodes(cluster, AddNode(node=name, capacity=sizes, timeout=timeout)):
            say(text)


@node.command()
@_node_argument
@cluster_option
@click.option(
    "--grace-period",
    "grace",
    type=Seconds(0, whole=True),
    metavar="TIME",
    help="Grace period of all Pods. Default: each Pod's own.",
)
@click.option(
    "--timeout",
    type=Seconds(0),
    metavar="TIME",
    default="0",
    show_default="0s, no limit",
    help="How long the drain may take. After it the node takes Pods again, and stays.",
)
@click.option("--force", is_flag=True, help="Also end Pods without a controller. Nobody starts them elsewhere.")
@click.option("--ignore-daemonsets", is_flag=True, help="Let Pods of DaemonSets end with the node.")
@click.option("--delete-emptydir-data", is_flag=True, help="Also end Pods with emptyDir volumes. Their data is lost.")
def remove(
    name: str,
    cluster: str,
    grace: int | None,
    timeout: float,
    force: bool,
    ignore_daemonsets: bool,
    delete_emptydir_data: bool,
) -> None:
    """Drain NODE as `kubectl drain` does, then remove it from the cluster.

    Its Pods are evicted, as PodDisruptionBudgets allow it; what is left ends as when a machine is switched off. Then
    the Node object, its processes and its network are gone. If the drain fails, or you press Ctrl-C before its end,
    the node takes Pods again.
    """
    asked = RemoveNode(
        node=name,
        grace=grace,
        timeout=timeout,
        force=force,
        ignore_daemonsets=ignore_daemonsets,
        delete_emptydir_data=delete_emptydir_data,
    )
    with cluster_errors():
        for text in change_nodes(cluster, asked):
            say(text)


@node.command()
@_node_argument
@cluster_option
@duration_option(
    "--grace", 30, "Time for all Pods together (the kubelet's shutdownGracePeriod).", Seconds(0, whole=True)
)
@click.option(
    "--grace-critical",
    type=Seconds(0, whole=True),
    metavar="TIME",
    show_default="10s; with a shorter --grace, all of it",
    help="The part of --grace for critical Pods (shutdownGracePeriodCriticalPods).",
)
@click.option(
    "--grace-by-priority",
    "by_priority",
    metavar="PRIORITY=TIME",
    multiple=True,
    help="Instead of both: time for Pods of this priority and above (shutdownGracePeriodByPodPriority).",
)
@click.option("--cancel", is_flag=True, help="Let the node take Pods again. Pods that have ended do not come back.")
def shutdown(
    name: str, cluster: str, grace: int, grace_critical: int | None, by_priority: tuple[str, ...], cancel: bool
) -> None:
    """Shut NODE down gracefully: its Pods end by priority.

    As on a machine that is about to be switched off, its Pods end group after group, lowest priority first, each with
    its own grace period, but at most its group's. Then the node is NotReady and takes no Pods until --cancel.
    """
    periods = checked_periods(grace, min(10, grace) if grace_critical is None else grace_critical, by_priority)
    with cluster_errors():
        if cancel:
            for text in ask_node(cluster, name, "cancel"):
                say(text)
            say(f"{name} takes Pods again")
            return
        for text in ask_node(cluster, name, "shutdown", periods):
            say(text)
        say(f"{name} has shut down")


@node.command()
@_node_argument
@cluster_option
def disconnect(name: str, cluster: str) -> None:
    """Disconnect NODE from the network, as if its cable were pulled.

    Its Pods keep running, but nothing gets in or out. After 50 s the control plane marks the node unreachable, and
    after their tolerationSeconds (300 s) its Pods are evicted.
    """
    with cluster_errors():
        for _ in ask_node(cluster, name, "disconnect"):
            pass
    say(f"{name} is cut off; lastcall node connect {name} reconnects it")


@node.command()
@_node_argument
@cluster_option
def connect(name: str, cluster: str) -> None:
    """Reconnect a node cut off with `disconnect`."""
    with cluster_errors():
        for _ in ask_node(cluster, name, "connect"):
            pass
    say(f"{name} has its network again")
