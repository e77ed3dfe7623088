"""Runs the controllers over one set of caches, as kube-controller-manager does."""

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from lastcall.kube.api.resources import CONFIGMAPS, ENDPOINTSLICES, NAMESPACES, NODES, PODS, SERVICEACCOUNTS, SERVICES
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.access.certificates.first_request import NAME as CERTIFICATES
from lastcall.kube.controllers.access.certificates.first_request import FirstRequest
from lastcall.kube.controllers.access.clusterrole_aggregation import ClusterRoleAggregationController
from lastcall.kube.controllers.access.identities import ACCOUNTS, ROOT_CA_PUBLISHER
from lastcall.kube.controllers.access.policies.first_use import NAME as POLICY_STATUS
from lastcall.kube.controllers.access.policies.first_use import FirstPolicy
from lastcall.kube.controllers.cronjob.controller import CronJobController
from lastcall.kube.controllers.daemonset.controller import DaemonSetController
from lastcall.kube.controllers.deployment.controller import DeploymentController
from lastcall.kube.controllers.disruption.controller import DisruptionController
from lastcall.kube.controllers.garbagecollector.controller import GarbageCollector
from lastcall.kube.controllers.garbagecollector.pods.controller import PodGarbageCollector
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.job.controller import JobController
from lastcall.kube.controllers.job.ttl_after_finished import TTLAfterFinishedController
from lastcall.kube.controllers.namespace.controller import NamespaceController
from lastcall.kube.controllers.nodes.lifecycle import NodeLifecycleController
from lastcall.kube.controllers.nodes.taint_eviction import TaintEvictionController
from lastcall.kube.controllers.nodes.ttl import NodeTTLController
from lastcall.kube.controllers.podautoscaler.first_use import FirstAutoscaler
from lastcall.kube.controllers.podautoscaler.names import COMPONENT as AUTOSCALER
from lastcall.kube.controllers.quota.first_use import FirstQuota
from lastcall.kube.controllers.replicaset.controller import REPLICATION_CONTROLLER, ReplicaSetController
from lastcall.kube.controllers.serviceaccount.controller import ROOT_CA, SERVICE_ACCOUNT, ServiceAccountController
from lastcall.kube.controllers.serviceaccount.tokens import COMPONENT as TOKENS
from lastcall.kube.controllers.serviceaccount.tokens import FirstTokenSecret
from lastcall.kube.controllers.services.endpoints.controller import EndpointsController
from lastcall.kube.controllers.services.endpointslice.controller import EndpointSliceController, index_by_service
from lastcall.kube.controllers.services.loadbalancer import LoadBalancerController
from lastcall.kube.controllers.services.mirroring import EndpointSliceMirroringController
from lastcall.kube.controllers.statefulset.controller import StatefulSetController
from lastcall.kube.controllers.volumes.first_claim import NAMES as VOLUME_CONTROLLERS
from lastcall.kube.controllers.volumes.first_claim import VolumeControllers
from lastcall.kube.controllers.volumes.storage_class import Directories
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.features.gates import FeatureGates
    from lastcall.kube.client.discovery import Discover
    from lastcall.kube.controllers.access.certificates.controller import Sign
    from lastcall.kube.controllers.informers import Fetch, OpenAPI


class Controller(Protocol):
    """Something that keeps one kind in step until it is cancelled."""

    async def run(self) -> None: ...


MakeController = Callable[..., Controller]
"""It takes World, Client, Informers and Recorder, some what `_of_version` adds. A controller asks `Informers` for its
caches when it is made. The recorder writes as the controller's own actor."""

CONTROLLERS: dict[str, MakeController] = {
    "replicaset-controller": ReplicaSetController,
    "replication-controller": partial(ReplicaSetController, kind=REPLICATION_CONTROLLER),
    "deployment-controller": DeploymentController,
    "garbage-collector-controller": GarbageCollector,
    "statefulset-controller": StatefulSetController,
    "daemonset-controller": DaemonSetController,
    "disruption-controller": DisruptionController,
    "namespace-controller": NamespaceController,
    "endpoints-controller": EndpointsController,
    "endpointslice-mirroring-controller": EndpointSliceMirroringController,
    "pod-garbage-collector-controller": PodGarbageCollector,
    "node-lifecycle-controller": NodeLifecycleController,
    "taint-eviction-controller": TaintEvictionController,
    "ttl-controller": NodeTTLController,
    "job-controller": JobController,
    "ttl-after-finished-controller": TTLAfterFinishedController,
    "cronjob-controller": CronJobController,
    "clusterrole-aggregation-controller": ClusterRoleAggregationController,
    "service-lb-controller": LoadBalancerController,
    "resourcequota-controller": FirstQuota,
    AUTOSCALER: FirstAutoscaler,
    POLICY_STATUS: FirstPolicy,
}
"""By the name under which each writes Events and records (`replicaset-controller`)."""


def _of_version(gates: "FeatureGates", fetch: "Fetch | None") -> dict[str, MakeController]:
    """Return the controllers as a version of Kubernetes has them."""
    return CONTROLLERS | {
        AUTOSCALER: partial(FirstAutoscaler, gates=gates, fetch=fetch),
        "statefulset-controller": partial(StatefulSetController, gates=gates),
        "job-controller": partial(JobController, gates=gates),
    }


VOLUMES = "volumes"
_OF_OWN_CACHES = ("endpointslice-controller", "serviceaccount-controller")
NAMES = (*CONTROLLERS, *_OF_OWN_CACHES, TOKENS, CERTIFICATES, *VOLUME_CONTROLLERS)
"""All that `run_controllers` can run."""
DISABLED_BY_DEFAULT = ("service-lb-controller",)
"""What `lastcall controller-manager` runs only when it is named: another cluster's load balancers are not ours."""


async def run_controllers(
    *,
    world: World,
    client: Client,
    recorder_for: Callable[[str], Recorder],
    root_ca_pem: bytes,
    gates: "FeatureGates",
    names: Collection[str] = NAMES,
    endpoint_updates_batch_period: Callable[[], float] = lambda: 0.0,
    volume_directories: Directories | None = None,
    discover: "Discover | None" = None,
    sign: "Sign | None" = None,
    openapi: "OpenAPI | None" = None,
    client_of: Callable[[str], Client] | None = None,
    fetch: "Fetch | None" = None,
) -> None:
    """Run the controllers of `names` until cancelled. `recorder_for(name)` writes as that controller.

    `endpoint_updates_batch_period`: seconds between the change of a Pod and that of its EndpointSlice.
    `volume_directories`: where volumes of the class `standard` are; None where another program makes them.
    `sign`: makes the certificates that CertificateSigningRequests ask for; None where another program does.
    `discover`: asks which kinds there are, of a server that is not ours.
    `openapi`: the OpenAPI v3 document of a group-version; without it the expressions of policies stay unchecked.
    `gates`: of the version of Kubernetes whose rules they follow.
    `fetch`: gets a path of the API, for metrics that other servers measure; without it there are none.
    `client_of`: the client of a ServiceAccount (`kube/controllers/access/identities.py`); None where all act as
    `client`.
    """

    def acting(name: str) -> Client:
        return client if client_of is None else client_of(ACCOUNTS[name])

    informers = Informers(world, client, discover, openapi)
    controllers = {
        name: make(world, acting(name), informers, recorder_for(name))
        for name, make in _of_version(gates, fetch).items()
        if name in names
    }
    own: list[tuple[Informer[Any], str]] = []
    if "endpointslice-controller" in names:
        slices = Informer(client, ENDPOINTSLICES, indexes={"service": index_by_service}, world=world)
        own.append((slices, "endpointslices"))
        controllers["endpointslice-controller"] = EndpointSliceController(
            world=world,
            client=acting("endpointslice-controller"),
            recorder=recorder_for("endpointslice-controller"),
            pods=informers.get(PODS),
            services=informers.get(SERVICES),
            slices=slices,
            nodes=informers.get(NODES),
            batch_period=endpoint_updates_batch_period,
        )
    if "serviceaccount-controller" in names:
        service_accounts, caches = _service_accounts(world, client, acting, informers, root_ca_pem)
        controllers["serviceaccount-controller"] = service_accounts
        own += caches
    if TOKENS in names:
        controllers[TOKENS] = FirstTokenSecret(world, client, informers, root_ca_pem)
    if CERTIFICATES in names:
        controllers[CERTIFICATES] = FirstRequest(world, acting(CERTIFICATES), informers, sign)
    chosen = [name for name in VOLUME_CONTROLLERS if name in names]
    if chosen or volume_directories is not None:
        controllers[VOLUMES] = VolumeControllers(
            world, acting, client, informers, recorder_for, chosen, volume_directories
        )
    async with Tasks() as tasks:
        for informer, name in own:
            tasks.spawn(informer.run(), name=f"informer {name}")
        informers.spawn(tasks)
        for name, controller in controllers.items():
            tasks.spawn(crash_guard.keep_running(name, controller.run, world.clock), name=name)


def _service_accounts(
    world: World, client: Client, acting: Callable[[str], Client], informers: Informers, root_ca_pem: bytes
) -> tuple[ServiceAccountController, list[tuple[Informer[Any], str]]]:
    """Return the controller and its own caches, which have two names of each namespace only."""
    accounts = Informer(client, SERVICEACCOUNTS, field_selector=f"metadata.name={SERVICE_ACCOUNT}", world=world)
    config_maps = Informer(client, CONFIGMAPS, field_selector=f"metadata.name={ROOT_CA}", world=world)
    controller = ServiceAccountController(
        world=world,
        client=acting("serviceaccount-controller"),
        publisher=acting(ROOT_CA_PUBLISHER),
        namespaces=informers.get(NAMESPACES),
        service_accounts=accounts,
        config_maps=config_maps,
        root_ca_pem=root_ca_pem,
    )
    return controller, [(accounts, "serviceaccounts"), (config_maps, "configmaps")]
