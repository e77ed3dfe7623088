"""Serve CRI's RuntimeService by an existing runtime: containerd, or another one with the same API.

Only what carries the label of this cluster is its own: others' sandboxes and containers are never listed, nor touched.
"""

import asyncio
import math
import os
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import field, replace
from typing import Any, Protocol

from lastcall.kube.cri import api
from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerEventResponse,
    ContainerStatus,
    LinuxContainerResources,
    PodSandboxConfig,
    PodSandboxStatus,
    RuntimeServiceError,
)
from lastcall.kube.cri.v1.messages import new
from lastcall.kube.cri.v1.remote import changes
from lastcall.kube.cri.v1.remote.connection import RuntimeConnection, plain
from lastcall.kube.cri.v1.remote.paths import Paths
from lastcall.kube.cri.v1.remote.sandbox_ends import SandboxEnds
from lastcall.kube.cri.v1.remote.streams import PORT_FORWARD, PROTOCOL, Dial, RemotePort, RemoteStreams, open_session
from lastcall.kube.cri.v1.translate.container_config import container_config_message
from lastcall.kube.cri.v1.translate.container_status import container_item_of, container_stats_of, container_status_of
from lastcall.kube.cri.v1.translate.images import image_spec
from lastcall.kube.cri.v1.translate.parts import resources_message
from lastcall.kube.cri.v1.translate.runtime import runtime_status_of
from lastcall.kube.cri.v1.translate.sandboxes import sandbox_config_message, sandbox_item_of, sandbox_status_of
from lastcall.kube.cri.v1.translate.task import Task, has_ended, stop_signal_of, task_of
from lastcall.world import crash_guard
from lastcall.world import tasks as world_tasks
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

CLUSTER_LABEL = "lastcall.dev/cluster"
"""On sandboxes and containers: the cluster whose they are."""
POD_UID_LABEL = "io.kubernetes.pod.uid"
ASIDE_SECONDS = 10.0
"""For calls that only stories need."""
RELIST_SECONDS = 0.25
"""Between two listings of a runtime without events (the kubelet's is 1 s); what this node did is seen at once."""
RELIST_WITH_EVENTS_SECONDS = 2.0
EVENTS_AGAIN_SECONDS = 0.5
"""From the end of a stream of events to the next try."""


class Watcher(Protocol):
    """Hears of starts, stops and ends (`lastcall.kube.cri.v1.remote.ends`)."""

    def watches(self, container_id: str) -> bool: ...
    async def started(self, status: ContainerStatus, task: Task, log: str) -> None: ...
    async def running(self, status: ContainerStatus, task: Task, log: str) -> None: ...
    async def stopping(self, status: ContainerStatus, signal: str, timeout: int) -> None: ...
    async def ended(self, status: ContainerStatus) -> None: ...
    async def listeners(self, container_id: str) -> tuple[api.TCPListener, ...] | None: ...
    async def removed(self, container_id: str) -> None: ...
    def sandbox_ended(self, status: PodSandboxStatus, seconds: float) -> None: ...


@dataclass(slots=True)
class _Known:
    """Statuses that stay true as long as the state is the same."""

    sandboxes: dict[str, PodSandboxStatus] = field(default_factory=dict)
    containers: dict[str, ContainerStatus] = field(default_factory=dict)
    starting: set[str] = field(default_factory=set)
    """Containers that this process starts at the moment."""
    stop_signals: dict[str, str] = field(default_factory=dict)
    """Image → its STOPSIGNAL."""
    ends: SandboxEnds = field(default_factory=SandboxEnds)


class RemoteRuntime:
    """`lastcall.kube.cri.api.RuntimeService`. `run` until cancelled: streams and events need it."""

    def __init__(
        self,
        world: World,
        connection: RuntimeConnection,
        *,
        cluster: str,
        paths: Paths | None = None,
        dial: Dial | None = None,
        watcher: Watcher | None = None,
        unified: bool = True,
    ) -> None:
        """`cluster` is the value of the label. `dial` reaches ports of the runtime's loopback. `unified` False: the
        machine has control groups of version 1, for which a runtime refuses settings of version 2.
        """
        self._world, self._connection, self._cluster = world, connection, cluster
        self._paths, self._dial, self._watcher = paths or Paths(), dial, watcher
        self._unified = unified
        self._known = _Known()
        self._tasks: Tasks | None = None
        self._started = asyncio.Event()
        self._look = asyncio.Event()
        self.has_events = False
        """Whether the runtime streams events (GetContainerEvents)."""

    async def run(self) -> None:
        """Run the tasks that read streams and events, until cancelled."""
        try:
            async with Tasks() as self._tasks:
                self._started.set()
                events = crash_guard.keep_running("CRI events", self._follow_events, self._world.clock)
                self._tasks.spawn(events, name="events of the runtime")
                await asyncio.Event().wait()
        finally:
            self._tasks = None
            self._started.clear()

    async def _call(self, name: str, request: Any, seconds: float | None = None) -> Any:
        return await self._connection.runtime(name, request, seconds)

    # -- sandboxes -----------------------------------------------------------------------------------------------------

    async def run_pod_sandbox(self, config: PodSandboxConfig, runtime_handler: str = "") -> str:
        """Run a sandbox; make the Pod's log directory, as the kubelet does. The runtime has no Pod-level limits."""
        self._make_directory(config.log_directory)
        request = new("RunPodSandboxRequest", config=self._sandbox(config), runtime_handler=runtime_handler)
        try:
            sandbox_id = str((await self._call("RunPodSandbox", request)).pod_sandbox_id)
            self._known.ends.run(sandbox_id, self._world.clock.monotonic_ns())
            return sandbox_id
        finally:
            self._look.set()

    def _sandbox(self, config: PodSandboxConfig) -> Any:
        """With the machine's network a Pod has its hostname (kuberuntime_sandbox.go:generatePodSandboxConfig)."""
        labels = {**config.labels, CLUSTER_LABEL: self._cluster}
        if config.namespace_options.network == "NODE":
            config = replace(config, hostname="")
        return sandbox_config_message(
            replace(self._paths.sandbox(config), labels=labels, cgroup_parent="", resources=LinuxContainerResources())
        )

    @staticmethod
    def _make_directory(path: str) -> None:
        if path:
            try:
                os.makedirs(path, 0o755, exist_ok=True)
            except OSError as error:
                raise RuntimeServiceError(f"failed to create pod log directory: {error}") from error

    async def stop_pod_sandbox(self, pod_sandbox_id: str) -> None:
        await self._look_before_stop(pod_sandbox_id)
        self._known.ends.stopping(pod_sandbox_id)
        await self._ended("StopPodSandbox", pod_sandbox_id=pod_sandbox_id)

    async def _look_before_stop(self, pod_sandbox_id: str) -> None:
        """Look whether a sandbox has ended already: a kubelet stops it as soon as its containers have ended."""
        if self._watcher is None or pod_sandbox_id not in self._known.ends.ready:
            return
        request = new("PodSandboxStatusRequest", pod_sandbox_id=pod_sandbox_id, verbose=True)
        with suppress(RuntimeServiceError):
            answer = await self._call("PodSandboxStatus", request, ASIDE_SECONDS)
            status = sandbox_status_of(answer.status)
            if has_ended(answer.info):
                status = replace(status, state=api.PodSandboxState.SANDBOX_NOTREADY)
            if (seconds := self._known.ends.ended(status, self._world.clock.monotonic_ns())) is not None:
                self._watcher.sandbox_ended(status, seconds)

    async def remove_pod_sandbox(self, pod_sandbox_id: str) -> None:
        self._known.ends.stopping(pod_sandbox_id)
        await self._ended("RemovePodSandbox", pod_sandbox_id=pod_sandbox_id)
        self._known.sandboxes.pop(pod_sandbox_id, None)

    async def _ended(self, name: str, **fields: Any) -> None:
        """A verb that is idempotent: what is not there is a success."""
        try:
            await self._call(name, new(f"{name}Request", **fields))
        except RuntimeServiceError as error:
            if error.reason != "NotFound":
                raise
        finally:
            self._look.set()

    async def pod_sandbox_status(self, pod_sandbox_id: str) -> PodSandboxStatus:
        answer = await self._call("PodSandboxStatus", new("PodSandboxStatusRequest", pod_sandbox_id=pod_sandbox_id))
        return sandbox_status_of(answer.status)

    async def list_pod_sandbox(self, pod_uid: str = "") -> list[PodSandboxStatus]:
        """Return sandboxes with addresses and namespaces, which CRI's list does not have."""
        items = await self._sandbox_items(pod_uid)
        found = await _all(self._sandbox_status(each) for each in items)
        if not pod_uid:
            there = {each.id for each in items}
            self._known.sandboxes = {key: each for key, each in self._known.sandboxes.items() if key in there}
        return found

    async def _sandbox_items(self, pod_uid: str = "") -> list[PodSandboxStatus]:
        wanted = new("PodSandboxFilter", label_selector=self._selector(pod_uid))
        answer = await self._call("ListPodSandbox", new("ListPodSandboxRequest", filter=wanted))
        items = [sandbox_item_of(each) for each in answer.items]
        return sorted(items, key=lambda each: -each.created_at)

    async def _sandbox_status(self, item: PodSandboxStatus) -> PodSandboxStatus:
        known = self._known.sandboxes.get(item.id)
        if known is not None and known.state == item.state:
            return known
        status = self._known.sandboxes[item.id] = await self.pod_sandbox_status(item.id)
        return status

    def _selector(self, pod_uid: str) -> dict[str, str]:
        return {CLUSTER_LABEL: self._cluster, **({POD_UID_LABEL: pod_uid} if pod_uid else {})}

    async def update_pod_sandbox_resources(self, pod_sandbox_id: str, resources: LinuxContainerResources) -> None:
        """Do nothing: a Pod's limits are its containers' here."""

    # -- containers ----------------------------------------------------------------------------------------------------

    async def create_container(
        self, pod_sandbox_id: str, config: ContainerConfig, sandbox_config: PodSandboxConfig
    ) -> str:
        if config.log_path:
            self._make_directory(os.path.dirname(os.path.join(sandbox_config.log_directory, config.log_path)))
        labels = {**config.labels, CLUSTER_LABEL: self._cluster}
        message = container_config_message(
            replace(self._paths.container(config), labels=labels, resources=self._limits(config.resources))
        )
        request = new(
            "CreateContainerRequest",
            pod_sandbox_id=pod_sandbox_id,
            config=message,
            sandbox_config=self._sandbox(sandbox_config),
        )
        try:
            return str((await self._call("CreateContainer", request)).container_id)
        except RuntimeServiceError as error:
            raise RuntimeServiceError(plain(error), error.reason) from None

    def _limits(self, resources: LinuxContainerResources) -> LinuxContainerResources:
        return resources if self._unified else replace(resources, unified={})

    async def start_container(self, container_id: str) -> None:
        """Start a container. Raises RuntimeServiceError, reason StartError if the process could not be executed."""
        self._known.starting.add(container_id)
        try:
            await self._call("StartContainer", new("StartContainerRequest", container_id=container_id))
            await self._tell_start(container_id)
        except RuntimeServiceError as error:
            reason = "StartError" if "OCI runtime create failed" in str(error) else error.reason
            raise RuntimeServiceError(plain(error), reason) from None
        finally:
            self._known.starting.discard(container_id)
            self._look.set()

    async def _tell_start(self, container_id: str) -> None:
        """Tell the watcher of a container that has started. Ignore errors: the start itself succeeded."""
        if self._watcher is not None:
            with suppress(RuntimeServiceError):
                answer = await self._verbose(container_id)
                status = container_status_of(answer.status, "")
                await self._watcher.started(status, task_of(answer.info), answer.status.log_path)

    async def stop_container(self, container_id: str, timeout: int) -> None:
        known = self._known.containers.get(container_id)
        if self._watcher is not None and known is not None:
            await self._watcher.stopping(known, known.stop_signal or await self._stop_signal(known), timeout)
        await self._ended("StopContainer", container_id=container_id, timeout=timeout)

    async def _stop_signal(self, status: ContainerStatus) -> str:
        """Return the image's STOPSIGNAL, for a runtime whose status does not say what it sends (before CRI of 1.33)."""
        found = self._known.stop_signals.get(status.image_ref)
        if found is None:
            request = new("ImageStatusRequest", image=image_spec(status.image_ref), verbose=True)
            try:
                found = stop_signal_of((await self._connection.images("ImageStatus", request, ASIDE_SECONDS)).info)
            except RuntimeServiceError:
                return ""
            self._known.stop_signals[status.image_ref] = found
        return found

    async def remove_container(self, container_id: str) -> None:
        await self._ended("RemoveContainer", container_id=container_id)
        self._known.containers.pop(container_id, None)
        if self._watcher is not None:
            await self._watcher.removed(container_id)

    async def update_container_resources(self, container_id: str, resources: LinuxContainerResources) -> None:
        request = new(
            "UpdateContainerResourcesRequest",
            container_id=container_id,
            linux=resources_message(self._limits(resources)),
        )
        await self._call("UpdateContainerResources", request)
        self._known.containers.pop(container_id, None)

    async def reopen_container_log(self, container_id: str) -> None:
        await self._call("ReopenContainerLog", new("ReopenContainerLogRequest", container_id=container_id))

    async def list_containers(self, pod_uid: str = "") -> list[ContainerStatus]:
        """Return containers with what CRI's list does not have: times, exit codes, reasons."""
        items = await self._container_items(pod_uid)
        found = await _all(self._container_status(each) for each in items)
        if not pod_uid:
            there = {each.id for each in items}
            self._known.containers = {key: each for key, each in self._known.containers.items() if key in there}
        return found

    async def _container_items(self, pod_uid: str = "") -> list[ContainerStatus]:
        wanted = new("ContainerFilter", label_selector=self._selector(pod_uid))
        answer = await self._call("ListContainers", new("ListContainersRequest", filter=wanted))
        items = [container_item_of(each) for each in answer.containers]
        return sorted(items, key=lambda each: -each.created_at)

    async def _container_status(self, item: ContainerStatus) -> ContainerStatus:
        known = self._known.containers.get(item.id)
        if known is not None and known.state == item.state:
            return known
        status = self._known.containers[item.id] = await self._status_of(item.id, item.pod_sandbox_id)
        if self._watcher is not None:
            await self._tell(self._watcher, status)
        return status

    async def _tell(self, watcher: Watcher, status: ContainerStatus) -> None:
        if status.state == api.ContainerState.CONTAINER_EXITED:
            await watcher.ended(status)
        elif (
            status.state == api.ContainerState.CONTAINER_RUNNING
            and status.id not in self._known.starting
            and not watcher.watches(status.id)
        ):
            with suppress(RuntimeServiceError):
                answer = await self._verbose(status.id)
                await watcher.running(status, task_of(answer.info), answer.status.log_path)

    async def container_status(self, container_id: str) -> ContainerStatus:
        known = self._known.containers.get(container_id)
        return await self._status_of(container_id, known.pod_sandbox_id if known else "")

    async def _status_of(self, container_id: str, pod_sandbox_id: str) -> ContainerStatus:
        answer = await self._call("ContainerStatus", new("ContainerStatusRequest", container_id=container_id))
        return self._paths.status(container_status_of(answer.status, pod_sandbox_id))

    async def _verbose(self, container_id: str) -> Any:
        """The status with the runtime's own information."""
        request = new("ContainerStatusRequest", container_id=container_id, verbose=True)
        return await self._call("ContainerStatus", request, ASIDE_SECONDS)

    async def exec_sync(self, container_id: str, cmd: tuple[str, ...], timeout: float) -> api.ExecSyncResponse:
        """Run a command. CRI counts whole seconds."""
        request = new("ExecSyncRequest", container_id=container_id, cmd=cmd, timeout=math.ceil(timeout))
        try:
            answer = await self._call("ExecSync", request)
        except RuntimeServiceError as error:
            reason = "StartError" if "OCI runtime exec failed" in str(error) else error.reason
            raise RuntimeServiceError(plain(error), reason) from None
        return api.ExecSyncResponse(answer.stdout, answer.stderr, answer.exit_code)

    async def container_stats(self, container_id: str) -> api.ContainerStats | None:
        answer = await self._call("ContainerStats", new("ContainerStatsRequest", container_id=container_id))
        return container_stats_of(answer.stats)

    async def listeners(self, container_id: str) -> tuple[api.TCPListener, ...] | None:
        """Return the listeners that the witness sees; CRI does not report them."""
        return None if self._watcher is None else await self._watcher.listeners(container_id)

    # -- streams -------------------------------------------------------------------------------------------------------

    async def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool) -> RemoteStreams:
        request = new(
            "ExecRequest", container_id=container_id, cmd=cmd, tty=tty, stdin=stdin, stdout=True, stderr=not tty
        )
        url = (await self._call("Exec", request)).url
        wanted = ["stdout", *([] if tty else ["stderr"]), *(["stdin"] if stdin else []), *(["resize"] if tty else [])]
        return await self._streams(url, wanted)

    async def attach(self, container_id: str, *, stdin: bool, stdout: bool, stderr: bool) -> RemoteStreams:
        """Attach to a container. With a terminal it has no stderr.

        Whether it has one only its configuration says, so both are tried. Source: containerd
        pkg/cri/server/container_attach.go: a terminal is the container's own.
        """
        tty = await self._has_terminal(container_id)
        request = new(
            "AttachRequest", container_id=container_id, tty=tty, stdin=stdin, stdout=stdout, stderr=stderr and not tty
        )
        url = (await self._call("Attach", request)).url
        names = {"stdin": stdin, "stdout": stdout, "stderr": stderr and not tty, "resize": tty}
        return await self._streams(url, [name for name, is_wanted in names.items() if is_wanted], is_attach=True)

    async def _has_terminal(self, container_id: str) -> bool:
        """By the verbose information; a runtime without it says no."""
        return task_of((await self._verbose(container_id)).info).terminal

    async def port_forward(self, pod_sandbox_id: str, port: int) -> RemotePort:
        request = new("PortForwardRequest", pod_sandbox_id=pod_sandbox_id, port=[port])
        url = (await self._call("PortForward", request)).url
        return await RemotePort.open(await self._session(url, PORT_FORWARD), port)

    async def _streams(self, url: str, wanted: list[str], *, is_attach: bool = False) -> RemoteStreams:
        session = await self._session(url, PROTOCOL)
        assert self._tasks is not None
        return await RemoteStreams.open(session, wanted, self._tasks, is_attach=is_attach)

    async def _session(self, url: str, protocol: str) -> Any:
        await self._started.wait()
        assert self._tasks is not None
        return await open_session(url, protocol, self._dial or dial_here, self._tasks)

    # -- events --------------------------------------------------------------------------------------------------------

    async def get_container_events(self) -> AsyncIterator[ContainerEventResponse]:
        """Yield what changes in the runtime's lists. Its own events say when to look, if it has any.

        Between two events there is a look now and then: a runtime may lose one (containerd 1.7 sends each event to one
        reader, and that of a node that has died takes one more). Ends when the runtime goes away.
        """
        before = await self._seen()
        while True:
            self._look.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(RELIST_WITH_EVENTS_SECONDS if self.has_events else RELIST_SECONDS):
                    await self._look.wait()
            after = await self._seen()
            for each in changes.events(before, after, self._world.clock.wall_ns()):
                yield each
            before = after

    async def _follow_events(self) -> None:
        """Look at once when the runtime has something to tell of this cluster."""
        while True:
            try:
                self.has_events = True
                async for event in self._connection.events():
                    labels = event.pod_sandbox_status.labels
                    if labels.get(CLUSTER_LABEL, self._cluster) == self._cluster:
                        self._look.set()
                unimplemented = False
            except RuntimeServiceError as error:
                unimplemented = error.reason == "Unimplemented"
            self.has_events = False
            self._look.set()
            if unimplemented:
                return
            await self._world.clock.sleep(EVENTS_AGAIN_SECONDS)

    async def _seen(self) -> changes.Seen:
        sandboxes = await self._sandbox_items()
        for item, seconds in self._known.ends.look(sandboxes, self._world.clock.monotonic_ns()):
            if self._watcher is not None:
                with suppress(RuntimeServiceError):  # the list has no namespaces
                    self._watcher.sandbox_ended(await self.pod_sandbox_status(item.id), seconds)
        return changes.seen(sandboxes, await self._container_items())

    # -- the runtime itself --------------------------------------------------------------------------------------------

    async def status(self) -> api.RuntimeStatus:
        """Return its conditions, and those that lastcall's kubelet asks for beside."""
        answer = await self._call("Status", new("StatusRequest"))
        own = runtime_status_of(answer.status)
        users = api.RuntimeCondition(
            api.USER_NAMESPACES, False, "NotWithThisRuntime", "lastcall gives Pods no user namespaces in other runtimes"
        )
        more = tuple(api.RuntimeCondition(kind, True) for kind in (api.LIMITS_ENFORCED, api.USER_IDS_MAPPED))
        return api.RuntimeStatus((*own.conditions, users, *more))

    async def close(self) -> None:
        await self._connection.close()


async def dial_here(host: str, port: int) -> socket.socket:
    """Connect in this process's own network namespace. Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (host, port))
    except BaseException:
        sock.close()
        raise
    return sock


async def _all(work: Any) -> list[Any]:
    """The results of calls about things that may be gone meanwhile: those are left out. Raises RuntimeServiceError."""
    found = []
    for result in await world_tasks.gather(work):
        if isinstance(result, RuntimeServiceError) and result.reason == "NotFound":
            continue
        if isinstance(result, Exception):
            raise result
        found.append(result)
    return found
