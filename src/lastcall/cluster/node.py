"""The node's role: the kubelet on the sandbox runtime."""

import asyncio
import hashlib
import signal
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from lastcall.apiserver.auth.tls import client_context, server_context
from lastcall.apiserver.discovery import VERSIONS
from lastcall.client.events import EventRecorder
from lastcall.client.http import HTTPClient
from lastcall.cluster.control.node import NodeControlServer
from lastcall.cluster.egress.pair import EgressClient
from lastcall.cluster.health.walls import put_up_walls
from lastcall.cluster.layout import CONTROL_PLANE_IP, NodeLayout
from lastcall.cluster.options import (
    CLUSTER_CIDR,
    CLUSTER_DNS_IP,
    DURABLE_DIR,
    KUBELET_PORT,
    KUBERNETES_SERVICE_IP,
    LOAD_BALANCER_CIDR,
    SERVICE_CIDR,
    STATIC_PODS_DIR,
)
from lastcall.cluster.plan import NodePlan, Plan
from lastcall.cluster.policy_gate import PolicyGate
from lastcall.cluster.published.carrier import Carrier
from lastcall.cluster.staying.credentials import KeyPair
from lastcall.cri.api import AuthConfig, RuntimeServiceError
from lastcall.cri.sandbox.images.exports import HOST_SUBSTITUTES, ImageStore, Pulls, Reference
from lastcall.cri.sandbox.images.layout import ImageLayout
from lastcall.cri.sandbox.network import PodNetwork
from lastcall.cri.sandbox.runtime import SandboxRuntime
from lastcall.cri.sandbox.seccomp.container import filters_can_be_had
from lastcall.nftables.names import POLICIES
from lastcall.node.assembly import Given
from lastcall.node.eviction.host_stats import HostStats
from lastcall.node.kubelet import Kubelet, KubeletConfig
from lastcall.node.logs.rotation import parse_log_policy
from lastcall.node.node_status import NodeConfig, NodeStatusManager, machine_capacity, node_labels
from lastcall.node.prober.dialer import RealDialer
from lastcall.node.server import KubeletServer, listen
from lastcall.node.shutdown.decide import ShutdownNotSupported
from lastcall.node.static_pods.directory import HostManifestDirectory
from lastcall.node.volumes.manager import HostVolumeManager
from lastcall.node.volumes.pod_files import ClusterDNS
from lastcall.proxy.first_service import first_service, stands
from lastcall.proxy.names import TABLE as SERVICES_TABLE
from lastcall.proxy.policies.first_policy import first_policy
from lastcall.timeline.record_json import encode_record
from lastcall.timeline.ring import RingRecorder
from lastcall.world import walls
from lastcall.world.clock import monotonic
from lastcall.world.netlink import new_local_network
from lastcall.world.start_code import AFTER_SECONDS, give_back_start_code
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.cri.sandbox.cni.network import CNINetwork

EVENTS_HELD_SECONDS = 0.01
"""A Pod's start and end go on first: each of its Events takes both processors for half a millisecond."""
DNS_PORTS = (("dns", "UDP", 53), ("dns-tcp", "TCP", 53))
"""Names and numbers of the ports of the cluster DNS server, as its Pods have them elsewhere."""
LAST_WORDS_SECONDS = 1.0
"""For the last statuses and Events of a node that shuts down."""


def main(plan: Plan, node: NodePlan) -> None:
    """Run until killed."""
    uvloop.run(_run(plan, node))


async def _run(plan: Plan, node: NodePlan) -> None:
    world = World()
    credentials, layout = plan.credentials, node.layout
    heart = plan.hearts[layout.name]
    heart.start(asyncio.get_running_loop())
    has_static_pods = plan.options.static_pods != "" and layout.number == 1
    directory, pod_log_root = layout.directory, f"{layout.directory}/log/pods"
    kubelet_server = credentials.kubelet_server[layout.name]
    recorder = RingRecorder(plan.rings[layout.name], "kubelet", world.clock, encode_record)
    put_up_walls(layout.name, recorder)
    runtime_recorder = recorder.for_actor("runtime")
    client = _client(plan, layout, credentials.kubelet_client[layout.name], "kubelet")
    kept = (SERVICE_CIDR, LOAD_BALANCER_CIDR, f"{CONTROL_PLANE_IP}/32"), (layout.api_server, (layout.ip, KUBELET_PORT))
    network = PodNetwork(layout.pod_cidr, kept)
    # In a namespace of its own the control plane's is one hop away, the Service's address there, too.
    own = [layout.ip, CLUSTER_DNS_IP]
    await network.prepare_node(own if layout.has_netns else [*own, CONTROL_PLANE_IP, KUBERNETES_SERVICE_IP])
    way_out = EgressClient(node.egress_node)
    cni = _cni_network(world, plan, layout)
    images = ImageStore(unpacked=f"{directory}/images", substitutes=HOST_SUBSTITUTES, pulls=_pulls(world, way_out))
    log_policy = parse_log_policy(plan.options.container_log_max_size, plan.options.container_log_max_files)
    gate = PolicyGate(cni or network)
    runtime = SandboxRuntime(
        world=world,
        recorder=runtime_recorder,
        shim_socket=layout.shim_socket,
        state_dir=f"{directory}/containers",
        images=images,
        network=gate,
        log_max_size=log_policy.max_size,
        records_dir=f"{DURABLE_DIR}/{layout.runtime_records}",
        durable=plan.options.state != "",
    )
    await runtime.adopt()
    await network.adopted()
    capacity, allocatable = machine_capacity(Path(directory), plan.options.max_pods)
    node_config = NodeConfig(
        name=layout.name,
        ip=layout.ip,
        pod_cidr=layout.pod_cidr,
        kubelet_port=KUBELET_PORT,
        kubernetes_version=VERSIONS[plan.options.kubernetes_version],
        capacity=capacity,
        allocatable=allocatable,
        boot_id=plan.boot_id,
        system_uuid=_machine_uuid(credentials.ca_certificate, layout.number),
    )
    async with Tasks() as tasks:

        def keep(name: str, run: Callable[[], Awaitable[None]]) -> None:
            tasks.spawn(walls.keep_running(name, run, world.clock), name=name)

        events = EventRecorder(client, world, "kubelet", layout.name, hold_seconds=EVENTS_HELD_SECONDS)
        kubelet = Kubelet(
            Given(
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
                    root=Path(f"{directory}/pods"),
                    node_name=layout.name,
                    allocatable=allocatable,
                    cluster_dns=ClusterDNS((CLUSTER_DNS_IP,), node_resolv_conf=_text("/etc/resolv.conf")),
                ),
                dialer=RealDialer(world.clock),
                recorder=recorder,
                config=KubeletConfig(
                    node_name=layout.name,
                    node_ip=layout.ip,
                    kubernetes_version=plan.options.kubernetes_version,
                    container_log_links=f"{directory}/log/containers",
                    allocations=f"{directory}/allocations",
                    container_logs=log_policy,
                    pod_log_root=pod_log_root,
                    allocatable=allocatable,
                    node_labels=node_labels(node_config),
                    feature_gates=plan.options.feature_gates,
                    seccomp_default=plan.options.seccomp_default and filters_can_be_had(),
                    host_has_app_armor=_text("/sys/module/apparmor/parameters/enabled").startswith("Y"),
                    user_ids=plan.user_ids.of_node(layout.number, layout.of),
                ),
                events=events,
                stats=HostStats(
                    world=world,
                    runtime=runtime,
                    state_dir=directory,
                    volumes=Path(f"{directory}/pods/pods"),
                    containers=Path(f"{directory}/containers"),
                    logs=pod_log_root,
                ),
                static_pods=HostManifestDirectory(STATIC_PODS_DIR) if has_static_pods else None,
            )
        )
        status = NodeStatusManager(
            world=world,
            client=client,
            config=node_config,
            not_ready=kubelet.not_ready,
            pressures=lambda: kubelet.parts.eviction.conditions,
            events=events,
        )
        runtime.on_log_full = kubelet.parts.container_logs.full
        kubelet.parts.shutdown.on_change = kubelet.parts.eviction.on_change = status.update_soon
        # The stand-in for busybox takes some 25 ms to make: not on the first Pod's time.
        tasks.spawn(walls.guarded("warm images", "", _warm(images)), name="warm images")
        keep("shim connection", runtime.run)
        if cni is not None:
            keep("CNI", cni.run)
        keep("kubelet events", events.run)
        tasks.spawn(kubelet.run(), name="kubelet")
        server = KubeletServer(
            world=world,
            runtime=runtime,
            pods=kubelet,
            names=(layout.name,),
            version=node_config.kubernetes_version,
            parts=kubelet.parts,
        )
        context = server_context(kubelet_server.certificate, kubelet_server.key, client_ca=credentials.ca_certificate)
        listening = listen(layout.ip, KUBELET_PORT)
        tasks.spawn(server.serve_when_asked(listening, context), name="kubelet server")
        await kubelet.wait_ready()
        heart.as_usual()
        await status.register()
        keep("node status", status.run)
        tasks.spawn(_settle(world), name="settle")
        keep("service proxy", partial(_proxy, world, plan, layout, client, recorder))
        keep("network policies", partial(_network_policies, world, plan, layout, gate, runtime_recorder))
        keep("cluster DNS", partial(_dns, world, plan, layout, way_out))
        if plan.options.egress:
            # late: 13 ms of a node's start
            from lastcall.cluster.egress.pods import PodEgress

            keep("Pods' connections to outside", PodEgress(world, layout, way_out).run)
        way_out.take_connections(Carrier(tasks).take)
        NodeControlServer(node.control_node, kubelet.parts.shutdown, tasks).start()
        terminated = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
        tasks.spawn(_shut_down_on_sigterm(world, terminated, kubelet, tasks), name="SIGTERM")


def _client(plan: Plan, layout: NodeLayout, pair: KeyPair, component: str) -> HTTPClient:
    """Of a component with a certificate, and so rights, of its own."""
    return HTTPClient(
        "https://{}:{}".format(*layout.api_server),
        ssl_context=client_context(plan.credentials.ca_certificate, pair.certificate, pair.key),
        user_agent=f"{component}/v{plan.options.kubernetes_version} (lastcall)",
    )


def _cni_network(world: World, plan: Plan, layout: NodeLayout) -> "CNINetwork | None":
    if not plan.options.cni_conf_dir:
        return None
    # late: 42 ms of a node's start
    from lastcall.cri.sandbox.cni.network import DEFAULT_BIN_DIRS, CNINetwork, conf_dir_of

    bin_dir = plan.options.cni_bin_dir
    return CNINetwork(
        world,
        conf_dir_of(plan.options.cni_conf_dir, layout.name),
        f"{layout.directory}/cni",
        bin_dirs=(bin_dir,) if bin_dir else DEFAULT_BIN_DIRS,
        records_dir=f"{DURABLE_DIR}/{layout.runtime_records}-cni",
        durable=plan.options.state != "",
        pod_cidr=layout.pod_cidr,
    )


async def _proxy(
    world: World, plan: Plan, layout: NodeLayout, kubelet_client: HTTPClient, recorder: RingRecorder
) -> None:
    """With a client of its own, as kube-proxy. It comes with the first Service, and costs nothing before."""
    if not stands(SERVICES_TABLE):
        await first_service(world, kubelet_client)
    # late: 37 ms of a node's start
    from lastcall.proxy.health import HTTPHealthServers
    from lastcall.proxy.netlink_sink import NetlinkSink
    from lastcall.proxy.propagation import Propagation
    from lastcall.proxy.proxier import Proxier, ProxyConfig
    from lastcall.proxy.topology import Node

    def drawn(hop: str) -> Callable[[], float]:
        delay = plan.options.propagation.of(hop, layout.name)
        return lambda: delay.seconds(world.random, monotonic(world.clock))

    client = _client(plan, layout, plan.credentials.kube_proxy, "kube-proxy")
    # An only node has no default route: without these its own packets to a Service would not reach the rules.
    networks = () if layout.has_netns else (SERVICE_CIDR, LOAD_BALANCER_CIDR)
    routes = [new_local_network(network, layout.ip) for network in networks]
    await Proxier(
        world=world,
        client=client,
        recorder=recorder.for_actor("kube-proxy"),
        sink=NetlinkSink(routes),
        propagation=Propagation(drawn("watch"), drawn("kernel")),
        config=ProxyConfig(Node(layout.name, addresses=(layout.ip,)), CLUSTER_CIDR, SERVICE_CIDR, (CLUSTER_DNS_IP,)),
        health=HTTPHealthServers((layout.ip,)),
    ).run()


async def _network_policies(
    world: World, plan: Plan, layout: NodeLayout, gate: PolicyGate, recorder: RingRecorder
) -> None:
    """With a client of its own, as the daemon of a network plugin. It comes with the first NetworkPolicy."""
    client = _client(plan, layout, plan.credentials.network_policies, "kube-network-policies")
    # What an earlier process left is looked after at once, and a cluster that was there before may have some.
    expected = bool(plan.options.state) or stands(POLICIES)
    while True:
        if not expected:
            await first_policy(world, client)
        expected = False
        gate.expect()
        # late: rules are for clusters with NetworkPolicies
        from lastcall.proxy.netlink_sink import NetlinkSink
        from lastcall.proxy.policies.agent import PolicyAgent, PolicyConfig
        from lastcall.proxy.policies.policy import PolicyPod
        from lastcall.proxy.policies.table import Alias

        dns = PolicyPod("kube-system", "coredns", CLUSTER_DNS_IP, {"k8s-app": "kube-dns"}, DNS_PORTS)
        api_server = Alias((KUBERNETES_SERVICE_IP, 443), (CONTROL_PLANE_IP, 6443))
        agent = PolicyAgent(
            world=world,
            client=client,
            sink=NetlinkSink(table=POLICIES),
            config=PolicyConfig(layout.name, api_server, dns),
            attached=gate.attached,
            recorder=recorder,
        )
        gate.enforce(agent.admit)
        try:
            await agent.run()
        finally:
            gate.enforce(None)


async def _settle(world: World) -> None:
    await world.clock.sleep(AFTER_SECONDS)
    give_back_start_code()


async def _dns(world: World, plan: Plan, layout: NodeLayout, way_out: EgressClient) -> None:
    """The cluster's names for the Pods of this node; other names only where Pods may go out."""
    # late: 6 ms of the start of `up`
    from lastcall.proxy.dns import DNSServer

    client = _client(plan, layout, plan.credentials.coredns, "coredns")
    upstream = way_out.resolve if plan.options.egress else None
    await DNSServer(world=world, client=client, address=CLUSTER_DNS_IP, upstream=upstream).run()


async def _shut_down_on_sigterm(world: World, terminated: asyncio.Event, kubelet: Kubelet, tasks: Tasks) -> None:
    """As a machine that is switched off: the Pods end gracefully, then this process does. It is started again."""
    await terminated.wait()
    with suppress(ShutdownNotSupported):  # such a kubelet just ends
        await kubelet.parts.shutdown.shut_down()
        await world.clock.sleep(LAST_WORDS_SECONDS)
    tasks.cancel()


def _pulls(world: World, way_out: EgressClient) -> Pulls:
    """From registries, by connections that front dials."""

    async def pull(layout: ImageLayout, reference: Reference, auth: AuthConfig | None) -> object:
        # late: 5 ms of a node's start
        from lastcall.cri.sandbox.images.pull import ImagePuller  # for the first pull only

        return await ImagePuller(world, layout, way_out).pull(reference, auth)

    return pull


async def _warm(images: ImageStore) -> None:
    """Unpack what most Pods will ask for. What goes wrong here is told to the Pod that asks."""
    with suppress(RuntimeServiceError, OSError):
        await images.image_status("busybox:1.36")


def _machine_uuid(ca_certificate: bytes, number: int) -> str:
    """One for each node, as long as its cluster keeps its certificate authority; no process has to remember it."""
    return str(uuid.UUID(bytes=hashlib.sha256(ca_certificate + bytes(number - 1)).digest()[:16], version=4))


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
