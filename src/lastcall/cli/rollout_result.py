"""What one experiment of `lastcall rollout` found."""

from collections.abc import Sequence
from dataclasses import dataclass

from lastcall.api.meta import Object
from lastcall.traffic.account import Account
from lastcall.traffic.advice import Judgement
from lastcall.traffic.lives import PodLife
from lastcall.traffic.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Result:
    """What one experiment found. `began` is the moment of the disruption, seconds of the monotonic clock."""

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
