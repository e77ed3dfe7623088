"""PodDisruptionBudgets: keeps in their status how many more of their Pods may be disrupted.

The status is written with the version that was read, so that it never hides an eviction that came in between.

Source: pkg/controller/disruption/disruption.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.disruption import budget_selector, expected_pods
from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import Object, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import DISRUPTION_TARGET, get_condition, pod_key
from lastcall.kube.api.resources import (
    DEPLOYMENTS,
    PODDISRUPTIONBUDGETS,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    STATEFULSETS,
    Resource,
)
from lastcall.kube.api.schema.checks import resource_for
from lastcall.kube.api.text.go_selectors import selector_text
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH, Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.disruption.decide import (
    count_healthy,
    disrupted_pods,
    failed_status,
    needs_scale,
    next_status,
    stale_for,
)
from lastcall.kube.controllers.informers import NAMESPACE, Informers
from lastcall.kube.controllers.ownership import controller_of
from lastcall.kube.controllers.worker import Retry, Synced, Worker, split_key
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.meta import OwnerReference
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.policy import PodDisruptionBudget

COMPONENT = "disruption-controller"
EVENT_SOURCE = "controllermanager"

UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)

_SCALED = (REPLICATIONCONTROLLERS, DEPLOYMENTS, REPLICASETS, STATEFULSETS)


class _CannotCount(Exception):
    """Signal that the number that the Pods' owners ask for is unknown."""


class DisruptionController:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world, self._client = world, client
        self._events = EventRecorder(client, world, EVENT_SOURCE)
        self._budgets: Informer[PodDisruptionBudget] = informers.get(PODDISRUPTIONBUDGETS)
        self._pods: Informer[Pod] = informers.get(PODS)
        self._owners = {resource: informers.get(resource) for resource in _SCALED}
        self._worker = Worker(world, COMPONENT, self._sync, events=self._events)
        self._stale = Worker(world, f"{COMPONENT} stale", self._sync_stale, workers=1, events=self._events)
        self._budgets.add_handler(self._enqueue, lambda _, new: self._enqueue(new))
        self._pods.add_handler(self._pod_changed, lambda _, new: self._pod_changed(new), self._enqueue_for)

    async def run(self) -> None:
        """Work until cancelled."""
        caches: list[Synced] = [self._budgets, self._pods, *self._owners.values()]
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run(caches), name=COMPONENT)
            tasks.spawn(self._stale.run([self._pods]), name=f"{COMPONENT} stale")

    # -- what happened → which budgets to look at --------------------------------------------------------------------

    def _enqueue(self, budget: PodDisruptionBudget) -> None:
        self._worker.queue.add(f"{namespace_of(budget)}/{name_of(budget)}")

    def _pod_changed(self, pod: Pod) -> None:
        """A budget that a change of labels takes the Pod from is not looked at, nor has an Event NoPods: so 1.36.2."""
        self._enqueue_for(pod)
        if get_condition(pod.get("status") or {}, DISRUPTION_TARGET) is None:
            return
        stale = stale_for(pod, now(self._world.clock))
        if stale is not None:
            self._stale.queue.add_after(pod_key(pod), stale)

    def _enqueue_for(self, pod: Pod) -> None:
        if not self._budgets.has_any(NAMESPACE, namespace_of(pod)):
            return
        budgets = self._budgets.by_index(NAMESPACE, namespace_of(pod))
        matching = []
        for budget in budgets:
            with crash_guard.Turn(COMPONENT, f"{namespace_of(budget)}/{name_of(budget)}"):
                if budget_selector(budget).matches(labels_of(pod)):
                    matching.append(budget)
                    self._enqueue(budget)
        if len(matching) > 1:
            text = (
                f'Pod "{namespace_of(pod)}"/"{name_of(pod)}" matches multiple PodDisruptionBudgets.  '
                f'Chose "{name_of(matching[0])}" arbitrarily.'
            )
            self._events.event(pod, "Warning", "MultiplePodDisruptionBudgets", text)

    # -- one budget --------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        budget = self._budgets.get(*split_key(key))
        if budget is None:
            return
        try:
            await self._try_sync(key, budget)
        except (_CannotCount, StatusError) as error:
            if isinstance(error, StatusError) and (is_conflict(error) or is_not_found(error)):
                raise
            # Nobody may be evicted while it is not known how many are needed.
            failed = failed_status(budget, str(error), now(self._world.clock))
            if failed is not None:
                await self._write(failed)
            if isinstance(error, StatusError):
                raise
            raise Retry(str(error)) from error

    async def _try_sync(self, key: str, budget: PodDisruptionBudget) -> None:
        selector = budget_selector(budget)
        in_namespace = self._pods.by_index(NAMESPACE, namespace_of(budget))
        pods = [pod for pod in in_namespace if selector.matches(labels_of(pod))]
        if not pods:
            self._events.event(budget, "Normal", "NoPods", "No matching pods found")
        scale = await self._expected_scale(budget, pods) if needs_scale(budget) else 0
        expected = expected_pods(budget, len(pods), scale)
        moment = now(self._world.clock)
        disrupted = disrupted_pods(budget, pods, moment)
        for pod in disrupted.not_deleted:
            namespace = namespace_of(budget)
            # The namespace twice, and not the name: so says Kubernetes.
            text = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            self._events.event(pod, "Warning", "NotDeleted", text)
        healthy = count_healthy(pods, disrupted.pods)
        new = next_status(budget, expected, healthy, disrupted.pods, moment)
        if new is not None:
            await self._write(new)
        if disrupted.recheck is not None:
            self._worker.queue.add_after(key, (disrupted.recheck - moment).total_seconds())

    async def _write(self, budget: PodDisruptionBudget) -> None:
        try:
            await self._client.update(PODDISRUPTIONBUDGETS, budget, namespace_of(budget), subresource="status")
        except StatusError as error:
            if not is_not_found(error):
                raise

    # -- how many Pods their owners ask for --------------------------------------------------------------------------

    async def _expected_scale(self, budget: PodDisruptionBudget, pods: list[Pod]) -> int:
        """The sum over the distinct owners. (`getExpectedScale`)"""
        scales: dict[str, int] = {}
        found: set[str] = set()
        unmanaged = False
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                unmanaged = True
                continue
            if reference["uid"] in found:
                continue
            found.add(reference["uid"])
            try:
                scale = await self._scale(reference, namespace_of(pod))
                if scale is None:
                    raise _CannotCount(f'found no controllers for pod "{name_of(pod)}"')
            except _CannotCount as error:
                text = f"Failed to calculate the number of expected pods: {error}"
                self._events.event(budget, "Warning", "CalculateExpectedPodCountFailed", text)
                raise
            scales[scale[0]] = scale[1]
        if unmanaged:
            text = UNMANAGED.format(selector_text(budget["spec"].get("selector")))
            self._events.event(budget, "Warning", "UnmanagedPods", text)
        return sum(scales.values())

    async def _scale(self, reference: OwnerReference, namespace: str) -> tuple[str, int] | None:
        """(uid, replicas) of the owner, of a ReplicaSet's Deployment; None when it is not there."""
        resource = resource_for(reference["apiVersion"], reference["kind"])
        if resource in self._owners:
            owner = self._known(resource, reference, namespace)
            above = controller_of(owner) if owner is not None else None
            if resource == REPLICASETS and above is not None and above["kind"] == "Deployment":
                owner = self._known(DEPLOYMENTS, above, namespace)
            return None if owner is None else (uid_of(owner), _replicas(owner))
        if resource is None:
            raise _CannotCount(f'no matches for kind "{reference["kind"]}" in version "{reference["apiVersion"]}"')
        raise _CannotCount(f"{resource.group_resource} does not implement the scale subresource")

    def _known(self, resource: Resource, reference: OwnerReference, namespace: str) -> Object | None:
        owner = self._owners[resource].get(namespace, reference["name"])
        return owner if owner is not None and uid_of(owner) == reference["uid"] else None

    # -- a DisruptionTarget that is not deleted ----------------------------------------------------------------------

    async def _sync_stale(self, key: str) -> None:
        """(`syncStalePodDisruption`)"""
        pod = self._pods.get(*split_key(key))
        moment = now(self._world.clock)
        stale = stale_for(pod, moment) if pod is not None else None
        if pod is None or stale is None:
            return
        if stale > 0:
            self._stale.queue.add_after(key, stale)
            return
        condition = {
            "type": DISRUPTION_TARGET,
            "observedGeneration": pod["metadata"].get("generation", 0),
            "status": "False",
            "reason": None,
            "message": None,
            "lastTransitionTime": rfc3339(moment),
        }
        patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(
                PODS, name_of(pod), patch, namespace_of(pod), content_type=STRATEGIC_MERGE_PATCH, subresource="status"
            )
        except StatusError as error:
            if not is_not_found(error):
                raise


def _replicas(owner: Object) -> int:
    replicas = owner["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)
