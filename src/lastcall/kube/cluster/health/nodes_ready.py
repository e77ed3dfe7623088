"""Waits until the nodes of a cluster that starts are Ready and take Pods."""

from collections.abc import Iterable

from lastcall.kube.api.pods import spec as pods
from lastcall.kube.api.resources import NODES
from lastcall.kube.api.scheduling import NOT_READY, taints_of
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.world.clock import Clock, monotonic

NODES_SECONDS = 60.0
"""How long a node may take to answer when front asks for its nodes, unless its caller has less time."""
_TRY_AGAIN_SECONDS = 0.05


async def nodes_ready(client: Client, names: Iterable[str], clock: Clock, *, controllers: bool) -> None:
    """Ask again when nobody answers: the control plane has just begun, on a machine that may be busy.

    With `controllers` a node is waited for until its taint is gone as well, so that a Pod made now does not get the
    message first that the node is not ready. Raises ConnectionLost after NODES_SECONDS without an answer.
    """
    waiting = set(names)
    deadline = monotonic(clock) + NODES_SECONDS
    while waiting:
        try:
            await _watch(client, waiting, controllers)
        except ConnectionLost:
            if monotonic(clock) > deadline:
                raise
        if waiting:
            await clock.sleep(_TRY_AGAIN_SECONDS)


async def _watch(client: Client, waiting: set[str], controllers: bool) -> None:
    """Take from `waiting` what is Ready, until nothing is left or the watch ends."""
    async with client.watch(NODES) as events:
        async for event in events:
            condition = pods.get_condition(event.object.get("status") or {}, "Ready")
            if not condition or condition["status"] != "True":
                continue
            marked = any(taint.get("key") == NOT_READY for taint in taints_of(event.object))
            if not (marked and controllers):
                waiting.discard(event.object["metadata"]["name"])
            if not waiting:
                return
