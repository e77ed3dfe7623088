"""The kinds that lastcall serves, by group, version and plural name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """One API resource.

    `group` is "" for the core group. `verbs` and `short_names` are what discovery shows; `subresources` are the names
    after the slash (`status`, `log`, `binding`).
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """`apiVersion` of its objects: `v1`, `discovery.k8s.io/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """The name used in Status messages: `pods`, `endpointslices.discovery.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, the object or a subresource."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, "namespace", ("ns",), (), ("status", "finalize"))
NODES = Resource("", "v1", "nodes", "Node", False, "node", ("no",), (), ("status",))
PODS = Resource("", "v1", "pods", "Pod", True, "pod", ("po",), ("all",), ("status", "log", "binding"))
SERVICES = Resource("", "v1", "services", "Service", True, "service", ("svc",), ("all",), ("status",))
EVENTS = Resource("", "v1", "events", "Event", True, "event", ("ev",))
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap", True, "configmap", ("cm",))
SECRETS = Resource("", "v1", "secrets", "Secret", True, "secret")
SERVICEACCOUNTS = Resource(
    "", "v1", "serviceaccounts", "ServiceAccount", True, "serviceaccount", ("sa",), (), ("token",)
)
BINDINGS = Resource("", "v1", "bindings", "Binding", True, "binding")
ENDPOINTSLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True, "endpointslice")
EVENTS_V1 = Resource("events.k8s.io", "v1", "events", "Event", True, "event", ("ev",))
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True, "lease")

SERVED: tuple[Resource, ...] = (
    BINDINGS, CONFIGMAPS, EVENTS, NAMESPACES, NODES, PODS, SECRETS, SERVICEACCOUNTS, SERVICES,
    LEASES, ENDPOINTSLICES, EVENTS_V1,
)  # fmt: skip
"""Everything the API server serves. `EVENTS` and `EVENTS_V1` are two faces of one storage."""
