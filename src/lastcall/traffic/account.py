"""Accounts for every request: which were lost, at which Pod, in which phase of its end, and why. Pure.

The client's side says what it got; the Pods' own output says which requests they saw (an application that prints the
`X-Request-ID` when it begins and when it has answered, and the messages of a WebSocket). Every request that was planned
is in exactly one row: good, moved (`outcome.Moved`: the server said goodbye, the client goes on elsewhere) or lost.
"""

# check: pure

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from lastcall.traffic.bounds import upper_bound
from lastcall.traffic.causes import Cause, decide_cause
from lastcall.traffic.connection_use import Limit
from lastcall.traffic.lives import PodLife, by_address, led_to
from lastcall.traffic.lost_request import NO_POD, KnownPods, LostRequest, explain
from lastcall.traffic.moments import SKEW_SECONDS, first_of, is_over
from lastcall.traffic.outcome import HELD_UP_SECONDS, TIMEOUTS, Kind, Moved, Outcome, never_connected
from lastcall.traffic.printed import Printed, answered_unseen
from lastcall.traffic.shares import (
    Balance,
    NeverAnswered,
    PodShare,
    balance,
    balance_after,
    longest_answers,
    never_answered,
    pod_shares,
)
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Account:
    """`totals` and `losses` are by kind, without the `unmeasured`: losses of a client that was itself held up, which
    no Pod's end explains.

    Three ways for the books not to agree, ids each: `unaccounted`, that an application saw and no client knows of;
    `without_outcome`, that the client began and says nothing of; `answered_unseen`, that the client got an answer to
    and no application printed, though it prints others of that kind. `seen`: how many the applications printed;
    `whole_output`: all that they printed is known, so that "never saw it" can be said. `control_losses`: those before
    the disruption, by kind and class, the most frequent first; `not_listening_yet`: how many of them were sent to a Pod
    that was Ready before it listened, which is a cause of its own, and `not_serving_yet`, how many a Pod answered with
    errors that was Ready before it served, `cut_at_limit`, how many were cut by a server that closes connections at
    `limit`. `never_answered` are kinds that the application seems not to speak.
    `longest`: what a good answer took at most, in seconds, by kind.
    """

    totals: Mapping[Kind, int]
    losses: Mapping[Kind, int]
    lost: tuple[LostRequest, ...]
    unaccounted: tuple[int, ...]
    control_total: int
    control_lost: int
    unmeasured: tuple[Outcome, ...] = ()
    without_outcome: tuple[int, ...] = ()
    answered_unseen: tuple[int, ...] = ()
    seen: int = 0
    whole_output: bool = True
    control_losses: tuple[tuple[tuple[Kind, str], int], ...] = ()
    not_listening_yet: int = 0
    not_serving_yet: int = 0
    cut_at_limit: int = 0
    limit: Limit | None = None
    longest: Mapping[Kind, float] = field(default_factory=dict)
    moved: tuple[Outcome, ...] = ()
    pods: tuple[PodShare, ...] = ()
    balance: tuple[Balance, ...] = ()
    balance_after: tuple[Balance, ...] = ()
    never_answered: tuple[NeverAnswered, ...] = ()
    held_up: int = 0
    """How many of the requests that count, or are control, were sent so late that the client was too busy to be one."""
    when_nobody_left: int = 0
    """How many of the others were sent when no Pod was left for them: they do not count."""
    not_followed: bool = False
    """Seen from outside of the cluster: which Pod a good answer came from, and all that was printed, is not known."""

    @property
    def total(self) -> int:
        return sum(self.totals.values())

    @property
    def upper_bound(self) -> float:
        """Return the upper bound of the share of lost requests, with 95 % confidence."""
        return upper_bound(len(self.lost), self.total)

    @property
    def causes(self) -> list[tuple[Cause, int]]:
        """Return the most frequent first."""
        return Counter(each.cause for each in self.lost).most_common()

    @property
    def moves(self) -> list[tuple[tuple[Kind, Moved], int]]:
        """Return the most frequent first."""
        return Counter((each.kind, each.moved) for each in self.moved if each.moved).most_common()

    @property
    def by_pod(self) -> list[tuple[str, int]]:
        return Counter(each.pod or NO_POD for each in self.lost).most_common()


def account(
    outcomes: Sequence[Outcome],
    lives: Sequence[PodLife],
    output: Iterable[str],
    disrupted: float,
    *,
    begun: int | None = None,
    whole_output: bool = True,
    nobody_left: float | None = None,
) -> Account:
    """Account for requests. `output` is what the Pods printed, `whole_output` whether that is all; `disrupted` the
    moment from which requests count, before it is control; `begun` how many requests the client says it began (their
    ids are 1 to that).

    What was under way at that moment counts: the disruption may have cut it off. `nobody_left`, where all Pods end for
    good, is the moment from which new connections do not count: in real life they would go to other Pods.
    """
    addresses = by_address(lives)
    outcomes = [_settled(each, addresses) for each in outcomes]
    printed = Printed.of_output(list(output), outcomes, whole=whole_output)
    pods = replace(KnownPods.of_outcomes(lives, outcomes), all_end=nobody_left is not None)
    last = math.inf if nobody_left is None else nobody_left
    asked = [each for each in outcomes if each.sent - each.age <= last]
    unmeasured = [each for each in asked if not each.measured and not _is_explained(each, pods, printed.ids)]
    left_out = {each.id for each in unmeasured}
    counted = [each for each in asked if _counts(each, disrupted) and each.id not in left_out]
    control = [each for each in asked if not _counts(each, disrupted) and each.id not in left_out]
    lost = [explain(each, pods, printed, disrupted) for each in counted if each.lost]
    known = {each.id for each in outcomes}
    return Account(
        totals=Counter(each.kind for each in counted),
        losses=Counter(each.kind for each in counted if each.lost),
        lost=tuple(sorted(lost, key=lambda each: each.at)),
        unaccounted=tuple(sorted(number for number in printed.ids if number not in known)),
        control_total=len(control),
        control_lost=sum(1 for each in control if each.lost),
        unmeasured=tuple(unmeasured),
        without_outcome=tuple(each for each in range(1, (begun or 0) + 1) if each not in known),
        answered_unseen=answered_unseen(outcomes, printed.ids) if whole_output else (),
        seen=len(printed.ids),
        whole_output=whole_output,
        not_listening_yet=sum(_is_too_early(each, pods) for each in control),
        not_serving_yet=sum(_is_served_too_early(each, pods) for each in control),
        cut_at_limit=sum(_is_cut_at_limit(each, pods) for each in control),
        limit=pods.limit,
        control_losses=tuple(Counter((each.kind, str(each.lost)) for each in control if each.lost).most_common()),
        longest=longest_answers(outcomes),
        moved=tuple(each for each in counted if each.moved and not each.lost),
        pods=pod_shares(counted, lost, addresses),
        balance=balance(control, lives, addresses, disrupted),
        balance_after=balance_after(counted, lives, addresses),
        held_up=sum(each.sent - each.planned >= HELD_UP_SECONDS for each in (*counted, *control)),
        when_nobody_left=len(outcomes) - len(asked),
        never_answered=never_answered([*control, *counted], control, lost),
    )


def _is_explained(outcome: Outcome, pods: KnownPods, seen: Mapping[int, int]) -> bool:
    """Whether a loss is the Pod's although the client was held up: its end explains that nobody answered in time, or
    the application has seen the request."""
    if outcome.lost in TIMEOUTS:
        return decide_cause(pods.loss_alone(outcome)).cause != "unexplained"
    return outcome.id in seen


def _settled(outcome: Outcome, addresses: Mapping[str, Sequence[PodLife]]) -> Outcome:
    """A stream that ended before the client had enough is what the Pod's end makes of it.

    Without one it was its own end. Where only the close of the connection says that it is over, and the Pod was ending,
    the client cannot tell it from one that was cut.
    """
    if outcome.moved not in ("ended early", "closed early"):
        return outcome
    life = led_to(outcome, addresses)
    ended = first_of(life.signalled, life.exited) if life is not None else None
    if not is_over(ended, outcome.finished + SKEW_SECONDS):
        return replace(outcome, moved="")
    return outcome if outcome.moved == "ended early" else replace(outcome, moved="", lost="truncated")


def _counts(outcome: Outcome, disrupted: float) -> bool:
    if never_connected(outcome):
        return outcome.planned >= disrupted
    return outcome.finished >= disrupted


def _is_too_early(outcome: Outcome, pods: KnownPods) -> bool:
    """Whether a request was lost to a Pod that listened only later: its first answer came after it."""
    if not outcome.lost or decide_cause(pods.loss_alone(outcome)).cause != "not listening yet":
        return False
    return pods.answers_later(outcome)


def _is_served_too_early(outcome: Outcome, pods: KnownPods) -> bool:
    """Whether a Pod answered with errors before its first good answer."""
    return bool(outcome.lost) and decide_cause(pods.loss(outcome)).cause == "not serving yet"


def _is_cut_at_limit(outcome: Outcome, pods: KnownPods) -> bool:
    """Whether a request was cut with its connection, which its server closes at a limit."""
    return bool(outcome.lost) and decide_cause(pods.loss(outcome)).cause == "cut at a limit"
