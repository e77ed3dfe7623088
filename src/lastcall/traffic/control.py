"""Whether the control period has shown enough to disrupt something: that requests are answered at all. Pure.

A rollout under load that nobody answers would tell nothing, and take minutes to do so.
"""

# check: pure

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from lastcall.traffic.outcome import Kind, Outcome
from lastcall.traffic.proposal import number_of
from lastcall.world.dataclass import dataclass

SLOW_START_SECONDS = 30.0
"""How long Pods without a readiness probe may take until they answer: they were marked Ready as soon as they ran."""
ENOUGH = 3
"""Lost requests of a kind, from which on it counts as one that nobody answers."""


def asks_the_application(container: Mapping[str, Any], port: int | str) -> bool:
    """Return whether a probe that keeps it from being Ready asks more than whether its port takes connections, which
    it does before the application serves.

    One that asks another port says nothing of a declared `port` that requests go to: that may begin to listen later.
    """
    probes = (container.get(each) or {} for each in ("readinessProbe", "startupProbe"))
    return any(probe and "tcpSocket" not in probe and not _asks_beside(probe, container, port) for probe in probes)


def _asks_beside(probe: Mapping[str, Any], container: Mapping[str, Any], port: int | str) -> bool:
    declared = {own["containerPort"] for own in container.get("ports") or ()}
    asked = (probe.get("httpGet") or probe.get("grpc") or {}).get("port")
    sent_to = number_of(container, port)
    return asked is not None and sent_to in declared and number_of(container, asked) != sent_to


Decision = Literal["wait", "go", "stop"]


@dataclass(frozen=True, slots=True)
class Control:
    """`began` is the moment of the first request, `seconds` how long the period was to be. `probed`: a readiness or
    startup probe that asks the application had said that the Pods serve."""

    began: float
    seconds: float
    probed: bool

    def decide(self, outcomes: Sequence[Outcome], now: float) -> Decision:
        """Return `wait` for more outcomes, `go` on, or `stop`: a kind has no good answer, and none is to be
        expected."""
        passed = now - self.began
        if passed < self.seconds:
            return "wait"
        late = passed >= max(self.seconds, SLOW_START_SECONDS)
        if unanswered(outcomes):
            return "stop" if self.probed or late else "wait"
        if self.probed or late:
            return "go"
        # What was refused while they started is over when nothing was lost for a whole period.
        last = max((each.finished for each in outcomes if each.lost), default=self.began)
        return "go" if now - last >= self.seconds else "wait"


def client_errors(outcomes: Iterable[Outcome]) -> dict[Kind, tuple[Counter[int], int]]:
    """Return kinds with answers of 4xx → the statuses and how often, and of how many answers."""
    answers: dict[Kind, Counter[int]] = {}
    for each in outcomes:
        if not each.lost:
            answers.setdefault(each.kind, Counter())[each.status] += 1
    found = {kind: Counter({s: n for s, n in those.items() if 400 <= s < 500}) for kind, those in answers.items()}
    return {kind: (errors, answers[kind].total()) for kind, errors in found.items() if errors}


def unanswered(outcomes: Iterable[Outcome]) -> dict[Kind, dict[str, int]]:
    """Return kinds without a good answer → how they were lost, and how often."""
    lost: dict[Kind, dict[str, int]] = {}
    good: set[Kind] = set()
    for each in outcomes:
        if not each.lost:
            good.add(each.kind)
        else:
            ways = lost.setdefault(each.kind, {})
            ways[each.lost] = ways.get(each.lost, 0) + 1
    return {kind: ways for kind, ways in lost.items() if kind not in good and sum(ways.values()) >= ENOUGH}
