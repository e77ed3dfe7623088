"""Which group versions another server answers. Kept by each write of an APIService, so that no request has to look."""

from collections.abc import Callable
from dataclasses import field
from typing import NamedTuple

from lastcall.kube.api.apiservices.local import AVAILABLE, Priority
from lastcall.kube.api.meta import Object
from lastcall.world.dataclass import dataclass

GroupVersion = tuple[str, str]


class Service(NamedTuple):
    """What an APIService says of where its group version is answered. `ca_bundle` is base64 of PEM."""

    namespace: str
    name: str
    port: int
    ca_bundle: str = ""
    insecure: bool = False

    @property
    def host(self) -> str:
        """Return the name that its certificate has to have."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class Remote:
    """A group version of another server. `resources` are entries of aggregated discovery as that server gave them, None
    before it did; `current` False: they may have changed since."""

    group: str
    version: str
    priority: Priority
    service: Service
    available: bool = False
    resources: tuple[Object, ...] | None = None
    current: bool = False


def remote_of(api_service: Object) -> Remote | None:
    """Return the server of an APIService, None for an APIService of this server."""
    spec = api_service["spec"]
    reference = spec.get("service")
    if reference is None:
        return None
    service = Service(
        reference.get("namespace") or "",
        reference.get("name") or "",
        reference.get("port") or 443,
        spec.get("caBundle") or "",
        bool(spec.get("insecureSkipTLSVerify")),
    )
    conditions = (api_service.get("status") or {}).get("conditions") or ()
    available = any(each.get("type") == AVAILABLE and each.get("status") == "True" for each in conditions)
    priority = Priority(spec.get("groupPriorityMinimum") or 0, spec.get("versionPriority") or 0)
    return Remote(spec.get("group") or "", spec["version"], priority, service, available)


@dataclass(slots=True)
class Routes:
    """`changed` is called with each change of `remote`."""

    changed: Callable[[], None] = lambda: None
    remote: dict[GroupVersion, Remote] = field(default_factory=dict)

    def put(self, api_service: Object) -> Callable[[], None]:
        """Set the route that this APIService says, and return how to take that back."""
        spec = api_service["spec"]
        key = (spec.get("group") or "", spec.get("version") or "")
        before = self.remote.get(key)
        new = remote_of(api_service)
        if new is not None and before is not None and before.service == new.service:
            new = Remote(
                new.group, new.version, new.priority, new.service, new.available, before.resources, before.current
            )
        self._set(key, new)
        return lambda: self._set(key, before)

    def remove(self, api_service: Object) -> None:
        spec = api_service["spec"]
        self._set((spec.get("group") or "", spec.get("version") or ""), None)

    def discovered(self, key: GroupVersion, service: Service, resources: tuple[Object, ...] | None) -> None:
        """Store what the server of a group version said that it serves; None: it did not say."""
        now = self.remote.get(key)
        if now is None or now.service != service:
            return
        shown = now.resources if resources is None else resources
        self._set(
            key, Remote(now.group, now.version, now.priority, service, now.available, shown, resources is not None)
        )

    def of_path(self, path: str) -> Remote | None:
        """Return whose a request is, by its path."""
        parts = path.split("/", 4)
        if parts[1:2] == ["apis"] and len(parts) > 3:
            return self.remote.get((parts[2], parts[3]))
        if parts[1:2] == ["api"] and len(parts) > 2:
            return self.remote.get(("", parts[2]))
        return None

    def _set(self, key: GroupVersion, remote: Remote | None) -> None:
        if self.remote.get(key) == remote:
            return
        if remote is None:
            del self.remote[key]
        else:
            self.remote[key] = remote
        self.changed()
