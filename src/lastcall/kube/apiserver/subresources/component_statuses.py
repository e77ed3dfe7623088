"""ComponentStatus (v1): what the API server knows of the other parts of the control plane, found out when it is asked.

kube-apiserver asks the health endpoints of etcd, scheduler and controller manager. Here the store is asked for its
revision, and the runner of a component in this process says that it runs. Controllers of another process are known by
their Lease.

Source: pkg/registry/core/componentstatus/rest.go, pkg/registry/core/rest/storage_core.go:componentStatusStorage.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import COMPONENTSTATUSES, LEASES, Resource
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.store.api import Store, StoreError
from lastcall.world.clock import now
from lastcall.world.world import World

STORE, SCHEDULER, CONTROLLER_MANAGER = "etcd-0", "scheduler", "controller-manager"
LEASE_OF: Mapping[str, str] = {SCHEDULER: "kube-scheduler", CONTROLLER_MANAGER: "kube-controller-manager"}
"""The Lease in kube-system by which an instance of another process is known."""


def component_status(name: str, problem: str) -> Object:
    """Make a ComponentStatus; `problem` is "" for a component that is healthy."""
    condition = {"type": "Healthy", "status": "False" if problem else "True", "message": problem or "ok"}
    return {
        "kind": COMPONENTSTATUSES.kind,
        "apiVersion": "v1",
        "metadata": {"name": name},
        "conditions": [condition],
    }


def lease_problem(lease: Object | None, moment: datetime) -> str:
    """Return why a component that does not run in this process is not well; "" while its Lease is held."""
    spec = (lease or {}).get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return "it does not run: nobody holds its Lease"
    until = parse_rfc3339(spec["renewTime"]) + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return "" if moment <= until else f"{spec['holderIdentity']} has not renewed its Lease since {spec['renewTime']}"


def not_found(name: str) -> StatusError:
    details = {"name": name, "kind": COMPONENTSTATUSES.singular}
    return status_failure(404, "NotFound", f'{COMPONENTSTATUSES.singular} "{name}" not found', details)


def status_list(items: Iterable[Object]) -> Object:
    """List as Kubernetes does: items without kind and apiVersion."""
    bare = [{key: value for key, value in each.items() if key not in ("kind", "apiVersion")} for each in items]
    return {"kind": f"{COMPONENTSTATUSES.kind}List", "apiVersion": "v1", "metadata": {}, "items": bare}


class ComponentStatuses:
    """`running` are the components that run in this process now."""

    def __init__(
        self,
        world: World,
        store: Store,
        running: Callable[[], Iterable[str]],
        find: Callable[[Resource, str, str], Awaitable[Object | None]],
    ) -> None:
        self._world, self._store, self._running, self._find = world, store, running, find

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return the status of one component. Raises the 404 StatusError."""
        if name not in (STORE, *LEASE_OF):
            raise not_found(name)
        return component_status(name, await self._problem(name))

    async def all_of(self, resource: Resource, namespace: str, matches: Callable[[Object], bool]) -> Object:
        """Return those that match."""
        items = [component_status(name, await self._problem(name)) for name in (CONTROLLER_MANAGER, SCHEDULER, STORE)]
        return status_list(each for each in items if matches(each))

    async def _problem(self, name: str) -> str:
        if name == STORE:
            try:
                await self._store.check()
            except StoreError as error:
                return str(error)
            return ""
        if name in self._running():
            return ""
        lease = await self._find(LEASES, "kube-system", LEASE_OF[name])
        return lease_problem(lease, now(self._world.clock))
