"""The node's role: the kubelet on the sandbox runtime."""

import uvloop

from lastcall.apiserver.pki import client_context, server_context
from lastcall.client.http import HTTPClient
from lastcall.cluster.init import SHIM_SOCKET
from lastcall.cluster.options import (
    API_INSIDE,
    KUBELET_PORT,
    KUBERNETES_SERVICE_IP,
    NODE_IP,
    NODE_NAME,
    POD_CIDR,
    STATE_DIR,
)
from lastcall.cluster.plan import Plan
from lastcall.cri.sandbox.images import ImageStore
from lastcall.cri.sandbox.network import PodNetwork
from lastcall.cri.sandbox.runtime import SandboxRuntime
from lastcall.node.kubelet import Kubelet, KubeletConfig
from lastcall.timeline.ring import RingRecorder
from lastcall.world.world import World


def main(plan: Plan) -> None:
    """Run until killed."""
    uvloop.run(_run(plan))
