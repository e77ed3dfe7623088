"""A runtime for the virtual world: containers are `Program`s, everything else is CRI's own behaviour.

It implements `RuntimeService` and `ImageService`, in any world that has a clock. Nothing here touches the kernel, so
every record it writes says `predicted` (`simulated_reports.py`). What containers do while they run, and how they end:
`simulated_lives.py`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lastcall.kube.cri.api import (
    LIMITS_ENFORCED,
    USER_IDS_MAPPED,
    ContainerConfig,
    ContainerEventResponse,
    ContainerEventType,
    ContainerState,
    ContainerStats,
    ContainerStatus,
    ExecSyncResponse,
    LinuxContainerResources,
    PodSandboxConfig,
    PodSandboxState,
    PodSandboxStatus,
    PortForwardStream,
    RuntimeCondition,
    RuntimeServiceError,
    RuntimeStatus,
    TCPListener,
    check_handler,
)
from lastcall.kube.cri.simulated_images import SimulatedImage, SimulatedImages
from lastcall.kube.cri.simulated_lives import SIGKILL_EXIT, Lives
from lastcall.kube.cri.simulated_objects import Container, Sandbox
from lastcall.kube.cri.simulated_program import Program, Programs, find_program
from lastcall.kube.cri.simulated_reports import Reports
from lastcall.kube.cri.simulated_streams import SimulatedStreams, refused
from lastcall.records.kinds import (
    EXEC_EXITED,
    EXEC_STARTED,
    NETWORK_ATTACHED,
    NETWORK_DETACHED,
    PROCESS_STARTED,
)
from lastcall.records.record import Recorder
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.records.definitions.runtime import (
        ExecExited,
        ExecStarted,
        NetworkAttached,
        NetworkDetached,
        ProcessStarted,
    )

START_ERROR_EXIT = 128


@dataclass(frozen=True, slots=True)
class Durations:
    """Virtual seconds that the runtime's own work takes (the defaults are what the real sandbox needs)."""

    run_pod_sandbox: float = 0.005
    stop_pod_sandbox: float = 0.001
    create_container: float = 0.001
    start_container: float = 0.003
    exec_start: float = 0.002
    signal: float = 0.0005


class SimulatedRuntime(SimulatedImages):
    """`async with SimulatedRuntime(world, recorder, programs) as runtime: …`; leaving ends its containers' tasks.

    `programs` says what each container does (see `find_program`). `images` overrides how pulls go; an image that is
    not named there is present.
    """

    def __init__(
        self,
        world: World,
        recorder: Recorder,
        programs: Programs,
        *,
        images: Mapping[str, SimulatedImage] | None = None,
        durations: Durations | None = None,
        ip_prefix: str = "10.244.0.",
    ) -> None:
        super().__init__(world, images)
        self._programs = programs
        self._durations = durations or Durations()
        self._reports = Reports(world, recorder)
        self._lives = Lives(world, self._reports, self._durations.signal)
        self._ip_prefix = ip_prefix
        self._sandboxes: dict[str, Sandbox] = {}
        self._containers: dict[str, Container] = {}
        self._sequence = 0
        self._next_pid = 100
        self._next_ip = 2
        self.network_error = ""
        """Why NetworkReady is false; "" while it is true."""

    async def __aenter__(self) -> Self:
        await self._lives.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
        await self._lives.__aexit__(kind, error, traceback)

    # Ends from outside

    def kill(self, container_id: str, exit_code: int = SIGKILL_EXIT, *, oom: bool = False) -> None:
        """End a container at once, as a foreign hand does: `kill -9` on the host, or the OOM killer."""
        container = self._containers[container_id]
        self._lives.exit(container, exit_code, "OOMKilled" if oom else "")

    # RuntimeService: sandboxes

    async def run_pod_sandbox(self, config: PodSandboxConfig, runtime_handler: str = "") -> str:
        check_handler(runtime_handler)
        await self.may_fail("run_pod_sandbox")
        started = monotonic(self._world.clock)
        await self._world.clock.sleep(self._durations.run_pod_sandbox)
        await self.may_fail("cni_add")
        ip = ""
        if config.namespace_options.network != "NODE":
            ip = f"{self._ip_prefix}{self._next_ip}"
            self._next_ip += 1
        sandbox = Sandbox(self._new_id(), self._count(), config, self._world.clock.wall_ns(), ip)
        self._sandboxes[sandbox.id] = sandbox
        if ip:
            attached: NetworkAttached = {"ip": ip, "seconds": monotonic(self._world.clock) - started}
            self._reports.record(NETWORK_ATTACHED, sandbox.pod_uid, facts=attached)
        self._reports.emit(sandbox.id, ContainerEventType.CONTAINER_CREATED_EVENT, sandbox)
        self._reports.emit(sandbox.id, ContainerEventType.CONTAINER_STARTED_EVENT, sandbox)
        return sandbox.id

    async def stop_pod_sandbox(self, pod_sandbox_id: str) -> None:
        await self.may_fail("stop_pod_sandbox")
        sandbox = self._sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            return
        started = monotonic(self._world.clock)
        for container in [c for c in self._containers.values() if c.sandbox is sandbox]:
            if container.running:
                await self._lives.sigkill(container, "StopPodSandbox")
        await self._world.clock.sleep(self._durations.stop_pod_sandbox)
        if sandbox.attached:
            try:
                await self.may_fail("cni_del")
            except Exception as error:
                self._record_detached(sandbox, started, str(error))
                raise
            sandbox.attached = False
            if sandbox.ip:
                self._record_detached(sandbox, started, "")
        if sandbox.state == PodSandboxState.SANDBOX_READY:
            sandbox.state = PodSandboxState.SANDBOX_NOTREADY
            self._reports.emit(sandbox.id, ContainerEventType.CONTAINER_STOPPED_EVENT, sandbox)

    async def remove_pod_sandbox(self, pod_sandbox_id: str) -> None:
        await self.may_fail("remove_pod_sandbox")
        sandbox = self._sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            return
        if sandbox.attached or sandbox.state == PodSandboxState.SANDBOX_READY:
            await self.stop_pod_sandbox(pod_sandbox_id)
        for container in [c for c in self._containers.values() if c.sandbox is sandbox]:
            await self.remove_container(container.id)
        if self._sandboxes.pop(pod_sandbox_id, None) is not None:
            self._reports.emit(sandbox.id, ContainerEventType.CONTAINER_DELETED_EVENT, sandbox)

    async def pod_sandbox_status(self, pod_sandbox_id: str) -> PodSandboxStatus:
        await self.may_fail("pod_sandbox_status")
        sandbox = self._sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            text = f'an error occurred when try to find sandbox "{pod_sandbox_id}": not found'
            raise RuntimeServiceError(text, "NotFound")
        return sandbox.status()

    async def list_pod_sandbox(self, pod_uid: str = "") -> list[PodSandboxStatus]:
        await self.may_fail("list_pod_sandbox")
        found = [s for s in self._sandboxes.values() if pod_uid in ("", s.pod_uid)]
        return [s.status() for s in sorted(found, key=lambda s: -s.sequence)]

    # RuntimeService: containers

    async def create_container(
        self, pod_sandbox_id: str, config: ContainerConfig, sandbox_config: PodSandboxConfig
    ) -> str:
        await self.may_fail("create_container")
        sandbox = self._sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            raise RuntimeServiceError(f'failed to find sandbox id "{pod_sandbox_id}": not found', "NotFound")
        try:
            program = find_program(self._programs, config, sandbox_config)
        except KeyError as error:
            raise RuntimeServiceError(str(error.args[0])) from error
        await self._world.clock.sleep(self._durations.create_container)
        container = Container(self._new_id(), self._count(), config, sandbox, program, self._world.clock.wall_ns())
        self._containers[container.id] = container
        self._reports.emit(container.id, ContainerEventType.CONTAINER_CREATED_EVENT, sandbox)
        return container.id

    async def start_container(self, container_id: str) -> None:
        await self.may_fail("start_container")
        container = self._find(container_id)
        if container.state != ContainerState.CONTAINER_CREATED:
            raise RuntimeServiceError(f"container is in {container.state.name} state")
        await self._world.clock.sleep(self._durations.start_container)
        if container.state != ContainerState.CONTAINER_CREATED or container.id not in self._containers:
            raise RuntimeServiceError(f"container is in {container.state.name} state")
        if container.sandbox.state != PodSandboxState.SANDBOX_READY:
            raise RuntimeServiceError(f"sandbox container {container.sandbox.id!r} is not running")
        program = container.program
        if program.start_error:
            container.message = program.start_error
            self._lives.exit(container, START_ERROR_EXIT, "StartError")
            raise RuntimeServiceError(program.start_error, "StartError")
        container.state = ContainerState.CONTAINER_RUNNING
        container.pid, self._next_pid = self._next_pid, self._next_pid + 1
        container.started_at = self._world.clock.wall_ns()
        container.started = monotonic(self._world.clock)
        argv = [*container.config.command, *container.config.args]
        facts: ProcessStarted = {
            "containerId": container.id,
            "pid": container.pid,
            "containerPid": container.container_pid,
            "exe": argv[0] if argv else "",
            "argv": argv,
        }
        self._reports.record(PROCESS_STARTED, container.sandbox.pod_uid, container.name, facts)
        self._reports.emit(container.id, ContainerEventType.CONTAINER_STARTED_EVENT, container.sandbox)
        self._lives.print_output(container, program.output)
        if program.exits_after is not None:
            self._lives.end_later(container, program.exits_after, program.natural_exit_code)

    async def stop_container(self, container_id: str, timeout: int) -> None:
        await self.may_fail("stop_container")
        container = self._containers.get(container_id)
        if container is None or not container.running:
            return
        if timeout > 0:
            if not container.stop_signal_sent:
                # Once per container lifetime: a second stop with a timeout only waits.
                container.stop_signal_sent = True
                self._lives.stop_signal(container)
            # When the caller goes away in here there is no SIGKILL, as in containerd.
            with contextlib.suppress(TimeoutError):
                await self._lives.wait_exit(container, timeout)
        if container.running:
            await self._lives.sigkill(container, "grace over" if timeout > 0 else "StopContainer")

    async def remove_container(self, container_id: str) -> None:
        await self.may_fail("remove_container")
        container = self._containers.get(container_id)
        if container is None:
            return
        if container.running:
            await self._lives.sigkill(container, "RemoveContainer")
        if self._containers.pop(container_id, None) is not None:
            self._reports.emit(container.id, ContainerEventType.CONTAINER_DELETED_EVENT, container.sandbox)

    async def update_pod_sandbox_resources(self, pod_sandbox_id: str, resources: LinuxContainerResources) -> None:
        await self.may_fail("update_pod_sandbox_resources")
        sandbox = self._sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            text = f'an error occurred when try to find sandbox "{pod_sandbox_id}": not found'
            raise RuntimeServiceError(text, "NotFound")
        sandbox.config = replace(sandbox.config, resources=resources)

    async def update_container_resources(self, container_id: str, resources: LinuxContainerResources) -> None:
        await self.may_fail("update_container_resources")
        container = self._find(container_id)
        if not container.running:
            raise RuntimeServiceError(f"failed to update resources: container is in {container.state.name} state")
        container.config = replace(container.config, resources=resources)

    async def reopen_container_log(self, container_id: str) -> None:
        """Do nothing: no log is written anywhere."""
        await self.may_fail("reopen_container_log")
        if not self._find(container_id).running:
            raise RuntimeServiceError("container is not running")

    async def list_containers(self, pod_uid: str = "") -> list[ContainerStatus]:
        await self.may_fail("list_containers")
        found = [c for c in self._containers.values() if pod_uid in ("", c.sandbox.pod_uid)]
        return [c.status() for c in sorted(found, key=lambda c: -c.sequence)]

    async def container_status(self, container_id: str) -> ContainerStatus:
        await self.may_fail("container_status")
        return self._find(container_id).status()

    async def exec_sync(self, container_id: str, cmd: tuple[str, ...], timeout: float) -> ExecSyncResponse:
        await self.may_fail("exec_sync")
        container = self._find(container_id)
        if not container.running:
            raise RuntimeServiceError(f"failed to exec in container: container is in {container.state.name} state")
        calls = container.exec_calls.get(cmd, 0)
        container.exec_calls[cmd] = calls + 1
        result = container.program.exec_result(cmd, calls, after_term=container.term_at is not None)
        deadline = monotonic(self._world.clock) + timeout if timeout > 0 else None
        await self._world.clock.sleep(self._durations.exec_start)
        if result.error:
            raise RuntimeServiceError(f"failed to exec in container: {result.error}")
        if not container.running:  # it ended while the exec was being set up
            raise RuntimeServiceError(f"failed to exec in container: container is in {container.state.name} state")
        exec_id = self._new_id()
        pid, self._next_pid = self._next_pid, self._next_pid + 1
        uid, name = container.sandbox.pod_uid, container.name
        begun: ExecStarted = {"execId": exec_id, "pid": pid, "argv": list(cmd)}
        self._reports.record(EXEC_STARTED, uid, name, begun)
        ended: ExecExited = {
            "execId": exec_id,
            "pid": pid,
            "exitCode": SIGKILL_EXIT,
            "signal": "SIGKILL",
            "killedBecause": "",
        }
        until_end = result.seconds
        left = None if deadline is None else max(0.0, deadline - monotonic(self._world.clock))
        cut = left is not None and left < until_end
        try:
            await self._lives.wait_exit(container, left if cut and left is not None else until_end)
        except TimeoutError:
            if cut:
                ended["killedBecause"] = "exec timeout"
                self._reports.record(EXEC_EXITED, uid, name, ended)
                text = f"command {' '.join(cmd)!r} timed out after {timeout:g}s"
                raise RuntimeServiceError(text, "DeadlineExceeded") from None
        except asyncio.CancelledError:
            ended["killedBecause"] = "caller gone"
            self._reports.record(EXEC_EXITED, uid, name, ended)
            raise
        else:
            ended["killedBecause"] = "container exited"
            self._reports.record(EXEC_EXITED, uid, name, ended)
            return ExecSyncResponse(b"", b"", SIGKILL_EXIT)
        ended["exitCode"], ended["signal"] = result.exit_code, ""
        self._reports.record(EXEC_EXITED, uid, name, ended)
        return ExecSyncResponse(result.stdout, result.stderr, result.exit_code)

    async def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool) -> SimulatedStreams:
        return SimulatedStreams(await self.exec_sync(container_id, cmd, 0))

    async def attach(self, container_id: str, *, stdin: bool, stdout: bool, stderr: bool) -> SimulatedStreams:
        container = self._find(container_id)
        if not container.running:
            raise RuntimeServiceError(f"container is in {container.state.name} state")
        return SimulatedStreams(ended=container.exited)

    async def port_forward(self, pod_sandbox_id: str, port: int) -> PortForwardStream:
        await self.pod_sandbox_status(pod_sandbox_id)
        raise refused(pod_sandbox_id, port)

    def get_container_events(self) -> AsyncIterator[ContainerEventResponse]:
        return self._reports.events()

    async def status(self) -> RuntimeStatus:
        """Return the status. Nothing is missing in the simulated world, unless `network_error` says so."""
        words = ("NetworkPluginNotReady", f"Network plugin returns error: {self.network_error}")
        network = RuntimeCondition("NetworkReady", not self.network_error, *(words if self.network_error else ()))
        there = tuple(RuntimeCondition(kind, True) for kind in ("RuntimeReady", LIMITS_ENFORCED, USER_IDS_MAPPED))
        return RuntimeStatus((network, *there))

    async def container_stats(self, container_id: str) -> ContainerStats | None:
        """Return None: programs that do not exist use nothing."""
        await self.container_status(container_id)
        return None

    async def listeners(self, container_id: str) -> tuple[TCPListener, ...] | None:
        """Return the ports that are open now, at the Pod's address."""
        found, now = self._find(container_id), monotonic(self._world.clock)
        if not found.running:
            return None
        return tuple(
            TCPListener(found.sandbox.ip, port)
            for port, listener in found.program.ports.items()
            if now >= found.started + listener.opens_after
            and not (listener.closes_on_term and found.term_at is not None)
        )

    async def close(self) -> None:
        self._reports.close()

    # What a dialer may ask

    def listening_containers(self, ip: str) -> list[tuple[Program, float, float | None, asyncio.Event]]:
        """Return of running containers behind `ip`: program, start, SIGTERM (seconds, monotonic; None) and end."""
        return [
            (c.program, c.started, c.term_at, c.exited)
            for c in self._containers.values()
            if c.running and c.sandbox.attached and c.sandbox.ip == ip
        ]

    def has_address(self, ip: str) -> bool:
        return any(s.ip == ip and s.attached for s in self._sandboxes.values())

    # Small things

    def _find(self, container_id: str) -> Container:
        container = self._containers.get(container_id)
        if container is None:
            text = f'an error occurred when try to find container "{container_id}": not found'
            raise RuntimeServiceError(text, "NotFound")
        return container

    def _new_id(self) -> str:
        return f"{self._world.random.getrandbits(256):064x}"

    def _count(self) -> int:
        self._sequence += 1
        return self._sequence

    def _record_detached(self, sandbox: Sandbox, started: float, error: str) -> None:
        facts: NetworkDetached = {
            "ip": sandbox.ip,
            "seconds": monotonic(self._world.clock) - started,
            "error": error,
        }
        self._reports.record(NETWORK_DETACHED, sandbox.pod_uid, facts=facts)
