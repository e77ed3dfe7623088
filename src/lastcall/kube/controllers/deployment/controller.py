"""Deployment: moves Pods from old ReplicaSets to the new one, step by step.

Source: pkg/controller/deployment/deployment_controller.go:syncDeployment, sync.go, rolling.go, recreate.go. The rules
are in `rolling`, `scaling`, `status` and `revisions`; here they are done.
One sync makes one step; the next one follows from what the ReplicaSets report.
"""

# check: observes because it wrote the sizes

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_already_exists, is_not_found
from lastcall.kube.api.meta import (
    copy_object,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
    with_own_metadata,
)
from lastcall.kube.api.pods.spec import get_condition, is_pod_terminal
from lastcall.kube.api.resources import DEPLOYMENTS, PODS, REPLICASETS
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.deployment.revisions import (
    REVISION,
    equal_ignoring_hash,
    find_new,
    find_old,
    new_replica_set,
    revision_of,
    to_clean_up,
    with_replicas_annotations,
    with_revision_annotations,
)
from lastcall.kube.controllers.deployment.rolling import (
    Resize,
    by_age,
    new_replicas,
    replicas_of,
    shrink_old,
    status_count,
)
from lastcall.kube.controllers.deployment.scaling import is_scaling_event, scale
from lastcall.kube.controllers.deployment.status import (
    TIMED_OUT,
    calculate_status,
    condition,
    has_progress_deadline,
    is_complete,
    rollout_status,
    seconds_until_stuck,
    set_condition,
)
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.kube.controllers.informers import CONTROLLER, NAMESPACE, Informers, owned_and_orphans
from lastcall.kube.controllers.ownership import AdoptionRefused, claim, controller_of, decide_claim
from lastcall.kube.controllers.pods.control import owner_facts
from lastcall.kube.controllers.worker import Retry, Worker, split_key
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.clock import now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.workloads import Deployment, DeploymentStatus, ReplicaSet
    from lastcall.records.definitions.controllers import ScaleDecided

COMPONENT = "deployment-controller"
MAX_RETRIES = 15

_RULES = {"rollout": rules.RECONCILE_OLD_REPLICA_SETS, "scaling": rules.SCALE_DEPLOYMENT}


class DeploymentController:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world = world
        self._client = client
        self._recorder = recorder
        self._events = EventRecorder(client, world, COMPONENT)
        self._deployments: Informer[Deployment] = informers.get(DEPLOYMENTS)
        self._replica_sets: Informer[ReplicaSet] = informers.get(REPLICASETS)
        self._pods: Informer[Pod] = informers.get(PODS)
        self._worker = Worker(world, COMPONENT, self._sync, max_retries=MAX_RETRIES, events=self._events)
        self._deployments.add_handler(self._enqueue, lambda _, new: self._enqueue(new), self._enqueue)
        self._replica_sets.add_handler(self._replica_set_changed, self._replica_set_updated, self._replica_set_changed)
        informers.pod_routes.add_handler(REPLICASETS.kind, None, None, self._pod_deleted)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run([self._deployments, self._replica_sets, self._pods]), name=COMPONENT)

    # -- what happened → which Deployments to look at ----------------------------------------------------------------

    def _enqueue(self, deployment: Deployment) -> None:
        self._worker.queue.add(f"{namespace_of(deployment)}/{name_of(deployment)}")

    def _owner_of(self, replica_set: ReplicaSet) -> Deployment | None:
        reference = controller_of(replica_set)
        if reference is None or reference["kind"] != DEPLOYMENTS.kind:
            return None
        deployment = self._deployments.get(namespace_of(replica_set), reference["name"])
        return deployment if deployment is not None and uid_of(deployment) == reference["uid"] else None

    def _replica_set_changed(self, replica_set: ReplicaSet) -> None:
        if (owner := self._owner_of(replica_set)) is not None:
            self._enqueue(owner)
        elif controller_of(replica_set) is None:
            for deployment in self._deployments.by_index(NAMESPACE, namespace_of(replica_set)):
                if selector_of_expressions(deployment["spec"].get("selector")).matches(labels_of(replica_set)):
                    self._enqueue(deployment)

    def _replica_set_updated(self, old: ReplicaSet, new: ReplicaSet) -> None:
        before, after = controller_of(old), controller_of(new)
        if before != after and (owner := self._owner_of(old)) is not None:
            self._enqueue(owner)
        if after is not None or before != after or labels_of(old) != labels_of(new):
            self._replica_set_changed(new)

    def _pod_deleted(self, pod: Pod) -> None:
        """Recreate waits for the last of the old Pods; the ReplicaSet's own counts do not say that it is gone."""
        reference = controller_of(pod)
        if reference is None or reference["kind"] != REPLICASETS.kind:
            return
        replica_set = self._replica_sets.get(namespace_of(pod), reference["name"])
        owner = self._owner_of(replica_set) if replica_set is not None else None
        if owner is not None and (owner["spec"].get("strategy") or {}).get("type") == "Recreate":
            sets = self._replica_sets.by_index(CONTROLLER, uid_of(owner))
            if not any(self._pods.has_any(CONTROLLER, uid_of(each)) for each in sets):
                self._enqueue(owner)

    # -- sync --------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        """(`syncDeployment`)"""
        cached = self._deployments.get(*split_key(key))
        if cached is None:
            return
        deployment = with_own_metadata(cached)
        selector = deployment["spec"].get("selector") or {}
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            message = "This deployment is selecting all pods. A non-empty selector is required."
            self._events.event(deployment, "Warning", "SelectingAll", message)
            return
        replica_sets = await self._claim(deployment)
        if is_terminating(deployment):
            await self._sync_status_only(deployment, replica_sets)
            return
        await self._check_paused(deployment)
        if deployment["spec"].get("paused") or is_scaling_event(deployment, replica_sets):
            await self._scale(deployment, replica_sets)
        elif (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
            await self._recreate(deployment, replica_sets)
        else:
            await self._roll(deployment, replica_sets)

    async def _claim(self, deployment: Deployment) -> list[ReplicaSet]:
        found = owned_and_orphans(self._replica_sets, uid_of(deployment), namespace_of(deployment))
        decision = decide_claim(deployment, selector_of_expressions(deployment["spec"].get("selector")), found)
        try:
            return await claim(self._client, deployment, DEPLOYMENTS, REPLICASETS, decision)
        except AdoptionRefused as refused:
            raise Retry(str(refused)) from refused

    async def _sync_status_only(self, deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> None:
        new = find_new(deployment, replica_sets)
        await self._write_status(deployment, calculate_status(deployment, replica_sets, new, now(self._world.clock)))

    async def _check_paused(self, deployment: Deployment) -> None:
        """(`checkPausedConditions`)"""
        if not has_progress_deadline(deployment):
            return
        status = deployment.setdefault("status", {})
        progressing = get_condition(status, "Progressing")
        reason = (progressing or {}).get("reason")
        if reason == TIMED_OUT:
            return
        paused = bool(deployment["spec"].get("paused"))
        if paused == (reason == "DeploymentPaused"):
            return
        words = (
            ("DeploymentPaused", "Deployment is paused") if paused else ("DeploymentResumed", "Deployment is resumed")
        )
        changed = copy_object(status)
        set_condition(changed, condition("Progressing", "Unknown", *words, now(self._world.clock)))
        await self._write_status(deployment, changed)

    # -- strategies --------------------------------------------------------------------------------------------------

    async def _scale(self, deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> None:
        """No rollout: sizes only. (`sync`)"""
        new, old = await self._new_and_old(deployment, replica_sets, create=False)
        await self._resize_all(deployment, scale(deployment, new, old), "scaling")
        if deployment["spec"].get("paused"):
            await self._clean_up(deployment, old)
        everything = self._latest([*old, *([new] if new is not None else [])])
        moment = now(self._world.clock)
        await self._write_status(deployment, calculate_status(deployment, everything, new, moment))

    async def _roll(self, deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> None:
        """One step up, else one step down. (`rolloutRolling`)"""
        new, old = await self._new_and_old(deployment, replica_sets, create=True)
        assert new is not None
        everything = [*old, new]
        if replicas_of(new) != replicas_of(deployment):
            size = min(replicas_of(deployment), new_replicas(deployment, everything, new))
            steps = [] if size == replicas_of(new) else [Resize(new, size)]
        else:
            steps = []
        steps = steps or shrink_old(deployment, [each for each in old if replicas_of(each) > 0], new)
        await self._resize_all(deployment, steps)
        if not steps and is_complete(deployment, deployment.get("status") or {}):
            await self._clean_up(deployment, old)
        await self._sync_rollout_status(deployment, everything, new, steps)

    async def _recreate(self, deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> None:
        """The old Pods have to have ended before the first new one. (`rolloutRecreate`)"""
        new, old = await self._new_and_old(deployment, replica_sets, create=False)
        everything = [*old, *([new] if new is not None else [])]
        down = [Resize(each, 0) for each in old if replicas_of(each) > 0]
        if down:
            await self._resize_all(deployment, down)
        elif not self._old_pods_running(deployment, old, new):
            if new is None:
                new, old = await self._new_and_old(deployment, replica_sets, create=True)
                assert new is not None
                everything = [*old, new]
            if replicas_of(new) != replicas_of(deployment):
                down = [Resize(new, replicas_of(deployment))]
                await self._resize_all(deployment, down)
            elif is_complete(deployment, deployment.get("status") or {}):
                await self._clean_up(deployment, old)
        await self._sync_rollout_status(deployment, everything, new, down)

    def _old_pods_running(self, deployment: Deployment, old: Sequence[ReplicaSet], new: ReplicaSet | None) -> bool:
        """(`oldPodsRunning`)"""
        if any(status_count(each, "replicas") for each in old):
            return True
        others = find_old(self._replica_sets.by_index(CONTROLLER, uid_of(deployment)), new)
        pods = (pod for each in others for pod in self._pods.by_index(CONTROLLER, uid_of(each)))
        return any(not is_pod_terminal(pod) for pod in pods)

    # -- ReplicaSets -------------------------------------------------------------------------------------------------

    async def _new_and_old(
        self, deployment: Deployment, replica_sets: Sequence[ReplicaSet], *, create: bool
    ) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
        """The new ReplicaSet, made when asked and missing, and the old ones. (`getAllReplicaSetsAndSyncRevision`)"""
        new = find_new(deployment, replica_sets)
        old = find_old(replica_sets, new)
        revision = max((revision_of(each) for each in old), default=0) + 1
        if new is not None:
            return await self._sync_revision(deployment, new, revision), old
        return (await self._create(deployment, old, revision) if create else None), old

    async def _sync_revision(self, deployment: Deployment, new: ReplicaSet, revision: int) -> ReplicaSet:
        """The existing new ReplicaSet carries the highest revision, and the Deployment the same."""
        copy = with_own_metadata(new)
        changed = with_revision_annotations(copy, deployment, revision, exists=True)
        min_ready = deployment["spec"].get("minReadySeconds") or 0
        if (copy["spec"].get("minReadySeconds") or 0) != min_ready:
            copy["spec"] = {**copy["spec"], "minReadySeconds": min_ready}
            changed = True
        if changed:
            copy = cast("ReplicaSet", await self._client.update(REPLICASETS, copy, namespace_of(copy)))
        status = (deployment.get("status") or {}).copy()
        if has_progress_deadline(deployment) and get_condition(status, "Progressing") is None:
            text = f'Found new replica set "{name_of(copy)}"'
            set_condition(status, condition("Progressing", "True", "FoundNewReplicaSet", text, now(self._world.clock)))
        await self._write_revision(deployment, str(revision_of(copy)), status)
        return copy

    async def _create(self, deployment: Deployment, old: Sequence[ReplicaSet], revision: int) -> ReplicaSet:
        """(`getNewReplicaSet`)"""
        status = (deployment.get("status") or {}).copy()
        made = new_replica_set(deployment, status.get("collisionCount"))
        size = new_replicas(deployment, [*old, made], made)
        made["spec"]["replicas"] = size
        with_revision_annotations(made, deployment, revision, exists=False)
        try:
            created = cast("ReplicaSet", await self._client.create(REPLICASETS, made, namespace_of(deployment)))
        except StatusError as error:
            if not is_already_exists(error):
                await self._creation_failed(deployment, made, error)
                raise
            created = await self._existing(deployment, made, error)
        else:
            if size > 0:
                self._event(deployment, f"Scaled up replica set {name_of(created)} from 0 to {size}")
            if has_progress_deadline(deployment):
                text = f'Created new replica set "{name_of(created)}"'
                made_condition = condition("Progressing", "True", "NewReplicaSetCreated", text, now(self._world.clock))
                set_condition(status, made_condition)
        await self._write_revision(deployment, str(revision), status)
        return created

    async def _existing(self, deployment: Deployment, made: ReplicaSet, error: StatusError) -> ReplicaSet:
        """A ReplicaSet of that name is there: ours, of which the cache does not know yet, or another name is needed."""
        there = cast("ReplicaSet", await self._client.get(REPLICASETS, name_of(made), namespace_of(made)))
        owner = controller_of(there)
        ours = owner is not None and owner["uid"] == uid_of(deployment)
        if ours and equal_ignoring_hash(there["spec"]["template"], deployment["spec"]["template"]):
            return there
        status = copy_object(deployment).get("status") or {}
        status["collisionCount"] = (status.get("collisionCount") or 0) + 1
        await self._write_status(deployment, status)
        raise error

    async def _creation_failed(self, deployment: Deployment, made: ReplicaSet, error: StatusError) -> None:
        if namespace_is_terminating(error):
            return
        text = f'Failed to create new replica set "{name_of(made)}": {error.message}'
        if has_progress_deadline(deployment):
            status = copy_object(deployment).get("status") or {}
            moment = now(self._world.clock)
            set_condition(status, condition("Progressing", "False", "ReplicaSetCreateError", text, moment))
            await self._write_status(deployment, status)
        self._events.event(deployment, "Warning", "ReplicaSetCreateError", text)

    async def _resize_all(self, deployment: Deployment, steps: Sequence[Resize], why: str = "rollout") -> None:
        """In order; a ReplicaSet may come twice."""
        latest: dict[str, ReplicaSet] = {}
        for step in steps:
            current = latest.get(uid_of(step.replica_set), step.replica_set)
            latest[uid_of(current)] = await self._resize(deployment, current, step.replicas, why)

    def _record_scale(self, deployment: Deployment, written: ReplicaSet, before: int, size: int, step: str) -> None:
        """What the ReplicaSet's controller reacts to has this generation: the story joins the two by it."""
        meta = written["metadata"]
        facts: ScaleDecided = {
            **owner_facts({"kind": DEPLOYMENTS.kind, **deployment}),
            "step": step,
            "revision": (deployment["metadata"].get("annotations") or {}).get(REVISION, ""),
            "ofKind": REPLICASETS.kind,
            "name": name_of(written),
            "uid": uid_of(written),
            "generation": meta.get("generation", 0),
            "resourceVersion": meta.get("resourceVersion", ""),
            "from": before,
            "to": size,
            "why": "",
        }
        self._recorder.record(kinds.SCALE_DECIDED, rule=_RULES[step], facts=facts)

    async def _resize(self, deployment: Deployment, replica_set: ReplicaSet, size: int, step: str) -> ReplicaSet:
        """(`scaleReplicaSet`)"""
        copy = with_own_metadata(replica_set)
        before = replicas_of(replica_set)
        copy["spec"] = {**copy["spec"], "replicas": size}
        if not with_replicas_annotations(copy, deployment) and size == before:
            return replica_set
        written = cast("ReplicaSet", await self._client.update(REPLICASETS, copy, namespace_of(copy)))
        if size != before:
            self._record_scale(deployment, written, before, size, step)
            way = "up" if size > before else "down"
            self._event(deployment, f"Scaled {way} replica set {name_of(copy)} from {before} to {size}")
        return written

    async def _clean_up(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> None:
        for each in to_clean_up(deployment, old):
            try:
                await self._client.delete(REPLICASETS, name_of(each), namespace_of(each))
            except StatusError as error:
                if not is_not_found(error):
                    raise

    def _latest(self, replica_sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
        """As the cache has them now, oldest first."""
        found = (self._replica_sets.get(namespace_of(each), name_of(each)) or each for each in replica_sets)
        return by_age(list(found))

    # -- status ------------------------------------------------------------------------------------------------------

    async def _sync_rollout_status(
        self,
        deployment: Deployment,
        replica_sets: Sequence[ReplicaSet],
        new: ReplicaSet | None,
        steps: Sequence[Resize],
    ) -> None:
        """The counts that a step has just written come with the ReplicaSets' own events."""
        sizes = {uid_of(step.replica_set): step.replicas for step in steps}
        seen: list[ReplicaSet] = [
            {**each, "spec": {**each["spec"], "replicas": sizes.get(uid_of(each), replicas_of(each))}}
            for each in replica_sets
        ]
        moment = now(self._world.clock)
        status = rollout_status(deployment, seen, new, moment)
        await self._write_status(deployment, status)
        wait = seconds_until_stuck(deployment, deployment.get("status") or {}, moment)
        if wait is not None:
            self._worker.queue.add_after(f"{namespace_of(deployment)}/{name_of(deployment)}", wait)

    async def _write_revision(self, deployment: Deployment, revision: str, status: DeploymentStatus) -> None:
        annotations = deployment["metadata"].get("annotations") or {}
        if annotations.get(REVISION) == revision and status == (deployment.get("status") or {}):
            return
        deployment["metadata"]["annotations"] = {**annotations, REVISION: revision}
        await self._put_status(deployment, status)

    async def _write_status(self, deployment: Deployment, status: DeploymentStatus) -> None:
        if status != (deployment.get("status") or {}):
            await self._put_status(deployment, status)

    async def _put_status(self, deployment: Deployment, status: DeploymentStatus) -> None:
        """`deployment` becomes what was stored, so that the next write of this sync does not conflict with this one."""
        deployment["status"] = status
        answer = await self._client.update(DEPLOYMENTS, deployment, namespace_of(deployment), subresource="status")
        cast(dict[str, object], deployment).clear()
        deployment.update(with_own_metadata(cast("Deployment", answer)))

    def _event(self, deployment: Deployment, message: str) -> None:
        self._events.event(deployment, "Normal", "ScalingReplicaSet", message)
