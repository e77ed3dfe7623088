"""A cluster in virtual time: API server, controllers, scheduler, kubelet and service proxy are the real code, the rest
is simulated. What happens in it is predicted.

Simulated are the containers (they start at once, and end as `ContainerEnds` says), volumes and the kernel's rules (a
list); requests are those of the load that is given. It has what `experiment/rollout/session.py` needs of a cluster, and
takes hardly any real time. The composition is that of `control_plane.py` and `node.py`.
"""

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.features.gates import feature_gates
from lastcall.kube.api.features.releases import DEFAULT_VERSION
from lastcall.kube.api.meta import Object
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.resources import NODES, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.cluster.node_capacity import NodeCapacity
from lastcall.kube.cluster.propagation import PropagationPlan
from lastcall.kube.controllers.manager import run_controllers
from lastcall.kube.controllers.volumes.storage_class import STANDARD_CLASS, SimulatedDirectories
from lastcall.kube.cri.api import ContainerConfig, PodSandboxConfig
from lastcall.kube.cri.simulated import SimulatedRuntime
from lastcall.kube.cri.simulated_dialer import SimulatedDialer
from lastcall.kube.cri.simulated_program import ExecResult, Listener, Program
from lastcall.kube.node.capacity import allocatable_of
from lastcall.kube.node.interfaces import DialError, HTTPResponse, RPCError
from lastcall.kube.node.kubelet import Kubelet, KubeletConfig
from lastcall.kube.node.node_status import NodeConfig, NodeStatusManager
from lastcall.kube.node.parts.common import Given
from lastcall.kube.node.volumes.simulated import SimulatedVolumeManager
from lastcall.kube.proxy.propagation import Propagation
from lastcall.kube.proxy.proxier import Proxier, ProxyConfig
from lastcall.kube.proxy.sink import RecordingSink
from lastcall.kube.proxy.topology import Node
from lastcall.kube.scheduler.scheduler import run_scheduler
from lastcall.kube.store.memory import MemoryStore
from lastcall.records.memory import MemoryRecorder
from lastcall.records.record import Record
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "500", "ephemeral-storage": "500Gi"}
_LOOK_SECONDS = 0.01


ADMIN = "kubernetes-admin"

Load = TypeVar("Load")


class ContainerEnds(Protocol):
    """How every container ends: `drains` seconds after its stop signal (`ignores`: only when it is killed).

    A preStop command takes `hook` seconds.
    """

    @property
    def drains(self) -> float: ...

    @property
    def ignores(self) -> bool: ...

    @property
    def hook(self) -> float: ...


@dataclass(frozen=True, slots=True)
class ServingContainer:
    """Of a Pod, at one moment: its stop signal (seconds, None: not yet), and its end."""

    term: float | None
    exited: asyncio.Event


Serving = Callable[[str], Sequence[ServingContainer]]
"""The running containers behind an address."""


def component_user(component: str) -> UserInfo:
    """Return the user a component asks as: `node:<name>` and `kube-proxy` may do what they may in a real cluster."""
    groups: tuple[str, ...] = ("system:masters",)
    if component.startswith("node:"):
        groups = ("system:nodes",)
    elif component == "kube-proxy":
        groups = ()
    return UserInfo(f"system:{component}", (*groups, "system:authenticated"))


class _ReportingList(list[Record]):
    """A list that reports what is added."""

    on_append: Callable[[Record], None] | None = None

    def append(self, record: Record) -> None:
        super().append(record)
        if self.on_append is not None:
            self.on_append(record)


class _EveryPort(dict[int, Listener]):
    """Listens on whatever port is asked for."""

    def get(self, key: int, default: Any = None) -> Listener:
        return Listener()


def _program(template: Object, ends_as: ContainerEnds) -> Callable[[ContainerConfig, PodSandboxConfig], Program]:
    spec = template["spec"]
    ends = {each["name"] for each in spec.get("initContainers") or [] if each.get("restartPolicy") != "Always"}
    execs: dict[str, ExecResult] = {}
    for container in [*spec["containers"], *(spec.get("initContainers") or [])]:
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            if command := ((container.get(name) or {}).get("exec") or {}).get("command"):
                execs[" ".join(command)] = ExecResult()
        for name, seconds in (("postStart", 0.0), ("preStop", ends_as.hook)):
            hook = (container.get("lifecycle") or {}).get(name) or {}
            if command := (hook.get("exec") or {}).get("command"):
                execs[" ".join(command)] = ExecResult(seconds)

    def program(config: ContainerConfig, sandbox: PodSandboxConfig) -> Program:
        if config.metadata.name in ends:
            return Program(exits_after=0.01)
        return Program(
            on_term="ignore" if ends_as.ignores else "exit",
            drain_seconds=ends_as.drains,
            execs=execs,
            ports=_EveryPort(),
        )

    return program


class VirtualRolloutCluster(Generic[Load]):
    """`async with VirtualRolloutCluster(world, …) as cluster:`, within `run_virtual`.

    `load` makes what sends requests, of the rules of the first node and of what serves behind an address. `template` is
    the Pod template of the workload; `key_pem` was made before, for nothing is computed in virtual time.
    """

    def __init__(
        self,
        world: World,
        template: Object,
        ends_as: ContainerEnds,
        load: "Callable[[World, RecordingSink, Serving], Load]",
        propagation: PropagationPlan,
        key_pem: bytes,
        *,
        kubernetes_version: str = DEFAULT_VERSION,
        nodes: int = 1,
        node_capacity: NodeCapacity | None = None,
    ) -> None:
        self._world = world
        self._version = kubernetes_version
        self._load = load
        self._propagation = propagation
        self._records = _ReportingList()
        self._recorder = MemoryRecorder("apiserver", world.clock, records=self._records)
        config = APIServerConfig(
            kubernetes_version=kubernetes_version,
            service_account_key_pem=key_pem,
            root_ca_pem=b"CA",
            storage_classes=(STANDARD_CLASS,),
        )
        self._server = APIServer(world=world, store=MemoryStore(), recorder=self._recorder, config=config)
        self.client = self._client(ADMIN)
        declared = node_capacity or NodeCapacity()
        names = [f"node-{number}" for number in range(1, nodes + 1)]
        self._nodes = {name: {**_CAPACITY, **declared.of(name)} for name in names}
        program = _program(template, ends_as)
        self._runtimes = [
            SimulatedRuntime(world, self._recorder.for_actor("runtime"), program, ip_prefix=f"10.244.{index}.")
            for index in range(nodes)
        ]
        self._sinks = [RecordingSink() for _ in range(nodes)]

    # -- what a session needs ------------------------------------------------------------------------------------------

    def on_record(self, callback: Callable[[Record], None]) -> None:
        """Call `callback` with every record from now on."""
        self._records.on_append = callback

    def on_process_died(self, callback: Callable[..., None]) -> None:
        """Do nothing: nothing dies here."""

    def why_it_hung(self, role: str) -> str:
        return ""

    def last_words(self, role: str, lines: int) -> str:
        return ""

    async def connect(self) -> None:
        return None

    async def wait_node_ready(self) -> None:
        """Wait until Pods can be created and run."""
        while not await self._usable():
            await self._world.clock.sleep(_LOOK_SECONDS)

    async def load(self) -> Load:
        return self._load(self._world, self._sinks[0], self._serving)

    async def drain_records(self, seconds: float) -> None:
        return None

    @property
    def records_overwritten(self) -> int:
        return 0

    async def _usable(self) -> bool:
        try:
            await self.client.get(SERVICEACCOUNTS, "default", "default")
            found = [await self.client.get(NODES, name) for name in self._nodes]
        except StatusError:
            return False
        return all(_is_ready(node) for node in found)

    def _serving(self, ip: str) -> list[ServingContainer]:
        """The running containers of a Pod."""
        found = [each for runtime in self._runtimes for each in runtime.listening_containers(ip)]
        return [ServingContainer(term, exited) for _, _, term, exited in found]

    # -- life ----------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._tasks = Tasks()
        await self._tasks.__aenter__()
        for runtime in self._runtimes:
            await runtime.__aenter__()
        await self._server.bootstrap()
        random, clock = self._world.random, self._world.clock
        batch = self._propagation.of("controller")
        gates = feature_gates(self._version, {})
        controllers = run_controllers(
            world=self._world,
            client=self._client("kube-controller-manager"),
            recorder_for=self._recorder.for_actor,
            root_ca_pem=b"CA",
            endpoint_updates_batch_period=lambda: batch.seconds(random, monotonic(clock)),
            volume_directories=SimulatedDirectories(),
            gates=gates,
            fetch=self._server.fetch,
        )
        self._tasks.spawn(controllers, name="controllers")
        scheduler = run_scheduler(
            world=self._world,
            client=self._client("kube-scheduler"),
            recorder=self._recorder.for_actor("scheduler"),
            minor=gates.minor,
        )
        self._tasks.spawn(scheduler, name="scheduler")
        for index, name in enumerate(self._nodes):
            self._tasks.spawn(self._node(index, name), name=f"node {name}")
            self._tasks.spawn(self._proxy(index, name), name=f"service proxy of {name}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._tasks.cancel()
        for runtime in self._runtimes:
            await runtime.__aexit__(None, None, None)
        cancelled = isinstance(error, asyncio.CancelledError)  # a component ended: its exception is the story
        await self._tasks.__aexit__(*((kind, error, traceback) if cancelled else (None, None, None)))

    def _client(self, component: str) -> Client:
        return self._server.client(component_user(component), "lastcall" if component == ADMIN else component)

    async def _proxy(self, index: int, name: str) -> None:
        def drawn(hop: str) -> Callable[[], float]:
            delay = self._propagation.of(hop, name)
            return lambda: delay.seconds(self._world.random, monotonic(self._world.clock))

        client = self._client("kube-proxy")
        events = EventRecorder(client, self._world, "kube-proxy", name)
        proxy = Proxier(
            world=self._world,
            client=client,
            recorder=self._recorder.for_actor("kube-proxy"),
            sink=self._sinks[index],
            events=events,
            config=ProxyConfig(Node(name, addresses=(f"172.18.0.{index + 2}",)), "10.244.0.0/16", "10.96.0.0/16"),
            propagation=Propagation(drawn("watch"), drawn("kernel")),
        )
        async with Tasks() as tasks:
            tasks.spawn(events.run(), name=f"events of the service proxy of {name}")
            await proxy.run()

    async def _node(self, index: int, name: str) -> None:
        world, runtime, client = self._world, self._runtimes[index], self._client(f"node:{name}")
        recorder = self._recorder.for_actor("kubelet")
        events = EventRecorder(client, world, "kubelet", name)
        capacity, allocatable = self._nodes[name], allocatable_of(self._nodes[name])
        async with Tasks() as tasks:
            kubelet = Kubelet(
                Given(
                    world=world,
                    client=client,
                    runtime=runtime,
                    images=runtime,
                    volumes=SimulatedVolumeManager(world=world, recorder=recorder, events=events),
                    dialer=SimulatedDialer(world, runtime, response=HTTPResponse, error=DialError, rpc_error=RPCError),
                    recorder=recorder,
                    config=KubeletConfig(
                        node_name=name,
                        node_ip=f"172.18.0.{index + 2}",
                        kubernetes_version=self._version,
                        pod_log_root="/nonexistent/log/pods",
                        allocatable=allocatable,
                        memory_capacity=parse_quantity(capacity["memory"]).whole,
                        node_labels={"kubernetes.io/hostname": name},
                    ),
                    events=events,
                )
            )
            status = NodeStatusManager(
                world=world,
                client=client,
                config=NodeConfig(
                    name=name,
                    ip=f"172.18.0.{index + 2}",
                    pod_cidr=f"10.244.{index}.0/24",
                    kubelet_port=10250,
                    kubernetes_version=self._version,
                    capacity=capacity,
                    allocatable=allocatable,
                    labels={},
                ),
                not_ready=kubelet.not_ready,
                pressures=kubelet.pressures,
                events=events,
            )
            kubelet.on_conditions(status.update_soon)
            tasks.spawn(events.run(), name="kubelet events")
            tasks.spawn(kubelet.run(), name="kubelet")
            await kubelet.wait_ready()
            await status.register()
            tasks.spawn(status.run(), name="node status")


def _is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
    return ready and not node["spec"].get("taints")
