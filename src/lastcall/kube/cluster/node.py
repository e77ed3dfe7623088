"""The node's role: the kubelet on the sandbox runtime."""

import asyncio
import hashlib
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from lastcall.kube.api.features.releases import RELEASES
from lastcall.kube.apiserver.auth.tls import client_context, server_context
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.cluster.control.node import NodeControlServer
from lastcall.kube.cluster.egress.pair import EgressClient
from lastcall.kube.cluster.health.walls import put_up_walls
from lastcall.kube.cluster.layout import CONTROL_PLANE_IP, NodeLayout
from lastcall.kube.cluster.nodes.parts import (
    EVENTS_HELD_SECONDS,
    Engine,
    NodeNetwork,
    make_kubelet,
    own_engine,
    settle,
    shut_down_on_sigterm,
    start_kubelet,
    text_of,
)
from lastcall.kube.cluster.nodes.policy_gate import PolicyGate
from lastcall.kube.cluster.options import (
    CLUSTER_CIDR,
    CLUSTER_DNS_IP,
    KUBELET_PORT,
    KUBERNETES_SERVICE_IP,
    LOAD_BALANCER_CIDR,
    SERVICE_CIDR,
)
from lastcall.kube.cluster.plan import NodePlan, Plan
from lastcall.kube.cluster.published.carrier import Carrier
from lastcall.kube.cluster.staying.credentials import KeyPair
from lastcall.kube.nftables.names import POLICIES
from lastcall.kube.node.node_status import NodeConfig, machine_capacity
from lastcall.kube.node.pods.user_ids import UserIDs
from lastcall.kube.node.server import KubeletServer, listen
from lastcall.kube.node.volumes.pod_files import ClusterDNS
from lastcall.kube.proxy.first_service import first_service, stands
from lastcall.kube.proxy.names import TABLE as SERVICES_TABLE
from lastcall.kube.proxy.policies.first_policy import first_policy
from lastcall.records.record import Recorder
from lastcall.records.record_json import encode_record
from lastcall.records.ring import RingRecorder
from lastcall.world import walls
from lastcall.world.clock import monotonic
from lastcall.world.netlink import new_local_network
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.cluster.runtime.other.runtime import OtherRuntime

DNS_PORTS = (("dns", "UDP", 53), ("dns-tcp", "TCP", 53))
"""Names and numbers of the ports of the cluster DNS server, as its Pods have them elsewhere."""
_NO_IDS = UserIDs(pods=0, why="lastcall gives Pods no user namespaces in other runtimes")


def main(plan: Plan, node: NodePlan) -> None:
    """Run until killed."""
    uvloop.run(_run(plan, node))


async def _run(plan: Plan, node: NodePlan) -> None:
    world = World()
    credentials, layout = plan.credentials, node.layout
    heart = plan.hearts[layout.name]
    heart.start(asyncio.get_running_loop())
    directory = layout.directory
    kubelet_server = credentials.kubelet_server[layout.name]
    recorder = RingRecorder(plan.rings[layout.name], "kubelet", world.clock, encode_record)
    put_up_walls(layout.name, recorder)
    runtime_recorder = recorder.for_actor("runtime")
    client = _client(plan, layout, credentials.kubelet_client[layout.name], "kubelet")
    way_out = EgressClient(node.egress_node)
    if plan.other is None:
        engine = await own_engine(world, plan.options, layout, _network(plan, layout), way_out, runtime_recorder)
    else:
        engine = _other_engine(world, plan, plan.other, way_out, runtime_recorder)
    capacity, allocatable = machine_capacity(Path(directory), plan.options.max_pods)
    node_config = NodeConfig(
        name=layout.name,
        ip=layout.ip,
        pod_cidr=layout.pod_cidr,
        kubelet_port=KUBELET_PORT,
        kubernetes_version=RELEASES[plan.options.kubernetes_version],
        capacity=capacity,
        allocatable=allocatable,
        boot_id=plan.boot_id,
        system_uuid=_machine_uuid(credentials.ca_certificate, layout.number),
        container_runtime=engine.version,
    )
    async with Tasks() as tasks:

        def keep(name: str, run: Callable[[], Awaitable[None]]) -> None:
            tasks.spawn(walls.keep_running(name, run, world.clock), name=name)

        events = EventRecorder(client, world, "kubelet", layout.name, hold_seconds=EVENTS_HELD_SECONDS)
        kubelet = make_kubelet(
            world=world,
            tasks=tasks,
            client=client,
            events=events,
            recorder=recorder,
            engine=engine,
            layout=layout,
            options=plan.options,
            node=node_config,
            cluster_dns=ClusterDNS((CLUSTER_DNS_IP,), node_resolv_conf=text_of("/etc/resolv.conf")),
            user_ids=plan.user_ids.of_node(layout.number, layout.of) if plan.other is None else _NO_IDS,
            own_runtime=plan.other is None,
        )
        status = start_kubelet(world, tasks, client, events, engine, node_config, kubelet)
        server = KubeletServer(
            world=world,
            runtime=engine.runtime,
            pods=kubelet,
            names=(layout.name,),
            version=node_config.kubernetes_version,
            counted=kubelet.counted,
        )
        context = server_context(kubelet_server.certificate, kubelet_server.key, client_ca=credentials.ca_certificate)
        listening = listen(layout.ip, KUBELET_PORT) if plan.other is None else plan.other.kubelet
        tasks.spawn(server.serve_when_asked(listening, context), name="kubelet server")
        await kubelet.wait_ready()
        heart.as_usual()
        await status.register()
        keep("node status", status.run)
        tasks.spawn(settle(world), name="settle")
        keep("service proxy", partial(_proxy, world, plan, layout, client, recorder))
        if engine.gate is not None:
            keep("network policies", partial(_network_policies, world, plan, layout, engine.gate, runtime_recorder))
        keep("cluster DNS", partial(_dns, world, plan, layout, way_out))
        if plan.options.egress:
            # late: 13 ms of a node's start
            from lastcall.kube.cluster.egress.pods import PodEgress

            keep("Pods' connections to outside", PodEgress(world, layout, way_out).run)
        way_out.take_connections(Carrier(tasks).take)
        NodeControlServer(node.control_node, kubelet.shutdown, tasks).start()
        tasks.spawn(shut_down_on_sigterm(world, kubelet, tasks), name="SIGTERM")


def _network(plan: Plan, layout: NodeLayout) -> NodeNetwork:
    kept = (SERVICE_CIDR, LOAD_BALANCER_CIDR, f"{CONTROL_PLANE_IP}/32"), (layout.api_server, (layout.ip, KUBELET_PORT))
    # In a namespace of its own the control plane's is one hop away, the Service's address there, too.
    own = [layout.ip, CLUSTER_DNS_IP]
    addresses = own if layout.has_netns else [*own, CONTROL_PLANE_IP, KUBERNETES_SERVICE_IP]
    return NodeNetwork(layout.pod_cidr, addresses, kept)


def _other_engine(world: World, plan: Plan, other: "OtherRuntime", way_out: EgressClient, recorder: Recorder) -> Engine:
    """Somebody else's runtime: logs are looked at every 10 s, and NetworkPolicies are its network plugin's."""
    # late: gRPC, which nobody else needs
    from lastcall.kube.cluster.runtime.other.node_side import open_runtime

    runtime, images = open_runtime(world, other, plan.options.state, way_out, recorder)
    return Engine(runtime, images, (("streams", runtime.run),), version=f"{other.name}://{other.version}")


def _client(plan: Plan, layout: NodeLayout, pair: KeyPair, component: str) -> HTTPClient:
    """Of a component with a certificate, and so rights, of its own."""
    return HTTPClient(
        "https://{}:{}".format(*layout.api_server),
        ssl_context=client_context(plan.credentials.ca_certificate, pair.certificate, pair.key),
        user_agent=f"{component}/v{plan.options.kubernetes_version} (lastcall)",
    )


async def _proxy(
    world: World, plan: Plan, layout: NodeLayout, kubelet_client: HTTPClient, recorder: RingRecorder
) -> None:
    """With a client of its own, as kube-proxy. It comes with the first Service, and costs nothing before."""
    if not stands(SERVICES_TABLE):
        await first_service(world, kubelet_client)
    # late: 37 ms of a node's start
    from lastcall.kube.proxy.health import HTTPHealthServers
    from lastcall.kube.proxy.netlink_sink import NetlinkSink
    from lastcall.kube.proxy.propagation import Propagation
    from lastcall.kube.proxy.proxier import Proxier, ProxyConfig
    from lastcall.kube.proxy.topology import Node

    def drawn(hop: str) -> Callable[[], float]:
        delay = plan.options.propagation.of(hop, layout.name)
        return lambda: delay.seconds(world.random, monotonic(world.clock))

    client = _client(plan, layout, plan.credentials.kube_proxy, "kube-proxy")
    # An only node has no default route: without these its own packets to a Service would not reach the rules.
    networks = () if layout.has_netns else (SERVICE_CIDR, LOAD_BALANCER_CIDR)
    addresses: tuple[str, ...] = (layout.ip,)
    pods = CLUSTER_CIDR
    if plan.other is not None:
        # Pods are behind a link, whatever their addresses: what they send to a Service gets ours, so that answers
        # come back here. The node's own address is at the link's other end.
        addresses, pods = (CONTROL_PLANE_IP, layout.ip), f"{CONTROL_PLANE_IP}/32"
    routes = [new_local_network(network, addresses[0]) for network in networks]
    events = EventRecorder(client, world, "kube-proxy", layout.name)
    proxier = Proxier(
        world=world,
        client=client,
        recorder=recorder.for_actor("kube-proxy"),
        sink=NetlinkSink(routes),
        events=events,
        propagation=Propagation(drawn("watch"), drawn("kernel")),
        config=ProxyConfig(Node(layout.name, addresses=addresses), pods, SERVICE_CIDR, (CLUSTER_DNS_IP,)),
        health=HTTPHealthServers(addresses[:1]),
    )
    async with Tasks() as tasks:
        keep_telling = walls.keep_running("service proxy events", events.run, world.clock)
        tasks.spawn(keep_telling, name="events of the service proxy")
        await proxier.run()


async def _network_policies(
    world: World, plan: Plan, layout: NodeLayout, gate: PolicyGate, recorder: RingRecorder
) -> None:
    """With a client of its own, as the daemon of a network plugin. It comes with the first NetworkPolicy."""
    client = _client(plan, layout, plan.credentials.network_policies, "kube-network-policies")
    # What an earlier process left is looked after at once, and a cluster that was there before may have some.
    # After an agent that failed, Pods wait for the next one.
    expected = bool(plan.options.state) or gate.expecting or stands(POLICIES)
    while True:
        if not expected:
            await first_policy(world, client)
        expected = False
        gate.expect()
        # late: rules are for clusters with NetworkPolicies
        from lastcall.kube.proxy.netlink_sink import NetlinkSink
        from lastcall.kube.proxy.policies.agent import PolicyAgent, PolicyConfig
        from lastcall.kube.proxy.policies.policy import PolicyPod
        from lastcall.kube.proxy.policies.table import Alias

        dns = PolicyPod("kube-system", "coredns", CLUSTER_DNS_IP, {"k8s-app": "kube-dns"}, DNS_PORTS)
        api_server = Alias((KUBERNETES_SERVICE_IP, 443), (CONTROL_PLANE_IP, 6443))
        events = EventRecorder(client, world, "kube-network-policies", layout.name)
        agent = PolicyAgent(
            world=world,
            client=client,
            sink=NetlinkSink(table=POLICIES),
            config=PolicyConfig(layout.name, api_server, dns),
            attached=gate.attached,
            recorder=recorder,
            events=events,
        )
        gate.enforce(agent.admit)
        async with Tasks() as tasks:
            keep_telling = walls.keep_running("network policies events", events.run, world.clock)
            tasks.spawn(keep_telling, name="events of network policies")
            try:
                await agent.run()
            except BaseException:
                gate.expect()
                raise
            gate.enforce(None)
            tasks.cancel()


async def _dns(world: World, plan: Plan, layout: NodeLayout, way_out: EgressClient) -> None:
    """The cluster's names for the Pods of this node; other names only where Pods may go out."""
    # late: 6 ms of the start of `up`
    from lastcall.kube.proxy.dns import DNSServer

    client = _client(plan, layout, plan.credentials.coredns, "coredns")
    upstream = way_out.resolve if plan.options.egress or plan.other is not None else None
    await DNSServer(world=world, client=client, address=CLUSTER_DNS_IP, upstream=upstream).run()


def _machine_uuid(ca_certificate: bytes, number: int) -> str:
    """One for each node, as long as its cluster keeps its certificate authority; no process has to remember it."""
    return str(uuid.UUID(bytes=hashlib.sha256(ca_certificate + bytes(number - 1)).digest()[:16], version=4))
