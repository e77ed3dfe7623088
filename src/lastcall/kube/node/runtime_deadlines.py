"""Every call to the runtime has a deadline (cri-client pkg/remote_runtime.go).

A runtime that does not answer must hold a Pod's worker for minutes at most, not forever. StopContainer's own deadline
is `stopping/kill_container.py`'s; exec, attach and port-forward are streams and end by themselves.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import TypeVar

from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerEventResponse,
    ContainerStats,
    ContainerStatus,
    ContainerStreams,
    ExecSyncResponse,
    LinuxContainerResources,
    PodSandboxConfig,
    PodSandboxStatus,
    PortForwardStream,
    RuntimeService,
    RuntimeServiceError,
    RuntimeStatus,
    TCPListener,
)
from lastcall.world.clock import Clock
from lastcall.world.counting import Family, Histogram, exponential

RUNTIME_REQUEST_TIMEOUT = 120
"""Seconds (kubelet configuration runtimeRequestTimeout); twice as many for RunPodSandbox."""

SECONDS = exponential(0.005, 2.5, 14)
"""(kubelet metrics.go:RuntimeOperationsDuration)"""

T = TypeVar("T")


class RuntimeWithDeadlines:
    """A `RuntimeService`. A call that takes too long raises RuntimeServiceError, reason DeadlineExceeded."""

    def __init__(self, runtime: RuntimeService, clock: Clock) -> None:
        self._runtime = runtime
        self._clock = clock
        self._seconds: dict[str, Histogram] = {}
        self._errors: dict[str, int] = {}

    async def run_pod_sandbox(self, config: PodSandboxConfig, runtime_handler: str = "") -> str:
        return await self._within(
            "run_podsandbox", 2 * RUNTIME_REQUEST_TIMEOUT, self._runtime.run_pod_sandbox(config, runtime_handler)
        )

    async def stop_pod_sandbox(self, pod_sandbox_id: str) -> None:
        await self._within("stop_podsandbox", RUNTIME_REQUEST_TIMEOUT, self._runtime.stop_pod_sandbox(pod_sandbox_id))

    async def remove_pod_sandbox(self, pod_sandbox_id: str) -> None:
        await self._within(
            "remove_podsandbox", RUNTIME_REQUEST_TIMEOUT, self._runtime.remove_pod_sandbox(pod_sandbox_id)
        )

    async def pod_sandbox_status(self, pod_sandbox_id: str) -> PodSandboxStatus:
        return await self._within(
            "podsandbox_status", RUNTIME_REQUEST_TIMEOUT, self._runtime.pod_sandbox_status(pod_sandbox_id)
        )

    async def list_pod_sandbox(self, pod_uid: str = "") -> list[PodSandboxStatus]:
        return await self._within("list_podsandbox", RUNTIME_REQUEST_TIMEOUT, self._runtime.list_pod_sandbox(pod_uid))

    async def create_container(
        self, pod_sandbox_id: str, config: ContainerConfig, sandbox_config: PodSandboxConfig
    ) -> str:
        creation = self._runtime.create_container(pod_sandbox_id, config, sandbox_config)
        return await self._within("create_container", RUNTIME_REQUEST_TIMEOUT, creation)

    async def start_container(self, container_id: str) -> None:
        await self._within("start_container", RUNTIME_REQUEST_TIMEOUT, self._runtime.start_container(container_id))

    async def stop_container(self, container_id: str, timeout: int) -> None:
        await self._within("stop_container", None, self._runtime.stop_container(container_id, timeout))

    async def remove_container(self, container_id: str) -> None:
        await self._within("remove_container", RUNTIME_REQUEST_TIMEOUT, self._runtime.remove_container(container_id))

    async def update_pod_sandbox_resources(self, pod_sandbox_id: str, resources: LinuxContainerResources) -> None:
        update = self._runtime.update_pod_sandbox_resources(pod_sandbox_id, resources)
        await self._within("update_podsandbox_resources", RUNTIME_REQUEST_TIMEOUT, update)

    async def update_container_resources(self, container_id: str, resources: LinuxContainerResources) -> None:
        update = self._runtime.update_container_resources(container_id, resources)
        await self._within("update_container_resources", RUNTIME_REQUEST_TIMEOUT, update)

    async def reopen_container_log(self, container_id: str) -> None:
        await self._within(
            "reopen_container_log", RUNTIME_REQUEST_TIMEOUT, self._runtime.reopen_container_log(container_id)
        )

    async def list_containers(self, pod_uid: str = "") -> list[ContainerStatus]:
        return await self._within("list_containers", RUNTIME_REQUEST_TIMEOUT, self._runtime.list_containers(pod_uid))

    async def container_status(self, container_id: str) -> ContainerStatus:
        return await self._within(
            "container_status", RUNTIME_REQUEST_TIMEOUT, self._runtime.container_status(container_id)
        )

    async def exec_sync(self, container_id: str, cmd: tuple[str, ...], timeout: float) -> ExecSyncResponse:
        call = self._runtime.exec_sync(container_id, cmd, timeout)
        return await self._within("exec_sync", RUNTIME_REQUEST_TIMEOUT + timeout if timeout else None, call)

    async def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool) -> ContainerStreams:
        return await self._runtime.exec(container_id, cmd, tty=tty, stdin=stdin)

    async def attach(self, container_id: str, *, stdin: bool, stdout: bool, stderr: bool) -> ContainerStreams:
        return await self._runtime.attach(container_id, stdin=stdin, stdout=stdout, stderr=stderr)

    async def port_forward(self, pod_sandbox_id: str, port: int) -> PortForwardStream:
        return await self._runtime.port_forward(pod_sandbox_id, port)

    def get_container_events(self) -> AsyncIterator[ContainerEventResponse]:
        return self._runtime.get_container_events()

    async def status(self) -> RuntimeStatus:
        return await self._within("status", RUNTIME_REQUEST_TIMEOUT, self._runtime.status())

    async def container_stats(self, container_id: str) -> ContainerStats | None:
        return await self._within(
            "container_stats", RUNTIME_REQUEST_TIMEOUT, self._runtime.container_stats(container_id)
        )

    async def listeners(self, container_id: str) -> tuple[TCPListener, ...] | None:
        return await _within(RUNTIME_REQUEST_TIMEOUT, self._runtime.listeners(container_id))

    async def close(self) -> None:
        await self._runtime.close()

    async def _within(self, operation: str, seconds: float | None, call: Awaitable[T]) -> T:
        """The answer of `call`, within so many seconds; None for no limit. What it took is counted."""
        began = self._clock.monotonic_ns()
        try:
            return await _within(seconds, call)
        except RuntimeServiceError:
            self._errors[operation] = self._errors.get(operation, 0) + 1
            raise
        finally:
            found = self._seconds.get(operation)
            if found is None:
                found = self._seconds[operation] = Histogram(SECONDS)
            found.observe((self._clock.monotonic_ns() - began) / 1e9)

    def families(self) -> Iterator[Family]:
        """Yield the counts (kuberuntime/instrumented_services.go)."""
        counted = [({"operation_type": name}, each) for name, each in self._seconds.items()]
        yield "kubelet_runtime_operations_total", [(labels, each.count) for labels, each in counted]
        yield "kubelet_runtime_operations_duration_seconds", counted
        errors = [({"operation_type": name}, count) for name, count in self._errors.items()]
        yield "kubelet_runtime_operations_errors_total", errors
        sandboxes = self._seconds.get("run_podsandbox")
        failed = self._errors.get("run_podsandbox", 0)
        yield "kubelet_started_pods_total", [({}, sandboxes.count if sandboxes is not None else 0)]
        yield "kubelet_started_pods_errors_total", [({}, failed)]


async def _within(seconds: float | None, call: Awaitable[T]) -> T:
    """The answer of `call`, within so many seconds; None for no limit."""
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await call
    except TimeoutError as error:
        if not deadline.expired():  # the runtime's own
            raise
        text = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        raise RuntimeServiceError(text, "DeadlineExceeded") from error
