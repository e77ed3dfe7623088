"""The sandbox runtime: CRI's RuntimeService in the node process, on top of the shim, the images and the Pod network.

The node decides, the shim does: every process, namespace and wait status is the shim's, every rule of CRI is here.

A node process that starts after another one adopts what is there: `adopt` reads the records, and the shim's answer to
`hello` says how far everything came (`picture.py`).
"""

# check: allow asyncio.gather because its parts are awaited where they start
# check: allow asyncio.to_thread because blocking work on files of the host runs off the event loop

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import asdict, replace

from lastcall.kube.cri.api import (
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
    RuntimeServiceError,
    RuntimeStatus,
    TCPListener,
    check_handler,
)
from lastcall.kube.cri.sandbox.container_spec import seccomp_filter, start_spec, stop_signal, users_of
from lastcall.kube.cri.sandbox.directories import ContainerDirectories
from lastcall.kube.cri.sandbox.execs import run_exec, start_exec
from lastcall.kube.cri.sandbox.image_sub_paths import check_sub_path
from lastcall.kube.cri.sandbox.object_records import ObjectRecords
from lastcall.kube.cri.sandbox.objects import Container, Sandbox
from lastcall.kube.cri.sandbox.picture import Picture, remove_directory
from lastcall.kube.cri.sandbox.recorded_network import RecordedNetwork
from lastcall.kube.cri.sandbox.runtime_status import runtime_status
from lastcall.kube.cri.sandbox.shim import messages
from lastcall.kube.cri.sandbox.shim_client import ShimClient, ShimLost
from lastcall.kube.cri.sandbox.spec import Network, RootFilesystems
from lastcall.kube.cri.sandbox.stopping import Stopping
from lastcall.kube.cri.sandbox.streams import AttachStreams, ExecStreams, SocketStream, open_attach, open_port
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

RECONNECT_SECONDS = 1.0
_ID_LENGTH = 64

log = logging.getLogger(__name__)


class SandboxRuntime:
    """`lastcall.kube.cri.api.RuntimeService`. `adopt` first; connects to the shim with its first call."""

    def __init__(
        self,
        world: World,
        recorder: Recorder,
        shim_socket: str,
        state_dir: str,
        images: RootFilesystems,
        network: Network,
        records_dir: str = "",
        durable: bool = False,
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
        self._state_dir = state_dir
        self._images = images
        self._network = RecordedNetwork(network, recorder, world.clock)
        self._records = ObjectRecords(records_dir or os.path.join(state_dir, "records"), durable=durable)
        self._picture = picture = Picture(world.clock, self._records)
        self._shim = ShimClient(world, shim_socket, picture)
        picture.post = self._shim.post
        self._stopping = Stopping(self._shim, world.clock)
        self._log_max_size = log_max_size
        self._directories = ContainerDirectories(state_dir, self._new_id)

    @property
    def on_log_full(self) -> Callable[[str], None]:
        """Return what is called with the id of a container whose log has grown to `log_max_size`."""
        return self._picture.rotate_log

    @on_log_full.setter
    def on_log_full(self, callback: Callable[[str], None]) -> None:
        self._picture.rotate_log = callback

    # -- what was there before ---------------------------------------------------------------------------------------

    async def adopt(self) -> None:
        """Take over what an earlier node process left. Before any other call. Raises RuntimeServiceError.

        If there was none, it does not even wait for the shim.
        """
        if not self._records.any:
            return
        self._picture.sandboxes = self._records.load_sandboxes()
        self._picture.containers = self._records.load_containers(self._picture.sandboxes, self._state_dir)
        await self._network.adopt(self._picture.sandboxes.values())
        await self._shim.connect()
        await asyncio.to_thread(self._remove_unknown_directories, set(self._picture.containers))

    async def run(self) -> None:
        """Connect to the shim again whenever the connection was lost, and keep directories ready, until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._directories.run(), name="container directories")
            await self._reconnect()

    async def _reconnect(self) -> None:
        while True:
            await self._picture.lost.wait()
            self._picture.lost.clear()
            try:
                await self._shim.connect()
            except RuntimeServiceError as error:
                log.warning("no connection to the shim yet: %s", error)
                self._picture.lost.set()
                await self._clock.sleep(RECONNECT_SECONDS)
            except Exception as error:
                crash_guard.caught("node's shim connection", "", error)
                self._picture.lost.set()
                await self._clock.sleep(RECONNECT_SECONDS)

    def _remove_unknown_directories(self, known: set[str]) -> None:
        with suppress(FileNotFoundError):
            for entry in os.scandir(self._state_dir):
                if len(entry.name) == _ID_LENGTH and entry.name not in known:
                    remove_directory(entry.path)

    # -- sandboxes ---------------------------------------------------------------------------------------------------

    async def run_pod_sandbox(self, config: PodSandboxConfig, runtime_handler: str = "") -> str:
        """Make the namespaces, connect the network. Raises RuntimeServiceError; nothing stays behind then."""
        check_handler(runtime_handler)
        sandbox = Sandbox(self._new_id(), config, self._clock.wall_ns())
        options = config.namespace_options
        try:
            answer = await self._shim.call(
                messages.CreateSandbox(
                    id=sandbox.id,
                    pod_uid=config.metadata.uid,
                    network=options.network,
                    ipc=options.ipc,
                    pid=options.pid,
                    hostname=config.hostname,
                    sysctls=config.sysctls,
                    users=users_of(options.userns_options),
                    run_as_user=config.run_as_user,
                    run_as_group=config.run_as_group,
                    cgroup_parent=config.cgroup_parent,
                    resources=asdict(config.resources),
                )
            )
            if answer.fds:
                try:
                    await self._network.attach(sandbox, answer.fds[0])
                finally:
                    os.close(answer.fds[0])
            if config.log_directory:
                os.makedirs(config.log_directory, 0o755, exist_ok=True)
        except BaseException as error:
            await self._discard(sandbox)
            if isinstance(error, OSError):
                raise RuntimeServiceError(f"failed to create pod sandbox: {error}") from error
            raise
        self._picture.sandboxes[sandbox.id] = sandbox
        self._records.save_sandbox(sandbox)
        self._picture.emit(sandbox.id, ContainerEventType.CONTAINER_CREATED_EVENT, sandbox)
        self._picture.emit(sandbox.id, ContainerEventType.CONTAINER_STARTED_EVENT, sandbox)
        return sandbox.id

    async def _discard(self, sandbox: Sandbox) -> None:
        await self._network.discard(sandbox)
        self._shim.post(messages.RemoveSandbox(id=sandbox.id))

    async def stop_pod_sandbox(self, pod_sandbox_id: str) -> None:
        """Kill what is left, detach the network, drop the namespaces. Idempotent; after an error it can be repeated."""
        sandbox = self._picture.sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            return
        async with sandbox.lock:
            left = [c for c in self._picture.containers.values() if c.sandbox is sandbox]
            if len(left) == 1:  # mostly, and it has ended: no task, no turn of the loop
                await self._stopping.kill(left[0], "StopPodSandbox")
            else:
                await asyncio.gather(*(self._stopping.kill(container, "StopPodSandbox") for container in left))
            self._picture.end_sandbox(sandbox)
            changed = sandbox.attached or not sandbox.released
            if sandbox.attached:
                await self._network.detach(sandbox)
            if not sandbox.released:
                if sandbox.config.namespace_options.pid == "POD":
                    await self._shim.call(messages.RemoveSandbox(id=sandbox.id))  # until its first process has ended
                else:
                    # Only file descriptors are dropped, and the shim takes its calls in order: whatever follows finds
                    # them gone, and the way of every deletion is a round trip shorter.
                    self._shim.post(messages.RemoveSandbox(id=sandbox.id))
                sandbox.released = True
            if changed:
                self._records.save_sandbox(sandbox)

    async def remove_pod_sandbox(self, pod_sandbox_id: str) -> None:
        """Stop it if need be, remove its containers and forget it. Unknown is a success."""
        sandbox = self._picture.sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            return
        await self.stop_pod_sandbox(pod_sandbox_id)
        for container in [c for c in self._picture.containers.values() if c.sandbox is sandbox]:
            await self.remove_container(container.id)
        if self._picture.sandboxes.pop(pod_sandbox_id, None) is not None:
            self._records.forget_sandbox(sandbox.id)
            self._picture.emit(sandbox.id, ContainerEventType.CONTAINER_DELETED_EVENT, sandbox)

    async def pod_sandbox_status(self, pod_sandbox_id: str) -> PodSandboxStatus:
        """Return the status of a sandbox. Raises RuntimeServiceError, reason NotFound."""
        sandbox = self._picture.sandboxes.get(pod_sandbox_id)
        if sandbox is None:
            raise RuntimeServiceError(
                f'an error occurred when try to find sandbox "{pod_sandbox_id}": not found', "NotFound"
            )
        return sandbox.status()

    async def list_pod_sandbox(self, pod_uid: str = "") -> list[PodSandboxStatus]:
        """Return the sandboxes, newest first."""
        await self._until_known()
        found = reversed(self._picture.sandboxes.values())
        return [s.status() for s in found if not pod_uid or s.config.metadata.uid == pod_uid]

    # -- containers --------------------------------------------------------------------------------------------------

    async def create_container(
        self, pod_sandbox_id: str, config: ContainerConfig, sandbox_config: PodSandboxConfig
    ) -> str:
        """Decide what will be started. Raises RuntimeServiceError (NotFound: the sandbox, ImageNotFound)."""
        sandbox = self._picture.sandboxes.get(pod_sandbox_id)
        if sandbox is None or sandbox.state != PodSandboxState.SANDBOX_READY:
            raise RuntimeServiceError(f'failed to find sandbox id "{pod_sandbox_id}": not found', "NotFound")
        root = self._images.rootfs(config.image)
        volumes = {each.image: self._images.rootfs(each.image) for each in config.mounts if each.image}
        for each in config.mounts:
            if each.image:
                check_sub_path(each, volumes[each.image].lowerdirs)
        seccomp = seccomp_filter(config, single_user_id=self._single_user_id())
        stopped_by = stop_signal(config, root.config)
        try:
            identity, directory = self._directories.take()
        except OSError as error:
            raise RuntimeServiceError(f"failed to create container: {error}") from error
        container = Container(
            id=identity,
            sandbox=sandbox,
            config=config,
            created_at=self._clock.wall_ns(),
            image_ref=root.image_ref,
            directory=directory,
            spec={
                **start_spec(identity, sandbox.id, config, sandbox_config, root, directory, volumes),
                "seccomp": seccomp,
                "logMax": self._log_max_size,
            },
            stop_signal=stopped_by,
        )
        try:
            self._records.save_container(container)
        except OSError as error:
            self._records.forget_container(identity)
            remove_directory(directory)
            raise RuntimeServiceError(f"failed to create container: {error}") from error
        self._picture.containers[identity] = container
        self._picture.emit(identity, ContainerEventType.CONTAINER_CREATED_EVENT, sandbox)
        return identity

    async def start_container(self, container_id: str) -> None:
        """Start a container. Raises RuntimeServiceError; with reason StartError it has ended with exit code 128."""
        # A new shim first says what it has, and takes from the picture what was made for the one before it.
        await self._shim.connect()
        container = self._find(container_id)
        if container.state != ContainerState.CONTAINER_CREATED or container.start_requested:
            raise RuntimeServiceError(f"failed to start container: it is in {container.state.name} state")
        container.start_requested = True
        try:
            # That it runs, failed to, or has ended again, is known from the shim's events: they come before the answer,
            # and also when this call is cancelled.
            await self._shim.call(messages.Start(container=container.spec))
        except ShimLost:
            raise  # whether it runs is known with the next connection
        except RuntimeServiceError as error:
            self._picture.start_failed(container, str(error))
            raise RuntimeServiceError(container.message, "StartError") from error

    async def stop_container(self, container_id: str, timeout: int) -> None:
        """Send the stop signal (once per life), wait `timeout` seconds, SIGKILL, wait for the end (`stopping.py`).

        An unknown or not running container is a success. Raises RuntimeServiceError.
        """
        container = self._picture.containers.get(container_id)
        if container is not None:
            await self._stopping.stop(container, timeout)

    async def remove_container(self, container_id: str) -> None:
        """Kill it if it runs, delete what it wrote, forget it. Unknown is a success."""
        container = self._picture.containers.get(container_id)
        if container is None:
            return
        await self._stopping.kill(container, "RemoveContainer")
        if self._picture.containers.pop(container_id, None) is None:
            return  # someone else was quicker
        self._records.forget_container(container_id)
        self._shim.post(messages.Remove(id=container_id))
        await asyncio.to_thread(remove_directory, container.directory)
        self._picture.emit(container_id, ContainerEventType.CONTAINER_DELETED_EVENT, container.sandbox)

    async def update_pod_sandbox_resources(self, pod_sandbox_id: str, resources: LinuxContainerResources) -> None:
        """Set new limits. Raises RuntimeServiceError; the next call sets again what a failed call has set."""
        sandbox = self._picture.sandboxes.get(pod_sandbox_id)
        if sandbox is None or sandbox.state != PodSandboxState.SANDBOX_READY:
            raise RuntimeServiceError(f'failed to find sandbox id "{pod_sandbox_id}": not found', "NotFound")
        try:
            await self._shim.call(messages.UpdateSandbox(id=sandbox.id, resources=asdict(resources)))
        except ShimLost:
            raise
        except RuntimeServiceError as error:
            raise RuntimeServiceError(f"failed to update resources of pod sandbox: {error}") from error
        sandbox.config = replace(sandbox.config, resources=resources)
        self._records.save_sandbox(sandbox)

    async def update_container_resources(self, container_id: str, resources: LinuxContainerResources) -> None:
        """Set new limits. Source: containerd internal/cri/server/container_update_resources.go."""
        container = self._find_running(container_id, "failed to update resources: container is not running:")
        try:
            await self._shim.call(messages.UpdateContainer(id=container_id, resources=asdict(resources)))
        except ShimLost:
            raise
        except RuntimeServiceError as error:
            raise RuntimeServiceError(f"failed to update resources: {error}") from error
        container.config = replace(container.config, resources=resources)
        try:
            self._records.save_container(container)
        except OSError as error:  # the next node process would set the same limits once more
            log.warning("the record of container %s cannot be written: %s", container_id, error)

    async def reopen_container_log(self, container_id: str) -> None:
        """Reopen the log. Source: containerd internal/cri/server/container_log_reopen.go."""
        self._find_running(container_id, "container is not running:")
        try:
            await self._shim.call(messages.ReopenLog(id=container_id))
        except ShimLost:
            raise
        except RuntimeServiceError as error:
            raise RuntimeServiceError(f"failed to reopen log for container {container_id!r}: {error}") from error

    async def list_containers(self, pod_uid: str = "") -> list[ContainerStatus]:
        """Return the containers, newest first."""
        await self._until_known()
        found = reversed(self._picture.containers.values())
        return [c.status() for c in found if not pod_uid or c.sandbox.config.metadata.uid == pod_uid]

    async def container_status(self, container_id: str) -> ContainerStatus:
        """Return the status of a container. Raises RuntimeServiceError, reason NotFound."""
        return self._find(container_id).status()

    async def exec_sync(self, container_id: str, cmd: tuple[str, ...], timeout: float) -> ExecSyncResponse:
        """Run a command in the container; at most 16 MiB of each stream are kept.

        `timeout` in seconds, 0 is unlimited. Raises RuntimeServiceError: NotFound, StartError, DeadlineExceeded;
        cancelling kills the command. Source: containerd internal/cri/server/container_execsync.go.
        """
        container = self._find(container_id)
        if container.state != ContainerState.CONTAINER_RUNNING:
            raise RuntimeServiceError(f"failed to exec in container: container is in {container.state.name} state")
        return await run_exec(self._shim, container_id, self._new_id(), cmd, timeout)

    # -- streams -----------------------------------------------------------------------------------------------------

    async def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool) -> ExecStreams:
        """Run a command. Source: containerd internal/cri/server/container_execsync.go:execInContainer."""
        self._find_running(container_id, "failed to exec in container: container")
        return await start_exec(self._shim, container_id, self._new_id(), cmd, tty=tty, stdin=stdin)

    async def attach(self, container_id: str, *, stdin: bool, stdout: bool, stderr: bool) -> AttachStreams:
        """Attach to a container. Source: containerd internal/cri/server/container_attach.go:attachContainer."""
        container = self._find_running(container_id, "container")
        wanted = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        once = container.config.stdin_once
        return await open_attach(self._shim, container_id, wanted, container.ended, stdin_once=once)

    async def port_forward(self, pod_sandbox_id: str, port: int) -> SocketStream:
        """Open a port of a sandbox. Source: containerd internal/cri/server/sandbox_portforward_linux.go."""
        status = await self.pod_sandbox_status(pod_sandbox_id)
        if status.state != PodSandboxState.SANDBOX_READY:
            raise RuntimeServiceError(f'sandbox container "{pod_sandbox_id}" is not running')
        return await open_port(self._shim, pod_sandbox_id, port)

    def _find_running(self, container_id: str, what: str) -> Container:
        container = self._find(container_id)
        if container.state != ContainerState.CONTAINER_RUNNING:
            raise RuntimeServiceError(f"{what} is in {container.state.name} state")
        return container

    async def container_stats(self, container_id: str) -> ContainerStats | None:
        """Return the usage of its control group; None without one. Raises RuntimeServiceError, reason NotFound."""
        self._find(container_id)
        usage = (await self._shim.call(messages.Stats(id=container_id))).read(messages.Usage).stats
        return ContainerStats(*usage) if usage else None

    async def listeners(self, container_id: str) -> tuple[TCPListener, ...] | None:
        """Return who listens in a running container; None in the node's network. Raises RuntimeServiceError."""
        self._find(container_id)
        found = (await self._shim.call(messages.Listeners(id=container_id))).read(messages.Listening).listeners
        return None if found is None else tuple(TCPListener(str(each["address"]), int(each["port"])) for each in found)

    async def status(self) -> RuntimeStatus:
        """Return the status. Raises RuntimeServiceError if there is no shim."""
        await self._shim.connect()
        return runtime_status(self._picture.machine, await self._network.status())

    def _single_user_id(self) -> bool:
        return bool(self._picture.machine) and self._picture.machine["uids"] <= 1

    # -- events ------------------------------------------------------------------------------------------------------

    def get_container_events(self) -> AsyncIterator[ContainerEventResponse]:
        """Return all events from this call on."""
        return self._picture.get_container_events()

    async def _until_known(self) -> None:
        """Wait for a shim: without it no container is known. Raises RuntimeServiceError."""
        if self._picture.is_unknown:
            await self._shim.connect()
        await self._picture.starts_are_over()

    async def close(self) -> None:
        """Close the connection. Containers go on running."""
        self._shim.close()

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _new_id(self) -> str:
        return f"{self._world.random.getrandbits(256):064x}"

    def _find(self, container_id: str) -> Container:
        container = self._picture.containers.get(container_id)
        if container is None:
            text = f'an error occurred when try to find container "{container_id}": not found'
            raise RuntimeServiceError(text, "NotFound")
        return container
