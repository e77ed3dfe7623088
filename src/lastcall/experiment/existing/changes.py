"""Change an existing cluster with a ledger: each change is written there before it is made, and all are put back.

A process that is killed at any moment leaves the ledger, and the next one that reads it puts the rest back (`restore`).
"""

# check: reaches inside because it reads /proc as the shim does

import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial
from typing import Any

from lastcall.errors import UserError, WorldError
from lastcall.experiment.existing.ledger import (
    LABEL,
    Changed,
    Created,
    Entry,
    Holder,
    Ledger,
    Target,
    as_config_map,
    labelled,
    leftover_revisions,
    restoration,
    was,
)
from lastcall.experiment.lookups import delete_if_exists, get_or_none
from lastcall.experiment.ready.custom import scaled, why_unsettled
from lastcall.experiment.ready.readiness import is_custom, unsettled
from lastcall.experiment.reasons.object_events import wait_on, with_fixes
from lastcall.experiment.rollout.fields import RESTARTED_AT, nested
from lastcall.kube.api import (
    CONFIGMAPS,
    CONTROLLERREVISIONS,
    DEPLOYMENTS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    STATEFULSETS,
    Object,
    Resource,
    StatusError,
    is_already_exists,
    is_conflict,
    is_not_found,
    labels_of,
    name_of,
    selector_of_expressions,
    uid_of,
)
from lastcall.kube.client import JSON_PATCH, Client, until_answered
from lastcall.kube.cri.sandbox.shim.procfs import start_time
from lastcall.world.clock import Clock, monotonic
from lastcall.world.clock import now as wall_time
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

GONE_SECONDS = 120.0
"""How long what was deleted may take to go, and a workload to have its Pods back."""
_LOOK_SECONDS = 0.2

Say = Callable[[str], None]


def this_process() -> Holder:
    return Holder(socket.gethostname(), os.getpid(), start_time(os.getpid()))


def is_running(holder: Holder) -> bool:
    """Return whether the process of a ledger runs on this machine. One of another machine is not known to run."""
    return holder.host == socket.gethostname() and start_time(holder.pid) == holder.started != 0


@dataclass(slots=True)
class Changes:
    """The changes of one experiment in one namespace, which exists. `gone_seconds`: how long what is deleted may
    take; 0 for GONE_SECONDS."""

    client: Client
    namespace: str
    world: World = field(default_factory=World)
    gone_seconds: float = 0.0
    _ledger: Ledger | None = None

    @property
    def id(self) -> str:
        return self._ledger.id if self._ledger else ""

    async def create(self, resource: Resource, obj: Object) -> Object:
        """Create the object with the experiment's label, and return it. Raises StatusError, ConnectionLost."""
        await self._note(Created(Target.of(resource, name_of(obj), self.namespace)))
        return await self._created(resource, labelled(obj, self.id, self.namespace))

    async def _created(self, resource: Resource, obj: Object) -> Object:
        """Also when the answer was lost: then it is there, and has the label."""

        async def once() -> Object:
            try:
                return await self.client.create(resource, obj, self.namespace)
            except StatusError as error:
                if not is_already_exists(error):
                    raise
                there = await self.client.get(resource, name_of(obj), self.namespace)
                if labels_of(there).get(LABEL) != self.id:
                    raise
                return there

        return await until_answered(self.world.clock, once)

    async def change(self, resource: Resource, name: str, path: tuple[str, ...], value: Any) -> Object:
        """Set a field, if nobody changes it meanwhile. Raises StatusError, ConnectionLost."""
        there = await self.client.get(resource, name, self.namespace)
        before = was(there, path)
        await self._note(Changed(Target.of(resource, name, self.namespace), path, before, value))
        patch = nested(path, value)
        patch["metadata"] = {"resourceVersion": there["metadata"]["resourceVersion"]}

        async def once() -> Object:
            try:
                return await self.client.patch(resource, name, patch, self.namespace)
            except StatusError as error:
                if not is_conflict(error):
                    raise
                now = await self.client.get(resource, name, self.namespace)
                if before == value or was(now, path) != value:
                    raise
                return now  # the answer was lost

        return await until_answered(self.world.clock, once)

    async def restore(self, say: Say) -> None:
        """Put everything back. Raises WorldError where that is not possible: the ledger then stays."""
        if self._ledger is not None:
            await restore(self.client, self.world.clock, self.namespace, self._ledger, say, self.gone_seconds)
            self._ledger = None

    async def _note(self, entry: Entry) -> None:
        """Write it down, and go on only when the cluster has it."""
        if self._ledger is None:
            first = Ledger(self.world.new_uid()[:8], this_process(), (entry,))
            self._ledger = first  # before it is there: an interrupt in the middle of this removes it
            try:
                await self._created(CONFIGMAPS, as_config_map(first, self.namespace))
            except StatusError:
                self._ledger = None
                raise
            return
        changed = self._ledger.with_entry(entry)
        data = {"data": as_config_map(changed, self.namespace)["data"]}
        await until_answered(
            self.world.clock, lambda: self.client.patch(CONFIGMAPS, changed.name, data, self.namespace)
        )
        self._ledger = changed


async def restore(
    client: Client, clock: Clock, namespace: str, ledger: Ledger, say: Say, gone_seconds: float = 0.0
) -> None:
    """Put back what a ledger names, the last first, and remove the ledger. Raises WorldError with what is left."""
    left: list[str] = []
    waiting: list[Entry] = []
    ours = {entry.target for entry in ledger.entries if isinstance(entry, Created)}
    for entry in reversed(ledger.entries):
        if isinstance(entry, Changed) and entry.target in ours:
            continue  # it goes as a whole
        try:
            if await until_answered(clock, partial(_put_back, client, namespace, ledger.id, entry, say)):
                waiting.append(entry)
        except StatusError as error:
            left.append(f"{entry.target.description}: {await with_fixes(client, error)}")
    left += await _until_gone(client, clock, namespace, waiting, gone_seconds or GONE_SECONDS)
    if not left and any(entry.target.plural == STATEFULSETS.plural for entry in ledger.entries):
        left += await _remove_claims(client, clock, namespace, ledger.id, say)
    for entry in ledger.entries:
        if isinstance(entry, Changed) and not left:
            await _settle(client, clock, namespace, entry, say)
    if left:
        raise WorldError(
            "\n".join([f"namespace {namespace}: some changes could not be undone:", *(f"  {each}" for each in left)])
        )
    try:
        await until_answered(clock, partial(client.delete, CONFIGMAPS, ledger.name, namespace))
    except StatusError as error:
        if not is_not_found(error):
            raise


async def _get(client: Client, target: Target, namespace: str) -> Object | None:
    return await get_or_none(client, target.resource, target.name, namespace)


async def _put_back(client: Client, namespace: str, id_: str, entry: Entry, say: Say) -> bool:
    """Whether the object now has to go."""
    there = await _get(client, entry.target, namespace)
    what = restoration(id_, entry, there)
    resource, name = entry.target.resource, entry.target.name
    if what.delete and there is not None:
        if await delete_if_exists(client, resource, there, policy=how_to_delete(resource)):
            say(f"deleted {entry.target.description}")
        return True
    if what.patch:
        await client.patch(resource, name, [*what.patch], namespace, content_type=JSON_PATCH)
        say(f"restored {'.'.join(entry.path)} of {entry.target.description}" if isinstance(entry, Changed) else "")
    elif "since" in what.why:
        say(what.why)
    return what.waits


def how_to_delete(resource: Resource) -> str | None:
    """Return how to delete a resource's objects, None for the server's default.

    A workload is gone when its Pods are. Those of a ReplicationController would stay.
    """
    is_workload = resource.group in ("apps", "batch") or resource.plural == REPLICATIONCONTROLLERS.plural
    return "Foreground" if is_workload else None


async def _until_gone(
    client: Client, clock: Clock, namespace: str, entries: Iterable[Entry], seconds: float
) -> list[str]:
    deadline = monotonic(clock) + seconds
    left = []
    for entry in entries:
        while (there := await _get(client, entry.target, namespace)) is not None:
            if monotonic(clock) > deadline:
                left += await still_there(
                    client, clock, entry.target.description, entry.target.resource, there, seconds
                )
                break
            await clock.sleep(_LOOK_SECONDS)
    return left


async def still_there(
    client: Client, clock: Clock, what: str, resource: Resource, obj: Object, seconds: float
) -> list[str]:
    """Return that an object is still there so long after its DELETE, what it waits for, and what ends that."""
    wait = await wait_on(client, obj, resource.kind, wall_time(clock))
    return [f"{what} was deleted {seconds:g} s ago and is still there", *(wait.lines if wait else [])]


async def _remove_claims(client: Client, clock: Clock, namespace: str, id_: str, say: Say) -> list[str]:
    """Those of StatefulSets that were created and are gone; what is left of them."""
    ours = partial(client.list, PERSISTENTVOLUMECLAIMS, namespace, label_selector=f"{LABEL}={id_}")
    deadline = monotonic(clock) + GONE_SECONDS
    deleted: set[str] = set()
    try:
        while claims := (await until_answered(clock, ours)).items:
            for each in claims:
                delete = partial(delete_if_exists, client, PERSISTENTVOLUMECLAIMS, each)
                if uid_of(each) not in deleted and await until_answered(clock, delete):
                    say(f"deleted PersistentVolumeClaim {name_of(each)}")
                deleted.add(uid_of(each))
            if monotonic(clock) > deadline:
                return [f"PersistentVolumeClaim {name_of(each)} was deleted and is still there" for each in claims]
            await clock.sleep(_LOOK_SECONDS)
    except StatusError as error:
        return [f"the claims of a StatefulSet: {error.message}"]
    return []


async def _settle(client: Client, clock: Clock, namespace: str, change: Changed, say: Say) -> None:
    """Wait until the workload has its Pods back, and remove what our rollout left in its history. A workload that does
    not get them is as it was all the same, which is said."""
    deadline = monotonic(clock) + GONE_SECONDS
    while (there := await _get(client, change.target, namespace)) is not None:
        if await _has_settled(client, namespace, change.target.resource, there):
            break
        if monotonic(clock) > deadline:
            say(
                f"{change.target.description} is restored, but "
                f"not all of its Pods are available after {GONE_SECONDS:g} s"
            )
            return
        await clock.sleep(_LOOK_SECONDS)
    if there is None or change.path != RESTARTED_AT or was(there, change.path) == change.after:
        return
    kinds = [REPLICASETS if change.target.plural == DEPLOYMENTS.plural else CONTROLLERREVISIONS]
    if is_custom(change.target.resource):
        kinds = [REPLICASETS, CONTROLLERREVISIONS]
    try:
        for kind in kinds:
            revisions = (await client.list(kind, namespace)).items
            for each in leftover_revisions(revisions, uid_of(there), change):
                await client.delete(kind, name_of(each), namespace, uid=uid_of(each))
    except StatusError as error:
        if error.code != 403:
            raise
        say(f"the revision could not be removed from the history of {change.target.description}: {error.message}")


async def _has_settled(client: Client, namespace: str, resource: Resource, workload: Object) -> bool:
    """Whether a workload has its Pods back, and none is ending."""
    if not is_custom(resource):
        return not unsettled(resource, workload) and not await _ending(client, namespace, workload)
    try:
        found = await scaled(client, resource, workload)
    except UserError:
        return True  # its scale subresource says nothing any more
    except StatusError as error:
        if error.code != 403:
            raise
        return True
    return not why_unsettled(workload, found) and not found.ending


async def _ending(client: Client, namespace: str, workload: Object) -> bool:
    """Whether Pods of it are still ending; False where the user may not list them."""
    wanted = selector_of_expressions(workload["spec"].get("selector"))
    try:
        pods = (await client.list(PODS, namespace)).items
    except StatusError:
        return False
    return any("deletionTimestamp" in each["metadata"] and wanted.matches(labels_of(each)) for each in pods)
