"""Runs the controllers over one set of caches, as kube-controller-manager does."""

from lastcall.api.resources import (
    CONFIGMAPS,
    ENDPOINTSLICES,
    NAMESPACES,
    NODES,
    PODS,
    SERVICEACCOUNTS,
    SERVICES,
)
from lastcall.client.api import Client
from lastcall.client.informer import Informer
from lastcall.controllers.endpointslice import EndpointSliceController, index_by_namespace, index_by_service
from lastcall.controllers.namespace import NamespaceController
from lastcall.controllers.serviceaccount import ROOT_CA, SERVICE_ACCOUNT, ServiceAccountController
from lastcall.timeline.record import Recorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World


async def run_controllers(*, world: World, client: Client, recorder: Recorder, root_ca_pem: bytes) -> None:
    """Run every controller until cancelled. `recorder` writes as `endpointslice-controller`."""
    by_namespace = {"namespace": index_by_namespace}
    pods = Informer(client, PODS, indexes=by_namespace, world=world)
    services = Informer(client, SERVICES, indexes=by_namespace, world=world)
    slices = Informer(client, ENDPOINTSLICES, indexes={"service": index_by_service}, world=world)
    nodes = Informer(client, NODES, world=world)
    namespaces = Informer(client, NAMESPACES, world=world)
    service_accounts = Informer(client, SERVICEACCOUNTS, field_selector=f"metadata.name={SERVICE_ACCOUNT}", world=world)
    config_maps = Informer(client, CONFIGMAPS, field_selector=f"metadata.name={ROOT_CA}", world=world)
    endpoint_slices = EndpointSliceController(
        world=world,
        client=client,
        recorder=recorder,
        pods=pods,
        services=services,
        slices=slices,
        nodes=nodes,
    )
    accounts = ServiceAccountController(
        world=world,
        client=client,
        namespaces=namespaces,
        service_accounts=service_accounts,
        config_maps=config_maps,
        root_ca_pem=root_ca_pem,
    )
    endings = NamespaceController(world=world, client=client, namespaces=namespaces, pods=pods)
    async with Tasks() as tasks:
        for informer, name in (
            (namespaces, "namespaces"),
            (service_accounts, "serviceaccounts"),
            (config_maps, "configmaps"),
            (nodes, "nodes"),
            (services, "services"),
            (slices, "endpointslices"),
            (pods, "pods"),
        ):
            tasks.spawn(informer.run(), name=f"informer {name}")
        tasks.spawn(accounts.run(), name="serviceaccount controller")
        tasks.spawn(endings.run(), name="namespace controller")
        tasks.spawn(endpoint_slices.run(), name="endpointslice controller")
