"""What the user says of the cluster to join, and of the node. Plain data."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lastcall.cluster.options import KUBELET_PORT

if TYPE_CHECKING:
    from lastcall.client.access.config import ClientConfig


@dataclass(frozen=True, slots=True)
class Asked:
    """One of `config` (a kubeconfig's; with `administrator` its user may approve) and `server` with `token` and
    `hashes`, or none for a node that joined before. "" and () are what the cluster or the machine says.
    """

    node_name: str
    config: "ClientConfig | None" = None
    administrator: bool = False
    server: str = ""
    token: str = field(default="", repr=False)
    hashes: tuple[str, ...] = ()
    node_ip: str = ""
    kubelet_port: int = KUBELET_PORT
    pod_cidr: str = ""
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[tuple[str, str, str], ...] = ()
    timeout: float = 300.0
