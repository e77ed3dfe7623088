"""What a node of a cluster that stays is asked to do."""

from collections.abc import Iterator

import click

from lastcall.cli.options import Seconds
from lastcall.errors import UserError
from lastcall.kube.cluster import AddNode, Node, RemoveNode, ask_cluster, parse_node_capacity

EXTRA_SECONDS = 60.0
"""How much longer than all its groups a shutdown may take to answer."""


_PERIOD = Seconds(0, whole=True)


def checked_periods(grace: int, critical: int, by_priority: tuple[str, ...] = ()) -> list[tuple[int, int]]:
    """Return (priority, seconds) of each group. Raises UserError."""
    # late: 80 ms of `down`
    from lastcall.kube.node import grace_periods

    if not by_priority:
        try:
            return [(period.priority, period.seconds) for period in grace_periods(grace, critical)]
        except ValueError as error:
            raise UserError(f"--grace {grace} --grace-critical {critical}: {error}") from None
    periods: dict[int, int] = {}
    for text in by_priority:
        priority, _, seconds = text.partition("=")
        try:
            if not -(2**31) <= int(priority) < 2**31:
                raise ValueError
            periods[int(priority)] = int(_PERIOD.convert(seconds, None, None))
        except ValueError:
            raise UserError(f"--grace-by-priority {text!r}: write a priority and a time, as in 1000=20s") from None
        except click.BadParameter as error:
            raise UserError(f"--grace-by-priority {text!r}: {error.message}") from None
    return sorted(periods.items())


def checked_capacity(text: str) -> dict[str, str]:
    """Return what `node add --node-capacity` declares of the new node. Raises UserError."""
    if not text:
        return {}
    try:
        declared = parse_node_capacity([text])
    except ValueError as error:
        raise UserError(f"--node-capacity {error}") from None
    if declared.nodes:
        raise UserError(
            f"--node-capacity {text!r} names a node, and applies to the new one only. Leave out the name and colon"
        )
    return dict(declared.every)


def change_nodes(cluster: str, asked: AddNode | RemoveNode) -> Iterator[str]:
    """Change the nodes, and yield what the cluster says meanwhile. Raises ControlError, NotRunning."""
    return ask_cluster(cluster, asked, None)


def ask_node(cluster: str, node: str, action: str, periods: list[tuple[int, int]] | None = None) -> Iterator[str]:
    """Ask a node for an action, and yield what it says meanwhile. Raises ControlError, NotRunning."""
    seconds = sum(each for _, each in periods or [])
    asked = Node(node=node, action=action, periods=periods or [])
    return ask_cluster(cluster, asked, seconds + EXTRA_SECONDS)
