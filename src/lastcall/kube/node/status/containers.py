"""Container statuses of the API from what the runtime knows. Source: kubelet_pods.go:convertToAPIContainerStatuses."""

# check: pure

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating
from lastcall.kube.cri.api import ContainerState, ContainerStatus
from lastcall.kube.node.interfaces import PodStatus, StartError
from lastcall.kube.node.pods.restart_all import REMOVED, RESTARTING
from lastcall.kube.node.pods.runtime_pod import should_container_be_restarted
from lastcall.kube.node.pods.spec import init_containers_of
from lastcall.kube.node.status.features import StatusFeatures
from lastcall.kube.node.status.resources import container_resources
from lastcall.world.clock import rfc3339

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import ContainerState as APIContainerState
    from lastcall.kube.api.types.pod_status import ContainerStateTerminated, ContainerStateWaiting, VolumeMountStatus
    from lastcall.kube.api.types.pod_status import ContainerStatus as APIContainerStatus

OWN_RUNTIME = "lastcall"
STATUS_UNKNOWN = "ContainerStatusUnknown"
UNKNOWN_EXIT_CODE = 137

GetStartError = Callable[[str], StartError | None]
"""Container name -> why its last start failed."""
GetMessage = Callable[[ContainerStatus], str]
"""Runtime status of an exited container -> the whole termination message."""


def container_id(runtime_id: str, runtime: str = OWN_RUNTIME) -> str:
    """Return `containerID` as the API shows it, with the runtime's name; "" stays ""."""
    return f"{runtime}://{runtime_id}" if runtime_id else ""


def runtime_id(api_container_id: str) -> str:
    """Return the runtime's id in an API `containerID`."""
    return api_container_id.split("://", 1)[-1]


def time_of_ns(nanoseconds: int) -> str:
    """Return the `metav1.Time` of nanoseconds since the epoch: whole seconds, cut off."""
    return rfc3339(datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC))


def status_unknown_terminated(message: str) -> ContainerStateTerminated:
    """Return the Terminated state of a container whose record is lost."""
    return {
        "exitCode": UNKNOWN_EXIT_CODE,
        "reason": STATUS_UNKNOWN,
        "message": message,
        "startedAt": None,
        "finishedAt": None,
    }


def convert_to_api_container_statuses(
    pod: Pod,
    pod_status: PodStatus,
    previous: list[APIContainerStatus],
    containers: Sequence[Container],
    *,
    is_init: bool,
    features: StatusFeatures,
    start_error: GetStartError,
    termination_message: GetMessage,
    show_stop_signal: bool = False,
    restarting_all: bool = False,
    runtime: str = OWN_RUNTIME,
) -> list[APIContainerStatus]:
    """Return the statuses of `containers`: by name, or in spec order for init containers.

    `previous` are the statuses last reported for the same kind of container.
    """
    has_init = bool(init_containers_of(pod))
    default_reason = "PodInitializing" if has_init else "ContainerCreating"
    old = {status["name"]: status for status in previous}
    instances = _newest_first(pod_status)
    statuses: dict[str, APIContainerStatus] = {}
    for container in containers:
        name = container["name"]
        found, old_status = instances.get(name, []), old.get(name)
        if found:
            status = _from_runtime(pod, container, found[0], old_status, features, termination_message, runtime)
            if show_stop_signal and found[0].stop_signal:
                status["stopSignal"] = found[0].stop_signal
            if len(found) > 1:
                status["lastState"] = _state(found[1], old_status, termination_message, runtime)
            elif old_status is not None:  # the instance it came from was removed meanwhile
                status["lastState"] = (old_status.get("lastState") or {}).copy()
        else:
            status = _without_record(pod, container, old_status, default_reason, features)
            if restarting_all:
                _removed_for_restart(status, old_status)
            elif is_init and _init_was_completed(pod, pod_status, container, status):
                status["state"] = {"terminated": _completed_long_ago()}
        statuses[name] = status

    for container in containers:
        newest = next(iter(instances.get(container["name"], [])), None)
        if is_init and newest is not None and newest.state == ContainerState.CONTAINER_EXITED and newest.exit_code == 0:
            continue
        if not should_container_be_restarted(container, pod, newest):
            continue
        error = start_error(container["name"])
        if error is not None:
            _show_start_error(statuses[container["name"]], error)

    if is_init:
        return list(statuses.values())
    return [statuses[name] for name in sorted(statuses)]


def _completed_long_ago() -> ContainerStateTerminated:
    return {
        "exitCode": 0,
        "reason": "Completed",
        "message": "Unable to get init container status from container runtime and pod has been initialized, treat it "
        "as exited normally",
        "startedAt": None,
        "finishedAt": None,
    }


def _show_start_error(status: APIContainerStatus, error: StartError) -> None:
    if "terminated" in status["state"]:
        status["lastState"] = status["state"]
    waiting: ContainerStateWaiting = {"reason": error.reason}
    if error.message:
        waiting["message"] = error.message
    status["state"] = {"waiting": waiting}


def _newest_first(pod_status: PodStatus) -> dict[str, list[ContainerStatus]]:
    by_name: dict[str, list[ContainerStatus]] = {}
    for instance in sorted(pod_status.container_statuses, key=lambda s: s.created_at, reverse=True):
        by_name.setdefault(instance.metadata.name, []).append(instance)
    return by_name


def _from_runtime(
    pod: Pod,
    container: Container,
    instance: ContainerStatus,
    old: APIContainerStatus | None,
    features: StatusFeatures,
    termination_message: GetMessage,
    runtime: str,
) -> APIContainerStatus:
    status: APIContainerStatus = {
        "name": container["name"],
        "state": _state(instance, old, termination_message, runtime),
        "lastState": {},
        "ready": False,
        "restartCount": instance.metadata.attempt,
        "image": instance.image,
        "imageID": instance.image_ref,
        "containerID": container_id(instance.id, runtime),
    }
    if instance.state == ContainerState.CONTAINER_UNKNOWN and old is not None and "running" in (old.get("state") or {}):
        status["restartCount"] = old["restartCount"] + 1
    if features.container_resources:
        status["resources"] = container_resources(container, instance, (old or {}).get("resources"))
        if given := (container.get("resources") or {}).get("requests"):
            status["allocatedResources"] = given
    _add_volume_mounts(status, container, features)
    return status


def _state(
    instance: ContainerStatus, old: APIContainerStatus | None, termination_message: GetMessage, runtime: str
) -> APIContainerState:
    if instance.state == ContainerState.CONTAINER_RUNNING:
        return {"running": {"startedAt": time_of_ns(instance.started_at)}}
    if instance.state == ContainerState.CONTAINER_EXITED:
        ended: ContainerStateTerminated = {"exitCode": instance.exit_code}
        if instance.reason:
            ended["reason"] = instance.reason
        if message := termination_message(instance):
            ended["message"] = message
        return {
            "terminated": ended
            | {
                "startedAt": time_of_ns(instance.started_at),
                "finishedAt": time_of_ns(instance.finished_at),
                "containerID": container_id(instance.id, runtime),
            }
        }
    was_running = old is not None and "running" in (old.get("state") or {})
    if instance.state == ContainerState.CONTAINER_UNKNOWN and was_running:
        return {
            "terminated": status_unknown_terminated("The container could not be located when the pod was terminated")
        }
    return {"waiting": {}}


def _without_record(
    pod: Pod, container: Container, old: APIContainerStatus | None, default_reason: str, features: StatusFeatures
) -> APIContainerStatus:
    """The status of a container of which the runtime knows nothing."""
    old_state = (old or {}).get("state") or {}
    if old is not None and "terminated" in old_state:
        return old.copy()
    status: APIContainerStatus = {
        "name": container["name"],
        "state": {"waiting": {"reason": default_reason}},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": container.get("image", ""),
        "imageID": "",
    }
    _add_volume_mounts(status, container, features)
    if old is None:
        return status
    status["restartCount"] = old.get("restartCount", 0)
    status["lastState"] = (old.get("lastState") or {}).copy()
    if "running" in old_state and "terminated" not in status["lastState"]:
        # It ran and its record is gone: say so, or the Pod would fall back to Pending.
        status["lastState"] = {
            "terminated": status_unknown_terminated(
                "The container could not be located when the pod was deleted.  The container used to be Running"
            )
        }
        if not is_terminating(pod):
            status["restartCount"] += 1
    return status


def _removed_for_restart(status: APIContainerStatus, old: APIContainerStatus | None) -> None:
    """The record went because all containers restart: it waits, and counts as one more restart."""
    before, last = (old or {}).get("state") or {}, (old or {}).get("lastState") or {}
    if (before.get("waiting") or {}).get("reason") == RESTARTING:
        return  # reported already
    if "running" not in before and "terminated" not in before and "terminated" not in last:
        return  # it never ran
    status["state"] = {"waiting": {"reason": RESTARTING, "message": REMOVED}}
    ended = status_unknown_terminated(REMOVED)
    ended["reason"] = RESTARTING
    status["lastState"] = {"terminated": ended}
    status["restartCount"] = int((old or {}).get("restartCount") or 0) + 1
    status["ready"] = False
    status.pop("containerID", None)
    status.pop("started", None)


def _init_was_completed(pod: Pod, pod_status: PodStatus, container: Container, status: APIContainerStatus) -> bool:
    """A plain init container without a record, although regular containers exist, has completed."""
    if container.get("restartPolicy") == "Always" or "terminated" in status["state"]:
        return False
    regular = {c["name"] for c in pod["spec"].get("containers") or []}
    return any(instance.metadata.name in regular for instance in pod_status.container_statuses)


def _add_volume_mounts(status: APIContainerStatus, container: Container, features: StatusFeatures) -> None:
    if not features.volume_mounts or not container.get("volumeMounts"):
        return
    mounts: list[VolumeMountStatus] = []
    for mount in container["volumeMounts"]:
        one: VolumeMountStatus = {"name": mount["name"], "mountPath": mount["mountPath"]}
        if mount.get("readOnly"):
            one |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
        mounts.append(one)
    status["volumeMounts"] = mounts
