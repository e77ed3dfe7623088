"""Container garbage collection, performed. The rules stand in `container_gc`.

Every 60 s, as the kubelet does it; `collect_gone`, from housekeeping, removes what Pods that are gone have left two
seconds after them instead: a container's files take memory here, not disk.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from lastcall.kube.cri.api import ContainerState, ContainerStatus, PodSandboxState, RuntimeService, RuntimeServiceError
from lastcall.kube.node.garbage.decide import (
    GC_PERIOD_SECONDS,
    ContainerGCPolicy,
    Removable,
    containers_to_evict,
    log_directories_to_remove,
    sandboxes_to_evict,
)
from lastcall.kube.node.interfaces import EventRecorder, PodStatus
from lastcall.kube.node.logs.files import LogLinks, remove_log, remove_log_directory
from lastcall.kube.node.pods.runtime_pod import POD_NAME_LABEL, POD_NAMESPACE_LABEL, POD_UID_LABEL
from lastcall.world import crash_guard
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node

UNKNOWN_STATE = "Container is in unknown state, try killing it before removal"

log = logging.getLogger(__name__)


class ContainerGC:
    """`may_remove(uid)`: nothing of the Pod is needed any more, logs included; `has_ended(uid)`: nothing of it will run
    again. `kill_unknown(container, message)` stops a container of which nobody knows whether it runs.
    """

    def __init__(
        self,
        *,
        world: World,
        runtime: RuntimeService,
        events: EventRecorder,
        node: Node,
        may_remove: Removable,
        has_ended: Removable,
        kill_unknown: Callable[[ContainerStatus, str], Awaitable[None]],
        log_root: str,
        log_links: LogLinks,
        policy: ContainerGCPolicy = ContainerGCPolicy(),  # noqa: B008 (frozen)
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._events = events
        self._node = node
        self._may_remove = may_remove
        self._has_ended = has_ended
        self._kill_unknown = kill_unknown
        self._log_root = log_root
        self._links = log_links
        self._policy = policy

    async def run(self) -> None:
        """Collect now and every 60 s until cancelled (kubelet.go:StartGarbageCollection)."""
        while True:
            try:
                await self.garbage_collect()
            except RuntimeServiceError as error:
                log.warning("container garbage collection failed: %s", error)
                self._events.event(self._node, "Warning", "ContainerGCFailed", str(error))
            except Exception as error:
                crash_guard.caught("kubelet container garbage collection", "", error)
            await self._world.clock.sleep(GC_PERIOD_SECONDS)

    async def garbage_collect(self, *, evict_non_deleted: bool = False) -> None:
        """Run one pass. `evict_non_deleted`: also everything of Pods that have ended and are still in the API.

        Raises RuntimeServiceError when the runtime cannot be asked; what cannot be removed is tried again.
        """

        def removable(uid: str) -> bool:
            return self._may_remove(uid) or (evict_non_deleted and self._has_ended(uid))

        listed = [(each.labels.get(POD_UID_LABEL, ""), each) for each in await self._runtime.list_containers()]
        evicted = containers_to_evict(listed, self._policy, self._world.clock.wall_ns(), removable)
        await self.remove_containers(evicted)
        left = await self._runtime.list_containers()
        for sandbox in sandboxes_to_evict(await self._runtime.list_pod_sandbox(), left, removable):
            await self._remove_sandbox(sandbox.id)
        self._remove_log_directories()
        await self._links.remove_dangling(self._may_log_again)

    async def delete_all_unused_containers(self) -> None:
        """Delete everything that has ended, to make room (container_gc.go:DeleteAllUnusedContainers)."""
        await self.garbage_collect(evict_non_deleted=True)

    async def collect_gone(self, pods: Iterable[PodStatus]) -> None:
        """Remove the containers, sandboxes and logs of Pods that are gone."""
        for pod_status in pods:
            if self._may_remove(pod_status.uid) and await self.remove_pod(pod_status):
                name = f"{pod_status.namespace}_{pod_status.name}_{pod_status.uid}"
                remove_log_directory(f"{self._log_root}/{name}")

    async def remove_pod(self, pod_status: PodStatus) -> bool:
        """Remove everything of a Pod that does not run; return True if nothing is left."""
        if not await self.remove_containers(pod_status.container_statuses):
            return False
        done = True
        for sandbox in pod_status.sandbox_statuses:
            if sandbox.state == PodSandboxState.SANDBOX_READY or not await self._remove_sandbox(sandbox.id):
                done = False
        return done

    async def remove_containers(self, containers: Iterable[ContainerStatus], *, keep_logs: bool = False) -> bool:
        """Remove containers that do not run; return whether none is left (kuberuntime_container.go:removeContainer)."""
        done = True
        for container in containers:
            if container.state == ContainerState.CONTAINER_RUNNING:
                done = False
                continue
            try:
                if container.state == ContainerState.CONTAINER_UNKNOWN:
                    await self._kill_unknown(container, UNKNOWN_STATE)
                if not keep_logs:
                    self._remove_log_of(container)
                await self._runtime.remove_container(container.id)
            except RuntimeServiceError as error:
                log.warning("removing container %s failed: %s", container.id, error)
                done = False
        return done

    def _remove_log_of(self, container: ContainerStatus) -> None:
        remove_log(container.log_path)
        pod, namespace = container.labels.get(POD_NAME_LABEL, ""), container.labels.get(POD_NAMESPACE_LABEL, "")
        self._links.remove(pod, namespace, container.metadata.name, container.id)

    async def _remove_sandbox(self, sandbox_id: str) -> bool:
        try:
            await self._runtime.stop_pod_sandbox(sandbox_id)
            await self._runtime.remove_pod_sandbox(sandbox_id)
        except RuntimeServiceError as error:
            log.warning("removing sandbox %s failed: %s", sandbox_id, error)
            return False
        return True

    def _remove_log_directories(self) -> None:
        try:
            names = os.listdir(self._log_root)
        except OSError:
            return
        for name in log_directories_to_remove(names, self._may_remove):
            remove_log_directory(f"{self._log_root}/{name}")

    async def _may_log_again(self, container_id: str) -> bool:
        try:
            status = await self._runtime.container_status(container_id)
        except RuntimeServiceError:
            return False
        return status.state != ContainerState.CONTAINER_EXITED
