"""Waits until the API server of a cluster that starts answers, and its nodes are Ready and take Pods."""

from collections.abc import Iterable

from lastcall.kube.api.pods import spec as pods
from lastcall.kube.api.resources import NODES
from lastcall.kube.api.scheduling import NOT_READY, taints_of
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.world.clock import Clock, monotonic

ANSWERS_SECONDS = 60.0
"""How long an API server that starts may leave every connection without an answer, unless the caller says it."""
_TRY_AGAIN_SECONDS = 0.05


async def api_answers(client: Client, clock: Clock, seconds: float = ANSWERS_SECONDS) -> None:
    """Wait until the API server answers. Raises ConnectionLost after `seconds` without an answer.

    On a machine that is very busy a control plane that starts may take longer than a connection may.
    """
    deadline = monotonic(clock) + seconds
    while True:
        try:
            await client.list(NODES)
            return
        except ConnectionLost:
            if monotonic(clock) > deadline:
                raise
        await clock.sleep(_TRY_AGAIN_SECONDS)


async def nodes_ready(
    client: Client, names: Iterable[str], clock: Clock, seconds: float = ANSWERS_SECONDS, *, controllers: bool
) -> None:
    """Ask again when nobody answers: the control plane has just begun, on a machine that may be busy.

    With `controllers` a node is waited for until its taint is gone as well, so that a Pod made now does not get the
    message first that the node is not ready. Raises ConnectionLost after `seconds` without an answer.
    """
    waiting = set(names)
    deadline = monotonic(clock) + seconds
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
