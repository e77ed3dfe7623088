"""Ports of the machine's address that are the node's: those that Pods with hostNetwork declare, and hostPorts.

On the machine itself nobody listens there: connections are translated to the node, whose processes and rules answer.
Only declared ports are known (`ports` of a container; the API server makes each of a Pod with hostNetwork a hostPort).
"""

from collections.abc import Callable, Iterable

from lastcall.api.meta import Object, uid_of
from lastcall.api.pods.spec import is_pod_terminal
from lastcall.api.resources import PODS
from lastcall.client.api import Client
from lastcall.client.informer import Informer
from lastcall.cluster.joined.facts import Joined
from lastcall.cluster.joined.link import Link, Port
from lastcall.world.world import World

_CONTAINERS = ("initContainers", "containers")


def ports_of(pods: Iterable[Object], kubelet_port: int) -> frozenset[Port]:
    """Of Pods that have not ended; the kubelet's own is nobody else's."""
    found = {
        (str(each.get("protocol") or "TCP"), int(each["hostPort"]))
        for pod in pods
        if not is_pod_terminal(pod)
        for field in _CONTAINERS
        for container in pod["spec"].get(field) or ()
        for each in container.get("ports") or ()
        if each.get("hostPort")
    }
    return frozenset(found - {("TCP", kubelet_port)})


async def follow_ports(world: World, client: Client, joined: Joined, link: Link, say: Callable[[str], None]) -> None:
    """Until cancelled."""
    there: dict[str, Object] = {}
    known: frozenset[Port] = frozenset()

    def changed() -> None:
        nonlocal known
        wanted = ports_of(there.values(), joined.kubelet_port)
        if wanted == known:
            return
        try:
            link.open_ports(joined, wanted)
        except OSError as error:
            say(f"ports of Pods are not opened on {joined.node_ip}: {error}")
        else:
            known = wanted

    def put(pod: Object) -> None:
        there[uid_of(pod)] = pod
        changed()

    def gone(pod: Object) -> None:
        there.pop(uid_of(pod), None)
        changed()

    pods: Informer[Object] = Informer(client, PODS, field_selector=f"spec.nodeName={joined.node_name}", world=world)
    pods.add_handler(put, lambda _, pod: put(pod), gone)
    await pods.run()
