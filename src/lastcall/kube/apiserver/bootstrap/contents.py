"""What a cluster has from the start and keeps: namespaces, priority classes, the `kubernetes` Service, default roles.

Sources: pkg/controlplane/controller/systemnamespaces, pkg/controlplane/controller/kubernetesservice.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    ENDPOINTS,
    ENDPOINTSLICES,
    LEASES,
    NAMESPACES,
    PRIORITYCLASSES,
    SERVICES,
    STORAGECLASSES,
    Resource,
)
from lastcall.kube.apiserver.admission.priority import SYSTEM_CLASSES
from lastcall.kube.apiserver.auth.bootstrap_policy import default_policy
from lastcall.kube.apiserver.auth.default_roles import Step, reconciled
from lastcall.kube.apiserver.bootstrap.identity import Identity
from lastcall.kube.apiserver.postponed import Postponed
from lastcall.kube.apiserver.proxying.aggregation.front_proxy import (
    AUTHENTICATION_CONFIG,
    FrontProxy,
    authentication_config,
)
from lastcall.kube.client.api import Client
from lastcall.world.clock import now
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.bootstrap.endpoint_leases import EndpointLeases

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
KEEP_SECONDS = 10.0
"""How long at most the `kubernetes` Service is missing (DefaultEndpointReconcilerInterval)."""

Find = Callable[[Resource, str, str], Awaitable[Object | None]]

_log = logging.getLogger("lastcall.kube.apiserver")


@dataclass(frozen=True, slots=True)
class Contents:
    """As in `APIServerConfig`."""

    kubernetes_service_ip: str
    endpoint: tuple[str, int]
    root_ca_pem: bytes
    front_proxy: FrontProxy
    storage_classes: Sequence[Object]
    components: bool


class BootstrapController:
    """`make` once, then `keep`. With other API servers on the same store there are `leases` and an `identity`."""

    def __init__(
        self,
        world: World,
        client: Client,
        find: Find,
        contents: Contents,
        of_definitions: Callable[[], Awaitable[None]],
        postponed: Postponed,
        leases: "EndpointLeases | None" = None,
        identity: Identity | None = None,
    ) -> None:
        """`of_definitions` keeps the APIServices of custom resources. `keep` tries again what is `postponed`."""
        self._world = world
        self._client = client
        self._find = find
        self._contents = contents
        self._of_definitions = of_definitions
        self._postponed = postponed
        self._leases = leases
        self._identity = identity
        self._addresses = [contents.endpoint[0]]
        """Of all API servers of this store."""

    async def make(self, *, fresh: bool) -> None:
        """Create what is not there yet. `fresh`: the store is new."""
        if fresh:
            for storage_class in self._contents.storage_classes:
                await self._create_missing(STORAGECLASSES, storage_class, "")
        await self._create()
        await self._create_default_policy()

    async def keep(self) -> None:
        """Restore a deleted `kubernetes` Service, perhaps after `kubectl delete all --all`, until cancelled.

        (kubernetesservice/controller.go:UpdateKubernetesService, systemnamespaces_controller.go)
        """
        while True:
            await self._world.clock.sleep(KEEP_SECONDS)
            try:
                await self._create()
                await self._of_definitions()
            except StatusError as error:
                _log.warning("what every cluster has cannot be created: %s", error)
            await self._postponed.again()

    async def _create(self) -> None:
        if self._leases is not None:
            await self._postponed.attempt("the address of this API server", self._renew_address)
        for name in SYSTEM_NAMESPACES:
            await self._create_missing(NAMESPACES, {"metadata": {"name": name}}, "")
        for priority_class in SYSTEM_CLASSES:
            await self._create_missing(PRIORITYCLASSES, priority_class, "")
        contents, port = self._contents, self._contents.endpoint[1]
        await self._create_missing(SERVICES, kubernetes_service(contents.kubernetes_service_ip, port), "default")
        for resource, wanted in (
            (ENDPOINTSLICES, kubernetes_endpoint_slice(self._addresses, port)),
            (ENDPOINTS, kubernetes_endpoints(self._addresses, port)),
        ):
            await self._create_missing(resource, wanted, "default")
            mend = partial(self._mend_endpoints, resource, wanted)
            await self._postponed.attempt(f"the content of {resource.kind} default/kubernetes", mend)
        name = f"{CONFIGMAPS.kind} kube-system/{AUTHENTICATION_CONFIG}"
        await self._postponed.attempt(name, self._keep_authentication_config)
        if self._identity is not None:
            await self._postponed.attempt(f"{LEASES.kind} kube-system/{self._identity.name}", self._renew_identity)

    async def _renew_address(self) -> None:
        assert self._leases is not None
        self._addresses = await self._leases.renew()

    async def _renew_identity(self) -> None:
        assert self._identity is not None
        await self._identity.keep(self._client, now(self._world.clock))

    async def _keep_authentication_config(self) -> None:
        """(pkg/controlplane/controller/clusterauthenticationtrust)"""
        wanted = authentication_config(self._contents.root_ca_pem, self._contents.front_proxy)
        found = await self._find(CONFIGMAPS, "kube-system", AUTHENTICATION_CONFIG)
        if found is None:
            await self._client.create(CONFIGMAPS, wanted, "kube-system")
        elif {**(found.get("data") or {}), **wanted["data"]} != found.get("data"):
            data = {**(found.get("data") or {}), **wanted["data"]}
            await self._client.update(CONFIGMAPS, {**found, "data": data}, "kube-system")

    async def _create_default_policy(self) -> None:
        """Create roles and bindings that are missing, and complete older ones, at every start.

        Side by side, for a durable store keeps many writes in one go (rest/storage_rbac.go:EnsureRBACPolicy).
        """
        async with Tasks() as tasks:
            for resource, obj in default_policy(self._contents.components):
                namespace = obj["metadata"].get("namespace", "")
                ensure = partial(self._ensure, resource, obj, namespace)
                tasks.spawn(self._postponed.attempt(_named(resource, obj, namespace), ensure), name="default-policy")

    async def _ensure(self, resource: Resource, wanted: Object, namespace: str) -> None:
        name = wanted["metadata"]["name"]
        if (found := await self._find(resource, namespace, name)) is None:
            await self._client.create(resource, wanted, namespace)
            return
        step, changed = reconciled(found, wanted)
        if step is Step.RECREATE:
            await self._client.delete(resource, name, namespace, uid=found["metadata"]["uid"])
            await self._client.create(resource, changed, namespace)
        elif step is Step.UPDATE:
            await self._client.update(resource, changed, namespace)

    async def _create_missing(self, resource: Resource, obj: Object, namespace: str) -> None:
        async def create() -> None:
            # Asked first: on a store with history the Service's address is allocated already, which is another refusal.
            if await self._find(resource, namespace, obj["metadata"]["name"]) is None:
                await self._client.create(resource, obj, namespace)

        await self._postponed.attempt(_named(resource, obj, namespace), create)

    async def _mend_endpoints(self, resource: Resource, wanted: Object) -> None:
        """(pkg/controlplane/reconcilers/endpointsadapter.go: what a user wrote, or an older server, is put right)"""
        found = await self._find(resource, "default", "kubernetes")
        parts = ("endpoints", "ports", "subsets")
        if found is not None and any(found.get(part) != wanted.get(part) for part in parts):
            await self._client.update(
                resource, {**found, **{part: wanted[part] for part in parts if part in wanted}}, "default"
            )


def _named(resource: Resource, obj: Object, namespace: str) -> str:
    """Return the words for an object in the log."""
    return f"{resource.kind} {namespace + '/' if namespace else ''}{obj['metadata']['name']}"


def kubernetes_service(ip: str, port: int) -> Object:
    """Make the Service by which Pods reach API servers at `port`."""
    return {
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": ip,
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
        },
    }


def kubernetes_endpoint_slice(addresses: Sequence[str], port: int) -> Object:
    """Make the EndpointSlice of all API servers."""
    return {
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [each], "conditions": {"ready": True}} for each in addresses],
        "ports": [{"name": "https", "protocol": "TCP", "port": port}],
    }


def kubernetes_endpoints(addresses: Sequence[str], port: int) -> Object:
    """Make the same as v1 Endpoints, not to be mirrored."""
    return {
        "metadata": {"name": "kubernetes", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [
            {
                "addresses": [{"ip": each} for each in addresses],
                "ports": [{"name": "https", "protocol": "TCP", "port": port}],
            }
        ],
    }
