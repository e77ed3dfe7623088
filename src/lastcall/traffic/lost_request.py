"""A lost request, explained from what is known of every Pod. Pure."""

# check: pure

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal, Self

from lastcall.traffic.causes import Cause, Loss, decide_cause, fell_into_an_outage, its_pod_lived_on
from lastcall.traffic.connection_use import ConnectionUse, Limit, connection_uses, limit_of
from lastcall.traffic.lives import Phase, PodLife, by_address, led_to
from lastcall.traffic.moments import SKEW_SECONDS, Moment, is_over
from lastcall.traffic.outcome import Outcome, never_connected
from lastcall.traffic.printed import Printed, Seen
from lastcall.world.dataclass import dataclass

NO_POD = "no Pod"


@dataclass(frozen=True, slots=True)
class LostRequest:
    """`at` is when it was known to be lost, or, if nobody answered its connect, when it was sent; in seconds after the
    disruption began. `between`: the kinds of two records. `message` is what the application saw of the message of a
    WebSocket that was not echoed ("begun": it printed it).
    """

    outcome: Outcome
    at: float
    pod: str
    phase: Phase | Literal[""]
    cause: Cause
    between: tuple[str, str]
    seen: Seen
    message: Seen = "unknown"
    not_known: str = ""
    """Why its cause is not known, for one that was "not seen"."""
    container: str = ""
    """Of several containers of its Pod the one that it went to, "" where that is not known."""


@dataclass(frozen=True, slots=True)
class KnownPods:
    """The Pods that requests can have led to, when each address first gave a good answer, and each connection's use.

    `limit` is at what the server closes connections, if that shows. `all_end`: none is there to take over for another
    one, so that is no reason for a loss.
    """

    lives: Sequence[PodLife]
    addresses: Mapping[str, Sequence[PodLife]]
    answers: Mapping[str, float]
    uses: Mapping[int, ConnectionUse] = field(default_factory=dict)
    limit: Limit | None = None
    all_end: bool = False

    @classmethod
    def of_outcomes(cls, lives: Sequence[PodLife], outcomes: Sequence[Outcome]) -> Self:
        answers: dict[str, float] = {}
        for each in outcomes:
            if each.served_by and not each.lost:
                answers[each.served_by] = min(each.finished, answers.get(each.served_by, each.finished))
        pods = cls(lives, by_address(lives), answers, connection_uses(outcomes))
        return replace(pods, limit=limit_of(pods.uses, pods.lives_on(outcomes)))

    def loss(self, outcome: Outcome, seen: Seen = "unknown") -> Loss:
        """Return a lost request with what is known around it."""
        life, lives = self.led_to(outcome), () if self.all_end else self.lives
        return Loss(outcome, life, lives, seen, self._served(life), self.uses.get(outcome.connection), self.limit)

    def loss_alone(self, outcome: Outcome) -> Loss:
        """Return it with its own Pod alone: what other Pods did is no part of the question."""
        return Loss(outcome, self.led_to(outcome), use=self.uses.get(outcome.connection), limit=self.limit)

    def lives_on(self, outcomes: Iterable[Outcome]) -> Callable[[int], bool]:
        """Return what says of a connection whether its Pod neither ended nor was down when a request on it was lost."""
        lost = [Loss(each, self.led_to(each)) for each in outcomes if each.lost and each.connection in self.uses]
        ended = {
            each.outcome.connection
            for each in lost
            if each.life is None or fell_into_an_outage(each) or not its_pod_lived_on(each)
        }
        return lambda number: number not in ended

    def answers_later(self, outcome: Outcome) -> bool:
        """Return whether the Pod that it led to gave its first good answer after the request was sent."""
        return outcome.sent < self._served(self.led_to(outcome))

    def led_to(self, outcome: Outcome) -> PodLife | None:
        """Return the Pod a lost request led to: by its address, the last one that had it.

        The kernel forgets at once where a refused connection led to. Then it is the Pod that the rules named and that
        did not listen at that moment, the one that has been ending for the longest time if there are several; or the
        newest of those that had never answered before: inferred.
        """
        if outcome.served_by:
            return led_to(outcome, self.addresses)
        if not never_connected(outcome):
            return None
        deaf = [life for life in self.lives if life.refuses(outcome.sent, outcome.finished)]
        if deaf:
            return min(deaf, key=lambda life: _latest(life.term or life.exited))
        refused = "refused" in (outcome.lost, outcome.behind)
        silent = [life for life in self.lives if self._is_silent(life, outcome)]
        return max(silent, key=lambda life: _latest(life.routed)) if silent and refused else None

    def _is_silent(self, life: PodLife, outcome: Outcome) -> bool:
        """Whether the rules named it, and nobody had seen it listen. That they do is recorded a moment later."""
        at = outcome.sent
        if is_over(life.probed, at) or self.answers.get(life.ip, math.inf) <= at:
            return False
        return life.is_named(at) or life.is_named(outcome.finished + SKEW_SECONDS)

    def _served(self, life: PodLife | None) -> float:
        return self.answers.get(life.ip, 0.0) if life is not None else 0.0


def _latest(moment: Moment | None) -> float:
    return moment.latest if moment is not None else 0.0


def explain(outcome: Outcome, pods: KnownPods, printed: Printed, disrupted: float) -> LostRequest:
    """Return a lost request with its cause; `disrupted` is when the disruption began."""
    at = outcome.sent if outcome.lost == "connect timeout" else outcome.finished
    seen = printed.of(outcome)
    loss = pods.loss(outcome, seen)
    if seen == "unknown" and loss.life is not None and outcome.port in loss.life.unread_ports:
        seen = "never"  # its node saw what it had sent unread, right before the exit
        loss = replace(loss, seen=seen)
    return LostRequest(
        outcome=outcome,
        at=at - disrupted,
        pod=loss.life.name if loss.life is not None else "",
        phase=loss.life.phase(at) if loss.life is not None else "",
        cause=decide_cause(loss).cause,
        between=loss.life.between(at) if loss.life is not None else ("", ""),
        seen=seen,
        message=printed.of_message(outcome),
        container=loss.life.container if loss.life is not None else "",
    )
