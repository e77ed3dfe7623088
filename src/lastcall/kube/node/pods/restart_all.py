"""A container's exit may restart all containers of its Pod in place: a clean slate in the same sandbox (KEP-5532).

The kubelet kills what runs without hooks and with the least grace, removes every record, the source's last, and starts
the Pod as if it were new; sandbox, address and volumes stay. What has to be done is read from the records and from the
condition AllContainersRestarting, so a kubelet that dies meanwhile goes on where it was. Pure.
Sources: container/helpers.go (ShouldAllContainersRestart, AllContainersRestartCleanedUp),
kuberuntime_manager.go:getContainersToReset, status/generate.go:GenerateAllContainersRestartingCondition.
"""

# check: pure

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating
from lastcall.kube.api.pods.restart_rules import RESTART_ALL, matching_rule
from lastcall.kube.cri.api import ContainerState, ContainerStatus
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.spec import containers_of, init_containers_of

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus

CONDITION = "AllContainersRestarting"
RESTARTING = "RestartingAllContainers"
"""Reason in the states of containers that were removed for it."""
REMOVED = "The container is removed because RestartAllContainers in place"


def is_restarting(status: APIPodStatus) -> bool:
    """Return whether a status of the API says that a restart of all is under way."""
    conditions = status.get("conditions") or []
    return any(each.get("type") == CONDITION and each.get("status") == "True" for each in conditions)


def should_restart_all(pod: Pod, pod_status: PodStatus, api_status: APIPodStatus) -> bool:
    """Return whether it is under way, or a container's exit asks for it. Never for a Pod that is being deleted."""
    if is_terminating(pod):
        return False
    if is_restarting(api_status):
        return True
    reported = {
        status["name"]: status
        for statuses in (api_status.get("initContainerStatuses"), api_status.get("containerStatuses"))
        for status in statuses or []
    }
    for container in (*init_containers_of(pod), *containers_of(pod)):
        if (found := pod_status.find(container["name"])) is not None:
            ended = found.exit_code if found.state == ContainerState.CONTAINER_EXITED else None
        else:
            state = (reported.get(container["name"]) or {}).get("state") or {}
            ended = (state.get("terminated") or {}).get("exitCode")
        if ended is not None and _asks_for_all(container, ended):
            return True
    return False


def _asks_for_all(container: Container, exit_code: int) -> bool:
    rule = matching_rule(container, exit_code)
    return rule is not None and rule.get("action") == RESTART_ALL


def is_cleaned_up(pod: Pod, pod_status: PodStatus) -> bool:
    """Return whether the runtime has no record of an init or regular container any more."""
    return all(pod_status.find(each["name"]) is None for each in (*init_containers_of(pod), *containers_of(pod)))


def containers_to_reset(pod: Pod, pod_status: PodStatus) -> list[ContainerStatus]:
    """Return what has to go: regular, then init containers in the order of the spec (getContainersToReset).

    Those that asked for it come last, so that they still do if we die on the way.
    """
    sources: list[ContainerStatus] = []
    targets: list[ContainerStatus] = []
    for container in (*containers_of(pod), *init_containers_of(pod)):
        own = [each for each in pod_status.container_statuses if each.metadata.name == container["name"]]
        newest = pod_status.find(container["name"])
        for each in own:
            exited = each.state == ContainerState.CONTAINER_EXITED
            asked = each is newest and exited and _asks_for_all(container, each.exit_code)
            (sources if asked else targets).append(each)
    return targets + sources
