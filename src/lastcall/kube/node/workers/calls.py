"""What a Pod's worker calls, and what it goes by (pod_workers.go:podSyncer, container/cache.go)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.runtime_pod import RunningPod
from lastcall.kube.node.workers.transitions import UpdateType

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus


class SyncCancelled(Exception):
    """A running call stopped early because an update made it pointless. Expected: that update is queued."""


class SyncContext:
    """The context of one worker's calls. `cancelled` is set when the Pod began to end or its grace shrank."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()


class PodSyncer(Protocol):
    """What a worker calls (pod_workers.go:podSyncer). Every method may raise; the worker then tries again."""

    async def sync_pod(self, context: SyncContext, update_type: UpdateType, pod: Pod, pod_status: PodStatus) -> bool:
        """Bring the Pod nearer to its spec; return True if the Pod has ended by itself."""
        ...

    async def sync_terminating_pod(
        self,
        pod: Pod,
        pod_status: PodStatus,
        grace_period: int | None,
        pod_status_func: Callable[[APIPodStatus], None] | None,
        cause_id: str,
    ) -> None:
        """Stop all containers. `grace_period` None: each container's own."""
        ...

    async def sync_terminating_runtime_pod(self, running_pod: RunningPod, cause_id: str) -> None: ...

    async def sync_terminated_pod(self, pod: Pod, pod_status: PodStatus, cause_id: str) -> None: ...

    async def handed_over(self, uid: str) -> None:
        """Wait until the status that the last call set has left for the API server, or cannot leave now."""
        ...


class PodStatusCache(Protocol):
    """The runtime's view of Pods (container/cache.go)."""

    def get(self, uid: str) -> PodStatus | None: ...

    def now(self) -> int:
        """Return a tick later than every reading begun so far."""
        ...

    def refreshed_at(self, uid: str) -> int:
        """Return the tick at which the runtime was last asked about the Pod; 0 for never."""
        ...

    async def get_newer_than(self, uid: str, name: str, namespace: str, minimum: int) -> PodStatus:
        """Return a status whose reading began at or after the tick `minimum`. Raises RuntimeServiceError."""
        ...
