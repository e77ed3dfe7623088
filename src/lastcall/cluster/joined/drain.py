"""Empties a node as `kubectl drain --force --ignore-daemonsets --delete-emptydir-data` does, with the node's rights.

Ended Pods stay, other than with kubectl: they keep nothing from ending. Source: kubectl pkg/drain/{drain,filters}.go. A
kubelet may cordon its own Node and evict its own Pods.
"""

from collections.abc import Callable, Iterable

from lastcall.api.errors import StatusError, is_not_found
from lastcall.api.meta import Object, is_terminating, name_of, namespace_of, uid_of
from lastcall.api.pods.spec import is_mirror_pod, is_pod_terminal
from lastcall.api.resources import NODES, PODS
from lastcall.client.api import Client, ConnectionLost
from lastcall.controllers.ownership import controller_of
from lastcall.world.clock import monotonic
from lastcall.world.world import World

SECONDS = 300.0
"""For all Pods together: a disruption budget may hold one forever."""
_AGAIN_SECONDS, _LOOK_SECONDS = 5.0, 0.5


def to_evict(pods: Iterable[Object]) -> list[Object]:
    """Pods of DaemonSets would come back at once, static ones are the node's own, ended ones need nothing."""
    return [pod for pod in pods if not (_is_of_daemon_set(pod) or is_mirror_pod(pod) or is_pod_terminal(pod))]


def _is_of_daemon_set(pod: Object) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner["kind"] == "DaemonSet"


async def drain(world: World, client: Client, node: str, say: Callable[[str], None]) -> None:
    """Cordon, evict, and wait until the Pods are gone. What is left after `SECONDS` is told."""
    clock = world.clock
    deadline = monotonic(clock) + SECONDS
    asked: dict[str, float] = {}
    cordoned, left = False, []
    while monotonic(clock) < deadline:
        try:
            if not cordoned:
                await client.patch(NODES, node, {"spec": {"unschedulable": True}})
                cordoned = True
                say(f"node {node} is cordoned")
            left = to_evict((await client.list(PODS, field_selector=f"spec.nodeName={node}")).items)
            if not left:
                say(f"node {node} is drained")
                return
            for pod in left:
                if asked.get(uid_of(pod), 0.0) <= monotonic(clock) and not is_terminating(pod):
                    asked[uid_of(pod)] = monotonic(clock) + _AGAIN_SECONDS
                    await _evict(client, pod, say)
        except (StatusError, ConnectionLost) as error:
            say(f"node {node} is not drained yet: {error}")
            await clock.sleep(_AGAIN_SECONDS)
        await clock.sleep(_LOOK_SECONDS)
    names = ", ".join(f"{namespace_of(pod)}/{name_of(pod)}" for pod in left)
    say(f"node {node} is not drained after {SECONDS:g} s: {names or 'the API server did not answer'}")


async def _evict(client: Client, pod: Object, say: Callable[[str], None]) -> None:
    name, namespace = name_of(pod), namespace_of(pod)
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid_of(pod)}},
    }
    try:
        await client.create(PODS, eviction, namespace, name=name, subresource="eviction")
        say(f"evicting Pod {namespace}/{name}")
    except StatusError as error:
        if is_not_found(error) or error.code == 409:
            return
        if error.code != 429:
            raise
        say(f"Pod {namespace}/{name} is kept by a disruption budget: {error.message}")
