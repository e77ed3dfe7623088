"""DaemonSet: one Pod on every node that fits.

Source: pkg/controller/daemon/daemon_controller.go. What to do is decided in `decide`; here it is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import copy_object, is_terminating, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.resources import CONTROLLERREVISIONS, DAEMONSETS, NODES, PODS
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.daemonset.decide import (
    Plan,
    Removal,
    by_node,
    manage,
    new_pod,
    rolling_update,
    seconds_until_change,
    should_run,
    status_of,
    target_node,
)
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.kube.controllers.expectations import Expectations
from lastcall.kube.controllers.history import HASH_LABEL, REVISION_LABEL, RevisionWriter, by_revision
from lastcall.kube.controllers.informers import NAMESPACE, Informers, owned_and_orphans
from lastcall.kube.controllers.ownership import AdoptionRefused, claim, controller_of, decide_claim
from lastcall.kube.controllers.pods.control import PodControl, slow_start_batch
from lastcall.kube.controllers.worker import Retry, Synced, Worker, split_key
from lastcall.records import rules
from lastcall.records.record import Recorder
from lastcall.world.clock import monotonic, now
from lastcall.world.tasks import Tasks, gather
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.workloads import ControllerRevision, DaemonSet, DaemonSetStatus
    from lastcall.records.definitions.parts import GroundsOfDecision

COMPONENT = "daemonset-controller"
BURST_REPLICAS = 250
FIRST_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 900.0

_ENDED = {
    "Failed": ("Warning", "FailedDaemonPod", "Found failed daemon pod {} on node {}, will try to kill it"),
    "Succeeded": ("Normal", "SucceededDaemonPod", "Found succeeded daemon pod {} on node {}, will try to delete it"),
}


class DaemonSetController:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world = world
        self._client = client
        self._events = EventRecorder(client, world, COMPONENT)
        self._pod_control = PodControl(client, self._events, recorder)
        self._revisions = RevisionWriter(client, DAEMONSETS, REVISION_LABEL)
        self._expectations = Expectations(world.clock)
        self._backoff: dict[tuple[str, str], tuple[float, float]] = {}
        self._sets: Informer[DaemonSet] = informers.get(DAEMONSETS)
        self._pods: Informer[Pod] = informers.get(PODS)
        self._nodes: Informer[Node] = informers.get(NODES)
        self._history: Informer[ControllerRevision] = informers.get(CONTROLLERREVISIONS)
        self._worker = Worker(world, COMPONENT, self._sync, events=self._events)
        self._sets.add_handler(self._enqueue, lambda _, new: self._enqueue(new), self._enqueue)
        informers.pod_routes.add_handler(DAEMONSETS.kind, self._pod_added, self._pod_updated, self._pod_deleted)
        self._nodes.add_handler(self._node_changed, self._node_updated, self._node_changed)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            informers: list[Synced] = [self._sets, self._pods, self._nodes, self._history]
            tasks.spawn(self._worker.run(informers), name=COMPONENT)

    # -- what happened → which sets to look at -----------------------------------------------------------------------

    def _enqueue(self, owner: DaemonSet) -> None:
        self._worker.queue.add(_key(owner))

    def _owner_of(self, pod: Pod) -> DaemonSet | None:
        reference = controller_of(pod)
        if reference is None or reference["kind"] != DAEMONSETS.kind:
            return None
        owner = self._sets.get(namespace_of(pod), reference["name"])
        return owner if owner is not None and uid_of(owner) == reference["uid"] else None

    def _pod_added(self, pod: Pod) -> None:
        if is_terminating(pod):
            self._pod_deleted(pod)
        elif controller_of(pod) is None:
            for owner in self._sets.by_index(NAMESPACE, namespace_of(pod)):
                if selector_of_expressions(owner["spec"].get("selector")).matches(labels_of(pod)):
                    self._enqueue(owner)
        elif (mine := self._owner_of(pod)) is not None:
            self._expectations.creation_observed(_key(mine))
            self._enqueue(mine)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if is_terminating(new):
            self._pod_deleted(new)
            return
        if controller_of(old) != controller_of(new) and (owner := self._owner_of(old)) is not None:
            self._enqueue(owner)
        current = self._owner_of(new)
        if current is not None:
            self._enqueue(current)
            min_ready = current["spec"].get("minReadySeconds") or 0
            if min_ready and not is_pod_ready(old) and is_pod_ready(new):
                self._worker.queue.add_after(_key(current), min_ready + 1)

    def _pod_deleted(self, pod: Pod) -> None:
        if (owner := self._owner_of(pod)) is not None:
            self._expectations.deletion_observed(_key(owner), uid_of(pod))
            self._enqueue(owner)

    def _node_changed(self, node: Node) -> None:
        for owner in self._sets.items():
            if any(should_run(owner, node)):
                self._enqueue(owner)

    def _node_updated(self, old: Node, new: Node) -> None:
        """Only what decides where a daemon Pod may run. (`shouldIgnoreNodeUpdate`)"""
        for owner in self._sets.items():
            if should_run(owner, old) != should_run(owner, new):
                self._enqueue(owner)

    # -- sync --------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        """(`syncDaemonSet`)"""
        owner = self._sets.get(*split_key(key))
        if owner is None:
            self._expectations.forget(key)
            return
        nodes = sorted(self._nodes.items(), key=name_of)
        if is_terminating(owner):
            return
        pods = by_node(await self._claim(owner))
        owner, revision, history = await self._revision(owner)
        value = _hash_of(revision)
        moment = now(self._world.clock).timestamp()
        error = ""
        if self._expectations.satisfied(key):
            plan = manage(owner, nodes, pods, value, moment)
            error = await self._perform(key, owner, plan, value)
            update = (owner["spec"].get("updateStrategy") or {}).get("type")
            if not error and self._expectations.satisfied(key) and update == "RollingUpdate":
                # A Pod that was just made is one that is not available yet (`rollingUpdate` looks again).
                pods = by_node(await self._claim(owner))
                plan = rolling_update(owner, nodes, pods, value, moment)
                error = await self._perform(key, owner, plan, value)
            await self._clean_up(owner, history, pods)
            pods = by_node(await self._claim(owner))
        if error or self._expectations.satisfied(key):
            # Otherwise what was just written is on its way here, and the counts of before would be wrong already.
            await self._write_status(owner, status_of(owner, nodes, pods, value, moment, observe=True))
        wait = seconds_until_change(owner, pods, moment)
        if wait is not None:
            self._worker.queue.add_after(key, wait)
        if error:
            raise Retry(error)

    async def _claim(self, owner: DaemonSet) -> list[Pod]:
        found = owned_and_orphans(self._pods, uid_of(owner), namespace_of(owner))
        decision = decide_claim(owner, selector_of_expressions(owner["spec"].get("selector")), found)
        try:
            return await claim(self._client, owner, DAEMONSETS, PODS, decision)
        except AdoptionRefused as refused:
            raise Retry(str(refused)) from refused

    async def _revision(self, owner: DaemonSet) -> tuple[DaemonSet, ControllerRevision, list[ControllerRevision]]:
        """Return the owner with the number of its revisions' collisions, its revision, and all of them."""
        found = owned_and_orphans(self._history, uid_of(owner), namespace_of(owner))
        history = by_revision(each for each in found if controller_of(each) is not None)
        labels = dict((owner["spec"]["template"].get("metadata") or {}).get("labels") or {})
        collisions = (owner.get("status") or {}).get("collisionCount")
        revision, collided = await self._revisions.current(owner, history, collisions, labels)
        if collided is not None and collided != collisions:
            status: DaemonSetStatus = {**(owner.get("status") or {}), "collisionCount": collided}
            await self._write_status(owner, status)
            owner = {**owner, "status": status}
        return owner, revision, history

    async def _perform(self, key: str, owner: DaemonSet, plan: Plan, revision: str) -> str:
        """Creations in a slow start, deletions at once; the first error, "" for none. (`syncNodes`)"""
        creates = list(plan.create[:BURST_REPLICAS])
        removals = [each for each in plan.remove[:BURST_REPLICAS] if self._may_remove(key, owner, each)]
        if not creates and not removals:
            return ""
        self._expectations.expect_more(key, len(creates), [uid_of(each.pod) for each in removals])
        errors: list[str] = []
        names = iter(creates)

        async def create_one() -> None:
            try:
                await self._pod_control.create(new_pod(owner, next(names), revision), namespace_of(owner), owner)
            except StatusError as error:
                self._expectations.creation_observed(key)
                if not namespace_is_terminating(error):
                    raise

        _, failed = await slow_start_batch(len(creates), create_one)
        for _ in names:
            self._expectations.creation_observed(key)
        if failed is not None:
            if not isinstance(failed, StatusError):
                raise failed
            errors.append(failed.message)

        async def delete_one(removal: Removal) -> None:
            step = "rollout" if removal.rollout else ""
            facts: GroundsOfDecision = {"node": target_node(removal.pod), "step": step}
            try:
                await self._pod_control.delete(
                    removal.pod, owner, rule=rules.PODS_SHOULD_BE_ON_NODE, why=removal.why, facts=facts
                )
            except BaseException:
                self._expectations.deletion_observed(key, uid_of(removal.pod))
                raise

        for error in await gather(map(delete_one, removals)):
            if isinstance(error, StatusError):
                errors.append(error.message)
            elif error is not None:
                raise error
        return errors[0] if errors else ""

    def _may_remove(self, key: str, owner: DaemonSet, removal: Removal) -> bool:
        """A Pod that has ended by itself is replaced with a growing back-off for its node."""
        if not removal.ended:
            return True
        node = target_node(removal.pod)
        moment = monotonic(self._world.clock)
        until, step = self._backoff.get((key, node), (0.0, 0.0))
        if moment < until:
            self._worker.queue.add_after(key, until - moment)
            return False
        if moment - until > 2 * MAX_BACKOFF_SECONDS:
            step = 0.0
        step = min(MAX_BACKOFF_SECONDS, step * 2) if step else FIRST_BACKOFF_SECONDS
        self._backoff[(key, node)] = (moment + step, step)
        kind, reason, text = _ENDED[removal.ended]
        what = f"{namespace_of(removal.pod)}/{name_of(removal.pod)}"
        self._events.event(owner, "Warning" if kind == "Warning" else "Normal", reason, text.format(what, node))
        return True

    async def _clean_up(
        self, owner: DaemonSet, history: Sequence[ControllerRevision], pods: dict[str, list[Pod]]
    ) -> None:
        limit = owner["spec"].get("revisionHistoryLimit")
        hashes = {labels_of(pod).get(REVISION_LABEL) for here in pods.values() for pod in here}
        live = [name_of(each) for each in history if _hash_of(each) in hashes]
        live += [name_of(history[-1])] if history else []
        await self._revisions.truncate(history, live, 10 if limit is None else limit)

    async def _write_status(self, owner: DaemonSet, status: DaemonSetStatus) -> None:
        if status == (owner.get("status") or {}):
            return
        new = copy_object(owner)
        new["status"] = status
        try:
            await self._client.update(DAEMONSETS, new, namespace_of(owner), subresource="status")
        except StatusError as error:
            if is_not_found(error):
                return
            if not is_conflict(error):
                raise
            answer = await self._client.get(DAEMONSETS, name_of(owner), namespace_of(owner))
            fresh = cast("DaemonSet", copy_object(answer))
            if uid_of(fresh) == uid_of(owner):
                fresh["status"] = status
                await self._client.update(DAEMONSETS, fresh, namespace_of(owner), subresource="status")


def _key(owner: DaemonSet) -> str:
    return f"{namespace_of(owner)}/{name_of(owner)}"


def _hash_of(revision: ControllerRevision) -> str:
    """Under DaemonSets' label, or under the one that lastcall gave it before."""
    labels = labels_of(revision)
    return labels.get(REVISION_LABEL) or labels.get(HASH_LABEL) or name_of(revision)
