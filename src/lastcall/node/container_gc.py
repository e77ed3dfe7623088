"""Remove what ended containers and sandboxes leave in the runtime (kuberuntime/kuberuntime_gc.go,
pod_container_deletor.go)."""

import logging
import shutil
from collections.abc import Callable, Iterable

from lastcall.cri.api import ContainerState, ContainerStatus, PodSandboxState, RuntimeService, RuntimeServiceError
from lastcall.node.interfaces import PodStatus

DEAD_CONTAINERS_KEPT = 1
"""Ended instances kept for each container of a Pod that is still known, beside the one that just ended."""

log = logging.getLogger(__name__)


def instances_to_prune(pod_status: PodStatus, died: ContainerStatus, *, remove_all: bool) -> list[ContainerStatus]:
    """Old ended instances of the container that died (pod_container_deletor.go:getContainersToDeleteInPod)."""
    if remove_all:
        return [c for c in pod_status.container_statuses if c.state == ContainerState.CONTAINER_EXITED]
    others = [
        c
        for c in pod_status.container_statuses
        if c.metadata.name == died.metadata.name and c.id != died.id and c.state == ContainerState.CONTAINER_EXITED
    ]
    return others[DEAD_CONTAINERS_KEPT:]


class ContainerGC:
    """`may_remove(uid)`: nothing of the Pod is needed any more, logs included."""

    def __init__(
        self,
        *,
        runtime: RuntimeService,
        may_remove: Callable[[str], bool],
        log_directory: Callable[[PodStatus], str],
        remove_tree: Callable[[str], None] = lambda path: shutil.rmtree(path, ignore_errors=True),
    ) -> None:
        self._runtime = runtime
        self._may_remove = may_remove
        self._log_directory = log_directory
        self._remove_tree = remove_tree

    async def collect(self, pods: Iterable[PodStatus]) -> None:
        """Remove the containers, sandboxes and logs of Pods that are gone; of others, sandboxes that are not the
        newest.

        Failures are logged and tried again at the next collection.
        """
        for pod_status in pods:
            if self._may_remove(pod_status.uid):
                if await self.remove_pod(pod_status):
                    self._remove_tree(self._log_directory(pod_status))
                continue
            in_use = {container.pod_sandbox_id for container in pod_status.container_statuses}
            for sandbox in pod_status.sandbox_statuses[1:]:
                if sandbox.state == PodSandboxState.SANDBOX_NOTREADY and sandbox.id not in in_use:
                    await self._remove_sandbox(sandbox.id)

    async def remove_pod(self, pod_status: PodStatus) -> bool:
        """Remove everything of a Pod that does not run; True when nothing is left."""
        if not await self.remove_containers(pod_status.container_statuses):
            return False
        done = True
        for sandbox in pod_status.sandbox_statuses:
            if sandbox.state == PodSandboxState.SANDBOX_READY or not await self._remove_sandbox(sandbox.id):
                done = False
        return done

    async def remove_containers(self, containers: Iterable[ContainerStatus]) -> bool:
        done = True
        for container in containers:
            if container.state == ContainerState.CONTAINER_RUNNING:
                done = False
                continue
            try:
                await self._runtime.remove_container(container.id)
            except RuntimeServiceError as error:
                log.warning("removing container %s failed: %s", container.id, error)
                done = False
        return done

    async def _remove_sandbox(self, sandbox_id: str) -> bool:
        try:
            await self._runtime.stop_pod_sandbox(sandbox_id)
            await self._runtime.remove_pod_sandbox(sandbox_id)
        except RuntimeServiceError as error:
            log.warning("removing sandbox %s failed: %s", sandbox_id, error)
            return False
        return True
