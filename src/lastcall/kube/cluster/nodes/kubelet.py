"""The kubelet of a node, its server and what reports on its Node."""

import asyncio
import hashlib
import signal
import uuid
from contextlib import suppress
from pathlib import Path

from lastcall.kube.api.features.releases import RELEASES
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.apiserver.auth.tls import server_context
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.cluster.layout import DISK_DIR
from lastcall.kube.cluster.nodes.context import NodeContext
from lastcall.kube.cluster.nodes.node_group import node_group
from lastcall.kube.cluster.nodes.runtime import Engine, log_policy
from lastcall.kube.cluster.options import CLUSTER_DNS_IP, KUBELET_PORT, LOCAL_PATH_DIR, STATIC_PODS_DIR
from lastcall.kube.cluster.root import has_disk
from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.images import ImageStore
from lastcall.kube.cri.sandbox.seccomp.container import seccomp_available
from lastcall.kube.node.capacity import allocatable_of, machine_capacity
from lastcall.kube.node.eviction.host_stats import DiskRoom, HostStats
from lastcall.kube.node.kubelet import Kubelet, KubeletConfig
from lastcall.kube.node.metrics.node_usage import NodeUsage
from lastcall.kube.node.node_status import NodeConfig, NodeStatusManager, node_labels
from lastcall.kube.node.parts.common import Given
from lastcall.kube.node.pods.user_ids import UserIDs
from lastcall.kube.node.prober.dialer import RealDialer
from lastcall.kube.node.server import KubeletServer, listen
from lastcall.kube.node.shutdown.decide import ShutdownNotSupported
from lastcall.kube.node.static_pods.directory import HostManifestDirectory
from lastcall.kube.node.volumes.disk import VolumesOnDisk
from lastcall.kube.node.volumes.manager import HostVolumeManager
from lastcall.kube.node.volumes.pod_files import ClusterDNS
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

EVENTS_HELD_SECONDS = 0.01
"""A Pod's start and end go on first: each of its Events takes both processors for half a millisecond."""
LAST_WORDS_SECONDS = 1.0
"""For the last statuses and Events of a node that shuts down."""
_NO_IDS = UserIDs(pods=0, why="lastcall gives Pods no user namespaces in other runtimes")


@dataclass(frozen=True, slots=True)
class NodeKubelet:
    """`status` reports on the Node, `register` it when the kubelet is ready."""

    kubelet: Kubelet
    client: HTTPClient
    events: EventRecorder
    status: NodeStatusManager
    server: KubeletServer


def node_kubelet(context: NodeContext, engine: Engine, tasks: Tasks) -> NodeKubelet:
    """Make the kubelet on this runtime, which does not run yet."""
    world, layout = context.world, context.layout
    client = context.client(context.plan.credentials.kubelet_client[layout.name], "kubelet")
    events = EventRecorder(client, world, "kubelet", layout.name, hold_seconds=EVENTS_HELD_SECONDS)
    node, group = _node_config(context, engine), node_group(context.plan, context.node)
    kubelet = Kubelet(
        Given(
            world=world,
            client=client,
            runtime=engine.runtime,
            images=engine.images,
            volumes=_volumes(context, node, client, events, tasks),
            dialer=RealDialer(world.clock),
            recorder=context.recorder,
            config=_kubelet_config(context, node),
            events=events,
            stats=_stats(context, engine, group),
            static_pods=_static_pods(context),
        )
    )
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
    server = KubeletServer(
        world=world,
        runtime=engine.runtime,
        pods=kubelet,
        names=(layout.name,),
        version=node.kubernetes_version,
        counted=kubelet.counted,
        usage=group,
    )
    return NodeKubelet(kubelet, client, events, status, server)


def start_kubelet(context: NodeContext, engine: Engine, node: NodeKubelet, tasks: Tasks) -> None:
    """Run the kubelet, its server, and what the runtime has beside it."""
    if isinstance(engine.images, ImageStore):
        # The stand-in for busybox takes some 25 ms to make: not on the first Pod's time.
        tasks.spawn(crash_guard.guarded("warm images", "", _warm(engine.images)), name="warm images")
    for name, run in (*engine.loops, ("kubelet events", node.events.run)):
        tasks.spawn(crash_guard.keep_running(name, run, context.world.clock), name=name)
    tasks.spawn(node.kubelet.run(), name="kubelet")
    credentials, layout, other = context.plan.credentials, context.layout, context.plan.other
    pair = credentials.kubelet_server[layout.name]
    tls = server_context(pair.certificate, pair.key, client_ca=credentials.ca_certificate)
    listening = listen(layout.ip, KUBELET_PORT) if other is None else other.kubelet
    tasks.spawn(node.server.serve_when_asked(listening, tls), name="kubelet server")


async def shut_down_on_sigterm(world: World, kubelet: Kubelet, tasks: Tasks) -> None:
    """Shut down like a machine that is switched off: first the Pods, gracefully, then this process; it is restarted."""
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    await terminated.wait()
    with suppress(ShutdownNotSupported):  # such a kubelet just ends
        await kubelet.shutdown.shut_down()
        await world.clock.sleep(LAST_WORDS_SECONDS)
    tasks.cancel()


def _node_config(context: NodeContext, engine: Engine) -> NodeConfig:
    plan, layout = context.plan, context.layout
    machine = machine_capacity(Path(layout.directory), plan.options.max_pods)
    if (room := _room(context)) is not None:
        most = min(parse_quantity(machine["ephemeral-storage"]).whole, room.bytes)
        machine["ephemeral-storage"] = f"{most // 1024}Ki"
    capacity = {**machine, **context.node.capacity}
    return NodeConfig(
        name=layout.name,
        ip=layout.ip,
        pod_cidr=layout.pod_cidr,
        kubelet_port=KUBELET_PORT,
        kubernetes_version=RELEASES[plan.options.kubernetes_version],
        capacity=capacity,
        allocatable=allocatable_of(capacity),
        boot_id=plan.boot_id,
        system_uuid=_machine_uuid(plan.credentials.ca_certificate, layout.number),
        container_runtime=engine.version,
    )


def _kubelet_config(context: NodeContext, node: NodeConfig) -> KubeletConfig:
    plan, options, layout = context.plan, context.plan.options, context.layout
    return KubeletConfig(
        node_name=node.name,
        node_ip=node.ip,
        kubernetes_version=options.kubernetes_version,
        container_log_links=f"{layout.directory}/log/containers",
        container_runtime=node.container_runtime.partition("://")[0],
        allocations=f"{layout.directory}/allocations",
        container_logs=log_policy(options),
        pod_log_root=_pod_log_root(context),
        allocatable=node.allocatable,
        memory_capacity=parse_quantity(node.capacity["memory"]).whole,
        node_labels=node_labels(node),
        feature_gates=options.feature_gates,
        seccomp_default=options.seccomp_default and seccomp_available(),
        host_has_app_armor=_text_of("/sys/module/apparmor/parameters/enabled").startswith("Y"),
        user_ids=plan.user_ids_of(context.node) if plan.other is None else _NO_IDS,
    )


def _volumes(
    context: NodeContext, node: NodeConfig, client: HTTPClient, events: EventRecorder, tasks: Tasks
) -> HostVolumeManager:
    """Another runtime does not see what this process mounts."""
    return HostVolumeManager(
        world=context.world,
        tasks=tasks,
        client=client,
        events=events,
        recorder=context.recorder,
        root=Path(f"{context.layout.directory}/pods"),
        node_name=node.name,
        allocatable=node.allocatable,
        cluster_dns=ClusterDNS((CLUSTER_DNS_IP,), node_resolv_conf=_text_of("/etc/resolv.conf")),
        may_mount=context.plan.other is None,
        disk=_volumes_on_disk(context),
    )


def _volumes_on_disk(context: NodeContext) -> VolumesOnDisk | None:
    if (scratch := context.plan.scratch) is None or not has_disk():
        return None
    claims = (Path(LOCAL_PATH_DIR),) if scratch.maps_owners and not context.plan.options.state else ()
    return VolumesOnDisk(Path(f"{context.layout.directory}/empty-dirs"), scratch.maps_owners, claims)


def _room(context: NodeContext) -> DiskRoom | None:
    if (scratch := context.plan.scratch) is None or not has_disk():
        return None
    return DiskRoom(DISK_DIR, scratch.bytes, *scratch.free)


def _stats(context: NodeContext, engine: Engine, group: NodeUsage | None) -> HostStats:
    directory = context.layout.directory
    storage = context.node.capacity.get("ephemeral-storage")
    return HostStats(
        world=context.world,
        runtime=engine.runtime,
        state_dir=directory,
        volumes=Path(f"{directory}/pods/pods"),
        containers=Path(f"{directory}/containers"),
        empty_dirs=Path(f"{directory}/empty-dirs"),
        disk=_room(context),
        logs=_pod_log_root(context),
        node=group,
        storage=parse_quantity(storage).whole if storage else None,
    )


def _static_pods(context: NodeContext) -> HostManifestDirectory | None:
    wanted = context.plan.options.static_pods and context.layout.number == 1
    return HostManifestDirectory(STATIC_PODS_DIR) if wanted else None


def _pod_log_root(context: NodeContext) -> str:
    return f"{context.layout.directory}/log/pods"


async def _warm(images: ImageStore) -> None:
    """Unpack what most Pods will ask for. The Pod that asks gets the error."""
    with suppress(RuntimeServiceError, OSError):
        await images.image_status("busybox:1.36")


def _text_of(path: str) -> str:
    """Return what is in a file; "" if it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _machine_uuid(ca_certificate: bytes, number: int) -> str:
    """One for each node, as long as its cluster keeps its certificate authority; no process has to remember it."""
    return str(uuid.UUID(bytes=hashlib.sha256(ca_certificate + bytes(number - 1)).digest()[:16], version=4))
