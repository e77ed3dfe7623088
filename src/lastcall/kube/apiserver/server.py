"""The API server put together: kinds, admission, authentication, both faces, and what goes on beside the requests."""

# check: many attributes APIServer because it waits to be built in stages: storage, policy, serving
# check: long functions APIServer.__init__ because it waits to be built in stages: storage, policy, serving

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from lastcall.kube.api.apiservices.routes import Routes
from lastcall.kube.api.custom.kinds import CustomResource
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
    NAMESPACES,
    NODES,
    PODS,
    RESOURCEQUOTAS,
    REVIEWS,
    SECRETS,
    SERVED,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from lastcall.kube.apiserver.admission.chain import Admission
from lastcall.kube.apiserver.admission.machinery import LateExpressions, Machinery
from lastcall.kube.apiserver.admission.node_restriction import NodeRestriction
from lastcall.kube.apiserver.admission.reader import Kinds, Reader
from lastcall.kube.apiserver.allocators import ClusterIPAllocator, NodePortAllocator
from lastcall.kube.apiserver.auth.authentication import MASTERS, Authenticator, UserInfo
from lastcall.kube.apiserver.auth.authorizer import Authorizer
from lastcall.kube.apiserver.auth.escalation import EscalationCheck
from lastcall.kube.apiserver.auth.node_graph import NodeGraph
from lastcall.kube.apiserver.auth.reviews import Reviews
from lastcall.kube.apiserver.auth.tokens import ServiceAccountVerifier, TokenIssuer
from lastcall.kube.apiserver.catalog import Catalog
from lastcall.kube.apiserver.every_cluster.contents import Contents, EveryCluster
from lastcall.kube.apiserver.every_cluster.flow_control import CONSUMER, PRODUCER, FlowControl
from lastcall.kube.apiserver.every_cluster.identity import Identity
from lastcall.kube.apiserver.every_cluster.service_cidrs import ServiceAddresses
from lastcall.kube.apiserver.faces.table import FACES, stored_resource
from lastcall.kube.apiserver.inprocess import InProcessClient
from lastcall.kube.apiserver.operations import Backends, Operations
from lastcall.kube.apiserver.proxying.aggregation.aggregation import Aggregation
from lastcall.kube.apiserver.proxying.aggregation.front_proxy import FrontProxy
from lastcall.kube.apiserver.proxying.aggregation.registration import Registration
from lastcall.kube.apiserver.records import WriteRecords
from lastcall.kube.apiserver.registry.definitions import Definitions, DefinitionStore
from lastcall.kube.apiserver.registry.event_ttl import EVENT_TTL, sweep_events
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
from lastcall.kube.apiserver.strategies.custom import CustomResourceDefinitionStrategy
from lastcall.kube.apiserver.strategies.pod import PodStrategy
from lastcall.kube.apiserver.strategies.service import ServiceStrategy
from lastcall.kube.apiserver.strategies.workloads import workload_strategies
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletLogs
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.client.api import Client
from lastcall.kube.store.api import Store
from lastcall.records.record import Recorder
from lastcall.world import walls
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.every_cluster.masters import Masters
    from lastcall.kube.apiserver.streaming.proxy import KubeletStreams
    from lastcall.kube.apiserver.subresources.component_statuses import ComponentStatuses
    from lastcall.kube.apiserver.subresources.metrics_server import Ask, MetricsServer
    from lastcall.kube.streaming.dialing import Dial

IN_CLUSTER_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
COMPACTION_SECONDS = 300.0
"""History is kept for one to two of these, as kube-apiserver's --etcd-compaction-interval has it."""
COMPACTED_AT_ONCE = 1000
"""Writes that are forgotten before others get their turn: of some the JSON is made only now."""
MOST_CONNECTIONS = 2000
"""Of all clients; above that a new one takes the place of a silent or an idle one."""
SHUTDOWN_SECONDS = 0.05
"""How long running requests get when the server ends; open watches have no more to say."""

SERVER_USER = UserInfo("system:apiserver", (MASTERS,))


@dataclass(frozen=True, slots=True)
class APIServerConfig:
    """`kubernetes_version` is one of releases.RELEASES. `endpoint` is an address and port on which this server answers
    Pods, the endpoint of the `kubernetes` Service (kube-apiserver's --advertise-address and --secure-port). `tokens`
    are static bearer tokens and whose they are.

    `service_account_key_pem` is an EC P-256 private key, made when empty. `root_ca_pem` is what clients trust.
    `hosts` are names and addresses by which clients reach the server besides its own (those of its certificate).

    `storage_classes` are made once, when the store is new: one that is deleted stays deleted.
    """

    kubernetes_version: str = "1.36"
    service_cidr: str = "10.96.0.0/16"
    kubernetes_service_ip: str = "10.96.0.1"
    endpoint: tuple[str, int] = ("10.96.0.1", 443)
    service_account_key_pem: bytes = b""
    root_ca_pem: bytes = b""
    tokens: Mapping[str, UserInfo] = field(default_factory=dict)
    issuer: str = "https://kubernetes.default.svc.cluster.local"
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    storage_classes: Sequence[Object] = ()
    hosts: Sequence[str] = ()
    components: bool = False
    """Controllers or scheduler are processes of their own: what they need of a cluster is made, too."""
    front_proxy: FrontProxy = field(default_factory=FrontProxy)
    """With what this server proves to another one, which answers a group version, that it speaks for a user."""


class APIServer:
    """`bootstrap` once, then `client` for components of this process and `serve` for everybody else.

    `ask_kubelet` is how metrics.k8s.io asks a node; None: it is not served, until another server answers it.
    `dial` is how the proxy subresources reach Pods and nodes, None for this process's own routes.
    """

    def __init__(  # noqa: PLR0915 - see the marker
        self,
        *,
        world: World,
        store: Store,
        recorder: Recorder,
        config: APIServerConfig,
        kubelet_logs: KubeletLogs | None = None,
        kubelet_streams: "KubeletStreams | None" = None,
        ask_kubelet: "Ask | None" = None,
        dial: "Dial | None" = None,
    ) -> None:
        self._world = world
        if store.shared:
            # late: a store of this process cannot fail to answer
            from lastcall.kube.apiserver.registry.shared_store import Answering

            store = Answering(store)
        self._store = store
        self._dial = dial
        self._config = config
        self._cluster_ips: Any = ClusterIPAllocator(config.service_cidr, world.random)
        node_ports: Any = NodePortAllocator(world.random)
        if store.shared:
            # late: for a store that others write to
            from lastcall.kube.apiserver.every_cluster.shared_services import TakenElsewhere

            self._cluster_ips = node_ports = TakenElsewhere()
        self._services = ServiceStrategy(SERVICES, self._cluster_ips, node_ports)
        self._pods = pods = PodStrategy(PODS)
        authorizer = Authorizer(self._find, self._all, NodeGraph(self._find, self._all, pods.of_nodes))
        gates = feature_gates(config.kubernetes_version, config.feature_gates)
        self._cached = store.cached
        self._prefixes: dict[Kinds, tuple[str, ...]] = {}
        reader = Reader(self._find, self._all, self._holds)
        nodes = NodeRestriction(reader, authorizer.allows)
        escalation = EscalationCheck(authorizer)
        admission = Admission(world, reader, escalation, nodes, lambda: self._kinds[RESOURCEQUOTAS], gates.minor)
        shared = Shared(world, store, ObjectCache(), admission, WriteRecords(recorder), gates, LateExpressions())
        strategies: tuple[Strategy, ...] = (
            NamespaceStrategy(NAMESPACES),
            NodeStrategy(NODES),
            pods,
            self._services,
            EventStrategy(EVENTS),
            ConfigMapStrategy(CONFIGMAPS),
            SecretStrategy(SECRETS),
            ServiceAccountStrategy(SERVICEACCOUNTS),
            EndpointSliceStrategy(ENDPOINTSLICES),
            LeaseStrategy(LEASES),
            *workload_strategies(),
            *cluster_strategies(world.clock),
        )
        self._routes = Routes()
        strategies = (*strategies, APIServiceStrategy(self._routes, world.clock))
        self._kinds = shared.kinds
        self._kinds |= {strategy.resource: GenericStore(shared, strategy) for strategy in strategies}
        self._masters: Masters | None = None
        self._identity: Identity | None = None
        if store.shared:
            self._share(shared)
        self._machinery = Machinery(world, reader, authorizer, self._kind_for, self._equivalents, dial)
        admission.hooks.machinery = self._machinery
        store_of_definitions = DefinitionStore(shared, CustomResourceDefinitionStrategy(CUSTOMRESOURCEDEFINITIONS))
        self._kinds[CUSTOMRESOURCEDEFINITIONS] = store_of_definitions
        self._definitions = Definitions(
            shared,
            self._kinds,
            RequestContext(SERVER_USER, "kube-apiserver"),
            lambda: self._catalog.changed(),
            lambda: self._registration.of_definitions(),
        )
        store_of_definitions.definitions = self._definitions
        self._issuer = TokenIssuer(world, config.issuer, config.service_account_key_pem or _new_key_pem())
        verifier = ServiceAccountVerifier(self._issuer, world.clock, self._find)
        self._authenticator = Authenticator(config.tokens, verifier.verify)
        reviews = Reviews(self._authenticator.user_of, authorizer, world.clock, config.issuer)
        everything = (*SERVED, COMPONENTSTATUSES, *REVIEWS, *(METRICS if ask_kubelet is not None else ()))
        address = f"{config.kubernetes_service_ip}:443"
        self._catalog = Catalog(
            world.clock, everything, config.kubernetes_version, address, lambda: self._definitions.served, self._routes
        )
        self.operations = Operations(
            shared,
            self._issuer,
            reviews,
            authorizer,
            Backends(
                kubelet_logs,
                kubelet_streams,
                None if ask_kubelet is None else partial(self._open_metrics, ask_kubelet),
                {COMPONENTSTATUSES: self._open_component_statuses},
                lambda path: self._aggregation.ask(path),
            ),
            self._catalog,
        )
        self._aggregation = Aggregation(
            world,
            self._routes,
            self.client(SERVER_USER, "kube-apiserver"),
            self._find,
            self._all,
            dial,
            config.front_proxy,
            self._catalog.changed,
        )
        self._registration = Registration(
            self.client(SERVER_USER, "kube-apiserver"),
            partial(self._all, APISERVICES),
            {(each.group, each.version) for each in everything} - {(APISERVICES.group, APISERVICES.version)},
            lambda: self._definitions.group_versions,
        )
        self.every_cluster = EveryCluster(
            world,
            self.client(SERVER_USER, "kube-apiserver"),
            self._find,
            Contents(
                config.kubernetes_service_ip,
                config.endpoint,
                config.root_ca_pem,
                config.front_proxy,
                config.storage_classes,
                config.components,
            ),
            self._registration.of_definitions,
            self._masters,
            self._identity,
        )
        self.running: set[str] = set()
        """Components of the control plane that run in this process now, by the names of their ComponentStatus."""

    def _share(self, shared: Shared) -> None:
        """There are other API servers."""
        # late: for a store that others write to
        from lastcall.kube.apiserver.every_cluster.masters import Masters
        from lastcall.kube.apiserver.every_cluster.shared_services import SharedServices

        self._masters = Masters(shared.store, self._config.endpoint[0])
        address = ":".join(map(str, self._config.endpoint))
        self._identity = Identity(socket.gethostname(), address, self._world.new_uid())
        self._kinds[SERVICES] = SharedServices(
            shared,
            self._services,
            self._kinds,
            lambda: self.client(SERVER_USER, "kube-apiserver"),
            self._config.service_cidr,
        )

    def _open_metrics(self, ask: "Ask") -> "MetricsServer":
        # late: with the first question
        from lastcall.kube.apiserver.subresources.metrics_server import MetricsServer

        return MetricsServer(self._world, self._find, self._all, ask)

    def _open_component_statuses(self) -> "ComponentStatuses":
        # late: few ask for it
        from lastcall.kube.apiserver.subresources.component_statuses import ComponentStatuses

        return ComponentStatuses(self._world, self._store, lambda: self.running, self._find)

    async def openapi_document(self, name: str) -> bytes | None:
        """The OpenAPI v3 document of a group-version (`apis/apps/v1`); None for one without."""
        documents = self._catalog.openapi
        return (await documents.v3(name)).body if documents.has(name) else None

    async def prepare_tokens(self) -> None:
        """Load what signs them, which takes a while, before the first Pod asks for one."""
        await self._issuer.prepare()

    async def _find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        kind = self._kinds[resource]
        key = kind.key(namespace, name)
        entry = await self._cached.get(key)
        if entry is None and self._store.shared:
            entry = await self._store.get(key)  # another server may have written it just now
        return None if entry is None else kind.decode(entry.value)

    async def _all(self, resource: Resource, namespace: str = "") -> list[Object]:
        kind, cached = self._kinds[resource], self._cached
        if not cached.holds(kind.prefix):  # most of the kinds that each write is looked at by have no objects
            return []
        entries, _, _ = await cached.list(kind.collection(namespace))
        return [kind.decode(entry.value) for entry in entries]

    def _holds(self, kinds: Kinds) -> bool:
        prefixes = self._prefixes.get(kinds)
        if prefixes is None:
            prefixes = self._prefixes[kinds] = tuple(self._kinds[each].prefix for each in kinds.resources)
        return self._cached.holds(*prefixes)

    def client(self, user: UserInfo, user_agent: str = "lastcall") -> Client:
        """A client in this process that acts as `user`: no HTTP, no JSON. Its writes are managed by `user_agent`."""
        return InProcessClient(self.operations, user, user_agent)

    async def bootstrap(self) -> None:
        """Create what a cluster has from the start and is not there yet: namespaces, priority classes, the
        `kubernetes` Service, the default roles and bindings."""
        if not self._store.shared:
            for kind in self._kinds.values():
                await kind.look_over()
        await self._load(SERVICES, self._services.load)
        await self._load(APISERVICES, self._routes.put)
        await self._definitions.load()
        fresh = await self._find(NAMESPACES, "", "default") is None
        await self.every_cluster.make(fresh=fresh)
        await self._registration.on_start()
        if fresh and not self._store.shared:
            # Nobody has seen an earlier version, so none can be asked for.
            await self._store.compact(await self._store.revision())

    def _kind_for(self, group: str, version: str, kind: str) -> Resource | None:
        """The kind of that name, if it is served."""
        every = (*SERVED, *FACES, *self._definitions.served)
        return next((each for each in every if (each.group, each.version, each.kind) == (group, version, kind)), None)

    def _equivalents(self, resource: Resource) -> list[Resource]:
        """Other kinds by which the same objects may be named."""
        stored = stored_resource(resource)
        every = self._definitions.served if isinstance(resource, CustomResource) else (stored, *FACES)
        return [each for each in every if each != resource and stored_resource(each) == stored]

    async def _load(self, resource: Resource, load: Callable[[Object], object]) -> None:
        """Give each stored object to `load`. One that it cannot read is set aside."""
        kind = self._kinds[resource]
        for entry in (await self._store.list(kind.prefix))[0]:
            with kind.guard(entry):
                load(kind.decode(entry.value))

    async def serve(self, sockets: Sequence[socket.socket], ssl_context: ssl.SSLContext) -> None:
        """Answer HTTPS on listening sockets until cancelled. Open watches do not delay the end."""
        # late: 26 ms of the start of `up`
        from lastcall.kube.apiserver.answers.sending import BUFFER_BYTES
        from lastcall.kube.apiserver.http import HTTPFace
        from lastcall.kube.streaming.hosts import Hosts
        from lastcall.kube.streaming.upgrade import LONGEST_HEADER
        from lastcall.world.aiohttp_inside import server as web
        from lastcall.world.aiohttp_inside.bounded import BoundedServer

        own = (self._config.kubernetes_service_ip, self._config.endpoint[0], *IN_CLUSTER_NAMES, *self._config.hosts)
        hosts = Hosts(own)
        face = HTTPFace(
            self._world,
            self.operations,
            self._authenticator,
            self._catalog,
            self._issuer,
            hosts,
            self._dial,
            self._routes,
            self._aggregation.backends,
        )
        http = BoundedServer(
            face.handle,
            most=MOST_CONNECTIONS,
            buffer=BUFFER_BYTES,
            on_lost=face.shares.lost,
            logger=web.log,
            access_log=None,
            handler_cancellation=True,
            max_line_size=LONGEST_HEADER,
        )
        loop = asyncio.get_running_loop()
        listening: list[asyncio.AbstractServer] = []
        try:
            for sock in sockets:
                listening.append(await loop.create_server(http, sock=sock, ssl=ssl_context, backlog=1024))
            async with Tasks() as tasks:
                for name, run in (
                    *self._followers(),
                    ("compaction", self._compact_history),
                    ("kubernetes Service", self.every_cluster.keep),
                    ("flow control", self._flow_control().run),
                    ("service addresses", self._service_addresses().run),
                    ("aggregation", self._aggregation.run),
                    ("stalled clients", face.disconnect_stalled),
                ):
                    tasks.spawn(walls.keep_running(f"API server {name}", run, self._world.clock), name=name)
        finally:
            for each in listening:
                each.close()
            await self._world.clock.sleep(0)  # what has come is begun
            http.pre_shutdown()
            await http.shutdown(SHUTDOWN_SECONDS)
            await face.close()
            await self._aggregation.close()
            await self._machinery.close()

    def _followers(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        """What depends on the store: who else writes to it, and whether it has a sense of time."""
        found: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        if not self._store.set_ttl(self._kinds[EVENTS].prefix, int(EVENT_TTL.total_seconds())):
            events, context = self._kinds[EVENTS], RequestContext(SERVER_USER)
            found.append(("event TTL", partial(sweep_events, self._world, self._store, events, context)))
        if self._store.shared:
            # late: for a store that others write to
            from lastcall.kube.apiserver.every_cluster.others import Others

            others = Others(self._store, self._kinds, self._definitions, self._routes, self._pods.of_nodes)
            found += [(f"others' {name}", run) for name, run in others.followers()]
        return found

    def _flow_control(self) -> FlowControl:
        return FlowControl(self._world, self.client(SERVER_USER, PRODUCER), self.client(SERVER_USER, CONSUMER))

    def _service_addresses(self) -> ServiceAddresses:
        return ServiceAddresses(
            self._world,
            self.client(SERVER_USER, "kube-apiserver"),
            self._config.service_cidr,
            shared=self._store.shared,
        )

    async def _compact_history(self) -> None:
        """Forget what was written before the last interval (apiserver pkg/storage/etcd3/compact.go)."""
        done = await self._store.revision()
        while True:
            revision = await self._store.revision()
            await self._world.clock.sleep(COMPACTION_SECONDS)
            for some in range(done + COMPACTED_AT_ONCE, revision, COMPACTED_AT_ONCE):
                await self._store.compact(some)
                await self._world.clock.sleep(0)
            await self._store.compact(revision)
            done = revision


def _new_key_pem() -> bytes:
    # late: cryptography is imported in a thread, by the first token
    from lastcall.kube.apiserver.auth.pki import new_key_pem

    return new_key_pem()
