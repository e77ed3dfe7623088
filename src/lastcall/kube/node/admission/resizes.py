"""Resizes of Pods in place: whether the node has room, what waits for it, and what the status says of it.

Source: pkg/kubelet/allocation/allocation_manager.go, status/status_manager.go (PodResizePending, PodResizeInProgress),
events/event.go. What the containers get is the runtime manager's (`kube/node/runtime/resize.py`).
"""

# check: many attributes Resizes because it waits for the pods and callbacks to come as one source

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import orjson

from lastcall.kube.api.meta import uid_of
from lastcall.kube.node.admission.allocation import (
    Waiting,
    allocation_of,
    can_be_resized,
    in_order,
    why_infeasible,
    with_allocation,
)
from lastcall.kube.node.admission.checkpoint import AllocationFiles
from lastcall.kube.node.admission.decide import Rejection, shortages
from lastcall.kube.node.interfaces import EventRecorder
from lastcall.kube.node.pods.spec import containers_of, init_containers_of
from lastcall.kube.node.status.conditions import find_condition, make_condition
from lastcall.kube.node.workers.queue import WorkQueue
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.meta import Object
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodCondition

log = logging.getLogger(__name__)

PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
DEFERRED, INFEASIBLE, ERROR = "Deferred", "Infeasible", "Error"
RETRY_SECONDS = 180.0
"""`retryDelay`; everything that frees something of the node is a reason to look again as well."""
_RETRY = "resizes"


@dataclass(frozen=True, slots=True)
class Said:
    """A condition of a Pod's resize. `since` is nanoseconds since the epoch."""

    reason: str
    message: str
    generation: int
    since: int


class Resizes:
    """`get_pod(uid)` answers the Pod as the API has it, `active_pods` those that hold resources; `sync(uid)` lets a Pod
    have another look at itself."""

    def __init__(
        self,
        *,
        world: World,
        events: EventRecorder,
        allocatable: Mapping[str, str],
        files: AllocationFiles,
        get_pod: Callable[[str], Pod | None],
        active_pods: Callable[[], list[Pod]],
        sync: Callable[[str], None],
    ) -> None:
        self._world = world
        self._events = events
        self._allocatable = dict(allocatable)
        self._files = files
        self._get_pod = get_pod
        self._active_pods = active_pods
        self._sync = sync
        self._given = files.load()
        self._unchecked = dict.fromkeys(self._given)
        """Pods of an earlier kubelet: what their containers have is not known before the first look."""
        self._waiting: dict[str, None] = {}
        self._pending: dict[str, Said] = {}
        self._progress: dict[str, Said] = {}
        self.queue = WorkQueue(world, lambda _: self.retry())

    # -- what Pods have -----------------------------------------------------------------------------------------------

    def allocated(self, pod: Pod) -> Pod:
        """Return the Pod with the resources that it was given; `pod` itself if they are those it asks for."""
        return with_allocation(pod, self._given.get(uid_of(pod)))

    def admitted(self, pod: Pod) -> None:
        """Note that the node takes the Pod as it is here."""
        if can_be_resized(pod) and uid_of(pod) not in self._given:
            self._give(pod)

    def _give(self, pod: Pod) -> None:
        uid, allocation = uid_of(pod), allocation_of(pod)
        try:
            self._files.save(uid, allocation)
        except OSError as error:  # only a kubelet that starts anew would miss it
            log.warning("what pod %s was given cannot be written down: %s", uid, error)
        self._given[uid] = allocation

    def forget(self, uid: str) -> None:
        """Forget a Pod that has ended or is gone."""
        if self._given.pop(uid, None) is not None:
            self._files.remove(uid)
        for each in (self._pending, self._progress):
            each.pop(uid, None)
        self._unchecked.pop(uid, None)
        self._waiting.pop(uid, None)

    def forget_except(self, uids: set[str]) -> None:
        for uid in [uid for uid in self._given if uid not in uids]:
            self.forget(uid)

    # -- what Pods want -----------------------------------------------------------------------------------------------

    def backfill(self, pod: Pod) -> None:
        """Take over what the status says when a kubelet starts anew. (BackfillPodResizeConditions)"""
        conditions = (pod.get("status") or {}).get("conditions")
        for type_, said in ((PENDING, self._pending), (IN_PROGRESS, self._progress)):
            condition = find_condition(conditions, type_)
            if condition is not None and condition.get("status") == "True" and uid_of(pod) not in said:
                said[uid_of(pod)] = Said(
                    condition.get("reason", ""),
                    condition.get("message", ""),
                    int(condition.get("observedGeneration") or 0),
                    self._world.clock.wall_ns(),
                )

    def changed(self, pod: Pod) -> bool:
        """Return whether the Pod asks for something else than it has; it then waits for `retry`."""
        uid = uid_of(pod)
        if uid not in self._given:
            return False
        if self.allocated(pod) is pod:
            self._waiting.pop(uid, None)
            self._pending.pop(uid, None)
            return False
        self._waiting[uid] = None
        return True

    def retry(self, but_not: str = "") -> None:
        """Check whether what waits fits now. `but_not` is a Pod that is synced anyway. (retryPendingResizes)"""
        if not self._waiting:
            return
        waiting = []
        for uid in list(self._waiting):
            pod = self._get_pod(uid)
            if pod is None or uid not in self._given:
                del self._waiting[uid]
                continue
            said = self._pending.get(uid)
            waiting.append(Waiting(pod, self.allocated(pod), said.since if said else None))
        for one in in_order(waiting):
            uid, before = uid_of(one.pod), self.conditions(uid_of(one.pod))
            given = self._decide(one.pod)
            if uid != but_not and (given or before != self.conditions(uid)):
                self._sync(uid)
        if self._waiting:
            self.queue.enqueue(_RETRY, RETRY_SECONDS)

    def _decide(self, pod: Pod) -> bool:
        """True when the Pod was given what it asks for. (handlePodResourcesResize)"""
        uid, generation = uid_of(pod), int(pod["metadata"].get("generation") or 0)
        if self.allocated(pod) is pod:
            self._waiting.pop(uid, None)
            self._pending.pop(uid, None)
            return False
        refusal = self._refusal(pod)
        if refusal is None:
            self._give(pod)
            self._waiting.pop(uid, None)
            self._pending.pop(uid, None)
            self._progress[uid] = Said("", "", generation, self._world.clock.wall_ns())
            self._event(pod, "Normal", "ResizeStarted", "started", generation)
            return True
        infeasible = refusal.reason == INFEASIBLE
        if infeasible:
            self._waiting.pop(uid, None)
        reason, before = INFEASIBLE if infeasible else DEFERRED, self._pending.get(uid)
        same = before is not None and (before.reason, before.message) == (reason, refusal.message)
        since = before.since if before is not None and before.reason == reason else self._world.clock.wall_ns()
        self._pending[uid] = Said(reason, refusal.message, generation, since)
        if before is None or not same or before.generation != generation:
            self._event(pod, "Warning", f"Resize{reason}", refusal.reason, generation, refusal.message)
        return False

    def _refusal(self, pod: Pod) -> Rejection | None:
        """Why the node cannot give the Pod what it asks for, now or ever."""
        if why := why_infeasible(pod):
            return Rejection(INFEASIBLE, why)
        others = [self.allocated(other) for other in self._active_pods() if uid_of(other) != uid_of(pod)]
        found = [each for each in shortages(pod, others, self._allocatable) if each.resource != "pods"]
        for each in found:
            if each.wanted > each.capacity:
                message = (
                    f"Node didn't have enough capacity: {each.resource}, requested: {each.wanted}, "
                    f"capacity: {each.capacity}"
                )
                return Rejection(INFEASIBLE, message)
        return found[0].rejection if found else None

    # -- what becomes of it -------------------------------------------------------------------------------------------

    def needs_a_look(self, uid: str) -> bool:
        """Return whether the containers may have something else than the Pod was given."""
        return uid in self._progress or uid in self._unchecked

    def looked(self, pod: Pod, *, under_way: bool) -> None:
        """Note whether the containers have by now what the Pod was given. `pod` is with that."""
        uid = uid_of(pod)
        self._unchecked.pop(uid, None)
        if under_way:
            if uid not in self._progress:
                generation = int(pod["metadata"].get("generation") or 0)
                self._progress[uid] = Said("", "", generation, self._world.clock.wall_ns())
            return
        said = self._progress.pop(uid, None)
        if said is not None:
            self._event(pod, "Normal", "ResizeCompleted", "completed", said.generation)
            self.retry()

    def failed(self, pod: Pod, message: str) -> None:
        """Note that the containers could not be given it; it is tried again."""
        uid, before = uid_of(pod), self._progress.get(uid_of(pod))
        generation = before.generation if before else int(pod["metadata"].get("generation") or 0)
        since = before.since if before else self._world.clock.wall_ns()
        self._progress[uid] = Said(ERROR, message, generation, since)
        if before is None or (before.reason, before.message) != (ERROR, message):
            self._event(pod, "Warning", "ResizeError", "error", generation, message)

    def conditions(self, uid: str) -> list[PodCondition]:
        """Return the conditions for the Pod's status. (GetPodResizeConditions)"""
        found = []
        for type_, said in ((PENDING, self._pending.get(uid)), (IN_PROGRESS, self._progress.get(uid))):
            if said is not None:
                found.append(
                    make_condition(
                        type_, True, reason=said.reason, message=said.message, observed_generation=said.generation
                    )
                )
        return found

    def _event(self, pod: Pod, type_: str, reason: str, what: str, generation: int, error: str = "") -> None:
        message = f"Pod resize {what}: {resize_text(pod, generation, error)}"
        self._events.event(pod, "Warning" if type_ == "Warning" else "Normal", reason, message)


def resize_text(pod: Pod, generation: int, error: str = "") -> str:
    """Describe a resize for Events, as JSON: containers and what they ask for."""
    said: Object = {}
    for key, containers in (("initContainers", init_containers_of(pod)), ("containers", containers_of(pod))):
        if containers:
            said[key] = [
                {"name": each["name"], "resources": _in_order(each.get("resources") or {})} for each in containers
            ]
    said["generation"] = generation
    if error:
        said["error"] = error
    return orjson.dumps(said).decode()


def _in_order(resources: object) -> object:
    """As Go writes them: names in order at every level."""
    if isinstance(resources, dict):
        return {key: _in_order(resources[key]) for key in sorted(resources)}
    return resources
