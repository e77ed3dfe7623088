"""What one experiment of `lastcall rollout` found."""

from collections.abc import Sequence

from lastcall.endings import Ending
from lastcall.endings.render import AboutCluster
from lastcall.experiment.not_simulated import Note
from lastcall.experiment.reasons.failures import NotWell
from lastcall.kube.api import Object
from lastcall.traffic import Account, Judgement, Outcome, PodLife, Span
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """What one experiment found. `began` is the moment of the disruption, `over` that of its last change of rules, both
    seconds of the monotonic clock. `node` is the one that was drained, of `nodes`. `unheard`: no request of some kind
    was answered, so nothing was disrupted. `not_well`: Pods of which a container crashed or was restarted. `endings`
    are the stories of the old Pods. `run` counts from 1; `advised`: with the advice applied. `cluster` is where it was
    made. `of_run`: a run ended the Pods, all of them."""

    account: Account
    judgement: Judgement
    lives: Sequence[PodLife]
    outcomes: Sequence[Outcome]
    owner: Object
    what: str
    service: str
    disrupt: str
    propagation: str
    source: str
    began: float
    seconds: float
    over: float = 0.0
    node: str = ""
    nodes: int = 1
    unheard: bool = False
    notes: Sequence[Note] = ()
    not_well: Sequence[NotWell] = ()
    endings: Sequence[Ending] = ()
    run: int = 1
    advised: bool = False
    cluster: AboutCluster | None = None
    of_run: bool = False

    @property
    def crashed(self) -> bool:
        """Return whether a container crashed, or was restarted by a probe."""
        return any(each.failed for each in self.not_well)

    @property
    def span(self) -> Span:
        return Span(self.began, max(self.over, self.began + self.seconds))
