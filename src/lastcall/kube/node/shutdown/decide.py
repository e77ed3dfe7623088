"""Graceful node shutdown: who ends when. Pure.

Source: nodeshutdown/nodeshutdown_manager.go. Groups end one after the other, the least priority first; within a group
all Pods at once, each with its own grace period, at most the group's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.disruption import disruption_target
from lastcall.kube.node.admission.critical_pods import SYSTEM_CRITICAL_PRIORITY, TERMINATION_BY_KUBELET, priority_of
from lastcall.kube.node.admission.decide import Rejection
from lastcall.kube.node.status.conditions import set_pod_condition
from lastcall.kube.node.versions import Behaviour
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus

REASON = "Terminated"
MESSAGE = "Pod was terminated in response to imminent node shutdown."
NOT_READY = "node is shutting down"
REJECTION = Rejection("NodeShutdown", "Pod was rejected as the node is shutting down.")
DETECTED = "Shutdown manager detected shutdown event"
CANCELLED = "Shutdown manager detected shutdown cancellation"


@dataclass(frozen=True, slots=True)
class ShutdownGracePeriod:
    """Pods of this `priority` and above get `seconds` (KubeletConfiguration.shutdownGracePeriodByPodPriority)."""

    priority: int
    seconds: int


def grace_periods(total: int, critical: int) -> tuple[ShutdownGracePeriod, ...]:
    """Return the periods for `shutdownGracePeriod` and `shutdownGracePeriodCriticalPods`, seconds (migrateConfig).

    Raises ValueError when the critical Pods would get more than there is.
    """
    if not 0 <= critical <= total:
        raise ValueError(f"critical Pods have {critical} s of {total} s: they end within the whole period")
    return (ShutdownGracePeriod(0, total - critical), ShutdownGracePeriod(SYSTEM_CRITICAL_PRIORITY, critical))


DEFAULT_GRACE_PERIODS = grace_periods(30, 10)
"""A kubelet has none unless it is configured; here a shutdown is asked for."""


class ShutdownNotSupported(Exception):
    """The version cannot do what was asked for; the text says since when it can."""


def check_supported(behaviour: Behaviour, periods: Iterable[ShutdownGracePeriod]) -> None:
    """Raise ShutdownNotSupported if the version has no shutdown with these periods."""
    version = behaviour.version
    if not behaviour.node_shutdown_by_priority and any(
        each.priority not in (0, SYSTEM_CRITICAL_PRIORITY) for each in periods
    ):
        raise ShutdownNotSupported(
            f"Kubernetes {version} has no shutdownGracePeriodByPodPriority (since 1.24): "
            "give shutdownGracePeriod and shutdownGracePeriodCriticalPods (--grace, --grace-critical)"
        )


def group_by_priority(
    periods: Sequence[ShutdownGracePeriod], pods: Iterable[Pod]
) -> list[tuple[ShutdownGracePeriod, list[Pod]]]:
    """Return (group, its Pods), least priority first. A Pod is in the highest group not above it, or in the lowest."""
    groups: list[tuple[ShutdownGracePeriod, list[Pod]]]
    groups = [(period, []) for period in sorted(periods, key=lambda each: each.priority)]
    for pod in pods:
        below = [group for group in groups if group[0].priority <= priority_of(pod)]
        (below[-1] if below else groups[0])[1].append(pod)
    return groups


def grace_override(period: ShutdownGracePeriod, pod: Pod) -> int:
    """Return the grace period in seconds."""
    own = pod["spec"].get("terminationGracePeriodSeconds")
    return period.seconds if own is None else min(int(own), period.seconds)


def shutdown_status(status: APIPodStatus) -> None:
    """Change in place the status of a Pod that the shutdown ends. One that has succeeded keeps its phase."""
    if status.get("phase") != "Succeeded":
        status["phase"] = "Failed"
    status["reason"], status["message"] = REASON, MESSAGE
    set_pod_condition(status, disruption_target(TERMINATION_BY_KUBELET, MESSAGE))
