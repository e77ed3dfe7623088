"""Two sandbox runtimes as one: that of ordinary Pods, and that of Pods in the machine's own namespaces.

Root in a container of the second one is root of the machine. It is started with the first Pod that asks for the
machine's network, PIDs or IPC, that is privileged, or that has user ids of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from lastcall.cri.api import (
    ContainerConfig,
    ContainerCounters,
    ContainerEventResponse,
    ContainerStats,
    ContainerStatus,
    ContainerStreams,
    ExecSyncResponse,
    LinuxContainerResources,
    PodSandboxConfig,
    PodSandboxStatus,
    PortForwardStream,
    RuntimeServiceError,
    RuntimeStatus,
)
from lastcall.cri.sandbox.runtime import SandboxRuntime
from lastcall.cri.sandbox.runtime_status import user_namespaces_condition


def needs_host(config: PodSandboxConfig) -> bool:
    """Whether a Pod can only be in the machine's own namespaces.

    A Pod with user ids of its own is not in the user namespace of the ordinary ones: only root of the machine can mount
    the machine's file systems with other owners.
    """
    options = config.namespace_options
    return (
        config.privileged
        or options.userns_options.mode == "POD"
        or "NODE" in (options.network, options.pid, options.ipc)
    )


class TwoRuntimes:
    """`lastcall.cri.api.RuntimeService`. `start_host` answers the second runtime; called once.

    `owners_unmapped`: why the machine's mounts cannot have other owners, "" when they can.
    """

    def __init__(
        self,
        ordinary: SandboxRuntime,
        start_host: Callable[[], Awaitable[SandboxRuntime]],
        owners_unmapped: str = "",
    ) -> None:
        self._ordinary, self._start_host = ordinary, start_host
        self._owners_unmapped = owners_unmapped
        self._host: SandboxRuntime | None = None
        self._starting = asyncio.Lock()

    async def host(self) -> SandboxRuntime:
        """Started if need be. Raises RuntimeServiceError, OSError."""
        async with self._starting:
            if self._host is None:
                self._host = await self._start_host()
        return self._host

    @property
    def _all(self) -> list[SandboxRuntime]:
        return [self._ordinary] if self._host is None else [self._ordinary, self._host]

    def _of_sandbox(self, identity: str) -> SandboxRuntime:
        return next((each for each in self._all if each.sandbox_config(identity) is not None), self._ordinary)

    def _of(self, container_id: str) -> SandboxRuntime:
        return next((each for each in self._all if each.has_container(container_id)), self._ordinary)

    # -- sandboxes -----------------------------------------------------------------------------------------------------

    async def run_pod_sandbox(self, config: PodSandboxConfig, runtime_handler: str = "") -> str:
        try:
            runtime = await self.host() if needs_host(config) else self._ordinary
        except OSError as error:
            raise RuntimeServiceError(f"failed to create pod sandbox: {error}") from error
        return await runtime.run_pod_sandbox(config, runtime_handler)

    async def stop_pod_sandbox(self, pod_sandbox_id: str) -> None:
        await self._of_sandbox(pod_sandbox_id).stop_pod_sandbox(pod_sandbox_id)

    async def remove_pod_sandbox(self, pod_sandbox_id: str) -> None:
        await self._of_sandbox(pod_sandbox_id).remove_pod_sandbox(pod_sandbox_id)

    async def pod_sandbox_status(self, pod_sandbox_id: str) -> PodSandboxStatus:
        return await self._of_sandbox(pod_sandbox_id).pod_sandbox_status(pod_sandbox_id)

    async def list_pod_sandbox(self, pod_uid: str = "") -> list[PodSandboxStatus]:
        found = [one for each in self._all for one in await each.list_pod_sandbox(pod_uid)]
        return sorted(found, key=lambda one: -one.created_at)

    async def update_pod_sandbox_resources(self, pod_sandbox_id: str, resources: LinuxContainerResources) -> None:
        await self._of_sandbox(pod_sandbox_id).update_pod_sandbox_resources(pod_sandbox_id, resources)

    # -- containers ----------------------------------------------------------------------------------------------------

    async def create_container(
        self, pod_sandbox_id: str, config: ContainerConfig, sandbox_config: PodSandboxConfig
    ) -> str:
        """Raises RuntimeServiceError as containerd does for a privileged one in a sandbox that is not."""
        runtime = self._of_sandbox(pod_sandbox_id)
        asked = runtime.sandbox_config(pod_sandbox_id)
        if config.security_context.privileged and asked is not None and not asked.privileged:
            text = "failed to create container: failed to generate container spec: "
            raise RuntimeServiceError(f"{text}no privileged container allowed in sandbox")
        return await runtime.create_container(pod_sandbox_id, config, sandbox_config)

    async def start_container(self, container_id: str) -> None:
        await self._of(container_id).start_container(container_id)

    async def stop_container(self, container_id: str, timeout: int) -> None:
        await self._of(container_id).stop_container(container_id, timeout)

    async def remove_container(self, container_id: str) -> None:
        await self._of(container_id).remove_container(container_id)

    async def update_container_resources(self, container_id: str, resources: LinuxContainerResources) -> None:
        await self._of(container_id).update_container_resources(container_id, resources)

    async def reopen_container_log(self, container_id: str) -> None:
        await self._of(container_id).reopen_container_log(container_id)

    async def list_containers(self, pod_uid: str = "") -> list[ContainerStatus]:
        found = [one for each in self._all for one in await each.list_containers(pod_uid)]
        return sorted(found, key=lambda one: -one.created_at)

    async def container_status(self, container_id: str) -> ContainerStatus:
        return await self._of(container_id).container_status(container_id)

    async def container_stats(self, container_id: str) -> ContainerStats | None:
        return await self._of(container_id).container_stats(container_id)

    async def container_counters(self, container_id: str, *, processes: bool = False) -> ContainerCounters:
        return await self._of(container_id).container_counters(container_id, processes=processes)

    # -- streams -------------------------------------------------------------------------------------------------------

    async def exec_sync(self, container_id: str, cmd: tuple[str, ...], timeout: float) -> ExecSyncResponse:
        return await self._of(container_id).exec_sync(container_id, cmd, timeout)

    async def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool) -> ContainerStreams:
        return await self._of(container_id).exec(container_id, cmd, tty=tty, stdin=stdin)

    async def attach(self, container_id: str, *, stdin: bool, stdout: bool, stderr: bool) -> ContainerStreams:
        return await self._of(container_id).attach(container_id, stdin=stdin, stdout=stdout, stderr=stderr)

    async def port_forward(self, pod_sandbox_id: str, port: int) -> PortForwardStream:
        return await self._of_sandbox(pod_sandbox_id).port_forward(pod_sandbox_id, port)

    # -- the runtime itself --------------------------------------------------------------------------------------------

    def get_container_events(self) -> AsyncIterator[ContainerEventResponse]:
        return self._ordinary.get_container_events()  # the other one tells the same listeners

    async def status(self) -> RuntimeStatus:
        found = await self._ordinary.status()
        users = user_namespaces_condition(self._owners_unmapped)
        return RuntimeStatus(tuple(users if each.type == users.type else each for each in found.conditions))

    async def close(self) -> None:
        for each in self._all:
            await each.close()
