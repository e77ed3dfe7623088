"""`lastcall node`: what is done to a node of a cluster that stays."""

import click

from lastcall.cli.options import Seconds
from lastcall.cli.staying.clusters import cluster_errors, cluster_option
from lastcall.cli.staying.nodes import ask_node, checked_periods
from lastcall.cli.terminal import say

_node_argument = click.argument("name", metavar="NODE")


@click.group()
def node() -> None:
    """Disconnect a node of a running cluster from the network, or shut it down."""


@node.command()
@_node_argument
@cluster_option
@click.option(
    "--grace",
    type=Seconds(0, whole=True),
    metavar="TIME",
    default="30s",
    show_default=True,
    help="Time for all Pods together (the kubelet's shutdownGracePeriod).",
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
