"""The options that all experiments share, whatever asks for one: the command line, a page, a test."""

# check: pure

from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lastcall.kube.api import FeatureGates
from lastcall.kube.cluster import ClusterOptions, PropagationPlan
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.ui import AskedPage


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentOptions:
    """`cluster` is what a cluster of our own is started with. `timeout` is seconds for each thing that is waited for.

    `output` is one of the command's formats; it goes to `output_file`, to stdout if that is None.
    `summary` is a file to which Markdown is appended, "" for none. `page` is the live page, None for none.
    """

    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    timeout: float = 60.0
    keep_on_failure: bool = False
    output: str = "text"
    output_file: Path | None = None
    summary: str = ""
    page: "AskedPage | None" = None

    @property
    def kubernetes_version(self) -> str:
        return self.cluster.kubernetes_version

    @property
    def gates(self) -> FeatureGates:
        """Return the feature gates of a cluster of our own."""
        return FeatureGates(self.kubernetes_version, self.cluster.feature_gates)

    @property
    def propagation(self) -> PropagationPlan:
        return self.cluster.propagation

    def with_cluster(self, **changes: Any) -> Self:
        """Return the same options for another cluster; `changes` are fields of `ClusterOptions`."""
        return replace(self, cluster=replace(self.cluster, **changes))
