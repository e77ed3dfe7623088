"""The writes of a preemption: the victims' condition, their DELETE, and what is recorded and said about it.

Source: pkg/scheduler/framework/preemption/executor.go (PreemptPod, prepareCandidateAsync).
"""

# check: observes because it decided the deletion

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.resources import PODS
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH, Client, ConnectionLost
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.scheduler.pod_info import PodInfo
from lastcall.kube.scheduler.preemption import PREEMPTION_BY_SCHEDULER, Preemption
from lastcall.records import rules
from lastcall.records.kinds import DELETION_DECIDED
from lastcall.records.record import Recorder
from lastcall.world.clock import now, rfc3339
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodCondition
    from lastcall.records.definitions.controllers import DeletionDecided

log = logging.getLogger(__name__)


class Victims:
    """Ends the Pods that a preemption chose."""

    def __init__(self, world: World, client: Client, events: EventRecorder, recorder: Recorder) -> None:
        self._world = world
        self._client = client
        self._events = events
        self._recorder = recorder

    async def end(self, preemptor: PodInfo, preemption: Preemption) -> bool:
        """Delete every victim that is not ending already; return False when one could not be deleted."""
        assert preemption.chosen is not None
        done = True
        victims = preemption.chosen.victims
        for rank, victim in enumerate(reversed(victims), start=1):  # the least important goes first
            if victim.terminating or victim.preempted:
                continue
            try:
                await self._end_one(preemptor, victim, preemption, rank)
            except (StatusError, ConnectionLost) as error:
                log.warning("%s/%s could not be preempted: %s", victim.namespace, victim.name, error)
                done = False
        return done

    async def _end_one(self, preemptor: PodInfo, victim: PodInfo, preemption: Preemption, rank: int) -> None:
        assert preemption.chosen is not None
        pod, node = victim.pod, preemption.chosen.node.name
        try:
            await self._mark(pod, str(preemptor.pod["spec"].get("schedulerName") or "default-scheduler"))
            why = facts(preemptor, victim, preemption, rank)
            self._recorder.record(DELETION_DECIDED, pod_uid=victim.uid, rule=rules.PREEMPT_POD, facts=why)
            await self._client.delete(PODS, victim.name, victim.namespace, uid=victim.uid)
            victim.preempted = True
        except StatusError as error:
            if is_not_found(error):
                return  # gone already
            raise
        message = f"Preempted by pod {preemptor.uid} on node {node}"
        self._events.event(pod, "Normal", "Preempted", message)

    async def _mark(self, pod: Pod, scheduler: str) -> None:
        """The condition DisruptionTarget, before the DELETE."""
        condition: PodCondition = {
            "type": "DisruptionTarget",
            "observedGeneration": pod["metadata"].get("generation", 0),
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(now(self._world.clock)),
            "reason": PREEMPTION_BY_SCHEDULER,
            "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        }
        old = get_condition(pod.get("status") or {}, "DisruptionTarget")
        if old is not None and all(old.get(key) == condition[key] for key in ("status", "reason", "message")):
            return
        await self._client.patch(
            PODS,
            name_of(pod),
            {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [condition]}},
            namespace_of(pod),
            content_type=STRATEGIC_MERGE_PATCH,
            subresource="status",
        )


def facts(preemptor: PodInfo, victim: PodInfo, preemption: Preemption, rank: int) -> DeletionDecided:
    """Return why this Pod is preempted, and for whom."""
    assert preemption.chosen is not None
    chosen = preemption.chosen
    name = f"{preemptor.namespace}/{preemptor.name}"
    needs = ", ".join(preemptor.requirements.requests) or "room"
    return {
        "why": f"preempted by {name}: it needs {needs} on {chosen.node.name} and has priority {preemptor.priority}, "
        f"this Pod {victim.priority}",
        "preemptor": name,
        "preemptorUid": preemptor.uid,
        "preemptorPriority": preemptor.priority,
        "priority": victim.priority,
        "node": chosen.node.name,
        "rank": rank,
        "victims": len(chosen.victims),
        "candidates": preemption.candidates,
        "budgetsViolated": chosen.violations,
        "observedResourceVersion": resource_version_of(victim.pod),
    }
