"""What belongs to a node: its Pods and all that these need, read from the store when it is asked for.

Of the graph that Kubernetes keeps only the first step is kept here, which Pods a node has; a node has some hundred at
most. So nothing can be late: a kubelet that hears of a Pod may read its Secrets.

Sources: plugin/pkg/auth/authorizer/node/{graph,graph_populator}.go.
"""

# check: asks for kinds because it knows what belongs to a node, kind by kind

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import Object, annotations_of
from lastcall.kube.api.pods.references import (
    accounts_of,
    claims_of,
    configmaps_of,
    resource_claims_of,
    secrets_of,
    volume_secrets,
)
from lastcall.kube.api.resources import PERSISTENTVOLUMES, PODS, Resource
from lastcall.kube.apiserver.auth.node_rules import Related

if TYPE_CHECKING:
    from lastcall.kube.apiserver.strategies.pod import PodsOfNodes

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"

_NAMED: Mapping[str, Callable[[Object], Iterator[str]]] = {
    "secrets": secrets_of,
    "configmaps": configmaps_of,
    "persistentvolumeclaims": claims_of,
    "serviceaccounts": accounts_of,
    "resourceclaims": resource_claims_of,
}


class NodeGraph:
    """`get` and `list_all` read the store, and never suspend."""

    def __init__(
        self,
        get: Callable[[Resource, str, str], Awaitable[Object | None]],
        list_all: Callable[[Resource, str], Awaitable[list[Object]]],
        pods: "PodsOfNodes",
    ) -> None:
        self._get = get
        self._list = list_all
        self._pods = pods

    async def related(self, node: str, what: Related) -> bool:
        """Return whether the object belongs to the node. It need not exist."""
        resource, namespace, name = what
        if resource == "pods":
            return await self._pod(node, namespace, name) is not None
        if resource == "persistentvolumes":
            volume = await self._get(PERSISTENTVOLUMES, "", name)
            return volume is not None and await self._claimed(node, volume)
        names = _NAMED.get(resource)
        if names is None:
            return False
        await self._know()
        for each in self._pods.newest(node, namespace):
            pod = await self._pod(node, namespace, each)
            # What a node itself has made gives it nothing.
            if pod is not None and MIRROR_ANNOTATION not in annotations_of(pod) and name in names(pod):
                return True
        return resource == "secrets" and await self._secret_of_volume(node, namespace, name)

    async def _secret_of_volume(self, node: str, namespace: str, name: str) -> bool:
        for volume in await self._list(PERSISTENTVOLUMES, ""):
            if (namespace, name) in volume_secrets(volume) and await self._claimed(node, volume):
                return True
        return False

    async def _claimed(self, node: str, volume: Object) -> bool:
        claim = volume["spec"].get("claimRef")
        if not claim:
            return False
        wanted = Related("persistentvolumeclaims", claim.get("namespace") or "", claim.get("name") or "")
        return await self.related(node, wanted)

    async def _know(self) -> None:
        """Enter the Pods that were stored before this process."""
        if not self._pods.known:
            for pod in await self._list(PODS, ""):
                self._pods.add(pod)
            self._pods.known = True

    async def _pod(self, node: str, namespace: str, name: str) -> Object | None:
        pod = await self._get(PODS, namespace, name)
        return pod if pod is not None and pod["spec"].get("nodeName") == node else None
