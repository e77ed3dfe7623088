"""Warning Events for what this machine's runtime cannot do as a Pod asks for it: each once per Pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import uid_of
from lastcall.kube.cri.api import LIMITS_ENFORCED, MISSING_GROUPS, SINGLE_USER_ID, RuntimeService, RuntimeServiceError
from lastcall.kube.node.interfaces import EventRecorder, PodStatus
from lastcall.kube.node.pods.cgroups import declares_limits
from lastcall.kube.node.pods.spec import container_field_path

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

_MOST_REMEMBERED = 10_000

HELP = "`lastcall doctor` says what to do"


class RuntimeNotices:
    """`sandbox_ready` before the first container, `look` whenever the runtime's picture of a Pod has changed."""

    def __init__(self, runtime: RuntimeService, events: EventRecorder) -> None:
        self._runtime = runtime
        self._events = events
        self._warned: dict[tuple[str, str], None] = {}

    async def sandbox_ready(self, pod: Pod) -> None:
        """Warn about limits that nobody enforces."""
        if not declares_limits(pod):
            return
        try:
            condition = (await self._runtime.status()).find(LIMITS_ENFORCED)
        except RuntimeServiceError:
            return
        if condition is not None and not condition.status:
            message = f"CPU and memory limits are not enforced ({condition.message}); {HELP}"
            self._warn(pod, "LimitsNotEnforced", message)

    def look(self, pod: Pod, status: PodStatus) -> None:
        """Warn about users and groups that a container could not really have."""
        for container in reversed(status.container_statuses):
            name = container.metadata.name
            if calls := container.info.get(SINGLE_USER_ID):
                message = (
                    f"Container {name} called {calls.replace(' ', ', ')}: answered with success without being done, "
                    f"because there is only one user id here; {HELP}"
                )
                self._warn(pod, "SingleUserID", message, container_field_path(pod, name))
            if groups := container.info.get(MISSING_GROUPS):
                message = (
                    f"Container {name} is not a member of the groups {groups.replace(' ', ', ')} (fsGroup and "
                    f"supplementalGroups): they are not among the group ids here; {HELP}"
                )
                self._warn(pod, "GroupsNotMapped", message, container_field_path(pod, name))

    def _warn(self, pod: Pod, reason: str, message: str, field_path: str = "") -> None:
        key = (uid_of(pod), reason)
        if key in self._warned:
            return
        if len(self._warned) >= _MOST_REMEMBERED:
            del self._warned[next(iter(self._warned))]
        self._warned[key] = None
        self._events.event(pod, "Warning", reason, message, field_path=field_path)
