"""What a run is asked for, whatever asked: the command line, a test."""

# check: pure

from typing import TYPE_CHECKING

from lastcall.experiment.options import ExperimentOptions
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.experiment.rollout.options import RolloutOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(ExperimentOptions):
    """`grace` None is the Pod's own. `after` is seconds between Ready and the DELETE.

    `versions`, when there are any, are compared; `kubernetes_version` is the one that is run now.
    `requests` is what is sent meanwhile, None for nothing.
    """

    versions: tuple[str, ...] = ()
    explain: bool = False
    grace: int | None = None
    after: float = 1.0
    keep: bool = False
    requests: "RolloutOptions | None" = None
