"""StatefulSet: Pods with names of their own, one after the other.

Source: pkg/controller/statefulset/stateful_set.go, stateful_pod_control.go. What to do next is decided in
`decide`; here it is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_already_exists, is_conflict, is_not_found
from lastcall.kube.api.meta import copy_object, is_terminating, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import CONTROLLERREVISIONS, PERSISTENTVOLUMECLAIMS, PODS, STATEFULSETS
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.history import RevisionWriter, by_revision, revision_of_pod
from lastcall.kube.controllers.informers import NAMESPACE, Informers, owned_and_orphans
from lastcall.kube.controllers.ownership import AdoptionRefused, claim, controller_of, decide_claim
from lastcall.kube.controllers.pods.control import delete_pod, slow_start_batch
from lastcall.kube.controllers.statefulset.claims import has_stale_owner, is_up_to_date, wanted_owner, with_owner
from lastcall.kube.controllers.statefulset.decide import (
    NO_CLAIMS,
    Revisions,
    Step,
    claims_of,
    complete_rolling_update,
    decide,
    is_member,
    is_scaled_away,
    parent_and_ordinal,
    status_of,
    template_name,
)
from lastcall.kube.controllers.worker import Retry, Worker, split_key
from lastcall.records import rules
from lastcall.records.record import Recorder
from lastcall.world.clock import now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.features.gates import FeatureGates
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.storage import PersistentVolumeClaim
    from lastcall.kube.api.types.workloads import ControllerRevision, StatefulSet, StatefulSetStatus
    from lastcall.records.definitions.parts import GroundsOfDecision

COMPONENT = "statefulset-controller"
COMPLETES_WITH_ANY_STRATEGY = 37
"""Minor version since which a set with OnDelete gets a new current revision, too (kubernetes#136833)."""


class StatefulSetController:
    def __init__(
        self, world: World, client: Client, informers: Informers, recorder: Recorder, gates: FeatureGates
    ) -> None:
        self._world = world
        self._any_completes = gates.minor >= COMPLETES_WITH_ANY_STRATEGY
        self._client = client
        self._recorder = recorder
        self._events = EventRecorder(client, world, COMPONENT)
        self._revisions = RevisionWriter(client, STATEFULSETS)
        self._sets: Informer[StatefulSet] = informers.get(STATEFULSETS)
        self._pods: Informer[Pod] = informers.get(PODS)
        self._history: Informer[ControllerRevision] = informers.get(CONTROLLERREVISIONS)
        self._claims: Informer[PersistentVolumeClaim] = informers.get(PERSISTENTVOLUMECLAIMS)
        self._worker = Worker(world, COMPONENT, self._sync, events=self._events)
        self._sets.add_handler(self._enqueue, lambda _, new: self._enqueue(new), self._enqueue)
        informers.pod_routes.add_handler(STATEFULSETS.kind, self._pod_changed, self._pod_updated, self._pod_changed)
        self._claims.add_handler(None, None, self._claim_gone)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run([self._sets, self._pods, self._history, self._claims]), name=COMPONENT)

    # -- what happened → which sets to look at -----------------------------------------------------------------------

    def _enqueue(self, owner: StatefulSet) -> None:
        self._worker.queue.add(f"{namespace_of(owner)}/{name_of(owner)}")

    def _owner_of(self, pod: Pod) -> StatefulSet | None:
        reference = controller_of(pod)
        if reference is None or reference["kind"] != STATEFULSETS.kind:
            return None
        owner = self._sets.get(namespace_of(pod), reference["name"])
        return owner if owner is not None and uid_of(owner) == reference["uid"] else None

    def _pod_changed(self, pod: Pod) -> None:
        if controller_of(pod) is not None:
            if (owner := self._owner_of(pod)) is not None:
                self._enqueue(owner)
            return
        for owner in self._sets.by_index(NAMESPACE, namespace_of(pod)):
            if selector_of_expressions(owner["spec"].get("selector")).matches(labels_of(pod)):
                self._enqueue(owner)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if controller_of(old) != controller_of(new) and (owner := self._owner_of(old)) is not None:
            self._enqueue(owner)
        self._pod_changed(new)

    def _claim_gone(self, claim: PersistentVolumeClaim) -> None:
        """A Pod may have waited for the end of an earlier one's claim."""
        for owner in self._sets.by_index(NAMESPACE, namespace_of(claim)):
            templates = owner["spec"].get("volumeClaimTemplates") or ()
            starts = tuple(f"{template_name(template)}-{name_of(owner)}-" for template in templates)
            if name_of(claim).startswith(starts):
                self._enqueue(owner)

    # -- sync --------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        """(`syncStatefulSet`)"""
        owner = self._sets.get(*split_key(key))
        if owner is None:
            return
        pods = await self._claim(owner)
        revisions, collisions = await self._sync_revisions(owner)
        moment = now(self._world.clock).timestamp()
        status = status_of(owner, revisions, collisions, pods, moment)
        claims = SetClaims(owner, self._claims) if owner["spec"].get("volumeClaimTemplates") else NO_CLAIMS
        decision = decide(owner, revisions, pods, moment, claims)
        try:
            for pod in decision.claims:
                await self._create_claims(owner, pod)
                await self._give_claims(owner, pod)
            await self._do(owner, decision.steps, status)
        except (StatusError, ConnectionLost, Retry):
            await self._write_status(owner, status)  # what was seen is reported also when a step fails
            raise
        await self._write_status(owner, status)
        if not is_terminating(owner):
            await self._truncate(owner, revisions, pods)
        if decision.look_again is not None:
            self._worker.queue.add_after(key, decision.look_again)

    async def _claim(self, owner: StatefulSet) -> list[Pod]:
        found = owned_and_orphans(self._pods, uid_of(owner), namespace_of(owner))
        selector = selector_of_expressions(owner["spec"].get("selector"))
        decision = decide_claim(owner, selector, found, lambda pod: is_member(owner, pod))
        try:
            return await claim(self._client, owner, STATEFULSETS, PODS, decision)
        except AdoptionRefused as refused:
            raise Retry(str(refused)) from refused

    async def _sync_revisions(self, owner: StatefulSet) -> tuple[Revisions, int | None]:
        """(`getStatefulSetRevisions`)"""
        history = self._history_of(owner)
        status = owner.get("status") or {}
        labels = dict((owner["spec"]["template"].get("metadata") or {}).get("labels") or {})
        update, collisions = await self._revisions.current(owner, history, status.get("collisionCount"), labels)
        named = status.get("currentRevision")
        current = next((each for each in history if name_of(each) == named), update)
        return Revisions.of(owner, current, update), collisions

    def _history_of(self, owner: StatefulSet) -> list[ControllerRevision]:
        found = owned_and_orphans(self._history, uid_of(owner), namespace_of(owner))
        return by_revision(each for each in found if controller_of(each) is not None)

    # -- writes ------------------------------------------------------------------------------------------------------

    async def _do(self, owner: StatefulSet, steps: Sequence[Step], status: StatefulSetStatus) -> None:
        """In batches of 1, 2, 4, …, of which one with an error is the last (`runForAll`, `slowStartBatch`).

        A Pod that a rollout has just deleted is no longer counted as current. (`updateStatefulSet`)
        """
        following = iter(steps)
        _, error = await slow_start_batch(len(steps), lambda: self._step(owner, next(following)))
        if error is not None:
            raise error
        rolled = sum(step.reason == "rollout" for step in steps)
        if rolled and status.get("currentReplicas"):
            status["currentReplicas"] = max(0, status["currentReplicas"] - rolled)
            if not status["currentReplicas"]:
                del status["currentReplicas"]

    async def _step(self, owner: StatefulSet, step: Step) -> None:
        if step.verb == "create":
            await self._create(owner, step.pod)
        elif step.verb == "delete":
            await self._delete(owner, step)
        else:
            await self._client.update(PODS, step.pod, namespace_of(owner))

    async def _create(self, owner: StatefulSet, pod: Pod) -> None:
        """The claims first, then the Pod. (`CreateStatefulPod`)"""
        try:
            await self._create_claims(owner, pod)
            made = cast("Pod", await self._client.create(PODS, pod, namespace_of(owner)))
        except (StatusError, Retry) as error:
            if isinstance(error, StatusError) and is_already_exists(error):
                return  # the cache will tell
            self._event(owner, "Create", pod, error.message if isinstance(error, StatusError) else str(error))
            raise
        await self._give_claims(owner, made)
        self._event(owner, "Create", pod)

    async def _create_claims(self, owner: StatefulSet, pod: Pod) -> None:
        """Those that are missing. Raises Retry while one is on its way out. (`createPersistentVolumeClaims`)"""
        for wanted in claims_of(owner, parent_and_ordinal(pod)[1]):
            name, namespace = name_of(wanted), namespace_of(owner)
            known = self._claims.get(namespace, name)
            if known is None:
                try:
                    await self._client.create(PERSISTENTVOLUMECLAIMS, wanted, namespace)
                except StatusError as error:
                    if not is_already_exists(error):
                        self._claim_event(owner, pod, name, error.message)
                        raise Retry(f"failed to create PVC {name}: {error.message}") from error
                    known = cast(
                        "PersistentVolumeClaim", await self._client.get(PERSISTENTVOLUMECLAIMS, name, namespace)
                    )
                else:
                    self._claim_event(owner, pod, name)
            if known is not None and is_terminating(known):
                raise Retry(f"pvc {name} is being deleted")

    async def _get_claim(self, namespace: str, name: str) -> PersistentVolumeClaim:
        return cast("PersistentVolumeClaim", await self._client.get(PERSISTENTVOLUMECLAIMS, name, namespace))

    def _claim_event(self, owner: StatefulSet, pod: Pod, claim_name: str, error: str = "") -> None:
        """(`recordClaimEvent`)"""
        whose = f"Pod {name_of(pod)} in StatefulSet {name_of(owner)}"
        if error:
            text = f"Create Claim {claim_name} for {whose} failed error: {error}"
            self._events.event(owner, "Warning", "FailedCreate", text)
        else:
            self._events.event(owner, "Normal", "SuccessfulCreate", f"Create Claim {claim_name} {whose} success")

    async def _give_claims(self, owner: StatefulSet, pod: Pod) -> None:
        """Make the Pod's claims whose the policy says. (`UpdatePodClaimForRetentionPolicy`)"""
        scaled_away = is_scaled_away(owner, pod)
        for wanted in claims_of(owner, parent_and_ordinal(pod)[1]):
            known = self._claims.get(namespace_of(owner), name_of(wanted))
            if known is None and wanted_owner(owner, scaled_away=scaled_away):
                try:  # just made
                    known = cast(
                        "PersistentVolumeClaim",
                        await self._client.get(PERSISTENTVOLUMECLAIMS, name_of(wanted), namespace_of(owner)),
                    )
                except StatusError as error:
                    if not is_not_found(error):
                        raise
            if known is not None and not is_up_to_date(known, owner, pod, scaled_away=scaled_away):
                changed = with_owner(known, owner, pod, scaled_away=scaled_away)
                await self._client.update(PERSISTENTVOLUMECLAIMS, changed, namespace_of(owner))

    async def _delete(self, owner: StatefulSet, step: Step) -> None:
        facts: GroundsOfDecision = {
            "revision": revision_of_pod(step.pod),
            "ordinal": parent_and_ordinal(step.pod)[1],
            "step": step.reason,
        }
        try:
            await delete_pod(
                self._client, self._recorder, step.pod, owner, rule=rules.UPDATE_STATEFUL_SET, why=step.why, facts=facts
            )
        except StatusError as error:
            self._event(owner, "Delete", step.pod, error.message)
            raise
        self._event(owner, "Delete", step.pod)

    def _event(self, owner: StatefulSet, verb: str, pod: Pod, error: str = "") -> None:
        """(`recordPodEvent`)"""
        what = f"{verb} Pod {name_of(pod)} in StatefulSet {name_of(owner)}"
        if error:
            self._events.event(owner, "Warning", f"Failed{verb}", f"{what} failed error: {error}")
        else:
            self._events.event(owner, "Normal", f"Successful{verb}", f"{what} successful")

    async def _write_status(self, owner: StatefulSet, status: StatefulSetStatus) -> None:
        complete_rolling_update(owner, status, any_strategy=self._any_completes)
        old = owner.get("status") or {}
        if old.get("conditions"):
            status["conditions"] = old["conditions"]
        if status == old:
            return
        new = copy_object(owner)
        new["status"] = status
        try:
            await self._client.update(STATEFULSETS, new, namespace_of(owner), subresource="status")
        except StatusError as error:
            if is_not_found(error):
                return
            if not is_conflict(error):
                raise
            fresh = cast(
                "StatefulSet", copy_object(await self._client.get(STATEFULSETS, name_of(owner), namespace_of(owner)))
            )
            if uid_of(fresh) == uid_of(owner):
                fresh["status"] = status
                await self._client.update(STATEFULSETS, fresh, namespace_of(owner), subresource="status")

    async def _truncate(self, owner: StatefulSet, revisions: Revisions, pods: Sequence[Pod]) -> None:
        limit = owner["spec"].get("revisionHistoryLimit")
        live = [revisions.current, revisions.update, *map(revision_of_pod, pods)]
        await self._revisions.truncate(self._history_of(owner), live, 10 if limit is None else limit)


class SetClaims:
    """Implements `statefulset_decide.Claims` on the cache of claims."""

    def __init__(self, owner: StatefulSet, claims: Informer[PersistentVolumeClaim]) -> None:
        self._owner, self._cache = owner, claims

    def _of(self, pod: Pod) -> list[PersistentVolumeClaim | None]:
        names = (name_of(each) for each in claims_of(self._owner, parent_and_ordinal(pod)[1]))
        return [self._cache.get(namespace_of(self._owner), name) for name in names]

    def stale(self, pod: Pod) -> bool:
        return any(each is not None and has_stale_owner(each, pod, PODS) for each in self._of(pod))

    def missing(self, pod: Pod) -> bool:
        return None in self._of(pod)

    def wrong_owner(self, pod: Pod) -> bool:
        away = is_scaled_away(self._owner, pod)
        return any(
            each is not None and not is_up_to_date(each, self._owner, pod, scaled_away=away) for each in self._of(pod)
        )
