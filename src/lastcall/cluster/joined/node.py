"""The node's role in a cluster that others run: kubelet, runtime and service proxy with their certificates."""

import asyncio
import hashlib
import logging
import ssl
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from lastcall.api.errors import StatusError, is_already_exists
from lastcall.api.features.releases import RELEASES
from lastcall.api.meta import name_of, uid_of
from lastcall.api.resources import CSINODES, SERVICECIDRS
from lastcall.apiserver.auth.tls import server_context, with_certificate
from lastcall.client.api import ConnectionLost
from lastcall.client.events import EventRecorder
from lastcall.client.http import HTTPClient
from lastcall.cluster.control.node import NodeControlServer
from lastcall.cluster.egress.pair import EgressClient
from lastcall.cluster.health.walls import put_up_walls
from lastcall.cluster.joined import files
from lastcall.cluster.joined.certificates import CertificateManager
from lastcall.cluster.joined.facts import Joined
from lastcall.cluster.joined.files import FileCredentials, Pair, PairFile
from lastcall.cluster.joined.place import JoinedPlace
from lastcall.cluster.joined.requests import kube_proxy, kubelet_client, kubelet_server
from lastcall.cluster.joined.witness import Witness
from lastcall.cluster.nodes.parts import (
    EVENTS_HELD_SECONDS,
    NodeNetwork,
    make_kubelet,
    own_engine,
    settle,
    shut_down_on_sigterm,
    start_kubelet,
    text_of,
)
from lastcall.cluster.options import DURABLE_DIR
from lastcall.cluster.plan import NodePlan, Plan
from lastcall.node.node_status import NodeConfig, machine_capacity
from lastcall.node.server import KubeletServer
from lastcall.node.streaming.access import WebhookAccess
from lastcall.node.volumes.pod_files import ClusterDNS
from lastcall.timeline.record_json import encode_record
from lastcall.timeline.ring import RingRecorder
from lastcall.world import walls
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.api.types.node import Node as APINode

PKI = f"{DURABLE_DIR}/{files.DIRECTORY}"
NO_SERVICE_CIDR = "255.255.255.255/32"
"""When the cluster does not tell its Services' range: nothing is dropped for being in it."""
_RETRY_SECONDS = 5.0

log = logging.getLogger(__name__)


def main(plan: Plan, place: JoinedPlace, node: NodePlan) -> None:
    """Run until killed."""
    uvloop.run(_run(plan, place, node))


async def _run(plan: Plan, place: JoinedPlace, node: NodePlan) -> None:
    world, layout, joined, options = World(), node.layout, place.joined, plan.options
    heart = plan.hearts[layout.name]
    heart.start(asyncio.get_running_loop())
    recorder = RingRecorder(plan.rings[layout.name], "kubelet", world.clock, encode_record)
    put_up_walls(layout.name, recorder)
    version = RELEASES[options.kubernetes_version]
    client = _client(joined, files.KUBELET_CLIENT, f"kubelet/v{version} (lastcall)")
    way_out = EgressClient(node.egress_node)
    mtu = joined.pod_network.mtu if joined.pod_network is not None else 0
    network = NodeNetwork(joined.pod_cidr, _addresses(place), ((), ()), mtu)
    engine = await own_engine(world, options, layout, network, way_out, recorder.for_actor("runtime"))
    capacity, allocatable = machine_capacity(Path(layout.directory), options.max_pods)
    node_config = NodeConfig(
        name=joined.node_name,
        ip=joined.node_ip,
        pod_cidr="",
        kubelet_port=joined.kubelet_port,
        kubernetes_version=version,
        capacity=capacity,
        allocatable=allocatable,
        labels=dict(joined.labels),
        taints=joined.taints,
        boot_id=plan.boot_id,
        system_uuid=_machine_uuid(joined),
        container_runtime=engine.version,
    )
    async with Tasks() as tasks:

        def keep(name: str, run: Callable[[], Awaitable[None]]) -> None:
            tasks.spawn(walls.keep_running(name, run, world.clock), name=name)

        def certificate(wanted: CertificateManager) -> None:
            keep(f"certificate {wanted.name}", wanted.run)

        witness = Witness(recorder)
        events = EventRecorder(client, world, "kubelet", joined.node_name, hold_seconds=EVENTS_HELD_SECONDS)
        kubelet = make_kubelet(
            world=world,
            tasks=tasks,
            client=client,
            events=events,
            recorder=recorder,
            engine=engine,
            layout=layout,
            options=options,
            node=node_config,
            cluster_dns=ClusterDNS(joined.cluster_dns, joined.cluster_domain, text_of("/etc/resolv.conf")),
            user_ids=plan.user_ids.of_node(layout.number, layout.of),
            pod_seen=witness.pod,
        )
        status = start_kubelet(world, tasks, client, events, engine, node_config, kubelet)
        server = KubeletServer(
            world=world,
            runtime=engine.runtime,
            pods=kubelet,
            names=(joined.node_name, joined.node_ip),
            version=version,
            parts=kubelet.parts,
            access=WebhookAccess(client, world.clock, joined.node_name),
        )
        serving = _Serving(server, place, joined.ca_certificate, tasks)
        pki = partial(PairFile, PKI)
        own = kubelet_client(joined.node_name)
        certificate(CertificateManager(world, client, pki(own.file), own, lambda pair: None))
        kubelets = kubelet_server(joined.node_name, joined.node_ip)
        certificate(CertificateManager(world, client, pki(kubelets.file), kubelets, serving.take))
        has_proxy = asyncio.Event()
        proxys = kube_proxy()
        certificate(CertificateManager(world, client, pki(proxys.file), proxys, lambda pair: has_proxy.set()))
        await kubelet.wait_ready()
        heart.as_usual()
        registered = await status.register()
        keep("node status", status.run)
        tasks.spawn(walls.guarded("CSINode", "", _csi_node(world, client, registered)), name="CSINode")
        tasks.spawn(settle(world), name="settle")
        keep("service proxy", partial(_proxy, world, plan, place, recorder, has_proxy, witness))
        NodeControlServer(node.control_node, kubelet.parts.shutdown, tasks).start()
        tasks.spawn(shut_down_on_sigterm(world, kubelet, tasks), name="SIGTERM")


def _addresses(place: JoinedPlace) -> list[str]:
    """Of the node's `lo`: what its Pods see it as."""
    return [place.own_address or place.link.node_ip]


class _Serving:
    """The kubelet's port, from the first certificate on; a new one is for connections that come then."""

    def __init__(self, server: KubeletServer, place: JoinedPlace, ca_certificate: bytes, tasks: Tasks) -> None:
        self._server, self._place, self._ca, self._tasks = server, place, ca_certificate, tasks
        self._context: ssl.SSLContext | None = None

    def take(self, pair: Pair) -> None:
        if self._context is not None:
            with_certificate(self._context, pair.certificate, pair.key)
            return
        self._context = server_context(pair.certificate, pair.key, client_ca=self._ca)
        serve = self._server.serve_when_asked(self._place.kubelet, self._context)
        self._tasks.spawn(serve, name="kubelet server")


def _client(joined: Joined, file: str, agent: str) -> HTTPClient:
    """Of a component with a certificate, and so rights, of its own."""
    return HTTPClient(
        joined.server,
        ssl_context=None,
        credentials=FileCredentials(PairFile(PKI, file), joined.ca_certificate),
        tls_server_name=joined.tls_server_name,
        user_agent=agent,
    )


async def _csi_node(world: World, client: HTTPClient, node: "APINode") -> None:
    """The node has no CSI drivers, which the scheduler is to know (nodeinfomanager.go:CreateCSINode)."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name_of(node), "uid": uid_of(node)}
    csi_node = {
        "apiVersion": CSINODES.api_version,
        "kind": CSINODES.kind,
        "metadata": {"name": name_of(node), "ownerReferences": [owner]},
        "spec": {"drivers": []},
    }
    while True:
        try:
            await client.create(CSINODES, csi_node)
            return
        except StatusError as error:
            if is_already_exists(error):
                return
            log.warning("CSINode %s is not made: %s", name_of(node), error.message)
        except ConnectionLost:
            pass
        await world.clock.sleep(_RETRY_SECONDS)


async def _proxy(
    world: World,
    plan: Plan,
    place: JoinedPlace,
    recorder: RingRecorder,
    has_certificate: asyncio.Event,
    witness: Witness,
) -> None:
    """With a certificate of its own, as kube-proxy. Without that nothing is routed to Services."""
    await has_certificate.wait()
    # late: 37 ms of a node's start
    from lastcall.proxy.health import HTTPHealthServers
    from lastcall.proxy.netlink_sink import NetlinkSink
    from lastcall.proxy.proxier import Proxier, ProxyConfig
    from lastcall.proxy.topology import Node

    joined = place.joined
    client = _client(joined, files.KUBE_PROXY, f"kube-proxy/v{RELEASES[plan.options.kubernetes_version]} (lastcall)")
    node = Node(joined.node_name, addresses=(joined.node_ip,), more=(place.link.node_ip,), has_api_server=False)
    await Proxier(
        world=world,
        client=client,
        recorder=recorder.for_actor("kube-proxy"),
        sink=NetlinkSink(),
        config=ProxyConfig(node, joined.pod_cidr, await _service_cidr(world, client)),
        health=HTTPHealthServers(tuple(_addresses(place))),
        slice_seen=witness.slice_,
    ).run()


async def _service_cidr(world: World, client: HTTPClient) -> str:
    """Of IPv4. NO_SERVICE_CIDR when the cluster does not tell it."""
    while True:
        try:
            found = (await client.list(SERVICECIDRS)).items
        except StatusError:
            return NO_SERVICE_CIDR
        except ConnectionLost:
            await world.clock.sleep(_RETRY_SECONDS)
            continue
        cidrs = [str(cidr) for each in found for cidr in (each.get("spec") or {}).get("cidrs") or ()]
        return next((cidr for cidr in cidrs if ":" not in cidr), NO_SERVICE_CIDR)


def _machine_uuid(joined: Joined) -> str:
    """The same for one node of one cluster, as long as that keeps its certificate authority."""
    digest = hashlib.sha256(joined.ca_certificate + joined.node_name.encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))
