"""Follow the owners of Pods that a run applied, and return whose a Pod is."""

import asyncio
from collections.abc import Sequence
from dataclasses import field

from lastcall.experiment.reasons.pod_watch import follow_kind
from lastcall.kube.api import (
    Object,
    Resource,
    StatusError,
    is_not_found,
    name_of,
    namespace_of,
    resource_for,
    uid_of,
)
from lastcall.kube.client import Client
from lastcall.kube.controllers import controller_of
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

_MOST_LEVELS = 3
"""CronJob, Job, Pod."""


@dataclass(slots=True)
class FollowedOwner:
    """An owner as the watch showed it last."""

    resource: Resource
    obj: Object
    gone: bool = False

    @property
    def uid(self) -> str:
        return uid_of(self.obj)

    @property
    def what(self) -> str:
        """Return its kind and name: `Deployment default/web`."""
        return f"{self.resource.kind} {namespace_of(self.obj)}/{name_of(self.obj)}"


@dataclass(slots=True)
class OwnerFollower:
    """`run` keeps the owners up to date; `changed` is set whenever one has changed."""

    client: Client
    clock: Clock
    changed: asyncio.Event
    namespace: str = ""
    owners: dict[str, FollowedOwner] = field(default_factory=dict)
    _above: dict[str, str] = field(default_factory=dict)
    """Uid of something between a Pod and what was applied → uid of the applied owner, "" for none."""

    def follow(self, resource: Resource, obj: Object) -> FollowedOwner:
        """Follow an owner that was just created."""
        return self.owners.setdefault(uid_of(obj), FollowedOwner(resource, obj))

    async def run(self, resource_version: str) -> None:
        """Watch from a version on until cancelled."""
        resources = dict.fromkeys(owner.resource for owner in self.owners.values())
        async with Tasks() as tasks:
            for resource in resources:
                of_it = (resource, self.namespace, resource_version, self._saw, self._listed)
                watch = follow_kind(self.client, self.clock, *of_it)
                tasks.spawn(watch, name=f"follow {resource.plural}")

    async def _saw(self, obj: Object, gone: bool) -> None:
        owner = self.owners.get(uid_of(obj))
        if owner is not None:
            owner.obj, owner.gone = obj, owner.gone or gone
            self.changed.set()

    async def _listed(self, resource: Resource, items: Sequence[Object], resource_version: str) -> None:
        uids = {uid_of(item) for item in items}
        for item in items:
            await self._saw(item, False)
        for owner in self.owners.values():
            if owner.resource == resource and owner.uid not in uids:
                owner.gone = True
        self.changed.set()

    async def owner_of(self, obj: Object) -> str:
        """Return the uid of the applied owner at the end of `obj`'s chain of controllers, "" when there is none.

        Raises StatusError and ConnectionLost.
        """
        between: list[str] = []
        found = ""
        for _ in range(_MOST_LEVELS):
            reference = controller_of(obj)
            if reference is None:
                break
            uid = reference["uid"]
            if uid in self.owners or uid in self._above:
                found = uid if uid in self.owners else self._above[uid]
                break
            resource = resource_for(reference.get("apiVersion", ""), reference.get("kind", ""))
            if resource is None:
                break
            try:
                obj = await self.client.get(resource, reference["name"], namespace_of(obj))
            except StatusError as error:
                if is_not_found(error):
                    return ""  # it may be seen again, by a watch that is still there
                raise
            if uid_of(obj) != uid:
                break
            between.append(uid)
        self._above.update(dict.fromkeys(between, found))
        return found
