"""Which container instance a log request means. Source: kubelet_pods.go:validateContainerLogStatus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import name_of
from lastcall.kube.api.pods.spec import StatusField
from lastcall.kube.api.text.go_notation import go_quote

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import ContainerState, ContainerStatus, PodStatus


class LogsNotAvailable(Exception):
    """There is nothing to read; the text is for the user."""


def log_container_id(pod: Pod, status: PodStatus, container: str, previous: bool) -> str:
    """Return the API's containerID whose log to read. Raises LogsNotAvailable."""
    where = f"{go_quote(container)} in pod {go_quote(name_of(pod))}"
    found: ContainerStatus | None = None
    field: StatusField
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        found = found or next((c for c in status.get(field) or [] if c["name"] == container), None)
    if found is None:
        raise LogsNotAvailable(f"container {where} is not available")
    state: ContainerState = found.get("state") or {}
    last_id = str(((found.get("lastState") or {}).get("terminated") or {}).get("containerID") or "")
    if previous:
        if not last_id:
            raise LogsNotAvailable(f"previous terminated container {where} not found")
        return last_id
    if "running" in state:
        return str(found["containerID"])
    if "terminated" in state:
        own = str(state["terminated"].get("containerID") or "") or last_id
        if not own:
            raise LogsNotAvailable(f"container {where} is terminated")
        return own
    if (found.get("lastState") or {}).get("terminated"):
        if not last_id:
            raise LogsNotAvailable(f"container {where} is terminated")
        return last_id
    if "waiting" in state:
        reason = state["waiting"].get("reason", "")
        words = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}
        raise LogsNotAvailable(f"container {where} is waiting to start: {words.get(reason, reason)}")
    raise LogsNotAvailable(f"container {where} is waiting to start - no logs yet")
