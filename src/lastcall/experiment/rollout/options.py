"""What `lastcall rollout` is told: its options, and how their values are read."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lastcall.kube.cluster import PropagationPlan
from lastcall.traffic import Kind, MaxLost, Thresholds

if TYPE_CHECKING:
    from lastcall.experiment.not_simulated import Note
    from lastcall.ui import AskedPage

DISRUPTIONS = ("rollout", "scale-in", "delete", "drain", "evict")
SOURCES = ("node", "pod", "published", "balancer", "client")


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """`rates` are requests per second by kind; `control`, `settle` and `timeout` are seconds.

    `source` is one of `SOURCES`.
    """

    disrupt: str = "rollout"
    rates: dict[Kind, float] = field(default_factory=dict)
    path: str = "/"
    slow_path: str = "/slow"
    stream_path: str = "/stream"
    websocket_path: str = "/ws"
    length: float = 5.0
    http2_connections: int = 4
    workload: str = ""
    service: str = ""
    port: str = ""
    propagation: PropagationPlan = field(default_factory=PropagationPlan)
    source: str = "node"
    control: float = 2.0
    settle: float = 2.0
    request_timeout: float = 10.0
    timeout: float = 120.0
    output: str = "text"
    output_file: Path | None = None
    summary: str = ""
    apply_advice: bool = False
    find_safe: bool = False
    keep_on_failure: bool = False
    confirm: int = 5
    runs: int = 1
    max_lost: MaxLost | None = None
    max_p99: dict[str, float] = field(default_factory=dict)
    kubernetes_version: str = "1.36"
    max_pods: int = 110
    seccomp_default: bool = True
    cni_conf_dir: str = ""
    cni_bin_dir: str = ""
    container_runtime: str = ""
    page: "AskedPage | None" = None
    differences: "tuple[Note, ...]" = ()
    """What is here otherwise than in the cluster that the workload was taken from."""

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(self.max_lost, self.max_p99)

    @property
    def sleep_hooks(self) -> bool:
        """PodLifecycleSleepAction is on by default from 1.30."""
        return int(self.kubernetes_version.partition(".")[2]) >= 30
