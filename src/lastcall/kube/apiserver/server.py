"""The API server put together: kinds, admission, authentication, its clients, and what goes on beside the requests."""

import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lastcall.kube.api.errors import resource_not_found
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    APISERVICES,
    EVENTS,
    NAMESPACES,
    SERVICES,
    Resource,
)
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.bootstrap.flow_control import CONSUMER, PRODUCER, FlowControl
from lastcall.kube.apiserver.bootstrap.service_cidrs import ServiceAddresses
from lastcall.kube.apiserver.config import APIServerConfig
from lastcall.kube.apiserver.registry.definitions import SERVER
from lastcall.kube.apiserver.registry.event_ttl import EVENT_TTL, sweep_events
from lastcall.kube.apiserver.stages import (
    SERVER_USER,
    Outside,
    build_policy,
    build_serving,
    build_storage,
    client_of,
)
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletLogs
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.client.api import Client
from lastcall.kube.store.api import Store
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.audit.auditor import Audit
    from lastcall.kube.apiserver.audit.log import AuditOptions
    from lastcall.kube.apiserver.streaming.proxy import KubeletStreams
    from lastcall.kube.apiserver.subresources.metrics_server import Ask
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


class APIServer:
    """`bootstrap` once, then `client` for components of this process and `serve` for everybody else.

    `ask_kubelet` is how metrics.k8s.io asks a node; None: it is not served, until another server answers it.
    `dial` is how the proxy subresources reach Pods and nodes, None for this process's own routes.
    """

    def __init__(
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
        self._world, self._config, self._dial = world, config, dial
        self.running: set[str] = set()
        """Components of the control plane that run in this process now, by the names of their ComponentStatus."""
        outside = Outside(kubelet_logs, kubelet_streams, ask_kubelet, dial, lambda: self.running)
        self.storage = build_storage(world, store, config)
        self.policy = build_policy(world, self.storage, recorder, config, dial)
        self.audit = None if config.audit is None else _open_audit(world, config.audit)
        auditor = None if self.audit is None else self.audit.auditor
        self.serving = build_serving(world, self.storage, self.policy, config, outside, auditor)
        self.operations, self.bootstrap_controller = self.serving.operations, self.serving.bootstrap_controller

    async def openapi_document(self, name: str) -> bytes | None:
        """Return the OpenAPI v3 document of a group-version (`apis/apps/v1`); None for one without."""
        documents = self.serving.catalog.openapi
        return (await documents.v3(name)).body if documents.has(name) else None

    async def fetch(self, path: str) -> Object:
        """Return what another server answers to a GET of a path that this one has passed on to it.

        Raises StatusError: its own, and the 404 of a path that nobody serves.
        """
        found = await self.serving.aggregation.ask(path)
        if found is None:
            raise resource_not_found()
        return found

    async def prepare_tokens(self) -> None:
        """Load what signs them, which takes a while, before the first Pod asks for one."""
        await self.policy.issuer.prepare()

    def client(self, user: UserInfo, user_agent: str = "lastcall") -> Client:
        """Return a client in this process that acts as `user`: no HTTP, no JSON. Its writes are managed by
        `user_agent`."""
        return client_of(self.operations, user, user_agent, None if self.audit is None else self.audit.auditor)

    async def bootstrap(self) -> None:
        """Create what a cluster has from the start and is not there yet: namespaces, priority classes, the
        `kubernetes` Service, the default roles and bindings."""
        if not self.storage.store.shared:
            for kind in self.policy.shared.kinds.values():
                await kind.look_over()
        await self._load(SERVICES, self.storage.services.load)
        await self._load(APISERVICES, self.storage.routes.put)
        await self.serving.definitions.load()
        fresh = await self.storage.finding.find(NAMESPACES, "", "default") is None
        await self.bootstrap_controller.make(fresh=fresh)
        await self.serving.registration.on_start()
        if fresh and not self.storage.store.shared:
            # Nobody has seen an earlier version, so none can be asked for.
            await self.storage.store.compact(await self.storage.store.revision(), watches=True)

    async def _load(self, resource: Resource, load: Callable[[Object], object]) -> None:
        """Give each stored object to `load`. One that it cannot read is set aside."""
        kind = self.policy.shared.kinds[resource]
        for entry in (await self.storage.store.list(kind.prefix))[0]:
            with kind.guard(entry):
                load(kind.decode(entry.value))

    async def serve(self, sockets: Sequence[socket.socket], ssl_context: ssl.SSLContext) -> None:
        """Answer HTTPS on listening sockets until cancelled. Open watches do not delay the end."""
        # late: 26 ms of the start of `up`
        from lastcall.kube.apiserver.answers.sending import BUFFER_BYTES
        from lastcall.kube.apiserver.http import APIHandler
        from lastcall.kube.streaming.hosts import Hosts
        from lastcall.kube.streaming.upgrade import LONGEST_HEADER
        from lastcall.world.aiohttp_inside import server as web
        from lastcall.world.aiohttp_inside.bounded import BoundedServer
        from lastcall.world.listeners import TLSListener

        own = (self._config.kubernetes_service_ip, self._config.endpoint[0], *IN_CLUSTER_NAMES, *self._config.hosts)
        hosts = Hosts(own)
        handler = APIHandler(
            self._world,
            self.operations,
            self.policy.authenticator,
            self.serving.catalog,
            self.policy.issuer,
            hosts,
            self._dial,
            self.storage.routes,
            self.serving.aggregation.backends,
            None if self.audit is None else self.audit.auditor,
        )
        http = BoundedServer(
            handler.handle,
            most=MOST_CONNECTIONS,
            buffer=BUFFER_BYTES,
            on_lost=handler.shares.lost,
            logger=web.log,
            access_log=None,
            handler_cancellation=True,
            max_line_size=LONGEST_HEADER,
        )
        try:
            async with Tasks() as tasks:
                for name, run in (
                    *(("listener", TLSListener(http, each, ssl_context, self._world.clock).run) for each in sockets),
                    *self._followers(),
                    ("compaction", self._compact_history),
                    ("kubernetes Service", self.bootstrap_controller.keep),
                    ("flow control", self._flow_control().run),
                    ("service addresses", self._service_addresses().run),
                    ("aggregation", self.serving.aggregation.run),
                    ("stalled clients", handler.disconnect_stalled),
                    *(() if self.audit is None else (("audit log", self.audit.log.run),)),
                ):
                    tasks.spawn(crash_guard.keep_running(f"API server {name}", run, self._world.clock), name=name)
        finally:
            for each in sockets:
                each.close()
            await self._world.clock.sleep(0)  # what has come is begun
            http.pre_shutdown()
            await http.shutdown(SHUTDOWN_SECONDS)
            await handler.close()
            await self.serving.aggregation.close()
            await self.policy.machinery.close()
            if self.audit is not None:
                self.audit.log.close()

    def _followers(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        """What depends on the store: who else writes to it, and whether it has a sense of time."""
        found: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        if not self.storage.store.set_ttl(self.policy.shared.kinds[EVENTS].prefix, int(EVENT_TTL.total_seconds())):
            events, context = self.policy.shared.kinds[EVENTS], RequestContext(SERVER_USER)
            found.append(("event TTL", partial(sweep_events, self._world, self.storage.store, events, context)))
        if self.storage.store.shared:
            # late: for a store that others write to
            from lastcall.kube.apiserver.bootstrap.store_watch import StoreWatch

            watch = StoreWatch(
                self.storage.store,
                self.policy.shared.kinds,
                self.serving.definitions,
                self.storage.routes,
                self.storage.pods.of_nodes,
            )
            found += [(f"others' {name}", run) for name, run in watch.followers()]
        return found

    def _flow_control(self) -> FlowControl:
        return FlowControl(
            self._world,
            self.client(SERVER_USER, PRODUCER),
            self.client(SERVER_USER, CONSUMER),
            self.serving.postponed,
        )

    def _service_addresses(self) -> ServiceAddresses:
        return ServiceAddresses(
            self._world,
            self.client(SERVER_USER, SERVER),
            self._config.service_cidr,
            self.serving.postponed,
            shared=self.storage.store.shared,
        )

    async def _compact_history(self) -> None:
        """Forget what was written before the last interval (apiserver pkg/storage/etcd3/compact.go)."""
        done = await self.storage.store.revision()
        while True:
            revision = await self.storage.store.revision()
            await self._world.clock.sleep(COMPACTION_SECONDS)
            for some in range(done + COMPACTED_AT_ONCE, revision, COMPACTED_AT_ONCE):
                await self.storage.store.compact(some)
                await self._world.clock.sleep(0)
            await self.storage.store.compact(revision)
            done = revision


def _open_audit(world: World, options: "AuditOptions") -> "Audit":
    # late: few ask for it
    from lastcall.kube.apiserver.audit.auditor import open_audit

    return open_audit(world, options)


__all__ = ["APIServer", "APIServerConfig"]
