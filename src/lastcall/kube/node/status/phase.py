"""The phase of a Pod from the states of its containers. Source: kubelet_pods.go:getPhase.

The order of evaluation is the rule: failed initialisation, pending initialisation, waiting, running, stopped.
"""

# check: pure

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.pods.restart_rules import container_should_restart
from lastcall.kube.node.pods.restart_all import RESTARTING
from lastcall.kube.node.pods.spec import (
    containers_of,
    init_containers_of,
    is_restartable_init_container,
    is_static_pod,
)

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import ContainerStateTerminated, ContainerStatus


Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]


def get_phase(
    pod: Pod,
    statuses: list[ContainerStatus],
    *,
    pod_is_terminal: bool,
    pod_has_initialized: bool,
    force_terminal: bool = True,
) -> Phase:
    """Return Pending, Running, Succeeded or Failed.

    `statuses` are regular and init container statuses. `pod_is_terminal` says that no container will be started again
    (the final computation). `pod_has_initialized` is true once any regular container was created. With
    `force_terminal` False (before 1.27) a Pod that is being stopped is judged by its restart policy alone.
    """
    by_name = {status["name"]: status for status in statuses}
    init_pending, init_failed = _plain_init(pod, by_name)
    starting, running, waiting, unknown = _sidecars(pod, by_name)
    stopped = succeeded = restartable = 0
    for container in containers_of(pod):
        status = by_name.get(container["name"])
        state = (status or {}).get("state") or {}
        last = ((status or {}).get("lastState") or {}).get("terminated")
        if "running" in state:
            running += 1
        elif "terminated" in state:
            stopped += 1
            succeeded += state["terminated"]["exitCode"] == 0
            restartable += _restarts(container, pod, state["terminated"])
        elif "waiting" in state and last is not None:
            stopped += 1
            restartable += _restarts(container, pod, last)
        elif "waiting" in state:
            waiting += 1
        else:
            unknown += 1

    if init_failed:
        return "Failed"
    if init_pending or (starting and not pod_has_initialized) or waiting:
        return "Pending"
    if running and not unknown:
        return "Running"
    if stopped and not running and not unknown:
        if pod_is_terminal and force_terminal and not is_static_pod(pod):
            return "Succeeded" if stopped == succeeded else "Failed"
        if restartable:
            return "Running"
        return "Succeeded" if stopped == succeeded else "Failed"
    return "Pending"


def _restarts(container: Container, pod: Pod, ended: ContainerStateTerminated) -> bool:
    """Ended like this, is it started again?"""
    return ended.get("reason") == RESTARTING or container_should_restart(container, pod, ended["exitCode"])


def _plain_init(pod: Pod, by_name: dict[str, ContainerStatus]) -> tuple[int, int]:
    """(not finished yet, failed for good) among the plain init containers."""
    pending = failed = 0
    for container in init_containers_of(pod):
        if is_restartable_init_container(container):
            continue
        status = by_name.get(container["name"]) or {}
        state = status.get("state") or {}
        ended = state.get("terminated")
        if ended is None and "waiting" in state:
            ended = (status.get("lastState") or {}).get("terminated")
        if ended is None:
            pending += 1
        elif ended["exitCode"] != 0:
            if _restarts(container, pod, ended):
                pending += 1
            else:
                failed += 1
    return pending, failed


def _sidecars(pod: Pod, by_name: dict[str, ContainerStatus]) -> tuple[int, int, int, int]:
    """Return how many sidecars run without having started, run, wait, or are unknown. Terminated ones do not count."""
    starting = running = waiting = unknown = 0
    for container in init_containers_of(pod):
        if not is_restartable_init_container(container):
            continue
        status = by_name.get(container["name"])
        state = (status or {}).get("state") or {}
        if status is None:
            unknown += 1
        elif "running" in state:
            running += 1
            starting += not status.get("started")
        elif "waiting" in state:
            waiting += not (status.get("lastState") or {}).get("terminated")
        elif "terminated" not in state:
            unknown += 1
    return starting, running, waiting, unknown
