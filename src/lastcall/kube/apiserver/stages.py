"""An API server, put together in three stages: what is stored, what is allowed, what is answered.

Each stage is made of the ones before it and does not change afterwards. Stores of kinds need admission, and admission
finds objects in them: that circle is closed by `Finding`, whose kinds are filled by the last stage.
"""

import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from lastcall.kube.api.apiservices.routes import Routes
from lastcall.kube.api.features.gates import feature_gates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    APISERVICES,
    COMPONENTSTATUSES,
    CONFIGMAPS,
    CUSTOMRESOURCEDEFINITIONS,
    ENDPOINTSLICES,
    EVENTS,
    LEASES,
    METRICS,
    METRICS_V1,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCEQUOTAS,
    REVIEWS,
    SECRETS,
    SERVED,
    SERVICEACCOUNTS,
    SERVICES,
)
from lastcall.kube.apiserver.admission.chain import Admission
from lastcall.kube.apiserver.admission.hooks import Hooks
from lastcall.kube.apiserver.admission.machinery import LateExpressions, Machinery
from lastcall.kube.apiserver.admission.node_restriction import NodeRestriction
from lastcall.kube.apiserver.allocators import AddressAllocator, ClusterIPAllocator, NodePortAllocator, PortAllocator
from lastcall.kube.apiserver.auth.authentication import MASTERS, Authenticator, UserInfo
from lastcall.kube.apiserver.auth.authorizer import Authorizer
from lastcall.kube.apiserver.auth.escalation import EscalationCheck
from lastcall.kube.apiserver.auth.node_graph import NodeGraph
from lastcall.kube.apiserver.auth.reviews import Reviews
from lastcall.kube.apiserver.auth.tokens import ServiceAccountVerifier, TokenIssuer
from lastcall.kube.apiserver.bootstrap.contents import BootstrapController, Contents
from lastcall.kube.apiserver.bootstrap.identity import Identity
from lastcall.kube.apiserver.catalog import Catalog
from lastcall.kube.apiserver.config import APIServerConfig
from lastcall.kube.apiserver.inprocess import InProcessClient
from lastcall.kube.apiserver.operations import Backends, Operations
from lastcall.kube.apiserver.postponed import Postponed
from lastcall.kube.apiserver.proxying.aggregation.aggregation import Aggregation
from lastcall.kube.apiserver.proxying.aggregation.registration import Registration
from lastcall.kube.apiserver.records import WriteRecords
from lastcall.kube.apiserver.registry.declared import DeclaredKinds
from lastcall.kube.apiserver.registry.definitions import SERVER, Definitions, DefinitionStore
from lastcall.kube.apiserver.registry.finding import Finding
from lastcall.kube.apiserver.registry.generic import GenericStore, Shared
from lastcall.kube.apiserver.registry.objects import ObjectCache
from lastcall.kube.apiserver.strategies.apiservice import APIServiceStrategy
from lastcall.kube.apiserver.strategies.base import Strategy
from lastcall.kube.apiserver.strategies.cluster_kinds import cluster_strategies
from lastcall.kube.apiserver.strategies.core import (
    ConfigMapStrategy,
    EndpointSliceStrategy,
    EventStrategy,
    LeaseStrategy,
    NamespaceStrategy,
    NodeStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from lastcall.kube.apiserver.strategies.pod import PodStrategy
from lastcall.kube.apiserver.strategies.service import ServiceStrategy
from lastcall.kube.apiserver.strategies.workloads import workload_strategies
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletLogs
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.client.api import Client
from lastcall.kube.store.api import Store
from lastcall.records.record import Recorder
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.audit.auditor import Auditor
    from lastcall.kube.apiserver.bootstrap.endpoint_leases import EndpointLeases
    from lastcall.kube.apiserver.streaming.proxy import KubeletStreams
    from lastcall.kube.apiserver.subresources.component_statuses import ComponentStatuses
    from lastcall.kube.apiserver.subresources.metrics_server import Ask, MetricsServer
    from lastcall.kube.streaming.dialing import Dial

SERVER_USER = UserInfo("system:apiserver", (MASTERS,))


@dataclass(frozen=True, slots=True)
class Storage:
    """What is stored, how it is found, and the strategies that something else looks into."""

    store: Store
    finding: Finding
    declared: DeclaredKinds
    routes: Routes
    services: ServiceStrategy
    pods: PodStrategy


def build_storage(world: World, store: Store, config: APIServerConfig) -> Storage:
    """Return the first stage. No kind has its store yet."""
    if store.shared:
        # late: a store of this process cannot fail to answer
        from lastcall.kube.apiserver.registry.shared_store import Answering

        store = Answering(store)
    cluster_ips, node_ports = _allocators(world, store, config)
    services = ServiceStrategy(SERVICES, cluster_ips, node_ports)
    return Storage(store, Finding(store), DeclaredKinds(), Routes(), services, PodStrategy(PODS))


def _allocators(world: World, store: Store, config: APIServerConfig) -> tuple[AddressAllocator, PortAllocator]:
    if not store.shared:
        return ClusterIPAllocator(config.service_cidr, world.random), NodePortAllocator(world.random)
    # late: for a store that others write to
    from lastcall.kube.apiserver.bootstrap.shared_services import TakenElsewhere

    return TakenElsewhere(), TakenElsewhere()


@dataclass(frozen=True, slots=True)
class Policy:
    """Authentication, authorization and admission of a request. `shared` is what stores of kinds are given."""

    authorizer: Authorizer
    issuer: TokenIssuer
    authenticator: Authenticator
    reviews: Reviews
    machinery: Machinery
    shared: Shared


def build_policy(
    world: World, storage: Storage, recorder: Recorder, config: APIServerConfig, dial: "Dial | None"
) -> Policy:
    """Return the second stage. Nothing can be asked of it before the third fills the kinds."""
    finding, declared = storage.finding, storage.declared
    gates = feature_gates(config.kubernetes_version, config.feature_gates)
    graph = NodeGraph(finding.find, finding.all, storage.pods.of_nodes)
    authorizer = Authorizer(finding.find, finding.all, graph)
    reader = finding.reader()
    machinery = Machinery(world, reader, authorizer, declared.kind_for, declared.equivalents, dial)
    admission = Admission(
        world,
        reader,
        EscalationCheck(authorizer),
        NodeRestriction(reader, authorizer.allows),
        Hooks(machinery),
        lambda: finding.kinds[RESOURCEQUOTAS],
        gates.minor,
    )
    records, expressions = WriteRecords(recorder), LateExpressions()
    shared = Shared(world, storage.store, ObjectCache(), admission, records, gates, expressions, finding.kinds)
    issuer = TokenIssuer(world, config.issuer, config.service_account_key_pem or _new_key_pem())
    verifier = ServiceAccountVerifier(issuer, world.clock, finding.find)
    authenticator = Authenticator(config.tokens, verifier.verify)
    reviews = Reviews(authenticator.user_of, authorizer, world.clock, config.issuer)
    return Policy(authorizer, issuer, authenticator, reviews, machinery, shared)


@dataclass(frozen=True, slots=True)
class Serving:
    """What answers requests, and what goes on beside them."""

    operations: Operations
    catalog: Catalog
    definitions: Definitions
    registration: Registration
    aggregation: Aggregation
    bootstrap_controller: BootstrapController
    postponed: Postponed


@dataclass(frozen=True, slots=True)
class Outside:
    """What an API server asks: kubelets for logs, streams and metrics, components of this process whether they run.

    `dial` is how Pods, nodes and webhooks are reached, None for this process's own routes.
    """

    logs: KubeletLogs | None
    streams: "KubeletStreams | None"
    ask_kubelet: "Ask | None"
    dial: "Dial | None"
    running: Callable[[], set[str]]


def client_of(operations: Operations, user: UserInfo, user_agent: str, auditor: "Auditor | None") -> Client:
    """Return a client of this process, whose requests are audited where there is an auditor."""
    if auditor is None:
        return InProcessClient(operations, user, user_agent)
    # late: few ask for it
    from lastcall.kube.apiserver.audited_inprocess import AuditedClient

    return AuditedClient(operations, user, user_agent, auditor)


def build_serving(
    world: World,
    storage: Storage,
    policy: Policy,
    config: APIServerConfig,
    outside: Outside,
    auditor: "Auditor | None" = None,
) -> Serving:
    """Return the third stage, after which every kind has its store."""
    finding, declared, routes, shared = storage.finding, storage.declared, storage.routes, policy.shared
    metrics = (*METRICS_V1, *METRICS) if shared.gates.minor >= 37 else METRICS
    everything = (*SERVED, COMPONENTSTATUSES, *REVIEWS, *(metrics if outside.ask_kubelet is not None else ()))
    address = f"{config.kubernetes_service_ip}:443"
    catalog = Catalog(world.clock, everything, config.kubernetes_version, address, declared.served, routes)

    async def ask_remote(path: str) -> Object | None:
        return await aggregation.ask(path)

    backends = Backends(
        outside.logs,
        outside.streams,
        None if outside.ask_kubelet is None else partial(_open_metrics, world, finding, outside.ask_kubelet),
        {COMPONENTSTATUSES: partial(_open_component_statuses, world, storage, outside.running)},
        ask_remote,
    )
    operations = Operations(shared, policy.issuer, policy.reviews, policy.authorizer, backends, catalog)
    client = client_of(operations, SERVER_USER, SERVER, auditor)
    aggregation = Aggregation(
        world, routes, client, finding.find, finding.all, outside.dial, config.front_proxy, catalog.changed
    )
    postponed = Postponed()
    registration = Registration(
        client,
        partial(finding.all, APISERVICES),
        {(each.group, each.version) for each in everything} - {(APISERVICES.group, APISERVICES.version)},
        declared.group_versions,
        postponed,
    )
    context = RequestContext(SERVER_USER, SERVER)
    definitions = Definitions(shared, declared, context, catalog.changed, registration.of_definitions, postponed)
    _fill(world, storage, shared, definitions, client, config)
    bootstrap_controller = _bootstrap_controller(world, storage, client, registration, postponed, config)
    return Serving(operations, catalog, definitions, registration, aggregation, bootstrap_controller, postponed)


def _fill(
    world: World,
    storage: Storage,
    shared: Shared,
    definitions: Definitions,
    client: Client,
    config: APIServerConfig,
) -> None:
    """Make the store of each kind."""
    strategies: tuple[Strategy, ...] = (
        NamespaceStrategy(NAMESPACES),
        NodeStrategy(NODES),
        storage.pods,
        storage.services,
        EventStrategy(EVENTS),
        ConfigMapStrategy(CONFIGMAPS),
        SecretStrategy(SECRETS),
        ServiceAccountStrategy(SERVICEACCOUNTS),
        EndpointSliceStrategy(ENDPOINTSLICES),
        LeaseStrategy(LEASES),
        *workload_strategies(),
        *cluster_strategies(world.clock),
        APIServiceStrategy(storage.routes, world.clock),
    )
    shared.kinds.update((strategy.resource, GenericStore(shared, strategy)) for strategy in strategies)
    shared.kinds[CUSTOMRESOURCEDEFINITIONS] = DefinitionStore(shared, definitions)
    if shared.store.shared:
        # late: for a store that others write to
        from lastcall.kube.apiserver.bootstrap.shared_services import SharedServices

        shared.kinds[SERVICES] = SharedServices(shared, storage.services, shared.kinds, client, config.service_cidr)


def _bootstrap_controller(
    world: World,
    storage: Storage,
    client: Client,
    registration: Registration,
    postponed: Postponed,
    config: APIServerConfig,
) -> BootstrapController:
    contents = Contents(
        config.kubernetes_service_ip,
        config.endpoint,
        config.root_ca_pem,
        config.front_proxy,
        config.storage_classes,
        config.components,
    )
    leases, identity = _among_others(world, storage, config)
    of_definitions = registration.of_definitions
    return BootstrapController(
        world, client, storage.finding.find, contents, of_definitions, postponed, leases, identity
    )


def _among_others(
    world: World, storage: Storage, config: APIServerConfig
) -> "tuple[EndpointLeases | None, Identity | None]":
    """Return how this server is known where there are other API servers on its store."""
    if not storage.store.shared:
        return None, None
    # late: for a store that others write to
    from lastcall.kube.apiserver.bootstrap.endpoint_leases import EndpointLeases

    address = ":".join(map(str, config.endpoint))
    leases = EndpointLeases(storage.store, config.endpoint[0])
    return leases, Identity(socket.gethostname(), address, world.new_uid())


def _open_metrics(world: World, finding: Finding, ask: "Ask") -> "MetricsServer":
    # late: with the first question
    from lastcall.kube.apiserver.subresources.metrics_server import MetricsServer

    return MetricsServer(world, finding.find, finding.all, ask)


def _open_component_statuses(world: World, storage: Storage, running: Callable[[], set[str]]) -> "ComponentStatuses":
    # late: few ask for it
    from lastcall.kube.apiserver.subresources.component_statuses import ComponentStatuses

    return ComponentStatuses(world, storage.store, running, storage.finding.find)


def _new_key_pem() -> bytes:
    # late: cryptography is imported in a thread, by the first token
    from lastcall.kube.apiserver.auth.pki import new_key_pem

    return new_key_pem()
