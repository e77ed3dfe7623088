"""What has changed between two listings of a runtime. Pure.

Source of the way: kubelet pkg/kubelet/pleg/generic.go; containerd before 1.7 has no GetContainerEvents.
"""

from collections.abc import Iterable, Iterator, Mapping

from lastcall.kube.cri.api import (
    ContainerEventResponse,
    ContainerEventType,
    ContainerState,
    ContainerStatus,
    PodSandboxState,
    PodSandboxStatus,
)

Seen = Mapping[str, tuple[int, str, bool]]
"""Id → (state, uid of its Pod, whether it is a sandbox)."""

_CONTAINERS = {
    ContainerState.CONTAINER_CREATED: ContainerEventType.CONTAINER_CREATED_EVENT,
    ContainerState.CONTAINER_RUNNING: ContainerEventType.CONTAINER_STARTED_EVENT,
    ContainerState.CONTAINER_EXITED: ContainerEventType.CONTAINER_STOPPED_EVENT,
    ContainerState.CONTAINER_UNKNOWN: ContainerEventType.CONTAINER_STOPPED_EVENT,
}
_SANDBOXES = {
    PodSandboxState.SANDBOX_READY: ContainerEventType.CONTAINER_STARTED_EVENT,
    PodSandboxState.SANDBOX_NOTREADY: ContainerEventType.CONTAINER_STOPPED_EVENT,
}


def seen(sandboxes: Iterable[PodSandboxStatus], containers: Iterable[ContainerStatus]) -> Seen:
    """Return a listing; a container is its sandbox's Pod's."""
    found = {each.id: (int(each.state), each.metadata.uid, True) for each in sandboxes}
    uids = {identity: uid for identity, (_, uid, _) in found.items()}
    return {**found, **{c.id: (int(c.state), uids.get(c.pod_sandbox_id, ""), False) for c in containers}}


def events(before: Seen, after: Seen, now_ns: int) -> Iterator[ContainerEventResponse]:
    """Yield an event for each sandbox and container whose state has changed, or that is gone."""
    for identity, (state, uid, is_sandbox) in after.items():
        if identity not in before or before[identity][0] != state:
            kind = _SANDBOXES[PodSandboxState(state)] if is_sandbox else _CONTAINERS[ContainerState(state)]
            yield ContainerEventResponse(identity, kind, now_ns, uid)
    for identity, (_, uid, _) in before.items():
        if identity not in after:
            yield ContainerEventResponse(identity, ContainerEventType.CONTAINER_DELETED_EVENT, now_ns, uid)
