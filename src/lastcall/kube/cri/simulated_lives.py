"""What the programs of simulated containers do: they print, they react to signals, they end.

Source of the stop rules: containerd internal/cri/server/container_stop.go.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lastcall.kube.cri.api import ContainerEventType, ContainerState
from lastcall.kube.cri.simulated_objects import Container
from lastcall.kube.cri.simulated_reports import Reports
from lastcall.records import rules
from lastcall.records.kinds import OUTPUT, PROCESS_EXITED, PROCESS_SIGNAL_STATE, SIGNAL_SENT
from lastcall.world.clock import monotonic, wait_for_event
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.records.definitions.parts import Disposition
    from lastcall.records.definitions.runtime import Output as PrintedLine
    from lastcall.records.definitions.runtime import ProcessExited, ProcessSignalState, SignalSent

SIGKILL_EXIT = 137
SIGTERM_EXIT = 143
_DISPOSITION: "Mapping[str, Disposition]" = {"exit": "handled", "ignore": "handled", "default": "default"}


class Lives:
    """Leaving it ends the tasks of all containers. `signal_seconds`: from a signal to an end by it."""

    def __init__(self, world: World, reports: Reports, signal_seconds: float) -> None:
        self._world, self._reports, self._signal_seconds = world, reports, signal_seconds
        self._tasks: Tasks | None = None

    async def __aenter__(self) -> Self:
        self._tasks = Tasks()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        tasks, self._tasks = self._tasks, None
        assert tasks is not None
        tasks.cancel()
        await tasks.__aexit__(kind, error, traceback)

    def stop_signal(self, container: Container) -> None:
        program = container.program
        name = container.config.stop_signal or "SIGTERM"
        uid = container.sandbox.pod_uid
        pid_1 = container.container_pid == 1
        state: ProcessSignalState = {
            "pid": container.pid,
            "containerPid": container.container_pid,
            "exe": "",
            "signal": name,
            "disposition": _DISPOSITION[program.on_term],
            "caught": [] if program.on_term == "default" else [name],
            "ignored": [],
            "blocked": [],
        }
        self._reports.record(PROCESS_SIGNAL_STATE, uid, container.name, state, rule=rules.STOP_CONTAINER)
        sent: SignalSent = {
            "signal": name,
            "pid": container.pid,
            "containerPid": container.container_pid,
            "why": "StopContainer",
        }
        self._reports.record(SIGNAL_SENT, uid, container.name, sent, rule=rules.STOP_CONTAINER)
        container.term_at = monotonic(self._world.clock)
        if program.on_term != "default":
            self.print_output(container, program.term_output)
        if program.on_term == "exit":
            self.end_later(container, max(program.drain_seconds, self._signal_seconds), program.exit_code)
        if program.on_term == "default" and not pid_1:  # only a PID 1 is deaf
            self.end_later(container, self._signal_seconds, SIGTERM_EXIT)

    async def sigkill(self, container: Container, why: str) -> None:
        sent: SignalSent = {
            "signal": "SIGKILL",
            "pid": container.pid,
            "containerPid": container.container_pid,
            "why": why,
        }
        self._reports.record(SIGNAL_SENT, container.sandbox.pod_uid, container.name, sent, rule=rules.STOP_CONTAINER)
        try:
            await self._world.clock.sleep(self._signal_seconds)
        finally:  # it is sent, also when the caller goes away meanwhile
            self.exit(container, SIGKILL_EXIT)

    def end_later(self, container: Container, seconds: float, exit_code: int) -> None:
        """Plan an end. The first end that comes is the end; a later plan does not postpone an earlier one."""
        self._spawn(self._end_after(container, seconds, exit_code), f"end of {container.name}")

    async def _end_after(self, container: Container, seconds: float, exit_code: int) -> None:
        if not await self._pause(container, seconds):
            self.exit(container, exit_code)

    def exit(self, container: Container, exit_code: int, reason: str = "") -> None:
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
            self._reports.record(PROCESS_EXITED, container.sandbox.pod_uid, container.name, facts)
        self._reports.emit(container.id, ContainerEventType.CONTAINER_STOPPED_EVENT, container.sandbox)

    def print_output(self, container: Container, lines: tuple[tuple[float, str], ...]) -> None:
        if lines:
            self._spawn(self._print_later(container, lines), f"output of {container.name}")

    async def _print_later(self, container: Container, lines: tuple[tuple[float, str], ...]) -> None:
        begun = monotonic(self._world.clock)
        for seconds, text in sorted(lines):
            if await self._pause(container, begun + seconds - monotonic(self._world.clock)):
                return
            facts: PrintedLine = {"stream": "stdout", "text": text, "attempt": container.config.metadata.attempt}
            self._reports.record(OUTPUT, container.sandbox.pod_uid, container.name, facts)

    async def _pause(self, container: Container, seconds: float) -> bool:
        """Wait; True when the container has ended meanwhile."""
        return await wait_for_event(self._world.clock, container.exited, seconds) or not container.running

    async def wait_exit(self, container: Container, seconds: float) -> None:
        """Wait for the container's end. Raises TimeoutError if it has not ended after `seconds`, not earlier."""
        if not await wait_for_event(self._world.clock, container.exited, seconds):
            raise TimeoutError

    def _spawn(self, coroutine: Any, name: str) -> None:
        if self._tasks is None:
            coroutine.close()
            raise RuntimeError("SimulatedRuntime runs containers only inside `async with`")
        self._tasks.spawn(coroutine, name=name)
