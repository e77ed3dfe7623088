"""The node's role: the kubelet on the sandbox runtime."""

import asyncio
import hashlib
import signal
import socket
import uuid
from contextlib import suppress
from pathlib import Path

import uvloop

from lastcall.apiserver.discovery import VERSIONS
from lastcall.apiserver.pki import client_context, server_context
from lastcall.client.events import EventRecorder
from lastcall.client.http import HTTPClient
from lastcall.cluster.egress import EgressClient
from lastcall.cluster.init import SHIM_SOCKET
from lastcall.cluster.node_control import NodeControlServer
from lastcall.cluster.options import (
    API_INSIDE,
    CLUSTER_CIDR,
    DURABLE_DIR,
    KUBELET_PORT,
    KUBERNETES_SERVICE_IP,
    LOAD_BALANCER_CIDR,
    NODE_IP,
    NODE_NAME,
    POD_CIDR,
    SERVICE_CIDR,
    STATE_DIR,
    STATIC_PODS_DIR,
)
from lastcall.cluster.plan import Plan
from lastcall.cri.api import AuthConfig, RuntimeServiceError
from lastcall.cri.sandbox.image_layout import ImageLayout
from lastcall.cri.sandbox.images import HOST_SUBSTITUTES, ImageStore, Pulls, Reference
from lastcall.cri.sandbox.network import PodNetwork
from lastcall.cri.sandbox.runtime import SandboxRuntime
from lastcall.node.dialer import RealDialer
from lastcall.node.host_stats import HostStats
from lastcall.node.kubelet import Kubelet, KubeletConfig
from lastcall.node.log_rotation import parse_log_policy
from lastcall.node.manifest_directory import HostManifestDirectory
from lastcall.node.node_status import NodeConfig, NodeStatusManager, machine_capacity, node_labels
from lastcall.node.server import KubeletServer
from lastcall.node.shutdown import ShutdownNotSupported
from lastcall.node.volumes.manager import HostVolumeManager
from lastcall.node.volumes.pod_files import ClusterDNS
from lastcall.timeline.ring import RingRecorder
from lastcall.world.netlink import new_local_network
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

LAST_WORDS_SECONDS = 1.0
"""For the last statuses and Events of a node that shuts down."""
POD_LOG_ROOT = f"{STATE_DIR}/log/pods"
CONTAINER_LOG_LINKS = f"{STATE_DIR}/log/containers"


def main(plan: Plan) -> None:
    """Run until killed."""
    uvloop.run(_run(plan))


async def _run(plan: Plan) -> None:
    world = World()
    credentials = plan.credentials
    recorder = RingRecorder(plan.rings["node-1"], "kubelet", world.clock)
    runtime_recorder = recorder.for_actor("runtime")
    client = HTTPClient(
        f"https://{API_INSIDE[0]}:{API_INSIDE[1]}",
        ssl_context=client_context(
            credentials.ca_certificate, credentials.kubelet_client.certificate, credentials.kubelet_client.key
        ),
        user_agent=f"kubelet/v{plan.options.kubernetes_version} (lastcall)",
    )
    network = PodNetwork(POD_CIDR)
    await network.prepare_node([NODE_IP, KUBERNETES_SERVICE_IP])
    images = ImageStore(
        unpacked=f"{STATE_DIR}/images", substitutes=HOST_SUBSTITUTES, pulls=_pulls(world, plan.egress_node)
    )
    log_policy = parse_log_policy(plan.options.container_log_max_size, plan.options.container_log_max_files)
    runtime = SandboxRuntime(
        world=world,
        recorder=runtime_recorder,
        shim_socket=SHIM_SOCKET,
        state_dir=f"{STATE_DIR}/containers",
        images=images,
        network=network,
        records_dir=f"{DURABLE_DIR}/runtime" if plan.options.state else "",
        log_max_size=log_policy.max_size,
    )
    await runtime.adopt()
    capacity, allocatable = machine_capacity(Path(STATE_DIR))
    node_config = NodeConfig(
        name=NODE_NAME,
        ip=NODE_IP,
        pod_cidr=POD_CIDR,
        kubelet_port=KUBELET_PORT,
        kubernetes_version=VERSIONS[plan.options.kubernetes_version],
        capacity=capacity,
        allocatable=allocatable,
        boot_id=plan.boot_id,
        system_uuid=_machine_uuid(credentials.ca_certificate),
    )
    async with Tasks() as tasks:
        events = EventRecorder(client, world, "kubelet", NODE_NAME)
        kubelet = Kubelet(
            world=world,
            client=client,
            runtime=runtime,
            images=images,
            volumes=HostVolumeManager(
                world=world,
                tasks=tasks,
                client=client,
                events=events,
                recorder=recorder,
                root=Path(f"{STATE_DIR}/pods"),
                node_name=NODE_NAME,
                allocatable=allocatable,
                cluster_dns=ClusterDNS(node_resolv_conf=_text("/etc/resolv.conf")),
            ),
            dialer=RealDialer(world.clock),
            recorder=recorder,
            config=KubeletConfig(
                node_name=NODE_NAME,
                node_ip=NODE_IP,
                kubernetes_version=plan.options.kubernetes_version,
                pod_log_root=POD_LOG_ROOT,
                container_log_links=CONTAINER_LOG_LINKS,
                container_logs=log_policy,
                allocatable=allocatable,
                node_labels=node_labels(node_config),
                feature_gates=plan.options.feature_gates,
            ),
            events=events,
            stats=HostStats(
                world=world,
                runtime=runtime,
                state_dir=STATE_DIR,
                volumes=Path(f"{STATE_DIR}/pods/pods"),
                containers=Path(f"{STATE_DIR}/containers"),
                logs=POD_LOG_ROOT,
            ),
            static_pods=HostManifestDirectory(STATIC_PODS_DIR) if plan.options.static_pods else None,
        )
        status = NodeStatusManager(
            world=world,
            client=client,
            config=node_config,
            not_ready=kubelet.not_ready,
            pressures=lambda: kubelet.eviction.conditions,
            events=events,
        )
        runtime.on_log_full = kubelet.container_logs.full
        kubelet.shutdown.on_change = kubelet.eviction.on_change = status.update_soon
        # The stand-in for busybox takes some 25 ms to make: not on the first Pod's time.
        tasks.spawn(_warm(images), name="warm images")
        tasks.spawn(runtime.run(), name="shim connection")
        tasks.spawn(events.run(), name="kubelet events")
        tasks.spawn(kubelet.run(), name="kubelet")
        server = KubeletServer(world=world, runtime=runtime, pods=kubelet)
        context = server_context(
            credentials.kubelet_server.certificate,
            credentials.kubelet_server.key,
            client_ca=credentials.ca_certificate,
        )
        await server.start(NODE_IP, KUBELET_PORT, context)
        await kubelet.wait_ready()
        await status.register()
        tasks.spawn(status.run(), name="node status")
        tasks.spawn(_proxy(world, plan, recorder), name="service proxy")
        NodeControlServer(plan.control_node, kubelet.shutdown, tasks).start()
        terminated = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
        tasks.spawn(_shut_down_on_sigterm(world, terminated, kubelet, tasks), name="SIGTERM")


async def _proxy(world: World, plan: Plan, recorder: RingRecorder) -> None:
    """With a client of its own, as kube-proxy; it starts last, for no first Pod waits for it."""
    from lastcall.proxy.health import HTTPHealthServers
    from lastcall.proxy.netlink_sink import NetlinkSink
    from lastcall.proxy.proxier import Proxier, ProxyConfig
    from lastcall.proxy.topology import Node

    credentials = plan.credentials
    client = HTTPClient(
        f"https://{API_INSIDE[0]}:{API_INSIDE[1]}",
        ssl_context=client_context(
            credentials.ca_certificate, credentials.kubelet_client.certificate, credentials.kubelet_client.key
        ),
        user_agent=f"kube-proxy/v{plan.options.kubernetes_version} (lastcall)",
    )
    # The node has no default route: without these its own packets to a Service would not come as far as the rules.
    routes = [new_local_network(network, NODE_IP) for network in (SERVICE_CIDR, LOAD_BALANCER_CIDR)]
    await Proxier(
        world=world,
        client=client,
        recorder=recorder.for_actor("kube-proxy"),
        sink=NetlinkSink(routes),
        config=ProxyConfig(Node(NODE_NAME, addresses=(NODE_IP,)), CLUSTER_CIDR, SERVICE_CIDR),
        health=HTTPHealthServers((NODE_IP,)),
    ).run()


async def _shut_down_on_sigterm(world: World, terminated: asyncio.Event, kubelet: Kubelet, tasks: Tasks) -> None:
    """As a machine that is switched off: the Pods end gracefully, then this process does. It is started again."""
    await terminated.wait()
    with suppress(ShutdownNotSupported):  # such a kubelet just ends
        await kubelet.shutdown.shut_down()
        await world.clock.sleep(LAST_WORDS_SECONDS)
    tasks.cancel()


def _pulls(world: World, egress: socket.socket) -> Pulls:
    """From registries, by connections that front dials."""
    way_out = EgressClient(egress)

    async def pull(layout: ImageLayout, reference: Reference, auth: AuthConfig | None) -> object:
        from lastcall.cri.sandbox.image_pull import ImagePuller  # for the first pull only

        return await ImagePuller(world, layout, way_out).pull(reference, auth)

    return pull


async def _warm(images: ImageStore) -> None:
    """Unpack what most Pods will ask for. What goes wrong here is told to the Pod that asks."""
    with suppress(RuntimeServiceError, OSError):
        await images.image_status("busybox:1.36")


def _machine_uuid(ca_certificate: bytes) -> str:
    """One for each cluster, as long as it keeps its certificate authority; no process of it has to remember it."""
    return str(uuid.UUID(bytes=hashlib.sha256(ca_certificate).digest()[:16], version=4))


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
