"""What the simulated runtime has: sandboxes, containers, and who listens to their events."""

import asyncio
from dataclasses import field
from typing import Self

from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerEventResponse,
    ContainerState,
    ContainerStatus,
    PodSandboxConfig,
    PodSandboxState,
    PodSandboxStatus,
)
from lastcall.kube.cri.simulated_images import image_of
from lastcall.kube.cri.simulated_program import Program
from lastcall.world.dataclass import dataclass


@dataclass(slots=True)
class Sandbox:
    id: str
    sequence: int
    config: PodSandboxConfig
    created_at: int
    ip: str
    state: PodSandboxState = PodSandboxState.SANDBOX_READY
    attached: bool = True

    @property
    def pod_uid(self) -> str:
        return self.config.metadata.uid

    def status(self) -> PodSandboxStatus:
        config = self.config
        return PodSandboxStatus(
            id=self.id,
            metadata=config.metadata,
            state=self.state,
            created_at=self.created_at,
            ips=(self.ip,) if self.ip else (),
            namespace_options=config.namespace_options,
            labels=config.labels,
            annotations=config.annotations,
            resources=config.resources,
        )


@dataclass(slots=True)
class Container:
    id: str
    sequence: int
    config: ContainerConfig
    sandbox: Sandbox
    program: Program
    created_at: int
    pid: int = 0
    state: ContainerState = ContainerState.CONTAINER_CREATED
    started_at: int = 0
    started: float = 0.0
    finished_at: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    stop_signal_sent: bool = False
    term_at: float | None = None
    exec_calls: dict[tuple[str, ...], int] = field(default_factory=dict)
    exited: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def running(self) -> bool:
        return self.state == ContainerState.CONTAINER_RUNNING

    @property
    def name(self) -> str:
        return self.config.metadata.name

    @property
    def container_pid(self) -> int:
        """Return the number of its first process in its PID namespace."""
        return 1 if self.config.security_context.namespace_options.pid == "CONTAINER" else self.pid

    def status(self) -> ContainerStatus:
        config = self.config
        return ContainerStatus(
            id=self.id,
            metadata=config.metadata,
            pod_sandbox_id=self.sandbox.id,
            state=self.state,
            image=config.image,
            image_ref=image_of(config.image).id,
            created_at=self.created_at,
            started_at=self.started_at,
            finished_at=self.finished_at,
            exit_code=self.exit_code,
            reason=self.reason,
            message=self.message,
            log_path=f"{self.sandbox.config.log_directory}/{config.log_path}" if config.log_path else "",
            mounts=config.mounts,
            labels=config.labels,
            annotations=config.annotations,
            stop_signal=config.stop_signal or "SIGTERM",
            resources=config.resources,
        )


class EventStream:
    """One subscriber's events; iteration ends when the runtime closes."""

    def __init__(self, subscribers: "dict[EventStream, None]") -> None:
        self._queue: asyncio.Queue[ContainerEventResponse | None] = asyncio.Queue()
        self._subscribers = subscribers

    def put(self, event: ContainerEventResponse) -> None:
        self._queue.put_nowait(event)

    def end(self) -> None:
        self._subscribers.pop(self, None)
        self._queue.put_nowait(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ContainerEventResponse:
        event = await self._queue.get()
        if event is None:
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        self._subscribers.pop(self, None)
