"""What a kubelet is started with."""

from collections.abc import Mapping
from dataclasses import field

from lastcall.kube.api.features.gates import feature_gates
from lastcall.kube.api.features.releases import DEFAULT_VERSION
from lastcall.kube.node.eviction.decide import EvictionConfig
from lastcall.kube.node.garbage.decide import ContainerGCPolicy
from lastcall.kube.node.garbage.images import ImageGCPolicy
from lastcall.kube.node.logs.rotation import ContainerLogPolicy
from lastcall.kube.node.pods.cgroups import DEFAULT_POD_PIDS_LIMIT
from lastcall.kube.node.pods.user_ids import UserIDs
from lastcall.kube.node.versions import behaviour_of
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KubeletConfig:
    """`allocatable` are quantities as text (`cpu`, `memory`), `memory_capacity` bytes (0: as allocatable);
    `pod_pids_limit` is the most processes and threads of one Pod, 0 for no limit;
    `seccomp_default` is the kubelet's seccompDefault: RuntimeDefault for containers for which nothing else is asked;
    `host_has_app_armor` is for the message to a Pod that demands a profile;
    `allocations` is the directory where what Pods were given outlives the kubelet, "" for none;
    `pod_log_root` is a directory of the node, and so is `container_log_links` ("" for none), where log collectors find
    a link to every container's log; without `node_labels` a nodeSelector is left to the scheduler. Raises
    ValueError for a Kubernetes version that is not in `versions.VERSIONS` and for a feature gate it does not have.
    """

    node_name: str
    node_ip: str
    kubernetes_version: str = DEFAULT_VERSION
    pod_log_root: str = "/var/log/pods"
    allocatable: dict[str, str] = field(default_factory=dict)
    memory_capacity: int = 0
    pod_pids_limit: int = DEFAULT_POD_PIDS_LIMIT
    seccomp_default: bool = True
    host_has_app_armor: bool = False
    node_labels: dict[str, str] = field(default_factory=dict)
    eviction: EvictionConfig = field(default_factory=EvictionConfig)
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    user_ids: UserIDs = field(default_factory=UserIDs)
    container_log_links: str = ""
    container_runtime: str = "lastcall"
    """The name that precedes the ids of containers."""
    allocations: str = ""
    container_logs: ContainerLogPolicy = field(default_factory=ContainerLogPolicy)
    container_gc: ContainerGCPolicy = field(default_factory=ContainerGCPolicy)
    image_gc: ImageGCPolicy = field(default_factory=ImageGCPolicy)

    def __post_init__(self) -> None:
        behaviour_of(self.kubernetes_version)
        feature_gates(self.kubernetes_version, self.feature_gates)
