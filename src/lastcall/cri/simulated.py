"""A runtime for the virtual world: containers are `Program`s, everything else is CRI's own behaviour.

It implements `RuntimeService` and `ImageService`, in any world that has a clock. Nothing here touches the kernel, so
every record it writes says `predicted`. Source of the stop rules: containerd internal/cri/server/container_stop.go.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lastcall.cri.api import (
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
    check_handler,
)
from lastcall.cri.simulated_images import SimulatedImage, SimulatedImages
from lastcall.cri.simulated_objects import Container, EventStream, Sandbox
from lastcall.cri.simulated_program import Program, Programs, find_program
from lastcall.cri.simulated_streams import SimulatedStreams, refused
from lastcall.timeline.kinds import (
    EXEC_EXITED,
    EXEC_STARTED,
    NETWORK_ATTACHED,
    NETWORK_DETACHED,
    OUTPUT,
    PROCESS_EXITED,
    PROCESS_SIGNAL_STATE,
    PROCESS_STARTED,
    SIGNAL_SENT,
)
from lastcall.timeline.record import Recorder
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.timeline.catalogue.records.parts import Disposition
    from lastcall.timeline.catalogue.records.runtime import (
        ExecExited,
        ExecStarted,
        NetworkAttached,
        NetworkDetached,
        ProcessExited,
        ProcessSignalState,
        ProcessStarted,
        SignalSent,
    )
    from lastcall.timeline.catalogue.records.runtime import Output as PrintedLine
    from lastcall.timeline.record import Facts, Kind

RULE_STOP = "containerd internal/cri/server/container_stop.go:stopContainer"
SIGKILL_EXIT = 137
SIGTERM_EXIT = 143
START_ERROR_EXIT = 128
_DISPOSITION: "Mapping[str, Disposition]" = {"exit": "handled", "ignore": "handled", "default": "default"}


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
        self._recorder = recorder
        self._programs = programs
        self._durations = durations or Durations()
        self._ip_prefix = ip_prefix
        self._sandboxes: dict[str, Sandbox] = {}
        self._containers: dict[str, Container] = {}
        self._subscribers: dict[EventStream, None] = {}
        self._sequence = 0
        self._next_pid = 100
        self._next_ip = 2
        self._tasks: Tasks | None = None
        self.network_error = ""
        """Why NetworkReady is false; "" while it is true."""

    async def __aenter__(self) -> Self:
        self._tasks = Tasks()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
        tasks, self._tasks = self._tasks, None
        assert tasks is not None
        tasks.cancel()
        await tasks.__aexit__(kind, error, traceback)

    # Ends from outside

    def kill(self, container_id: str, exit_code: int = SIGKILL_EXIT, *, oom: bool = False) -> None:
        """A foreign hand ends a container at once: `kill -9` on the host, or the OOM killer."""
        container = self._containers[container_id]
        self._exit(container, exit_code, "OOMKilled" if oom else "")

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
            self._record(NETWORK_ATTACHED, sandbox.pod_uid, facts=attached)
        self._emit(sandbox.id, ContainerEventType.CONTAINER_CREATED_EVENT, sandbox)
        self._emit(sandbox.id, ContainerEventType.CONTAINER_STARTED_EVENT, sandbox)
        return sandbox.id

    async def stop_pod_sandbox(self, pod_sandbox_id: str) -> None:
        await self.may_fail("stop_pod_sandbox")
        sandbox = self._sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            return
        started = monotonic(self._world.clock)
        for container in [c for c in self._containers.values() if c.sandbox is sandbox]:
            if container.running:
                await self._sigkill(container, "StopPodSandbox")
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
            self._emit(sandbox.id, ContainerEventType.CONTAINER_STOPPED_EVENT, sandbox)

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
            self._emit(sandbox.id, ContainerEventType.CONTAINER_DELETED_EVENT, sandbox)

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
        self._emit(container.id, ContainerEventType.CONTAINER_CREATED_EVENT, sandbox)
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
            self._exit(container, START_ERROR_EXIT, "StartError")
            raise RuntimeServiceError(program.start_error, "StartError")
        container.state = ContainerState.CONTAINER_RUNNING
        container.pid, self._next_pid = self._next_pid, self._next_pid + 1
        container.started_at = self._world.clock.wall_ns()
        container.started = monotonic(self._world.clock)
        argv = [*container.config.command, *container.config.args]
        facts: ProcessStarted = {
            "containerId": container.id,
            "pid": container.pid,
            "exe": argv[0] if argv else "",
            "argv": argv,
        }
        self._record(PROCESS_STARTED, container.sandbox.pod_uid, container.name, facts)
        self._emit(container.id, ContainerEventType.CONTAINER_STARTED_EVENT, container.sandbox)
        self._print(container, program.output)
        if program.exits_after is not None:
            self._end_later(container, program.exits_after, program.natural_exit_code)

    async def stop_container(self, container_id: str, timeout: int) -> None:
        await self.may_fail("stop_container")
        container = self._containers.get(container_id)
        if container is None or not container.running:
            return
        if timeout > 0:
            if not container.stop_signal_sent:
                # Once per container lifetime: a second stop with a timeout only waits.
                container.stop_signal_sent = True
                self._stop_signal(container)
            # When the caller goes away in here there is no SIGKILL, as in containerd.
            with contextlib.suppress(TimeoutError):
                await self._wait_exit(container, timeout)
        if container.running:
            await self._sigkill(container, "grace over" if timeout > 0 else "StopContainer")

    async def remove_container(self, container_id: str) -> None:
        await self.may_fail("remove_container")
        container = self._containers.get(container_id)
        if container is None:
            return
        if container.running:
            await self._sigkill(container, "RemoveContainer")
        if self._containers.pop(container_id, None) is not None:
            self._emit(container.id, ContainerEventType.CONTAINER_DELETED_EVENT, container.sandbox)

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
        """Nothing is written anywhere."""
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
        self._record(EXEC_STARTED, uid, name, begun)
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
            await self._wait_exit(container, left if cut and left is not None else until_end)
        except TimeoutError:
            if cut:
                ended["killedBecause"] = "exec timeout"
                self._record(EXEC_EXITED, uid, name, ended)
                text = f"command {' '.join(cmd)!r} timed out after {timeout:g}s"
                raise RuntimeServiceError(text, "DeadlineExceeded") from None
        except asyncio.CancelledError:
            ended["killedBecause"] = "caller gone"
            self._record(EXEC_EXITED, uid, name, ended)
            raise
        else:
            ended["killedBecause"] = "container exited"
            self._record(EXEC_EXITED, uid, name, ended)
            return ExecSyncResponse(b"", b"", SIGKILL_EXIT)
        ended["exitCode"], ended["signal"] = result.exit_code, ""
        self._record(EXEC_EXITED, uid, name, ended)
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
        stream = EventStream(self._subscribers)
        self._subscribers[stream] = None
        return stream

    async def status(self) -> RuntimeStatus:
        """Nothing is missing in the simulated world, unless `network_error` says so."""
        words = ("NetworkPluginNotReady", f"Network plugin returns error: {self.network_error}")
        network = RuntimeCondition("NetworkReady", not self.network_error, *(words if self.network_error else ()))
        there = tuple(RuntimeCondition(kind, True) for kind in ("RuntimeReady", LIMITS_ENFORCED, USER_IDS_MAPPED))
        return RuntimeStatus((network, *there))

    async def container_stats(self, container_id: str) -> ContainerStats | None:
        """Programs that do not exist use nothing."""
        await self.container_status(container_id)
        return None

    async def close(self) -> None:
        for stream in list(self._subscribers):
            stream.end()

    # What a dialer may ask

    def listening_containers(self, ip: str) -> list[tuple[Program, float, float | None, asyncio.Event]]:
        """Of the running containers behind `ip`: program, start, SIGTERM (seconds, monotonic; None) and end."""
        return [
            (c.program, c.started, c.term_at, c.exited)
            for c in self._containers.values()
            if c.running and c.sandbox.attached and c.sandbox.ip == ip
        ]

    def has_address(self, ip: str) -> bool:
        return any(s.ip == ip and s.attached for s in self._sandboxes.values())

    # The ends of containers

    def _stop_signal(self, container: Container) -> None:
        program = container.program
        name = container.config.stop_signal or "SIGTERM"
        uid = container.sandbox.pod_uid
        pid_1 = container.config.security_context.namespace_options.pid == "CONTAINER"
        state: ProcessSignalState = {
            "pid": container.pid,
            "containerPid": 1 if pid_1 else container.pid,
            "exe": "",
            "signal": name,
            "disposition": _DISPOSITION[program.on_term],
            "caught": [] if program.on_term == "default" else [name],
            "ignored": [],
            "blocked": [],
        }
        self._record(PROCESS_SIGNAL_STATE, uid, container.name, state, rule=RULE_STOP)
        sent: SignalSent = {"signal": name, "pid": container.pid, "why": "StopContainer"}
        self._record(SIGNAL_SENT, uid, container.name, sent, rule=RULE_STOP)
        container.term_at = monotonic(self._world.clock)
        if program.on_term != "default":
            self._print(container, program.term_output)
        if program.on_term == "exit":
            self._end_later(container, max(program.drain_seconds, self._durations.signal), program.exit_code)
        if program.on_term == "default" and not pid_1:  # only a PID 1 is deaf
            self._end_later(container, self._durations.signal, SIGTERM_EXIT)

    async def _sigkill(self, container: Container, why: str) -> None:
        sent: SignalSent = {"signal": "SIGKILL", "pid": container.pid, "why": why}
        self._record(SIGNAL_SENT, container.sandbox.pod_uid, container.name, sent, rule=RULE_STOP)
        try:
            await self._world.clock.sleep(self._durations.signal)
        finally:  # it is sent, also when the caller goes away meanwhile
            self._exit(container, SIGKILL_EXIT)

    def _end_later(self, container: Container, seconds: float, exit_code: int) -> None:
        """Whichever end comes first is the end; a later plan does not postpone an earlier one."""
        self._spawn(self._end_after(container, seconds, exit_code), f"end of {container.name}")

    async def _end_after(self, container: Container, seconds: float, exit_code: int) -> None:
        if not await self._pause(container, seconds):
            self._exit(container, exit_code)

    def _exit(self, container: Container, exit_code: int, reason: str = "") -> None:
        if container.state == ContainerState.CONTAINER_EXITED:
            return
        had_started = container.running
        container.state = ContainerState.CONTAINER_EXITED
        container.finished_at = self._world.clock.wall_ns()
        container.exit_code = exit_code
        container.reason = reason or ("Completed" if exit_code == 0 else "Error")
        container.exited.set()
        if had_started:
            facts: ProcessExited = {
                "containerId": container.id,
                "pid": container.pid,
                "exitCode": exit_code,
                "signal": "SIGKILL" if exit_code == SIGKILL_EXIT else "",
                "oomKilled": reason == "OOMKilled",
            }
            self._record(PROCESS_EXITED, container.sandbox.pod_uid, container.name, facts)
        self._emit(container.id, ContainerEventType.CONTAINER_STOPPED_EVENT, container.sandbox)

    def _print(self, container: Container, lines: tuple[tuple[float, str], ...]) -> None:
        if lines:
            self._spawn(self._print_later(container, lines), f"output of {container.name}")

    async def _print_later(self, container: Container, lines: tuple[tuple[float, str], ...]) -> None:
        begun = monotonic(self._world.clock)
        for seconds, text in sorted(lines):
            if await self._pause(container, begun + seconds - monotonic(self._world.clock)):
                return
            facts: PrintedLine = {"stream": "stdout", "text": text, "attempt": container.config.metadata.attempt}
            self._record(OUTPUT, container.sandbox.pod_uid, container.name, facts)

    async def _pause(self, container: Container, seconds: float) -> bool:
        """Wait; True when the container has ended meanwhile."""
        try:
            await self._wait_exit(container, seconds)
        except TimeoutError:
            return not container.running
        return True

    async def _wait_exit(self, container: Container, seconds: float) -> None:
        """Wait for the container's end; TimeoutError when it has not ended after `seconds`, not earlier."""
        # Whole nanoseconds: a deadline in float seconds may be missed by less than a clock can count.
        deadline = self._world.clock.monotonic_ns() + round(seconds * 1e9)
        while True:
            left = deadline - self._world.clock.monotonic_ns()
            try:
                async with asyncio.timeout(max(0, left) / 1e9):
                    await container.exited.wait()
                    return
            except TimeoutError:
                if self._world.clock.monotonic_ns() >= deadline:
                    raise

    # Small things

    def _spawn(self, coroutine: Any, name: str) -> None:
        if self._tasks is None:
            coroutine.close()
            raise RuntimeError("SimulatedRuntime runs containers only inside `async with`")
        self._tasks.spawn(coroutine, name=name)

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
        self._record(NETWORK_DETACHED, sandbox.pod_uid, facts=facts)

    def _record(
        self,
        kind: "Kind[Facts]",
        pod_uid: str,
        container: str = "",
        facts: "Facts | None" = None,
        *,
        rule: str = "",
    ) -> None:
        self._recorder.record(kind, pod_uid=pod_uid, container=container, rule=rule, facts=facts, evidence="predicted")

    def _emit(self, container_id: str, kind: ContainerEventType, sandbox: Sandbox) -> None:
        event = ContainerEventResponse(container_id, kind, self._world.clock.wall_ns(), sandbox.pod_uid)
        for stream in list(self._subscribers):
            stream.put(event)
