"""activeDeadlineSeconds: a Pod fails when it has been on the node too long (kubelet active_deadline.go)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.node.interfaces import EventRecorder
from lastcall.world.clock import now
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus

REASON = "DeadlineExceeded"
MESSAGE = "Pod was active on the node longer than the specified deadline"


class ActiveDeadlineHandler:
    """A `status_generator.PodSyncHandler`. `get_status(uid)` is the status manager's; it knows the start time first."""

    def __init__(
        self, *, world: World, events: EventRecorder, get_status: Callable[[str], APIPodStatus | None]
    ) -> None:
        self._world = world
        self._events = events
        self._get_status = get_status

    def __call__(self, pod: Pod) -> tuple[str, str] | None:
        """(reason, message) once the deadline has passed; the Event is repeated with every status computed."""
        left = self.seconds_left(pod)
        if left is None or left > 0:
            return None
        self._events.event(pod, "Normal", REASON, MESSAGE)
        return REASON, MESSAGE

    def seconds_left(self, pod: Pod) -> float | None:
        """Return the seconds until the deadline, counted from status.startTime; None without deadline or start."""
        deadline = pod["spec"].get("activeDeadlineSeconds")
        if deadline is None:
            return None
        status = self._get_status(uid_of(pod)) or pod.get("status") or {}
        if not status.get("startTime"):
            return None
        age = now(self._world.clock) - parse_rfc3339(status["startTime"])
        return float(deadline - age.total_seconds())
