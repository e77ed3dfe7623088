"""What `lastcall rollout` is asked for: its own options beside those that all experiments share."""

# check: pure

from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.experiment.options import ExperimentOptions
from lastcall.traffic import Load, MaxLost, Thresholds
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.experiment.not_simulated import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutOptions(ExperimentOptions):
    """`load` is what is sent; its target and host are known when the Service is. `control` and `settle` are seconds.

    `source` is one of `SOURCES`.
    """

    load: Load = field(default_factory=Load)
    disrupt: str = "rollout"
    workload: str = ""
    service: str = ""
    port: str = ""
    source: str = "node"
    control: float = 2.0
    settle: float = 2.0
    timeout: float = 120.0
    apply_advice: bool = False
    find_safe: bool = False
    confirm: int = 5
    runs: int = 1
    max_lost: MaxLost | None = None
    max_p99: dict[str, float] = field(default_factory=dict)
    differences: "tuple[Note, ...]" = ()
    """What is here otherwise than in the cluster that the workload was taken from."""

    @property
    def nodes(self) -> int:
        """Return how many a cluster of our own has: a drain needs a second one."""
        return 2 if self.disrupt == "drain" else 1

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(self.max_lost, self.max_p99)

    @property
    def sleep_hooks(self) -> bool:
        """Return True if the version has sleep hooks: PodLifecycleSleepAction is on by default from 1.30."""
        return int(self.kubernetes_version.partition(".")[2]) >= 30
