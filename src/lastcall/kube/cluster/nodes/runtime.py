"""The container runtime of a node, and its network."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.cluster.egress.pair import EgressClient
from lastcall.kube.cluster.layout import CONTROL_PLANE_IP
from lastcall.kube.cluster.nodes.context import NodeContext
from lastcall.kube.cluster.nodes.policy_gate import PolicyGate
from lastcall.kube.cluster.options import (
    CLUSTER_DNS_IP,
    DURABLE_DIR,
    KUBELET_PORT,
    KUBERNETES_SERVICE_IP,
    LOAD_BALANCER_CIDR,
    SERVICE_CIDR,
    ClusterOptions,
)
from lastcall.kube.cri.api import AuthConfig, ImageService, RuntimeService
from lastcall.kube.cri.sandbox.images import HOST_SUBSTITUTES, ImageStore, Pulls, Reference
from lastcall.kube.cri.sandbox.images.layout import ImageLayout
from lastcall.kube.cri.sandbox.network import KeptAddresses, PodNetwork
from lastcall.kube.cri.sandbox.runtime import SandboxRuntime
from lastcall.kube.node.logs.rotation import ContainerLogPolicy, parse_log_policy
from lastcall.kube.node.node_status import OWN_RUNTIME
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.cluster.runtime.other.runtime import OtherRuntime
    from lastcall.kube.cri.sandbox.cni.network import CNINetwork


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


def node_network(context: NodeContext) -> NodeNetwork:
    """Return the addresses of the node, and those that its Pods reach without leaving it."""
    layout = context.layout
    kept = (SERVICE_CIDR, LOAD_BALANCER_CIDR, f"{CONTROL_PLANE_IP}/32"), (layout.api_server, (layout.ip, KUBELET_PORT))
    # In a namespace of its own the control plane's is one hop away, the Service's address there, too.
    own = [layout.ip, CLUSTER_DNS_IP]
    addresses = own if layout.has_netns else [*own, CONTROL_PLANE_IP, KUBERNETES_SERVICE_IP]
    return NodeNetwork(layout.pod_cidr, addresses, kept)


async def node_runtime(context: NodeContext) -> Engine:
    """Return the runtime, which has found what an earlier process left. Raises RuntimeServiceError."""
    if context.plan.other is not None:
        return _other_engine(context, context.plan.other)
    return await _own_engine(context, node_network(context))


def _other_engine(context: NodeContext, other: "OtherRuntime") -> Engine:
    """Configure an existing runtime: logs are looked at every 10 s, and NetworkPolicies are its network plugin's."""
    # late: gRPC, which nobody else needs
    from lastcall.kube.cluster.runtime.other.node_side import open_runtime

    recorder = context.recorder.for_actor("runtime")
    runtime, images = open_runtime(context.world, other, context.plan.options.state, context.way_out, recorder)
    return Engine(runtime, images, (("streams", runtime.run),), version=f"{other.name}://{other.version}")


async def _own_engine(context: NodeContext, own: NodeNetwork) -> Engine:
    world, options, layout = context.world, context.plan.options, context.layout
    directory = layout.directory
    network = PodNetwork(own.pod_cidr, own.kept)
    await network.prepare_node(list(own.addresses))
    cni = _cni(context, own) if options.cni_conf_dir else None
    pulls = _pulls(world, context.way_out)
    images = ImageStore(unpacked=f"{directory}/images", substitutes=HOST_SUBSTITUTES, pulls=pulls)
    gate = PolicyGate(cni or network)
    runtime = SandboxRuntime(
        world=world,
        recorder=context.recorder.for_actor("runtime"),
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


def _cni(context: NodeContext, own: NodeNetwork) -> "CNINetwork":
    # late: 42 ms of a node's start
    from lastcall.kube.cri.sandbox.cni.network import DEFAULT_BIN_DIRS, CNINetwork, conf_dir_of

    options, layout = context.plan.options, context.layout
    return CNINetwork(
        context.world,
        conf_dir_of(options.cni_conf_dir, layout.name),
        f"{layout.directory}/cni",
        bin_dirs=(options.cni_bin_dir,) if options.cni_bin_dir else DEFAULT_BIN_DIRS,
        records_dir=f"{DURABLE_DIR}/{layout.runtime_records}-cni",
        durable=options.state != "",
        pod_cidr=own.pod_cidr,
    )


def log_policy(options: ClusterOptions) -> ContainerLogPolicy:
    """Parse the options for container logs. Raises ValueError."""
    return parse_log_policy(options.container_log_max_size, options.container_log_max_files)


def _pulls(world: World, way_out: EgressClient) -> Pulls:
    """From registries, by connections that front dials."""

    async def pull(layout: ImageLayout, reference: Reference, auth: AuthConfig | None) -> object:
        # late: 5 ms of a node's start
        from lastcall.kube.cri.sandbox.images.pull import ImagePuller  # for the first pull only

        return await ImagePuller(world, layout, way_out).pull(reference, auth)

    return pull
