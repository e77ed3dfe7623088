"""Which Pods are critical, and whom they may push off the node. Pure.

Sources: pkg/kubelet/types/pod_update.go (IsCriticalPod, Preemptable), preemption/preemption.go. The order of victims:
as few Guaranteed Pods as possible, then as few Burstable ones; within a class the one nearest to what is needed, and of
two equally near the one that asks for less.
"""

# check: pure

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.disruption import disruption_target
from lastcall.kube.node.admission.decide import Shortage, request_of
from lastcall.kube.node.pods.spec import get_pod_qos, is_mirror_pod, is_static_pod
from lastcall.kube.node.status.conditions import set_pod_condition
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
TERMINATION_BY_KUBELET = "TerminationByKubelet"
"""The reason of DisruptionTarget for every end that the node decides."""

PREEMPTING = "Preempting"
EVENT_MESSAGE = "Preempted in order to admit critical pod"
CONDITION_MESSAGE = "Pod was preempted by Kubelet to accommodate a critical pod."

Needs = dict[str, int]
"""Resource → how much is missing: millicores of cpu, bytes of memory, Pods."""


class NoVictims(Exception):
    """Not even all Pods that may be preempted would make room."""


@dataclass(frozen=True, slots=True)
class _Classes:
    best_effort: list[Pod]
    burstable: list[Pod]
    guaranteed: list[Pod]


def priority_of(pod: Pod) -> int:
    return int(pod["spec"].get("priority") or 0)


def is_critical_pod(pod: Pod) -> bool:
    """Return True for static Pods, mirrors, and Pods of a system-critical priority."""
    return is_static_pod(pod) or is_mirror_pod(pod) or priority_of(pod) >= SYSTEM_CRITICAL_PRIORITY


def is_preemptable(preemptor: Pod, preemptee: Pod) -> bool:
    if is_critical_pod(preemptor) and not is_critical_pod(preemptee):
        return True
    own, other = preemptor["spec"].get("priority"), preemptee["spec"].get("priority")
    return own is not None and other is not None and own > other


def pods_to_preempt(preemptor: Pod, pods: Iterable[Pod], shortages: Sequence[Shortage]) -> list[Pod]:
    """Return the victims in the order in which they end (getPodsToPreempt). Raises NoVictims."""
    needs = {shortage.resource: shortage.missing for shortage in shortages}
    classes = _by_qos([pod for pod in pods if is_preemptable(preemptor, pod)])
    best_effort, burstable, guaranteed = classes.best_effort, classes.burstable, classes.guaranteed
    if unmet := _without(needs, [*best_effort, *burstable, *guaranteed]):
        text = "".join(f"(res: {resource}, q: {amount}), " for resource, amount in unmet.items())
        raise NoVictims(f"no set of running pods found to reclaim resources: [{text}]")
    of_guaranteed = _nearest(guaranteed, _without(needs, [*best_effort, *burstable]))
    of_burstable = _nearest(burstable, _without(needs, [*best_effort, *of_guaranteed]))
    of_best_effort = _nearest(best_effort, _without(needs, [*of_burstable, *of_guaranteed]))
    return [*of_best_effort, *of_burstable, *of_guaranteed]


def preempted_status(status: APIPodStatus) -> None:
    """Change the status of a victim in place."""
    status["phase"], status["reason"], status["message"] = "Failed", PREEMPTING, EVENT_MESSAGE
    set_pod_condition(status, disruption_target(TERMINATION_BY_KUBELET, CONDITION_MESSAGE))


def _by_qos(pods: list[Pod]) -> _Classes:
    found: dict[str, list[Pod]] = {"BestEffort": [], "Burstable": [], "Guaranteed": []}
    for pod in pods:
        found[get_pod_qos(pod)].append(pod)
    return _Classes(found["BestEffort"], found["Burstable"], found["Guaranteed"])


def _without(needs: Needs, pods: Iterable[Pod]) -> Needs:
    """What is still missing when those Pods are gone (admissionRequirementList.subtract)."""
    gone = list(pods)
    left = {resource: amount - sum(request_of(pod, resource) for pod in gone) for resource, amount in needs.items()}
    return {resource: amount for resource, amount in left.items() if amount > 0}


def _nearest(pods: Sequence[Pod], needs: Needs) -> list[Pod]:
    """getPodsToPreemptByDistance."""
    left, chosen = list(pods), []
    while needs and left:
        best = min(left, key=lambda pod: (_distance(pod, needs), request_of(pod, "memory"), request_of(pod, "cpu")))
        left.remove(best)
        chosen.append(best)
        needs = _without(needs, [best])
    return chosen


def _distance(pod: Pod, needs: Needs) -> float:
    """0: the Pod alone is enough; each resource it leaves wanting adds up to 1."""
    missing = ((amount, amount - request_of(pod, resource)) for resource, amount in needs.items())
    return sum((left / amount) ** 2 for amount, left in missing if left > 0)
