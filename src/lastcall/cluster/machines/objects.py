"""What the API has of the Pod network: how it is made, the rights to read it, its DNS Service, where its machine is.

Nodes read it with their own certificates (group system:nodes). All is deleted by a start that has no Pod network.
"""

from collections.abc import Iterable, Iterator, Sequence

from lastcall.api.errors import StatusError, is_already_exists, is_not_found
from lastcall.api.meta import Object
from lastcall.api.resources import (
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    CONFIGMAPS,
    ENDPOINTSLICES,
    NODES,
    ROLEBINDINGS,
    ROLES,
    SERVICES,
    Resource,
)
from lastcall.client.api import Client
from lastcall.cluster.layout import NodeLayout
from lastcall.cluster.machines.rules import MACHINE
from lastcall.cluster.machines.settings import CONFIG_MAP, NAMESPACE, PodNetwork, to_config_map
from lastcall.cluster.options import CLUSTER_DNS_IP

NAME = "lastcall:pod-network"
DNS = "kube-dns"
LABEL = "lastcall.dev/pod-network"
"""Of what is ours, where others might have the same."""
_RBAC = "rbac.authorization.k8s.io"
_DNS_PORTS = (("dns", "UDP", 53), ("dns-tcp", "TCP", 53))


async def publish(client: Client, network: PodNetwork, address: str, nodes: Sequence[NodeLayout]) -> None:
    """`nodes` are those of this machine, whose address is `address`. Raises StatusError, ConnectionLost."""
    for resource, wanted in (*_rights(), (CONFIGMAPS, to_config_map(network))):
        await _put(client, resource, wanted)
    if await _is_ours(client):
        for resource, wanted in _dns(nodes):
            await _put(client, resource, wanted)
    for each in nodes:
        await client.patch(NODES, each.name, {"metadata": {"annotations": {MACHINE: address}}})


async def withdraw(client: Client, nodes: Iterable[str]) -> bool:
    """Of an earlier start. Whether there was anything. Raises StatusError, ConnectionLost."""
    if not await delete(client, CONFIGMAPS, CONFIG_MAP, NAMESPACE):
        return False
    for resource, wanted in _rights():
        meta = wanted["metadata"]
        await delete(client, resource, meta["name"], meta.get("namespace", ""))
    if await _is_ours(client):
        await delete(client, SERVICES, DNS, NAMESPACE)
        await delete(client, ENDPOINTSLICES, f"{DNS}-lastcall", NAMESPACE)
    for name in nodes:
        try:
            await client.patch(NODES, name, {"metadata": {"annotations": {MACHINE: None}}})
        except StatusError as error:
            if not is_not_found(error):
                raise
    return True


async def _is_ours(client: Client) -> bool:
    """Whether the DNS Service is ours, or not there."""
    try:
        found = await client.get(SERVICES, DNS, NAMESPACE)
    except StatusError as error:
        if is_not_found(error):
            return True
        raise
    return LABEL in (found["metadata"].get("labels") or {})


async def _put(client: Client, resource: Resource, wanted: Object) -> None:
    meta = wanted["metadata"]
    try:
        await client.create(resource, wanted, meta.get("namespace", ""))
    except StatusError as error:
        if not is_already_exists(error):
            raise
        content = {key: value for key, value in wanted.items() if key not in ("metadata", "roleRef")}
        await client.patch(resource, meta["name"], content, meta.get("namespace", ""))


async def delete(client: Client, resource: Resource, name: str, namespace: str) -> bool:
    """Whether it was there. Raises StatusError, ConnectionLost."""
    try:
        await client.delete(resource, name, namespace)
    except StatusError as error:
        if is_not_found(error):
            return False
        raise
    return True


def _rights() -> Iterator[tuple[Resource, Object]]:
    nodes = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
    settings = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [CONFIG_MAP], "verbs": ["get"]}
    subjects = [{"apiGroup": _RBAC, "kind": "Group", "name": "system:nodes"}]
    here = {"name": NAME, "namespace": NAMESPACE}
    yield CLUSTERROLES, {"metadata": {"name": NAME}, "rules": [nodes]}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAME}
    yield CLUSTERROLEBINDINGS, {"metadata": {"name": NAME}, "roleRef": role, "subjects": subjects}
    yield ROLES, {"metadata": here, "rules": [settings]}
    yield ROLEBINDINGS, {"metadata": here, "roleRef": {**role, "kind": "Role"}, "subjects": subjects}


def _dns(nodes: Sequence[NodeLayout]) -> Iterator[tuple[Resource, Object]]:
    """Each node of lastcall's answers; so does the Service, for the Pods of all others."""
    labels = {LABEL: "", "k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}
    ports = [{"name": name, "protocol": protocol, "port": port} for name, protocol, port in _DNS_PORTS]
    service = {"clusterIP": CLUSTER_DNS_IP, "ports": ports}
    yield SERVICES, {"metadata": {"name": DNS, "namespace": NAMESPACE, "labels": labels}, "spec": service}
    of_service = {"kubernetes.io/service-name": DNS, "endpointslice.kubernetes.io/managed-by": "lastcall.dev"}
    yield (
        ENDPOINTSLICES,
        {
            "metadata": {"name": f"{DNS}-lastcall", "namespace": NAMESPACE, "labels": {**labels, **of_service}},
            "addressType": "IPv4",
            "ports": ports,
            "endpoints": [
                {"addresses": [each.ip], "nodeName": each.name, "conditions": {"ready": True}} for each in nodes
            ],
        },
    )
