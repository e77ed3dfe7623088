"""ReplicaSet and ReplicationController: as many active Pods as the spec says.

Source: pkg/controller/replicaset/replica_set.go. A Pod leaves the count the moment its deletion is accepted, so its
replacement does not wait for its end. ReplicationController is the same code for another kind, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import (
    copy_object,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from lastcall.kube.api.pods.spec import get_condition, is_pod_ready, is_pod_terminal
from lastcall.kube.api.resources import PODS, REPLICASETS, REPLICATIONCONTROLLERS, Resource
from lastcall.kube.api.selectors import LabelSelector, selector_of_expressions, selector_of_labels
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.kube.controllers.expectations import Expectations
from lastcall.kube.controllers.informers import CONTROLLER, NAMESPACE, Informers
from lastcall.kube.controllers.ownership import (
    AdoptionRefused,
    claim,
    controller_of,
    controller_reference,
    decide_claim,
    orphans_of,
)
from lastcall.kube.controllers.pods.control import (
    PodControl,
    pod_from_template,
    seconds_until_available,
    slow_start_batch,
)
from lastcall.kube.controllers.pods.owned import OwnedPods
from lastcall.kube.controllers.replicaset.ranking import Victim, choose_victims
from lastcall.kube.controllers.replicaset.status import Counts, available_of, calculate_status, count, count_each
from lastcall.kube.controllers.worker import Retry, Worker, split_key
from lastcall.records import rules
from lastcall.records.record import Recorder
from lastcall.world.clock import now, rfc3339
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks, gather
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodCondition
    from lastcall.kube.api.types.workloads import ReplicaSet
    from lastcall.records.definitions.parts import GroundsOfDecision

BURST_REPLICAS = 500
"""The most Pods that one sync creates or deletes."""


@dataclass(frozen=True, slots=True)
class ReplicaKind:
    """What differs between the two kinds.

    A ReplicationController is typed as a ReplicaSet here, whose fields it has; its selector is a map of labels.
    """

    resource: Resource
    component: str
    counts_terminating: bool

    def selector(self, owner: ReplicaSet) -> LabelSelector:
        selector = owner["spec"].get("selector")
        if self.resource == REPLICATIONCONTROLLERS:
            return selector_of_labels(cast("dict[str, str] | None", selector))
        return selector_of_expressions(selector)


REPLICA_SET = ReplicaKind(REPLICASETS, "replicaset-controller", True)
REPLICATION_CONTROLLER = ReplicaKind(REPLICATIONCONTROLLERS, "replication-controller", False)


class ReplicaSetController:
    """Made with `REPLICA_SET` or `REPLICATION_CONTROLLER`."""

    def __init__(
        self, world: World, client: Client, informers: Informers, recorder: Recorder, kind: ReplicaKind = REPLICA_SET
    ) -> None:
        self._world = world
        self._client = client
        self._kind = kind
        self._events = EventRecorder(client, world, kind.component)
        self._pod_control = PodControl(client, self._events, recorder)
        self._expectations = Expectations(world.clock)
        self._owners: Informer[ReplicaSet] = informers.get(kind.resource)
        self._pods: Informer[Pod] = informers.get(PODS)
        self._owned = informers.pods_by_owner
        self._worker = Worker(world, kind.component, self._sync, events=self._events)
        self._owners.add_handler(self._enqueue, lambda _, new: self._enqueue(new), self._enqueue)
        informers.pod_routes.add_handler(kind.resource.kind, self._pod_added, self._pod_updated, self._pod_deleted)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{self._kind.component} events")
            tasks.spawn(self._worker.run([self._owners, self._pods]), name=self._kind.component)

    # -- what happened → which owners to look at ---------------------------------------------------------------------

    def _enqueue(self, owner: ReplicaSet) -> None:
        self._worker.queue.add(f"{namespace_of(owner)}/{name_of(owner)}")

    def _owner_of(self, pod: Pod) -> ReplicaSet | None:
        """The owner of this kind that controls `pod`, by uid."""
        reference = controller_of(pod)
        if reference is None or reference["kind"] != self._kind.resource.kind:
            return None
        owner = self._owners.get(namespace_of(pod), reference["name"])
        return owner if owner is not None and uid_of(owner) == reference["uid"] else None

    def _enqueue_matching(self, pod: Pod) -> None:
        """Queue the owners that select an orphan: one of them may want it."""
        for owner in self._owners.by_index(NAMESPACE, namespace_of(pod)):
            if self._kind.selector(owner).matches(labels_of(pod)):
                self._enqueue(owner)

    def _pod_added(self, pod: Pod) -> None:
        if is_terminating(pod):
            # After a restart, or a watch that was interrupted: it must not count as a creation.
            self._pod_deleted(pod)
            return
        if controller_of(pod) is None:
            self._enqueue_matching(pod)
        elif (owner := self._owner_of(pod)) is not None:
            self._expectations.creation_observed(_key(owner))
            self._enqueue(owner)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        before, after = controller_of(old), controller_of(new)
        if after is not None and after["kind"] != self._kind.resource.kind and before == after:
            return  # another kind's, now as before
        labels_changed = labels_of(old) != labels_of(new)
        if is_terminating(new):
            alike = before == after and not labels_changed
            if alike and is_terminating(old) and is_pod_terminal(old) == is_pod_terminal(new):
                return  # it was ending already, and that is all a sync would find
            # It will be replaced now, not when it is gone.
            self._pod_deleted(new)
            if labels_changed:
                self._pod_deleted(old)
            return
        if before != after and before is not None and (owner := self._owner_of(old)) is not None:
            self._enqueue(owner)
        if after is not None:
            # What a sync would not look at (the binding, a heartbeat of a condition) is not worth one.
            worth = labels_changed or before != after or _counted(old) != _counted(new)
            if worth and (owner := self._owner_of(new)) is not None:
                self._enqueue(owner)
                min_ready = owner["spec"].get("minReadySeconds") or 0
                if not is_pod_ready(old) and is_pod_ready(new) and min_ready > 0:
                    self._worker.queue.add_after(_key(owner), min_ready + 1)
        elif labels_changed or before != after:
            self._enqueue_matching(new)

    def _pod_deleted(self, pod: Pod) -> None:
        if (owner := self._owner_of(pod)) is not None:
            self._expectations.deletion_observed(_key(owner), uid_of(pod))
            self._enqueue(owner)

    # -- sync --------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        """(`syncReplicaSet`)"""
        namespace, name = split_key(key)
        owner = self._owners.get(namespace, name)
        if owner is None:
            self._expectations.forget(key)
            return
        count_again = self._expectations.satisfied(key)
        found = self._owned.of(uid_of(owner))
        terminating = len(found.terminating) if self._kind.counts_terminating else None
        claimed = await self._claim(owner, found)
        # Counted now: while Pods are made and deleted, what was found changes.
        wanted = owner["spec"].get("replicas") or 0
        if claimed is not None:
            active = claimed
            counts = count_each(owner, active, terminating)
        else:
            counts = count(owner, found, terminating)
            each_counts = counts.active > wanted or owner["spec"].get("minReadySeconds")
            active = self._owned.active(found) if each_counts else []
        error, difference = "", 0
        if count_again and not is_terminating(owner):
            difference = counts.active - wanted
            error = await self._manage_replicas(key, owner, active, difference)
        await self._update_status(owner, active, counts, error, difference)
        self._look_again_when_available(key, owner, active)
        if error:
            raise Retry(error)

    async def _claim(self, owner: ReplicaSet, found: OwnedPods) -> list[Pod] | None:
        """The owner's active Pods when some had to be adopted or released, None when it has those that were found."""
        selector = self._kind.selector(owner)
        orphans = self._owned.of(orphans_of(namespace_of(owner)))
        if all(map(selector.matches, found.labels)) and not any(map(selector.matches, orphans.labels)):
            return None
        decision = decide_claim(owner, selector, [*self._owned.active(found), *self._owned.active(orphans)])
        try:
            return await claim(self._client, owner, self._kind.resource, PODS, decision)
        except AdoptionRefused as refused:
            raise Retry(str(refused)) from refused
        except StatusError as error:
            if is_not_found(error):
                raise Retry(f"{_key(owner)} is gone") from error
            raise

    async def _manage_replicas(self, key: str, owner: ReplicaSet, active: list[Pod], difference: int) -> str:
        """Create or delete; the first error, "" for none. (`manageReplicas`)"""
        if difference < 0:
            return await self._create(key, owner, min(-difference, BURST_REPLICAS))
        if difference > 0:
            related = self._related_pods(owner)
            count = min(difference, BURST_REPLICAS)
            victims = choose_victims(active, related, count, now(self._world.clock).timestamp())
            return await self._delete(key, owner, victims, len(active))
        return ""

    async def _create(self, key: str, owner: ReplicaSet, count: int) -> str:
        self._expectations.expect_creations(key, count)
        reference = controller_reference(owner, self._kind.resource)
        template = owner["spec"].get("template") or {}

        async def create_one() -> None:
            pod = pod_from_template(template, name_of(owner), reference)
            try:
                await self._pod_control.create(pod, namespace_of(owner), owner)
            except StatusError as error:
                # Nothing comes of it: no point in waiting for it. In a terminating namespace that is not an error.
                self._expectations.creation_observed(key)
                if not namespace_is_terminating(error):
                    raise

        done, error = await slow_start_batch(count, create_one)
        if error is None:
            return ""
        tried = _tried(count, done)
        for _ in range(count - tried):
            self._expectations.creation_observed(key)
        if not isinstance(error, StatusError):
            raise error
        return error.message

    async def _delete(self, key: str, owner: ReplicaSet, victims: list[Victim], active: int) -> str:
        self._expectations.expect_deletions(key, [uid_of(victim.pod) for victim in victims])
        wanted = owner["spec"].get("replicas") or 0

        async def delete_one(victim: Victim) -> None:
            facts: GroundsOfDecision = {
                "rank": victim.rank,
                "candidates": victim.candidates,
                "reason": victim.reason,
                "step": "scaling",
            }
            why = f"{self._kind.resource.kind} {name_of(owner)} goes from {active} to {wanted} Pods, and "
            why += f"this one is number {victim.rank} to go: {victim.reason}"
            try:
                await self._pod_control.delete(victim.pod, owner, rule=rules.GET_PODS_TO_DELETE, why=why, facts=facts)
            except BaseException:
                self._expectations.deletion_observed(key, uid_of(victim.pod))
                raise

        errors = [error for error in await gather(map(delete_one, victims)) if error is not None]
        for error in errors:
            if not isinstance(error, StatusError):
                raise error
        return str(errors[0]) if errors else ""

    def _related_pods(self, owner: ReplicaSet) -> Iterable[Pod]:
        """The Pods of all ReplicaSets that have the same controller. (`getIndirectlyRelatedPods`)"""
        reference = controller_of(owner)
        if reference is None:
            return self._pods.by_index(CONTROLLER, uid_of(owner))
        relatives = self._owners.by_index(CONTROLLER, reference["uid"])
        return [pod for relative in relatives for pod in self._pods.by_index(CONTROLLER, uid_of(relative))]

    async def _update_status(
        self, owner: ReplicaSet, active: list[Pod], counts: Counts, error: str, difference: int
    ) -> None:
        moment = now(self._world.clock)
        available = available_of(owner, active, counts.ready, moment.timestamp())
        status = calculate_status(owner, counts, available, error=error, difference=difference, stamp=rfc3339(moment))
        generation = owner["metadata"].get("generation") or 0
        old = owner.get("status") or {}
        if status == old and old.get("observedGeneration", 0) == generation:
            return
        status["observedGeneration"] = generation
        try:
            new = {**owner, "status": status}
            await self._client.update(self._kind.resource, new, namespace_of(owner), subresource="status")
        except StatusError as failure:
            if is_not_found(failure):
                return
            if not is_conflict(failure):
                raise
            fresh = cast(
                "ReplicaSet",
                copy_object(await self._client.get(self._kind.resource, name_of(owner), namespace_of(owner))),
            )
            if uid_of(fresh) == uid_of(owner):
                fresh["status"] = status
                await self._client.update(self._kind.resource, fresh, namespace_of(owner), subresource="status")

    def _look_again_when_available(self, key: str, owner: ReplicaSet, active: list[Pod]) -> None:
        """A Pod that is Ready becomes available without any event."""
        min_ready = owner["spec"].get("minReadySeconds") or 0
        if min_ready <= 0:
            return
        moment = now(self._world.clock).timestamp()
        waits = [seconds_until_available(pod, min_ready, moment) for pod in active]
        soonest = min((wait for wait in waits if wait), default=None)
        if soonest is not None:
            self._worker.queue.add_after(key, soonest)


def _counted(pod: Pod) -> tuple[bool, PodCondition | None]:
    """What a sync reads of a Pod's status, of one that is not being deleted."""
    return is_pod_terminal(pod), get_condition(pod.get("status") or {}, "Ready")


def _key(owner: ReplicaSet) -> str:
    return f"{namespace_of(owner)}/{name_of(owner)}"


def _tried(count: int, done: int) -> int:
    """How many a slow start began that stopped with an error after `done` successes.

    Batches are of 1, 2, 4 …; the one with the error was begun as a whole.
    """
    begun, batch = 0, min(count, 1)
    while batch:
        begun += batch
        if begun > done:
            return begun
        batch = min(2 * batch, count - begun)
    return begun
