"""One node of a virtual cluster: kubelet, status and lease on a simulated runtime, all through a client of its own."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from lastcall.kube.api.features.releases import DEFAULT_VERSION
from lastcall.kube.api.meta import AnyObject
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.cri.simulated import Durations, SimulatedRuntime
from lastcall.kube.cri.simulated_dialer import SimulatedDialer
from lastcall.kube.node.interfaces import DialError, HTTPResponse, RPCError
from lastcall.kube.node.kubelet import Kubelet, KubeletConfig
from lastcall.kube.node.node_status import NodeConfig, NodeStatusManager
from lastcall.kube.node.parts.common import Given
from lastcall.kube.node.volumes.simulated import SimulatedVolumeManager
from lastcall.records.memory import MemoryRecorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

ALLOCATABLE = {"cpu": "2", "memory": "8Gi", "pods": "110", "ephemeral-storage": "20Gi"}


class _NodeEvents:
    """Hands on to the event recorder of the kubelet that runs now."""

    recorder: EventRecorder

    def event(self, obj: AnyObject, event_type: Any, reason: str, message: str, *, field_path: str = "") -> None:
        self.recorder.event(obj, event_type, reason, message, field_path=field_path)


class VirtualNode:
    """`start_kubelet` and `kill_kubelet`; containers live on without a kubelet. `number` counts from 1.

    `client_of(component)` makes the clients; `kubelet` and `kubelet_config` are more arguments of those.
    """

    def __init__(
        self,
        world: World,
        number: int,
        name: str,
        *,
        tasks: Callable[[], Tasks],
        client_of: Callable[[str], Client],
        recorder: MemoryRecorder,
        programs: Any,
        images: Any = None,
        durations: Durations | None = None,
        kubernetes_version: str = DEFAULT_VERSION,
        capacity: Mapping[str, str] = ALLOCATABLE,
        allocatable: Mapping[str, str] = ALLOCATABLE,
        labels: Mapping[str, str] | None = None,
        kubelet: Mapping[str, Any] | None = None,
        kubelet_config: Mapping[str, Any] | None = None,
    ) -> None:
        self.world = world
        self.name = name
        self.ip = f"172.18.0.{number + 1}"
        self.pod_cidr = f"10.244.{number - 1}.0/24"
        self.version = kubernetes_version
        self.capacity, self.allocatable = dict(capacity), dict(allocatable)
        self.labels = dict(labels or {})
        self._kubelet_options = dict(kubelet or {})
        self._kubelet_config = dict(kubelet_config or {})
        self._tasks = tasks
        self._client_of = client_of
        self._recorder = recorder
        self.runtime = SimulatedRuntime(
            world,
            recorder.for_actor("runtime"),
            programs,
            images=images,
            durations=durations,
            ip_prefix=f"10.244.{number - 1}.",
        )
        self.dialer = SimulatedDialer(world, self.runtime, response=HTTPResponse, error=DialError, rpc_error=RPCError)
        # What is mounted outlives the kubelet's process, its events do not.
        self._events = _NodeEvents()
        self.volumes = SimulatedVolumeManager(world=world, recorder=recorder.for_actor("kubelet"), events=self._events)
        self.log_root = "/nonexistent/log/pods"
        self.kubelet: Kubelet
        self.task: asyncio.Task[None] | None = None
        """The kubelet's; None while there is no kubelet."""

    def start_kubelet(self) -> None:
        """Start the node's process; after `kill_kubelet` a new one that knows nothing."""
        self.task = self._tasks().spawn(self._live(), name=f"node {self.name}")

    async def kill_kubelet(self) -> None:
        """As `kill -9`: what it was doing is cut off, its execs end, containers go on."""
        assert self.task is not None
        self.task.cancel()
        while not self.task.done():
            await self.world.clock.sleep(0.001)
        self.task = None

    def kill_now(self) -> "asyncio.Task[None]":
        """The beginning of `kill_kubelet`, from wherever a test is; answers the task that is ending."""
        assert self.task is not None
        task, self.task = self.task, None
        task.cancel()
        return task

    async def _live(self) -> None:
        task = self.task
        try:
            await self._run()
        except BaseExceptionGroup:
            # A killed process has no last words; here its tasks are cancelled, and some may not like it.
            if self.task is task:
                raise

    async def _run(self) -> None:
        client = self._client_of(f"node:{self.name}")
        events = EventRecorder(client, self.world, "kubelet", self.name)
        self._events.recorder = events
        async with Tasks() as tasks:
            self.kubelet = Kubelet(
                Given(
                    world=self.world,
                    client=client,
                    runtime=self.runtime,
                    images=self.runtime,
                    volumes=self.volumes,
                    dialer=self.dialer,
                    recorder=self._recorder.for_actor("kubelet"),
                    config=KubeletConfig(
                        node_name=self.name,
                        node_ip=self.ip,
                        kubernetes_version=self.version,
                        pod_log_root=self.log_root,
                        allocatable=self.allocatable,
                        node_labels={"kubernetes.io/hostname": self.name, **self.labels},
                        **self._kubelet_config,
                    ),
                    events=events,
                    **self._kubelet_options,
                )
            )
            status = NodeStatusManager(
                world=self.world,
                client=client,
                config=NodeConfig(
                    name=self.name,
                    ip=self.ip,
                    pod_cidr=self.pod_cidr,
                    kubelet_port=10250,
                    kubernetes_version=self.version,
                    capacity=self.capacity,
                    allocatable=self.allocatable,
                    labels=self.labels,
                ),
                not_ready=self.kubelet.not_ready,
                pressures=self.kubelet.pressures,
                events=events,
            )
            self.kubelet.on_conditions(status.update_soon)
            tasks.spawn(events.run(), name="kubelet events")
            tasks.spawn(self.kubelet.run(), name="kubelet")
            await self.kubelet.wait_ready()
            await status.register()
            tasks.spawn(status.run(), name="node status")
