"""What a node of a cluster that stays is asked to do."""

from collections.abc import Iterator

import click

from lastcall.cli.options import Seconds
from lastcall.errors import UserError
from lastcall.kube.cluster import ControlClient, Node

EXTRA_SECONDS = 60.0
"""How much longer than all its groups a shutdown may take to answer."""


_PERIOD = Seconds(0, whole=True)


def checked_periods(grace: int, critical: int, by_priority: tuple[str, ...] = ()) -> list[tuple[int, int]]:
    """(priority, seconds) of each group. Raises UserError."""
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


def ask_node(cluster: str, node: str, action: str, periods: list[tuple[int, int]] | None = None) -> Iterator[str]:
    """What the node says meanwhile. Raises ControlError, NotRunning."""
    seconds = sum(each for _, each in periods or [])
    with ControlClient(cluster).connect() as connection:
        connection.socket.settimeout(seconds + EXTRA_SECONDS)
        for message in connection.ask(Node(node=node, action=action, periods=periods or [])):
            if "text" in message:
                yield str(message["text"])
