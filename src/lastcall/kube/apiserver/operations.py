"""What can be asked of the API, once, for HTTP and for clients in this process. Each verb has its room in `verbs/`."""

# check: many attributes Operations because each is a verb of a class of its own, under the name by which it is asked

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.auth.authorizer import Authorizer
from lastcall.kube.apiserver.auth.reviews import Reviews
from lastcall.kube.apiserver.auth.tokens import TokenIssuer
from lastcall.kube.apiserver.registry.generic import Shared
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletLogs
from lastcall.kube.apiserver.subresources.posts import Posts
from lastcall.kube.apiserver.verbs.apply import Apply
from lastcall.kube.apiserver.verbs.computed import AskRemote, Computed
from lastcall.kube.apiserver.verbs.connections import Connections
from lastcall.kube.apiserver.verbs.create import Create
from lastcall.kube.apiserver.verbs.delete import Delete
from lastcall.kube.apiserver.verbs.kinds import ServedKinds
from lastcall.kube.apiserver.verbs.patch import Patch
from lastcall.kube.apiserver.verbs.reading import Reading
from lastcall.kube.apiserver.verbs.scales import Scales
from lastcall.kube.apiserver.verbs.update import Update
from lastcall.kube.apiserver.verbs.writing import Writing
from lastcall.world.clock import now
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    import ssl

    from lastcall.kube.apiserver.catalog import Catalog
    from lastcall.kube.apiserver.streaming.proxy import KubeletStreams
    from lastcall.kube.apiserver.subresources.component_statuses import ComponentStatuses
    from lastcall.kube.apiserver.subresources.metrics_server import MetricsServer


async def _nobody(path: str) -> None:
    """Return None: no other server answers."""


@dataclass(frozen=True, slots=True)
class Backends:
    """Who answers what this server does not store."""

    logs: KubeletLogs | None = None
    streams: "KubeletStreams | None" = None
    open_metrics: "Callable[[], MetricsServer] | None" = None
    computed: "Mapping[Resource, Callable[[], ComponentStatuses]]" = field(default_factory=dict)
    ask_remote: AskRemote = _nobody


NO_BACKENDS = Backends()


class Operations:
    """All verbs on all kinds. Every method raises StatusError."""

    def __init__(
        self,
        shared: Shared,
        issuer: TokenIssuer,
        reviews: Reviews,
        authorizer: Authorizer,
        backends: Backends = NO_BACKENDS,
        catalog: "Catalog | None" = None,
    ) -> None:
        self.shared, self.kinds, self.clock = shared, shared.kinds, shared.world.clock
        self.authorizer = authorizer
        served = ServedKinds(shared, catalog)
        self.served, self.kind, self.has_objects = served.served, served.kind, served.has_objects
        self.decode, self.decoder, self.present = served.decode, served.decoder, served.present
        self.selection, self.stored = served.selection, served.stored

        reading = Reading(served)
        self.get, self.get_scale, self.get_bytes = reading.get, reading.get_scale, reading.get_bytes
        self.check_get_version, self.unreadable = reading.check_get_version, reading.unreadable
        self.list, self.watch = reading.list, reading.watch

        writing = Writing(served, authorizer)
        scales = Scales(served, writing)
        create = Create(served, writing, Posts(shared, issuer, reviews, writing.tracking))
        self.create, self.connect = create.create, create.connect
        self.create_again, self.remember, self.repeated = create.create_again, create.remember, create.repeated
        self.update = Update(served, writing, scales).update
        self.patch = Patch(served, writing, scales, Apply(served, writing, scales)).patch
        delete = Delete(served, reading)
        self.delete, self.delete_collection = delete.delete, delete.delete_collection

        self._connections = connections = Connections(served, backends.logs, backends.streams)
        self.log, self.stream = connections.log, connections.stream
        computed = Computed(served, backends.open_metrics, backends.computed, backends.ask_remote)
        self.computed, self.list_metrics = computed.computed, computed.list_metrics

    @property
    def kubelet_tls(self) -> "ssl.SSLContext | None":
        """Return the context by which a kubelet knows this server, and this server a kubelet."""
        return self._connections.kubelet_tls

    @property
    def minor(self) -> int:
        """Return 37 for a server of Kubernetes 1.37."""
        return self.shared.gates.minor

    def now(self) -> datetime:
        """Return the time by which ages are shown."""
        return now(self.clock)
