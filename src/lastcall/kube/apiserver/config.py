"""What an API server is started with."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.kube.api.features.releases import DEFAULT_VERSION
from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.proxying.aggregation.front_proxy import FrontProxy
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.apiserver.audit.log import AuditOptions


@dataclass(frozen=True, slots=True)
class APIServerConfig:
    """`kubernetes_version` is one of releases.RELEASES. `endpoint` is an address and port on which this server answers
    Pods, the endpoint of the `kubernetes` Service (kube-apiserver's --advertise-address and --secure-port). `tokens`
    are static bearer tokens and whose they are.

    `service_account_key_pem` is an EC P-256 private key, made when empty. `root_ca_pem` is what clients trust.
    `hosts` are names and addresses by which clients reach the server besides its own (those of its certificate).

    `storage_classes` are made once, when the store is new: one that is deleted stays deleted.
    """

    kubernetes_version: str = DEFAULT_VERSION
    service_cidr: str = "10.96.0.0/16"
    kubernetes_service_ip: str = "10.96.0.1"
    endpoint: tuple[str, int] = ("10.96.0.1", 443)
    service_account_key_pem: bytes = b""
    root_ca_pem: bytes = b""
    tokens: Mapping[str, UserInfo] = field(default_factory=dict)
    issuer: str = "https://kubernetes.default.svc.cluster.local"
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    storage_classes: Sequence[Object] = ()
    hosts: Sequence[str] = ()
    components: bool = False
    """Controllers or scheduler are processes of their own: what they need of a cluster is made, too."""
    audit: "AuditOptions | None" = None
    """Where requests are written down, None for nowhere."""
    front_proxy: FrontProxy = field(default_factory=FrontProxy)
    """With what this server proves to another one, which answers a group version, that it speaks for a user."""
