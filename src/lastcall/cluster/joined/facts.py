"""What a node process of its own has to know of the cluster that it joins. Plain data: whoever fills it in has a node.

The certificates are files of the state directory (`files.py`), so that they can be renewed while all of it runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lastcall.cluster.machines.settings import PodNetwork
from lastcall.cluster.options import KUBELET_PORT

NEVER_MASQUERADED = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
"""There Pods are known by their own addresses (ip-masq-agent's default nonMasqueradeCIDRs)."""


@dataclass(frozen=True, slots=True)
class Joined:
    """`server` is a URL. `node_ip` is an address of this machine, at whose `kubelet_port` the API server reaches the
    kubelet. `pod_cidr` is the Node's own range. `cluster_dns` may be empty: then Pods have this machine's resolvers.
    `pod_network` is that of several machines (`up --pod-network`), None when the cluster has none. `labels` and
    `taints` are those that the Node is registered with.
    """

    server: str
    ca_certificate: bytes
    node_name: str
    node_ip: str
    pod_cidr: str
    kubelet_port: int = KUBELET_PORT
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = "cluster.local"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    tls_server_name: str = ""
    pod_network: PodNetwork | None = None

    @property
    def is_beside_server(self) -> bool:
        """Whether the API server has the same address."""
        return urlsplit(self.server).hostname == self.node_ip

    @property
    def user(self) -> str:
        """Whom the API server knows the node as."""
        return f"system:node:{self.node_name}"
