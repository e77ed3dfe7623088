"""The sandbox runtime: CRI's RuntimeService in the node process, on top of the shim, the images and the Pod network.

The node decides, the shim does: every process, namespace and wait status is the shim's, every rule of CRI is here.

A node process that starts after another one adopts what is there: `adopt` reads the `Records`, and the shim's answer to
`hello` says how far everything came (`_on_connected`). The same answer repairs the picture when it is the shim that
died: its containers have ended then and its sandboxes are gone.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lastcall.cri.api import (
    ContainerConfig,
    ContainerEventResponse,
    ContainerEventType,
    ContainerState,
    ContainerStats,
    ContainerStatus,
    ExecSyncResponse,
    PodSandboxConfig,
    PodSandboxState,
    PodSandboxStatus,
    RuntimeServiceError,
    RuntimeStatus,
)
from lastcall.cri.sandbox.container_spec import seccomp_filter, start_spec, stop_signal
from lastcall.cri.sandbox.records import Records, decode
from lastcall.cri.sandbox.runtime_status import runtime_status
from lastcall.cri.sandbox.shim.procfs import signal_name
from lastcall.cri.sandbox.shim_client import ShimClient, ShimLost
from lastcall.cri.sandbox.spec import Network, RootFilesystems
from lastcall.cri.sandbox.streams import AttachStreams, ExecStreams, SocketStream, open_attach, open_exec, open_port
from lastcall.timeline import kinds
from lastcall.timeline.record import Recorder
from lastcall.world.clock import monotonic
from lastcall.world.remove_tree import remove_tree
from lastcall.world.world import World

_CREATE_FAILED = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: {}: unknown"
)
_EXEC_FAILED = (
    'failed to exec in container: failed to start exec "{}": OCI runtime exec failed: exec failed: '
    "unable to start container process: {}: unknown"
)
START_ERROR_EXIT_CODE = 128
UNKNOWN_EXIT_CODE = 255
"""Of a container whose end nobody saw (containerd internal/cri/server/restart.go:unknownExitCode)."""
RECONNECT_SECONDS = 1.0
_ID_LENGTH = 64

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Sandbox:
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
        )


@dataclass(slots=True, eq=False)
class _Container:
    id: str
    sandbox: _Sandbox
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
        )


class SandboxRuntime:
    """`lastcall.cri.api.RuntimeService`. `adopt` first; connects to the shim with its first call."""

    def __init__(
        self,
        world: World,
        recorder: Recorder,
        shim_socket: str,
        state_dir: str,
        images: RootFilesystems,
        network: Network,
        records_dir: str = "",
        log_max_size: int = 0,
    ) -> None:
        """`state_dir` holds what containers write; it is made when it is not there.

        `log_max_size`: `on_log_full(container id)` is called when a log has grown to so many bytes, 0 for never. It is
        to be rotated then: at twice the size the container waits.

        `records_dir` is for the records, `state_dir` when empty: a directory that outlives the cluster makes its next
        start see that the containers were there and ended, as a machine that was rebooted does.
        """
        self._world = world
        self._clock = world.clock
        self._recorder = recorder
        self._state_dir = state_dir
        self._images = images
        self._network = network
        self._records = Records(records_dir or os.path.join(state_dir, "records"))
        self._shim = ShimClient(world, shim_socket, self._on_event, self._on_connected, self._on_lost)
        self._log_max_size = log_max_size
        self.on_log_full: Callable[[str], None] = lambda container_id: None
        self._lost = asyncio.Event()
        self._machine: dict[str, Any] = {}
        self._sandboxes: dict[str, _Sandbox] = {}
        self._containers: dict[str, _Container] = {}
        self._streams: list[asyncio.Queue[ContainerEventResponse]] = []

    # -- what was there before ---------------------------------------------------------------------------------------

    async def adopt(self) -> None:
        """Take over what an earlier node process left. Before any other call. Raises RuntimeServiceError.

        Where there was none it does not even wait for the shim.
        """
        if not self._records.any:
            return
        self._load_sandboxes()
        self._load_containers()
        addressed = {sandbox.ip: sandbox for sandbox in self._sandboxes.values() if sandbox.attached}
        for sandbox in self._sandboxes.values():
            if not sandbox.attached:
                continue
            # An address that was released and handed out again in the last moment is the newer one's.
            sandbox.attached = addressed[sandbox.ip] is sandbox
            if sandbox.attached:
                try:
                    await self._network.adopt(sandbox.id, sandbox.ip)
                except RuntimeServiceError as error:
                    # The cluster was started again with another Pod network; nothing of the one before is left.
                    log.warning("sandbox %s is not in this Pod network: %s", sandbox.id, error)
                    sandbox.attached = False
        await self._shim.connect()
        await asyncio.to_thread(self._remove_unknown_directories, set(self._containers))

    async def run(self) -> None:
        """Connect to the shim again whenever the connection was lost, until cancelled."""
        while True:
            await self._lost.wait()
            self._lost.clear()
            try:
                await self._shim.connect()
            except RuntimeServiceError as error:
                log.warning("no connection to the shim yet: %s", error)
                self._lost.set()
                await self._clock.sleep(RECONNECT_SECONDS)

    def _load_sandboxes(self) -> None:
        found = []
        for identity, value in self._records.load("sandbox"):
            try:
                sandbox = _Sandbox(
                    identity,
                    decode(PodSandboxConfig, value["config"]),
                    value["createdAt"],
                    PodSandboxState(value["state"]),
                    value["ip"],
                    value["attached"],
                )
            except (KeyError, TypeError, ValueError) as error:
                log.warning("the record of sandbox %s cannot be read: %r", identity, error)
                self._records.remove("sandbox", identity)
                continue
            found.append(sandbox)
        self._sandboxes = {sandbox.id: sandbox for sandbox in sorted(found, key=lambda s: s.created_at)}

    def _load_containers(self) -> None:
        status = dict(self._records.load("status"))
        found = []
        for identity, value in self._records.load("container"):
            try:
                container = _Container(
                    id=identity,
                    sandbox=self._sandboxes[value["sandboxId"]],
                    config=decode(ContainerConfig, value["config"]),
                    created_at=value["createdAt"],
                    image_ref=value["imageRef"],
                    directory=os.path.join(self._state_dir, identity),
                    spec={"logPath": value["logPath"]},
                    stop_signal=value["stopSignal"],
                )
                self._load_status(container, status.pop(identity, {}))
            except (KeyError, TypeError, ValueError) as error:
                log.warning("the record of container %s cannot be read: %r", identity, error)
                self._forget_records(identity)
                continue
            found.append(container)
        for identity in status:
            self._records.remove("status", identity)
        self._containers = {container.id: container for container in sorted(found, key=lambda c: c.created_at)}

    def _load_status(self, container: _Container, status: dict[str, Any]) -> None:
        container.started_at = status.get("startedAt", 0)
        container.finished_at = status.get("finishedAt", 0)
        container.exit_code = status.get("exitCode", 0)
        container.reason = status.get("reason", "")
        container.message = status.get("message", "")
        if container.finished_at:
            container.state = ContainerState.CONTAINER_EXITED
            container.settled.set()
            container.ended.set()
        elif container.started_at:
            container.state = ContainerState.CONTAINER_UNKNOWN

    def _remove_unknown_directories(self, known: set[str]) -> None:
        with suppress(FileNotFoundError):
            for entry in os.scandir(self._state_dir):
                if len(entry.name) == _ID_LENGTH and entry.name not in known:
                    _remove(entry.path)

    def _on_connected(self, hello: dict[str, Any]) -> None:
        """Bring every sandbox and container to what the shim has of it."""
        self._machine = hello["machine"]
        there = {facts["id"]: facts for facts in hello["containers"]}
        for container in list(self._containers.values()):
            self._reconcile(container, there.pop(container.id, None))
        for identity, facts in there.items():
            self._end_stranger(identity, facts)
        for sandbox in self._sandboxes.values():
            if sandbox.id not in hello["sandboxes"]:
                sandbox.released = True
                if sandbox.state == PodSandboxState.SANDBOX_READY:
                    sandbox.state = PodSandboxState.SANDBOX_NOTREADY
                    self._emit(sandbox.id, ContainerEventType.CONTAINER_STOPPED_EVENT, sandbox)
        for identity in hello["sandboxes"]:
            if identity not in self._sandboxes:
                self._shim.post("remove_sandbox", id=identity)  # the node before died in RunPodSandbox

    def _reconcile(self, container: _Container, facts: dict[str, Any] | None) -> None:
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
        container.info = facts.get("info") or {}
        container.stop_signal_sent = container.stop_signal_sent or facts["stopSignalSent"]
        container.started_at = facts["startedAt"] or container.started_at
        if facts["state"] == "running":
            container.ended.clear()
            self._started(container, container.started_at)
        elif facts["state"] == "starting":
            container.state = ContainerState.CONTAINER_CREATED
            container.settled.clear()
            container.ended.clear()
        elif facts["state"] == "failed":
            container.state = ContainerState.CONTAINER_CREATED
            self._start_failed(container, facts["message"])
        else:
            container.started_at = container.started_at or container.created_at
            if facts["state"] == "unknown":
                self._ended(container, UNKNOWN_EXIT_CODE, "Unknown", self._clock.wall_ns())
            else:
                self._exited(container, facts)

    def _roll_back(self, container: _Container) -> None:
        """Nobody asked to start it: whoever wanted it creates it again."""
        del self._containers[container.id]
        self._forget_records(container.id)
        _remove(container.directory)  # of which nothing but the directory was made
        self._emit(container.id, ContainerEventType.CONTAINER_DELETED_EVENT, container.sandbox)

    def _end_stranger(self, identity: str, facts: dict[str, Any]) -> None:
        """A container without a record: it was being removed, or the record is damaged."""
        if facts["state"] in ("exited", "failed", "unknown"):
            self._shim.post("remove", id=identity)
            if facts["sandboxId"] not in self._sandboxes:
                self._shim.post("remove_sandbox", id=facts["sandboxId"])
        else:
            self._shim.post("signal", id=identity, signal=int(signal.SIGKILL), why="RemoveContainer")

    def _forget_records(self, container_id: str) -> None:
        self._records.remove("container", container_id)
        self._records.remove("status", container_id)

    # -- sandboxes ---------------------------------------------------------------------------------------------------

    async def run_pod_sandbox(self, config: PodSandboxConfig) -> str:
        """Make the namespaces, connect the network. Raises RuntimeServiceError; nothing stays behind then."""
        sandbox = _Sandbox(self._new_id(), config, self._clock.wall_ns())
        options = config.namespace_options
        try:
            answer = await self._shim.call(
                "create_sandbox",
                id=sandbox.id,
                network=options.network,
                ipc=options.ipc,
                pid=options.pid,
                hostname=config.hostname,
                sysctls=config.sysctls,
                cgroupParent=config.cgroup_parent,
                resources=asdict(config.resources),
            )
            if answer.fds:
                try:
                    sandbox.attached = True  # from here on it may be, whatever happens to the call
                    started = monotonic(self._clock)
                    sandbox.ip = await self._network.attach(sandbox.id, answer.fds[0], config.metadata.uid, config)
                    self._record_network(kinds.NETWORK_ATTACHED, sandbox, started)
                finally:
                    os.close(answer.fds[0])
            if config.log_directory:
                os.makedirs(config.log_directory, 0o755, exist_ok=True)
        except BaseException as error:
            await self._discard(sandbox)
            if isinstance(error, OSError):
                raise RuntimeServiceError(f"failed to create pod sandbox: {error}") from error
            raise
        self._sandboxes[sandbox.id] = sandbox
        self._save_sandbox(sandbox)
        self._emit(sandbox.id, ContainerEventType.CONTAINER_CREATED_EVENT, sandbox)
        self._emit(sandbox.id, ContainerEventType.CONTAINER_STARTED_EVENT, sandbox)
        return sandbox.id

    async def _discard(self, sandbox: _Sandbox) -> None:
        if sandbox.attached:
            with suppress(RuntimeServiceError):
                await self._network.detach(sandbox.id, sandbox.ip)
        self._shim.post("remove_sandbox", id=sandbox.id)

    async def stop_pod_sandbox(self, pod_sandbox_id: str) -> None:
        """Kill what is left, detach the network, drop the namespaces. Idempotent; after an error it can be repeated."""
        sandbox = self._sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            return
        async with sandbox.lock:
            left = [c for c in self._containers.values() if c.sandbox is sandbox]
            await asyncio.gather(*(self._kill(container, "StopPodSandbox") for container in left))
            if sandbox.state == PodSandboxState.SANDBOX_READY:
                sandbox.state = PodSandboxState.SANDBOX_NOTREADY
                self._emit(sandbox.id, ContainerEventType.CONTAINER_STOPPED_EVENT, sandbox)
            changed = sandbox.attached or not sandbox.released
            if sandbox.attached:
                await self._detach(sandbox)
            if not sandbox.released:
                if sandbox.config.namespace_options.pid == "POD":
                    await self._shim.call("remove_sandbox", id=sandbox.id)  # until its first process has ended
                else:
                    # Only file descriptors are dropped, and the shim takes its calls in order: whatever follows finds
                    # them gone, and the way of every deletion is a round trip shorter.
                    self._shim.post("remove_sandbox", id=sandbox.id)
                sandbox.released = True
            if changed:
                self._save_sandbox(sandbox)

    async def _detach(self, sandbox: _Sandbox) -> None:
        started = monotonic(self._clock)
        try:
            await self._network.detach(sandbox.id, sandbox.ip)
        except RuntimeServiceError as error:
            self._record_network(kinds.NETWORK_DETACHED, sandbox, started, error=str(error))
            raise
        sandbox.attached = False
        self._record_network(kinds.NETWORK_DETACHED, sandbox, started, error="")

    def _record_network(self, kind: str, sandbox: _Sandbox, started: float, **facts: Any) -> None:
        file = "sandbox_run.go:RunPodSandbox" if kind == kinds.NETWORK_ATTACHED else "sandbox_stop.go:stopPodSandbox"
        self._recorder.record(
            kind,
            pod_uid=sandbox.config.metadata.uid,
            rule=f"containerd internal/cri/server/{file}",
            facts={"ip": sandbox.ip, "seconds": monotonic(self._clock) - started, **facts},
        )

    async def remove_pod_sandbox(self, pod_sandbox_id: str) -> None:
        """Stop it if need be, remove its containers and forget it. Unknown is a success."""
        sandbox = self._sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            return
        await self.stop_pod_sandbox(pod_sandbox_id)
        for container in [c for c in self._containers.values() if c.sandbox is sandbox]:
            await self.remove_container(container.id)
        if self._sandboxes.pop(pod_sandbox_id, None) is not None:
            self._records.remove("sandbox", sandbox.id)
            self._emit(sandbox.id, ContainerEventType.CONTAINER_DELETED_EVENT, sandbox)

    async def pod_sandbox_status(self, pod_sandbox_id: str) -> PodSandboxStatus:
        """Raises RuntimeServiceError, reason NotFound."""
        sandbox = self._sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            raise RuntimeServiceError(
                f'an error occurred when try to find sandbox "{pod_sandbox_id}": not found', "NotFound"
            )
        return sandbox.status()

    async def list_pod_sandbox(self, pod_uid: str = "") -> list[PodSandboxStatus]:
        """Newest first."""
        await self._until_known()
        found = (s.status() for s in reversed(self._sandboxes.values()))
        return [status for status in found if not pod_uid or status.metadata.uid == pod_uid]

    # -- containers --------------------------------------------------------------------------------------------------

    async def create_container(
        self, pod_sandbox_id: str, config: ContainerConfig, sandbox_config: PodSandboxConfig
    ) -> str:
        """Decide what will be started. Raises RuntimeServiceError (NotFound: the sandbox, ImageNotFound)."""
        sandbox = self._sandboxes.get(pod_sandbox_id)
        if sandbox is None or sandbox.state != PodSandboxState.SANDBOX_READY:
            raise RuntimeServiceError(f'failed to find sandbox id "{pod_sandbox_id}": not found', "NotFound")
        root = self._images.rootfs(config.image)
        seccomp = seccomp_filter(config, single_user_id=self._single_user_id())
        identity = self._new_id()
        directory = os.path.join(self._state_dir, identity)
        container = _Container(
            id=identity,
            sandbox=sandbox,
            config=config,
            created_at=self._clock.wall_ns(),
            image_ref=root.image_ref,
            directory=directory,
            spec={
                **start_spec(identity, sandbox.id, config, sandbox_config, root, directory),
                "seccomp": seccomp,
                "logMax": self._log_max_size,
            },
            stop_signal=stop_signal(config, root.config),
        )
        try:
            os.makedirs(directory, 0o700)
            self._save_container(container)
        except OSError as error:
            self._records.remove("container", identity)
            _remove(directory)
            raise RuntimeServiceError(f"failed to create container: {error}") from error
        self._containers[identity] = container
        self._emit(identity, ContainerEventType.CONTAINER_CREATED_EVENT, sandbox)
        return identity

    async def start_container(self, container_id: str) -> None:
        """Raises RuntimeServiceError; with reason StartError the container has ended with exit code 128."""
        container = self._find(container_id)
        if container.state != ContainerState.CONTAINER_CREATED or container.start_requested:
            raise RuntimeServiceError(f"failed to start container: it is in {container.state.name} state")
        container.start_requested = True
        try:
            # That it runs, failed to, or has ended again, is known from the shim's events: they come before the answer,
            # and also when this call is cancelled.
            await self._shim.call("start", container=container.spec)
        except ShimLost:
            raise  # whether it runs is known with the next connection
        except RuntimeServiceError as error:
            self._start_failed(container, str(error))
            raise RuntimeServiceError(container.message, "StartError") from error

    def _start_failed(self, container: _Container, text: str) -> None:
        if container.state == ContainerState.CONTAINER_CREATED:
            container.message = _CREATE_FAILED.format(text)
            self._ended(container, START_ERROR_EXIT_CODE, "StartError", self._clock.wall_ns())

    async def stop_container(self, container_id: str, timeout: int) -> None:
        """The stop signal once per container lifetime, `timeout` seconds, SIGKILL, until it has ended.

        Source: containerd internal/cri/server/container_stop.go:stopContainer.
        """
        container = self._containers.get(container_id)
        if container is None or container.state != ContainerState.CONTAINER_RUNNING:
            return
        if timeout <= 0:
            await self._kill(container, "StopContainer")
            return
        if not container.stop_signal_sent:
            container.stop_signal_sent = True
            await self._shim.call("signal", id=container.id, signal=container.stop_signal, why="StopContainer")
        if not await self._wait_ended(container, timeout):
            await self._kill(container, "grace over")
        self._demand_known(container)

    async def _kill(self, container: _Container, why: str) -> None:
        """SIGKILL, and wait until the kernel has ended the whole container. A start under way is waited for first."""
        if container.start_requested:
            await container.settled.wait()
        if container.state == ContainerState.CONTAINER_RUNNING:
            await self._shim.call("signal", id=container.id, signal=int(signal.SIGKILL), why=why)
            await container.ended.wait()
        self._demand_known(container)

    @staticmethod
    def _demand_known(container: _Container) -> None:
        """Raises RuntimeServiceError when the shim was lost meanwhile."""
        if container.state == ContainerState.CONTAINER_UNKNOWN:
            raise RuntimeServiceError("the connection to the shim is gone")

    async def _wait_ended(self, container: _Container, seconds: float) -> bool:
        """Whether it ended within `seconds`; never answers no too early (loop timers may fire before their time)."""
        deadline = self._clock.monotonic_ns() + int(seconds * 1e9)
        while not container.ended.is_set() and (left := deadline - self._clock.monotonic_ns()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left / 1e9):
                    await container.ended.wait()
        return container.ended.is_set()

    async def remove_container(self, container_id: str) -> None:
        """Kill it if it runs, delete what it wrote, forget it. Unknown is a success."""
        container = self._containers.get(container_id)
        if container is None:
            return
        await self._kill(container, "RemoveContainer")
        if self._containers.pop(container_id, None) is None:
            return  # someone else was quicker
        self._forget_records(container_id)
        self._shim.post("remove", id=container_id)
        await asyncio.to_thread(_remove, container.directory)
        self._emit(container_id, ContainerEventType.CONTAINER_DELETED_EVENT, container.sandbox)

    async def reopen_container_log(self, container_id: str) -> None:
        """Source: containerd internal/cri/server/container_log_reopen.go."""
        self._find_running(container_id, "container is not running:")
        try:
            await self._shim.call("reopen_log", id=container_id)
        except ShimLost:
            raise
        except RuntimeServiceError as error:
            raise RuntimeServiceError(f"failed to reopen log for container {container_id!r}: {error}") from error

    async def list_containers(self, pod_uid: str = "") -> list[ContainerStatus]:
        """Newest first."""
        await self._until_known()
        found = reversed(self._containers.values())
        return [c.status() for c in found if not pod_uid or c.sandbox.config.metadata.uid == pod_uid]

    async def container_status(self, container_id: str) -> ContainerStatus:
        """Raises RuntimeServiceError, reason NotFound."""
        return self._find(container_id).status()

    async def exec_sync(self, container_id: str, cmd: tuple[str, ...], timeout: float) -> ExecSyncResponse:
        """Run a command in the container; at most 16 MiB of each stream are kept.

        `timeout` in seconds, 0 is none. Raises RuntimeServiceError: NotFound, StartError, DeadlineExceeded; cancelling
        kills the command. Source: containerd internal/cri/server/container_execsync.go.
        """
        container = self._find(container_id)
        if container.state != ContainerState.CONTAINER_RUNNING:
            raise RuntimeServiceError(f"failed to exec in container: container is in {container.state.name} state")
        identity = self._new_id()
        try:
            answer = await self._shim.call("exec", id=container_id, execId=identity, argv=list(cmd), timeout=timeout)
        except asyncio.CancelledError:
            self._shim.post("cancel_exec", execId=identity)
            raise
        except RuntimeServiceError as error:
            if error.reason != "StartError":
                raise RuntimeServiceError(f"failed to exec in container: {error}", error.reason) from error
            raise RuntimeServiceError(_EXEC_FAILED.format(identity, error), "StartError") from error
        if answer.message["killedBecause"] == "exec timeout":
            text = f"failed to exec in container: timeout {timeout:g}s exceeded: context deadline exceeded"
            raise RuntimeServiceError(text, "DeadlineExceeded")
        return ExecSyncResponse(answer.blobs[0], answer.blobs[1], answer.message["exitCode"])

    # -- streams -----------------------------------------------------------------------------------------------------

    async def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool) -> ExecStreams:
        """Source: containerd internal/cri/server/container_execsync.go:execInContainer."""
        self._find_running(container_id, "failed to exec in container: container")
        identity = self._new_id()
        try:
            return await open_exec(self._shim, container_id, identity, cmd, tty=tty, stdin=stdin)
        except RuntimeServiceError as error:
            text = str(error)
            if error.reason == "StartError":
                text = _EXEC_FAILED.removeprefix("failed to exec in container: ").format(identity, text)
            raise RuntimeServiceError(f"failed to exec in container: {text}", error.reason) from error

    async def attach(self, container_id: str, *, stdin: bool, stdout: bool, stderr: bool) -> AttachStreams:
        """Source: containerd internal/cri/server/container_attach.go:attachContainer."""
        container = self._find_running(container_id, "container")
        wanted = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        once = container.config.stdin_once
        return await open_attach(self._shim, container_id, wanted, container.ended, stdin_once=once)

    async def port_forward(self, pod_sandbox_id: str, port: int) -> SocketStream:
        """Source: containerd internal/cri/server/sandbox_portforward_linux.go."""
        status = await self.pod_sandbox_status(pod_sandbox_id)
        if status.state != PodSandboxState.SANDBOX_READY:
            raise RuntimeServiceError(f'sandbox container "{pod_sandbox_id}" is not running')
        return await open_port(self._shim, pod_sandbox_id, port)

    def _find_running(self, container_id: str, what: str) -> _Container:
        container = self._find(container_id)
        if container.state != ContainerState.CONTAINER_RUNNING:
            raise RuntimeServiceError(f"{what} is in {container.state.name} state")
        return container

    async def container_stats(self, container_id: str) -> ContainerStats | None:
        """From the container's control group; None without one. Raises RuntimeServiceError, reason NotFound."""
        self._find(container_id)
        usage = (await self._shim.call("stats", id=container_id)).message.get("stats")
        return ContainerStats(*usage) if usage else None

    async def status(self) -> RuntimeStatus:
        """Raises RuntimeServiceError when there is no shim."""
        await self._shim.connect()
        return runtime_status(self._machine, await self._network.status())

    def _single_user_id(self) -> bool:
        return bool(self._machine) and self._machine["uids"] <= 1

    # -- events ------------------------------------------------------------------------------------------------------

    def get_container_events(self) -> AsyncIterator[ContainerEventResponse]:
        """All events from this call on."""
        queue: asyncio.Queue[ContainerEventResponse] = asyncio.Queue()
        self._streams.append(queue)
        return self._events(queue)

    async def _events(self, queue: asyncio.Queue[ContainerEventResponse]) -> AsyncIterator[ContainerEventResponse]:
        try:
            while True:
                yield await queue.get()
        finally:
            self._streams.remove(queue)

    def _emit(self, identity: str, kind: ContainerEventType, sandbox: _Sandbox) -> None:
        event = ContainerEventResponse(identity, kind, self._clock.wall_ns(), sandbox.config.metadata.uid)
        for queue in self._streams:
            queue.put_nowait(event)

    def _on_event(self, message: dict[str, Any]) -> None:
        container = self._containers.get(message["id"])
        if container is None:
            if message["event"] == "exited":
                self._end_stranger(message["id"], message)
        elif message["event"] == "started":
            container.info = message["info"]
            self._started(container, message["startedAt"])
        elif message["event"] == "start_failed":
            self._start_failed(container, message["message"])
        elif message["event"] == "changed":
            container.info = message["info"]
            self._emit(container.id, ContainerEventType.CONTAINER_STARTED_EVENT, container.sandbox)
        elif message["event"] == "exited":
            self._exited(container, message)
        elif message["event"] == "log_full":
            self.on_log_full(container.id)

    def _started(self, container: _Container, started_at: int) -> None:
        if container.state not in (ContainerState.CONTAINER_CREATED, ContainerState.CONTAINER_UNKNOWN):
            return
        container.state = ContainerState.CONTAINER_RUNNING
        container.started_at = started_at
        container.settled.set()
        self._save_status(container)
        self._emit(container.id, ContainerEventType.CONTAINER_STARTED_EVENT, container.sandbox)

    def _exited(self, container: _Container, facts: dict[str, Any]) -> None:
        code = facts["exitCode"]
        reason = "OOMKilled" if facts.get("oomKilled") else "Error" if code else "Completed"
        self._ended(container, code, reason, facts["finishedAt"])

    def _ended(self, container: _Container, code: int, reason: str, finished_at: int) -> None:
        container.state = ContainerState.CONTAINER_EXITED
        container.exit_code, container.reason, container.finished_at = code, reason, finished_at
        container.settled.set()
        container.ended.set()
        self._save_status(container)
        self._emit(container.id, ContainerEventType.CONTAINER_STOPPED_EVENT, container.sandbox)

    def _on_lost(self) -> None:
        """Without the shim nobody can say any more what runs; whoever waits for an end must not wait for ever."""
        for container in self._containers.values():
            created = container.state == ContainerState.CONTAINER_CREATED and container.start_requested
            if container.state == ContainerState.CONTAINER_RUNNING or created:
                container.state = ContainerState.CONTAINER_UNKNOWN
                container.settled.set()
                container.ended.set()
        self._lost.set()

    async def _until_known(self) -> None:
        """Nobody is told of containers of which nobody knows: wait for a shim. Raises RuntimeServiceError."""
        if self._lost.is_set() or any(c.state == ContainerState.CONTAINER_UNKNOWN for c in self._containers.values()):
            await self._shim.connect()

    async def close(self) -> None:
        """Hang up. Containers go on running."""
        self._shim.close()

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _new_id(self) -> str:
        return f"{self._world.random.getrandbits(256):064x}"

    def _find(self, container_id: str) -> _Container:
        container = self._containers.get(container_id)
        if container is None:
            text = f'an error occurred when try to find container "{container_id}": not found'
            raise RuntimeServiceError(text, "NotFound")
        return container

    def _save_sandbox(self, sandbox: _Sandbox) -> None:
        state = {
            "config": sandbox.config,
            "createdAt": sandbox.created_at,
            "state": int(sandbox.state),
            "ip": sandbox.ip,
            "attached": sandbox.attached,
        }
        # A full disk must not take a working sandbox down; only a later adoption would miss it.
        with suppress(OSError):
            self._records.save("sandbox", sandbox.id, state)

    def _save_container(self, container: _Container) -> None:
        state = {
            "config": replace(container.config, envs=(), command=(), args=()),
            "sandboxId": container.sandbox.id,
            "createdAt": container.created_at,
            "imageRef": container.image_ref,
            "stopSignal": container.stop_signal,
            "logPath": container.spec["logPath"],
        }
        self._records.save("container", container.id, state)

    def _save_status(self, container: _Container) -> None:
        state = {
            "startedAt": container.started_at,
            "finishedAt": container.finished_at,
            "exitCode": container.exit_code,
            "reason": container.reason,
            "message": container.message,
        }
        with suppress(OSError):
            self._records.save("status", container.id, state)


def _remove(directory: str) -> None:
    """What a container has written. What cannot go is told; the next node process tries again."""
    try:
        remove_tree(directory)
    except OSError as error:
        log.warning("the directory %s of a container cannot be removed: %s", directory, error)
