"""May a Pod run here? And if it is critical and does not fit: who ends for it? (kubelet.go:HandlePodAdditions)"""

# check: observes because it records its own decision

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import resource_version_of, uid_of
from lastcall.kube.node.admission.critical_pods import (
    EVENT_MESSAGE,
    NoVictims,
    is_critical_pod,
    pods_to_preempt,
    preempted_status,
)
from lastcall.kube.node.admission.decide import AdmitHandler, Rejection, shortages
from lastcall.kube.node.interfaces import EventRecorder
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.node.workers.manager import PodWorkers
    from lastcall.records.definitions.controllers import DeletionDecided


class PodAdmission:
    """`decide` for each new Pod. `made_room(uid)` is called when the victims of a critical Pod have ended."""

    def __init__(
        self,
        *,
        tasks: Tasks,
        workers: PodWorkers,
        events: EventRecorder,
        recorder: Recorder,
        node_name: str,
        allocatable: Mapping[str, str],
        handlers: Sequence[AdmitHandler],
        made_room: Callable[[str], None],
    ) -> None:
        self._tasks = tasks
        self._workers = workers
        self._events = events
        self._recorder = recorder
        self._node_name = node_name
        self._allocatable = dict(allocatable)
        self._handlers = tuple(handlers)
        self._made_room = made_room
        self._preempting: dict[str, None] = {}

    def is_held(self, uid: str) -> bool:
        """Return whether the Pod may not start yet because its victims have not ended."""
        return uid in self._preempting

    def decide(self, pod: Pod, others: list[Pod]) -> Rejection | None:
        """Return why a Pod is rejected; None if it may run, at once or, if `is_held`, later."""
        rejection = next((no for handler in self._handlers if (no := handler(pod, others)) is not None), None)
        if rejection is not None and is_critical_pod(pod) and rejection.reason.startswith("OutOf"):
            return self._make_room(pod, others)
        return rejection

    def _make_room(self, pod: Pod, others: list[Pod]) -> Rejection | None:
        """A critical Pod does not fit: others are ended for it (preemption.go:HandleAdmissionFailure). Nothing waits.

        None: it is started once they have ended.
        """
        try:
            victims = pods_to_preempt(pod, others, shortages(pod, others, self._allocatable))
        except NoVictims as error:
            text = f"preemption: error finding a set of pods to preempt: {error}"
            return Rejection(
                "UnexpectedAdmissionError",
                f"Unexpected error while attempting to recover from admission failure: {text}",
            )
        self._preempting[uid_of(pod)] = None
        preempt = crash_guard.guarded("kubelet preemption", uid_of(pod), self._preempt(pod, victims))
        self._tasks.spawn(preempt, name=f"preempt for {uid_of(pod)}")
        return None

    async def _preempt(self, pod: Pod, victims: list[Pod]) -> None:
        uid = uid_of(pod)
        for victim in victims:
            facts: DeletionDecided = {
                "why": f"the critical Pod {pod['metadata']['name']} does not fit on the node beside it",
                "ownerKind": "Node",
                "owner": self._node_name,
                "observedResourceVersion": resource_version_of(victim),
                "preemptor": uid,
            }
            rule = rules.EVICT_PODS_TO_FREE_REQUESTS
            self._recorder.record(kinds.DELETION_DECIDED, pod_uid=uid_of(victim), rule=rule, facts=facts)
            self._events.event(victim, "Warning", "Preempting", EVENT_MESSAGE)
            with crash_guard.Turn("kubelet preemption", uid_of(victim)), suppress(TimeoutError):  # an Event says so
                await self._workers.kill_pod_now(
                    victim, evict=True, grace_period=None, pod_status_func=preempted_status
                )
        self._preempting.pop(uid, None)
        self._made_room(uid)
