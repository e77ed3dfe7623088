"""What the parts of a node's process share."""

from lastcall.kube.apiserver.auth.tls import client_context
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.cluster.egress.pair import EgressClient
from lastcall.kube.cluster.layout import NodeLayout
from lastcall.kube.cluster.plan import NodePlan, Plan
from lastcall.kube.cluster.staying.credentials import KeyPair
from lastcall.records.record_json import encode_record
from lastcall.records.ring import RingRecorder
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World


@dataclass(frozen=True, slots=True)
class NodeContext:
    """`recorder` is the kubelet's; `way_out` leads to what is outside of the cluster's namespaces."""

    world: World
    plan: Plan
    node: NodePlan
    recorder: RingRecorder
    way_out: EgressClient

    @property
    def layout(self) -> NodeLayout:
        return self.node.layout

    def client(self, pair: KeyPair, component: str) -> HTTPClient:
        """Return a client of the API for a component with a certificate, and so rights, of its own."""
        return HTTPClient(
            "https://{}:{}".format(*self.layout.api_server),
            ssl_context=client_context(self.plan.credentials.ca_certificate, pair.certificate, pair.key),
            user_agent=f"{component}/v{self.plan.options.kubernetes_version} (lastcall)",
        )


def make_context(plan: Plan, node: NodePlan) -> NodeContext:
    """Return the context of this process."""
    world = World()
    recorder = RingRecorder(plan.rings[node.layout.name], "kubelet", world.clock, encode_record)
    return NodeContext(world, plan, node, recorder, EgressClient(node.egress_node))
