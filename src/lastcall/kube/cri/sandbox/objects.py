"""What the sandbox runtime has: sandboxes and containers, and how CRI shows them."""

import asyncio
from dataclasses import field
from typing import Any

from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerState,
    ContainerStatus,
    PodSandboxConfig,
    PodSandboxState,
    PodSandboxStatus,
)
from lastcall.kube.cri.sandbox.shim.procfs import signal_name
from lastcall.world.dataclass import dataclass


@dataclass(slots=True, eq=False)
class Sandbox:
    id: str
    config: PodSandboxConfig
    created_at: int
    state: PodSandboxState = PodSandboxState.SANDBOX_READY
    ip: str = ""
    attached: bool = False
    released: bool = False  # the shim holds nothing of it any more
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def status(self) -> PodSandboxStatus:
        ready = self.state == PodSandboxState.SANDBOX_READY
        return PodSandboxStatus(
            id=self.id,
            metadata=self.config.metadata,
            state=self.state,
            created_at=self.created_at,
            ips=(self.ip,) if ready and self.ip else (),
            namespace_options=self.config.namespace_options,
            labels=self.config.labels,
            annotations=self.config.annotations,
            resources=self.config.resources,
        )


@dataclass(slots=True, eq=False)
class Container:
    id: str
    sandbox: Sandbox
    config: ContainerConfig
    created_at: int
    image_ref: str
    directory: str
    spec: dict[str, Any]
    stop_signal: int
    state: ContainerState = ContainerState.CONTAINER_CREATED
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    info: dict[str, str] = field(default_factory=dict)
    start_requested: bool = False
    settled: asyncio.Event = field(default_factory=asyncio.Event)  # a requested start has happened, or failed
    stop_signal_sent: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def status(self) -> ContainerStatus:
        return ContainerStatus(
            id=self.id,
            metadata=self.config.metadata,
            pod_sandbox_id=self.sandbox.id,
            state=self.state,
            image=self.config.image,
            image_ref=self.image_ref,
            created_at=self.created_at,
            started_at=self.started_at,
            finished_at=self.finished_at,
            exit_code=self.exit_code,
            reason=self.reason,
            message=self.message,
            log_path=self.spec["logPath"],
            mounts=self.config.mounts,
            labels=self.config.labels,
            annotations=self.config.annotations,
            info=self.info,
            stop_signal=signal_name(self.stop_signal),
            resources=self.config.resources,
        )
