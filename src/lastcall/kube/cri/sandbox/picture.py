"""Keep the runtime's picture of sandboxes and containers, from what the shim reports.

The shim's answer to `hello` says how far everything came, its events what happens from there on. The same answer
repairs the picture when it is the shim that died: its containers have ended then and its sandboxes are gone.
"""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from lastcall.kube.cri.api import ContainerEventResponse, ContainerEventType, ContainerState, PodSandboxState
from lastcall.kube.cri.sandbox.object_records import ObjectRecords
from lastcall.kube.cri.sandbox.objects import Container, Sandbox
from lastcall.kube.cri.sandbox.shim import messages
from lastcall.world import crash_guard
from lastcall.world.clock import Clock
from lastcall.world.messages import Fields, Message
from lastcall.world.remove_tree import remove_tree

_CREATE_FAILED = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: {}: unknown"
)
START_ERROR_EXIT_CODE = 128
UNKNOWN_EXIT_CODE = 255
"""Of a container whose end nobody saw (containerd internal/cri/server/restart.go:unknownExitCode)."""

START_SECONDS = 2.0
"""A start takes some ten milliseconds; one that hangs keeps nobody from hearing of all others."""

log = logging.getLogger(__name__)


class Picture:
    """`sandboxes` and `containers` by id, in the order in which they were made. `machine` is what the shim says of it.

    `post` sends the shim what needs no answer. `lost` is set while there is no shim.
    """

    def __init__(self, clock: Clock, records: ObjectRecords) -> None:
        self._clock = clock
        self._records = records
        self.post: Callable[[Message], None] = lambda message: None
        self.rotate_log: Callable[[str], None] = lambda container_id: None
        self.lost = asyncio.Event()
        self.machine: Fields = {}
        self.sandboxes: dict[str, Sandbox] = {}
        self.containers: dict[str, Container] = {}
        self._streams: list[asyncio.Queue[ContainerEventResponse]] = []
        self._starting: set[Container] = set()
        """Whose start an earlier node asked for, and which was under way when this one came."""

    @property
    def is_unknown(self) -> bool:
        """Return whether there is something whose state only a shim could tell."""
        unknown = ContainerState.CONTAINER_UNKNOWN
        return self.lost.is_set() or any(container.state == unknown for container in self.containers.values())

    async def starts_are_over(self) -> None:
        """Wait until starts that an earlier node asked for are over, for START_SECONDS at most.

        Otherwise another container would be made for one that is about to run (kubelet kuberuntime_manager.go: one that
        is only created is made again).
        """
        for container in tuple(self._starting):
            with suppress(TimeoutError):
                async with asyncio.timeout(START_SECONDS):
                    await container.settled.wait()
            self._starting.discard(container)

    def on_connected(self, hello: messages.Everything) -> None:
        """Bring every sandbox and container to what the shim has of it."""
        self.machine = hello.machine.to_wire()
        there = {facts.id: facts for facts in hello.containers}
        for container in list(self.containers.values()):
            with crash_guard.Turn("node's containers", container.id):
                self._reconcile(container, there.pop(container.id, None))
        for identity, facts in there.items():
            with crash_guard.Turn("node's containers", identity):
                self._end_stranger(identity, facts)
        for sandbox in self.sandboxes.values():
            if sandbox.id not in hello.sandboxes:
                sandbox.released = True
                self.end_sandbox(sandbox)
        for identity in hello.sandboxes:
            if identity not in self.sandboxes:
                self.post(messages.RemoveSandbox(id=identity))  # the node before died in RunPodSandbox

    def end_sandbox(self, sandbox: Sandbox) -> None:
        """Take a sandbox for not ready, and tell the node."""
        if sandbox.state == PodSandboxState.SANDBOX_READY:
            sandbox.state = PodSandboxState.SANDBOX_NOTREADY
            self.emit(sandbox.id, ContainerEventType.CONTAINER_STOPPED_EVENT, sandbox)

    def _reconcile(self, container: Container, facts: messages.Facts | None) -> None:
        if container.state == ContainerState.CONTAINER_EXITED:
            return
        if facts is None:
            if container.state == ContainerState.CONTAINER_CREATED and not container.start_requested:
                self._roll_back(container)
            else:
                # It was there; the machine, as this cluster sees it, has been rebooted, or the shim lost its journal.
                container.started_at = container.started_at or container.created_at
                self._ended(container, UNKNOWN_EXIT_CODE, "Unknown", self._clock.wall_ns())
            return
        container.start_requested = True
        container.info = facts.info or {}
        container.stop_signal_sent = container.stop_signal_sent or facts.stop_signal_sent
        container.started_at = facts.started_at or container.started_at
        if facts.state == "running":
            container.ended.clear()
            self._started(container, container.started_at)
        elif facts.state == "starting":
            container.state = ContainerState.CONTAINER_CREATED
            container.settled.clear()
            container.ended.clear()
            self._starting.add(container)
        elif facts.state == "failed":
            container.state = ContainerState.CONTAINER_CREATED
            self.start_failed(container, facts.message)
        else:
            container.started_at = container.started_at or container.created_at
            if facts.state == "unknown":
                self._ended(container, UNKNOWN_EXIT_CODE, "Unknown", self._clock.wall_ns())
            else:
                self._exited(container, facts)

    def _roll_back(self, container: Container) -> None:
        """Forget it: nobody asked to start it, and the kubelet creates it again."""
        del self.containers[container.id]
        self._records.forget_container(container.id)
        remove_directory(container.directory)  # of which nothing but the directory was made
        self.emit(container.id, ContainerEventType.CONTAINER_DELETED_EVENT, container.sandbox)

    def _end_stranger(self, identity: str, facts: messages.Facts) -> None:
        """A container without a record: it was being removed, or the record is damaged."""
        if facts.state in ("exited", "failed", "unknown"):
            self.post(messages.Remove(id=identity))
            if facts.sandbox_id not in self.sandboxes:
                self.post(messages.RemoveSandbox(id=facts.sandbox_id))
        else:
            self.post(messages.Signal(id=identity, signal=int(signal.SIGKILL), why="RemoveContainer"))

    def start_failed(self, container: Container, text: str) -> None:
        if container.state == ContainerState.CONTAINER_CREATED:
            container.message = _CREATE_FAILED.format(text)
            self._ended(container, START_ERROR_EXIT_CODE, "StartError", self._clock.wall_ns())

    def get_container_events(self) -> AsyncIterator[ContainerEventResponse]:
        """Return all events from this call on."""
        queue: asyncio.Queue[ContainerEventResponse] = asyncio.Queue()
        self._streams.append(queue)
        return self._events(queue)

    async def _events(self, queue: asyncio.Queue[ContainerEventResponse]) -> AsyncIterator[ContainerEventResponse]:
        try:
            while True:
                yield await queue.get()
        finally:
            self._streams.remove(queue)

    def emit(self, identity: str, kind: ContainerEventType, sandbox: Sandbox) -> None:
        event = ContainerEventResponse(identity, kind, self._clock.wall_ns(), sandbox.config.metadata.uid)
        for queue in self._streams:
            queue.put_nowait(event)

    def on_started(self, event: messages.Started) -> None:
        container = self.containers.get(event.container.id)
        if container is not None:
            container.info = event.container.info or {}
            self._started(container, event.container.started_at)

    def on_start_failed(self, event: messages.StartFailed) -> None:
        container = self.containers.get(event.id)
        if container is not None:
            self.start_failed(container, event.message)

    def on_changed(self, event: messages.Changed) -> None:
        container = self.containers.get(event.container.id)
        if container is not None:
            container.info = event.container.info or {}
            self.emit(container.id, ContainerEventType.CONTAINER_STARTED_EVENT, container.sandbox)

    def on_exited(self, event: messages.Exited) -> None:
        container = self.containers.get(event.container.id)
        if container is None:
            self._end_stranger(event.container.id, event.container)
        else:
            self._exited(container, event.container)

    def on_sandbox_ended(self, event: messages.SandboxEnded) -> None:
        """Take a sandbox for stopped, as containerd does (internal/cri/server/events.go:handleSandboxExit)."""
        sandbox = self.sandboxes.get(event.id)
        if sandbox is not None and sandbox.state == PodSandboxState.SANDBOX_READY:
            self.end_sandbox(sandbox)
            self._records.save_sandbox(sandbox)

    def on_log_full(self, event: messages.LogFull) -> None:
        if event.id in self.containers:
            self.rotate_log(event.id)

    def _started(self, container: Container, started_at: int) -> None:
        if container.state not in (ContainerState.CONTAINER_CREATED, ContainerState.CONTAINER_UNKNOWN):
            return
        container.state = ContainerState.CONTAINER_RUNNING
        container.started_at = started_at
        container.settled.set()
        self._records.save_status(container)
        self.emit(container.id, ContainerEventType.CONTAINER_STARTED_EVENT, container.sandbox)

    def _exited(self, container: Container, facts: messages.Facts) -> None:
        code = facts.exit_code
        reason = "OOMKilled" if facts.oom_killed else "Error" if code else "Completed"
        self._ended(container, code, reason, facts.finished_at)

    def _ended(self, container: Container, code: int, reason: str, finished_at: int) -> None:
        container.state = ContainerState.CONTAINER_EXITED
        container.exit_code, container.reason, container.finished_at = code, reason, finished_at
        container.settled.set()
        container.ended.set()
        self._records.save_status(container)
        self.emit(container.id, ContainerEventType.CONTAINER_STOPPED_EVENT, container.sandbox)

    def on_lost(self) -> None:
        """End all waits: without the shim nobody knows what runs, and no wait may last forever."""
        for container in self.containers.values():
            created = container.state == ContainerState.CONTAINER_CREATED and container.start_requested
            if container.state == ContainerState.CONTAINER_RUNNING or created:
                container.state = ContainerState.CONTAINER_UNKNOWN
                container.settled.set()
                container.ended.set()
        self.lost.set()


def remove_directory(directory: str) -> None:
    """Remove what a container has written. Log what cannot be removed; the next node process tries again."""
    try:
        remove_tree(directory)
    except OSError as error:
        log.warning("the directory %s of a container cannot be removed: %s", directory, error)
