"""What every node's process is made of: our runtime, and the kubelet on it. `node.py` puts them together."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.cluster.egress.pair import EgressClient
from lastcall.kube.cluster.layout import NodeLayout
from lastcall.kube.cluster.nodes.policy_gate import PolicyGate
from lastcall.kube.cluster.options import DURABLE_DIR, STATIC_PODS_DIR, ClusterOptions
from lastcall.kube.cri.api import AuthConfig, ImageService, RuntimeService, RuntimeServiceError
from lastcall.kube.cri.sandbox.images.exports import HOST_SUBSTITUTES, ImageStore, Pulls, Reference
from lastcall.kube.cri.sandbox.images.layout import ImageLayout
from lastcall.kube.cri.sandbox.network import KeptAddresses, PodNetwork
from lastcall.kube.cri.sandbox.runtime import SandboxRuntime
from lastcall.kube.cri.sandbox.seccomp.container import filters_can_be_had
from lastcall.kube.node.eviction.host_stats import HostStats
from lastcall.kube.node.kubelet import Kubelet, KubeletConfig
from lastcall.kube.node.logs.rotation import ContainerLogPolicy, parse_log_policy
from lastcall.kube.node.node_status import OWN_RUNTIME, NodeConfig, NodeStatusManager, node_labels
from lastcall.kube.node.parts.common import Given
from lastcall.kube.node.pods.user_ids import UserIDs
from lastcall.kube.node.prober.dialer import RealDialer
from lastcall.kube.node.shutdown.decide import ShutdownNotSupported
from lastcall.kube.node.static_pods.directory import HostManifestDirectory
from lastcall.kube.node.volumes.manager import HostVolumeManager
from lastcall.kube.node.volumes.pod_files import ClusterDNS
from lastcall.records.record import Recorder
from lastcall.world import walls
from lastcall.world.start_code import AFTER_SECONDS, give_back_start_code
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

EVENTS_HELD_SECONDS = 0.01
"""A Pod's start and end go on first: each of its Events takes both processors for half a millisecond."""
LAST_WORDS_SECONDS = 1.0
"""For the last statuses and Events of a node that shuts down."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The runtime of a node, and what runs beside it. `gate` None: policies are not ours."""

    runtime: RuntimeService
    images: ImageService
    loops: tuple[tuple[str, Callable[[], Awaitable[None]]], ...]
    on_log_full: Callable[[Callable[[str], None]], None] = lambda callback: None
    gate: PolicyGate | None = None
    version: str = OWN_RUNTIME


@dataclass(frozen=True, slots=True)
class NodeNetwork:
    """`addresses` are those of the node's `lo`, the first its own; `kept` as in `PodNetwork`."""

    pod_cidr: str
    addresses: Sequence[str]
    kept: KeptAddresses


async def own_engine(
    world: World,
    options: ClusterOptions,
    layout: NodeLayout,
    own: NodeNetwork,
    way_out: EgressClient,
    recorder: Recorder,
) -> Engine:
    """The sandbox runtime, which has found what an earlier process left. Raises RuntimeServiceError."""
    directory = layout.directory
    network = PodNetwork(own.pod_cidr, own.kept)
    await network.prepare_node(list(own.addresses))
    cni = None
    if options.cni_conf_dir:
        # late: 42 ms of a node's start
        from lastcall.kube.cri.sandbox.cni.network import DEFAULT_BIN_DIRS, CNINetwork, conf_dir_of

        cni = CNINetwork(
            world,
            conf_dir_of(options.cni_conf_dir, layout.name),
            f"{directory}/cni",
            bin_dirs=(options.cni_bin_dir,) if options.cni_bin_dir else DEFAULT_BIN_DIRS,
            records_dir=f"{DURABLE_DIR}/{layout.runtime_records}-cni",
            durable=options.state != "",
            pod_cidr=own.pod_cidr,
        )
    images = ImageStore(unpacked=f"{directory}/images", substitutes=HOST_SUBSTITUTES, pulls=_pulls(world, way_out))
    gate = PolicyGate(cni or network)
    runtime = SandboxRuntime(
        world=world,
        recorder=recorder,
        shim_socket=layout.shim_socket,
        state_dir=f"{directory}/containers",
        images=images,
        network=gate,
        log_max_size=log_policy(options).max_size,
        records_dir=f"{DURABLE_DIR}/{layout.runtime_records}",
        durable=options.state != "",
    )
    await runtime.adopt()
    await network.adopted()

    def on_log_full(callback: Callable[[str], None]) -> None:
        runtime.on_log_full = callback

    loops = [("shim connection", runtime.run), *([("CNI", cni.run)] if cni is not None else [])]
    return Engine(runtime, images, tuple(loops), on_log_full, gate)


def log_policy(options: ClusterOptions) -> ContainerLogPolicy:
    """Raises ValueError."""
    return parse_log_policy(options.container_log_max_size, options.container_log_max_files)


def make_kubelet(
    *,
    world: World,
    tasks: Tasks,
    client: HTTPClient,
    events: EventRecorder,
    recorder: Recorder,
    engine: Engine,
    layout: NodeLayout,
    options: ClusterOptions,
    node: NodeConfig,
    cluster_dns: ClusterDNS,
    user_ids: UserIDs,
    own_runtime: bool,
) -> Kubelet:
    """The kubelet, which does not run yet. `own_runtime` False: the containers are somebody else's runtime's."""
    directory, pod_log_root = layout.directory, f"{layout.directory}/log/pods"
    return Kubelet(
        Given(
            world=world,
            client=client,
            runtime=engine.runtime,
            images=engine.images,
            volumes=HostVolumeManager(
                world=world,
                tasks=tasks,
                client=client,
                events=events,
                recorder=recorder,
                root=Path(f"{directory}/pods"),
                node_name=node.name,
                allocatable=node.allocatable,
                cluster_dns=cluster_dns,
                may_mount=own_runtime,
            ),
            dialer=RealDialer(world.clock),
            recorder=recorder,
            config=KubeletConfig(
                node_name=node.name,
                node_ip=node.ip,
                kubernetes_version=options.kubernetes_version,
                container_log_links=f"{directory}/log/containers",
                container_runtime=engine.version.partition("://")[0],
                allocations=f"{directory}/allocations",
                container_logs=log_policy(options),
                pod_log_root=pod_log_root,
                allocatable=node.allocatable,
                node_labels=node_labels(node),
                feature_gates=options.feature_gates,
                seccomp_default=options.seccomp_default and filters_can_be_had(),
                host_has_app_armor=text_of("/sys/module/apparmor/parameters/enabled").startswith("Y"),
                user_ids=user_ids,
            ),
            events=events,
            stats=HostStats(
                world=world,
                runtime=engine.runtime,
                state_dir=directory,
                volumes=Path(f"{directory}/pods/pods"),
                containers=Path(f"{directory}/containers"),
                logs=pod_log_root,
            ),
            static_pods=HostManifestDirectory(STATIC_PODS_DIR) if options.static_pods and layout.number == 1 else None,
        )
    )


def start_kubelet(
    world: World,
    tasks: Tasks,
    client: HTTPClient,
    events: EventRecorder,
    engine: Engine,
    node: NodeConfig,
    kubelet: Kubelet,
) -> NodeStatusManager:
    """It runs from now on, and what the runtime has beside it. What its Node's status comes from, to `register` with
    when the kubelet is ready."""
    status = NodeStatusManager(
        world=world,
        client=client,
        config=node,
        not_ready=kubelet.not_ready,
        pressures=kubelet.pressures,
        events=events,
    )
    engine.on_log_full(kubelet.rotate_log)
    kubelet.on_conditions(status.update_soon)
    if isinstance(engine.images, ImageStore):
        # The stand-in for busybox takes some 25 ms to make: not on the first Pod's time.
        tasks.spawn(walls.guarded("warm images", "", _warm(engine.images)), name="warm images")
    for name, run in (*engine.loops, ("kubelet events", events.run)):
        tasks.spawn(walls.keep_running(name, run, world.clock), name=name)
    tasks.spawn(kubelet.run(), name="kubelet")
    return status


async def settle(world: World) -> None:
    await world.clock.sleep(AFTER_SECONDS)
    give_back_start_code()


async def shut_down_on_sigterm(world: World, kubelet: Kubelet, tasks: Tasks) -> None:
    """As a machine that is switched off: the Pods end gracefully, then this process does. It is started again."""
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    await terminated.wait()
    with suppress(ShutdownNotSupported):  # such a kubelet just ends
        await kubelet.shutdown.shut_down()
        await world.clock.sleep(LAST_WORDS_SECONDS)
    tasks.cancel()


async def _warm(images: ImageStore) -> None:
    """Unpack what most Pods will ask for. What goes wrong here is told to the Pod that asks."""
    with suppress(RuntimeServiceError, OSError):
        await images.image_status("busybox:1.36")


def text_of(path: str) -> str:
    """What is in a file; "" when it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _pulls(world: World, way_out: EgressClient) -> Pulls:
    """From registries, by connections that front dials."""

    async def pull(layout: ImageLayout, reference: Reference, auth: AuthConfig | None) -> object:
        # late: 5 ms of a node's start
        from lastcall.kube.cri.sandbox.images.pull import ImagePuller  # for the first pull only

        return await ImagePuller(world, layout, way_out).pull(reference, auth)

    return pull
