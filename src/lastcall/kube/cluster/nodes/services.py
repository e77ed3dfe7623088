"""What runs on a node beside its kubelet: the service proxy, NetworkPolicies, DNS, egress of Pods."""

from collections.abc import Awaitable, Callable
from functools import partial

from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.cluster.layout import CONTROL_PLANE_IP
from lastcall.kube.cluster.nodes.context import NodeContext
from lastcall.kube.cluster.nodes.policy_gate import PolicyGate
from lastcall.kube.cluster.options import (
    CLUSTER_CIDR,
    CLUSTER_DNS_IP,
    KUBERNETES_SERVICE_IP,
    LOAD_BALANCER_CIDR,
    SERVICE_CIDR,
)
from lastcall.kube.nftables.names import POLICIES
from lastcall.kube.proxy.first_service import first_service, table_exists
from lastcall.kube.proxy.names import TABLE as SERVICES_TABLE
from lastcall.kube.proxy.policies.first_policy import first_policy
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.netlink import new_local_network
from lastcall.world.tasks import Tasks

Service = tuple[str, Callable[[], Awaitable[None]]]
"""A name, and what runs until cancelled."""

DNS_PORTS = (("dns", "UDP", 53), ("dns-tcp", "TCP", 53))
"""Names and numbers of the ports of the cluster DNS server, as its Pods have them elsewhere."""


def services(context: NodeContext, gate: PolicyGate | None, kubelet_client: HTTPClient) -> list[Service]:
    """Make the services of this node. `gate` None: another network plugin enforces NetworkPolicies."""
    found: list[Service] = [("service proxy", partial(_proxy, context, kubelet_client))]
    if gate is not None:
        found.append(("network policies", partial(_network_policies, context, gate)))
    found.append(("cluster DNS", partial(_dns, context)))
    if context.plan.options.egress:
        # late: 13 ms of a node's start
        from lastcall.kube.cluster.egress.pods import PodEgress

        found.append(("Pods' connections to outside", PodEgress(context.world, context.layout, context.way_out).run))
    return found


async def _proxy(context: NodeContext, kubelet_client: HTTPClient) -> None:
    """Run the service proxy, with a client of its own as kube-proxy. It comes with the first Service, and costs nothing
    before."""
    world, plan, layout = context.world, context.plan, context.layout
    if not table_exists(SERVICES_TABLE):
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

    client = context.client(plan.credentials.kube_proxy, "kube-proxy")
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
        recorder=context.recorder.for_actor("kube-proxy"),
        sink=NetlinkSink(routes),
        events=events,
        propagation=Propagation(drawn("watch"), drawn("kernel")),
        config=ProxyConfig(Node(layout.name, addresses=addresses), pods, SERVICE_CIDR, (CLUSTER_DNS_IP,)),
        health=HTTPHealthServers(addresses[:1]),
    )
    async with Tasks() as tasks:
        keep_telling = crash_guard.keep_running("service proxy events", events.run, world.clock)
        tasks.spawn(keep_telling, name="events of the service proxy")
        await proxier.run()


async def _network_policies(context: NodeContext, gate: PolicyGate) -> None:
    """Enforce NetworkPolicies, with a client of its own as the daemon of a network plugin. It comes with the first."""
    world, plan, layout = context.world, context.plan, context.layout
    client = context.client(plan.credentials.network_policies, "kube-network-policies")
    # What an earlier process left is looked after at once, and a cluster that was there before may have some.
    # After an agent that failed, Pods wait for the next one.
    expected = bool(plan.options.state) or context.node.joined or gate.expecting or table_exists(POLICIES)
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
            recorder=context.recorder.for_actor("runtime"),
            events=events,
        )
        gate.enforce(agent.admit)
        async with Tasks() as tasks:
            keep_telling = crash_guard.keep_running("network policies events", events.run, world.clock)
            tasks.spawn(keep_telling, name="events of network policies")
            try:
                await agent.run()
            except BaseException:
                gate.expect()
                raise
            gate.enforce(None)
            tasks.cancel()


async def _dns(context: NodeContext) -> None:
    """Serve the cluster's names to the Pods of this node; other names only where Pods may go out."""
    plan = context.plan
    # late: 6 ms of the start of `up`
    from lastcall.kube.proxy.dns import DNSServer

    client = context.client(plan.credentials.coredns, "coredns")
    upstream = context.way_out.resolve if plan.options.egress or plan.other is not None else None
    await DNSServer(world=context.world, client=client, address=CLUSTER_DNS_IP, upstream=upstream).run()
