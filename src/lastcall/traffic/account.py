"""Accounts for every request: which were lost, at which Pod, in which phase of its end, and why. Pure.

The client's side says what it got; the Pods' own output says which requests they saw (an application that prints the
`X-Request-ID` when it begins and when it has answered, and the messages of a WebSocket). Every request that was planned
is in exactly one row: good, moved (`outcome.Moved`: the server said goodbye, the client goes on elsewhere) or lost.
"""

# check: pure

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lastcall.endings import said
from lastcall.traffic.bounds import upper_bound
from lastcall.traffic.container_runs import SKEW_SECONDS
from lastcall.traffic.lives import Phase, PodLife, by_address
from lastcall.traffic.outcome import TIMEOUTS, Kind, Lost, Moved, Outcome

Cause = Literal[
    "late endpoint",
    "cut off",
    "never read",
    "killed",
    "stale connection",
    "not listening yet",
    "not serving yet",
    "not ready yet",
    "crashed",
    "restarted",
    "no endpoint",
    "server error",
    "unexplained",
    "not seen",
]

CAUSE_IDS: Mapping[Cause, str] = {
    "late endpoint": "lateEndpoint",
    "cut off": "cutOff",
    "never read": "neverRead",
    "killed": "requestKilled",
    "stale connection": "staleConnection",
    "not listening yet": "notListeningYet",
    "not serving yet": "notServingYet",
    "not ready yet": "unreadyPodsPublished",
    "crashed": "crashedUnderLoad",
    "restarted": "restartedUnderLoad",
    "no endpoint": "noEndpoint",
    "server error": "serverError",
    "unexplained": "unexplained",
    "not seen": "notSeen",
}
"""Cause of a lost request → its id in the catalogue."""

WHY: Mapping[Cause, str] = {cause: said(id_) for cause, id_ in CAUSE_IDS.items()}

_ID = re.compile(r"\blc-(\d+)\b(?!\.\d)")
_MESSAGE = re.compile(r"\blc-\d+\.\d+\b")

Seen = Literal["never", "begun", "answered", "unknown"]
"""By the application: not at all, begun and not answered, answered (and the answer was lost); unknown where it does not
print what it sees."""


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


@dataclass(frozen=True, slots=True)
class PodShare:
    """Of the requests that count: those that led to this Pod ("no Pod": to none), and how many of them were lost."""

    pod: str
    total: int
    lost: int

    @property
    def upper_bound(self) -> float:
        return upper_bound(self.lost, self.total)


@dataclass(frozen=True, slots=True)
class Balance:
    """How the requests of a kind were spread over the Pods that the rules named, before the disruption or after it."""

    kind: Kind
    connections: int
    requests: Mapping[str, int]

    @property
    def skew(self) -> float:
        """The most that a Pod got, as a multiple of its even share."""
        total = sum(self.requests.values())
        return max(self.requests.values()) * len(self.requests) / total if total else 1.0


@dataclass(frozen=True, slots=True)
class NeverAnswered:
    """A kind of which no request at all had a good answer, and how most of them were lost."""

    kind: Kind
    count: int
    lost: str


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
    errors that was Ready before it served. `never_answered` are kinds that the application seems not to speak.
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
    longest: Mapping[Kind, float] = field(default_factory=dict)
    moved: tuple[Outcome, ...] = ()
    pods: tuple[PodShare, ...] = ()
    balance: tuple[Balance, ...] = ()
    balance_after: tuple[Balance, ...] = ()
    never_answered: tuple[NeverAnswered, ...] = ()
    not_followed: bool = False
    """Seen from outside of the cluster: which Pod a good answer came from, and all that was printed, is not known."""

    @property
    def total(self) -> int:
        return sum(self.totals.values())

    @property
    def upper_bound(self) -> float:
        """Of the share of lost requests, with 95 % confidence."""
        return upper_bound(len(self.lost), self.total)

    @property
    def causes(self) -> list[tuple[Cause, int]]:
        """The most frequent first."""
        return Counter(each.cause for each in self.lost).most_common()

    @property
    def moves(self) -> list[tuple[tuple[Kind, Moved], int]]:
        """The most frequent first."""
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
) -> Account:
    """`output` is what the Pods printed, `whole_output` whether that is all; `disrupted` the moment from which requests
    count, before it is control; `begun` how many requests the client says it began (their ids are 1 to that).

    What was under way at that moment counts: the disruption may have cut it off.
    """
    output = list(output)
    seen, messages = ids_printed(output), {each for line in output for each in _MESSAGE.findall(line)}
    addresses = by_address(lives)
    outcomes = [_settled(each, addresses) for each in outcomes]
    answers = _first_answers(outcomes)
    unmeasured = [
        each
        for each in outcomes
        if not each.measured and not _explained(each, _life(each, addresses, lives, answers), seen)
    ]
    left_out = {each.id for each in unmeasured}
    counted = [each for each in outcomes if _counts(each, disrupted) and each.id not in left_out]
    control = [each for each in outcomes if not _counts(each, disrupted) and each.id not in left_out]
    printed = _Printed(seen, messages, {each.kind for each in outcomes if each.id in seen} if whole_output else set())
    lost = [_explain(each, _life(each, addresses, lives, answers), printed, disrupted) for each in counted if each.lost]
    lost = [_with_its_start(each, led_to(each.outcome, addresses), answers) for each in lost]
    lost = [_with_somebody_there(_with_nobody_else(each, lives), lives) for each in lost]
    known = {each.id for each in outcomes}
    too_early = [each for each in control if _is_too_early(each, _life(each, addresses, lives, answers), answers)]
    return Account(
        totals=Counter(each.kind for each in counted),
        losses=Counter(each.kind for each in counted if each.lost),
        lost=tuple(sorted(lost, key=lambda each: each.at)),
        unaccounted=tuple(sorted(number for number in seen if number not in known)),
        control_total=len(control),
        control_lost=sum(1 for each in control if each.lost),
        unmeasured=tuple(unmeasured),
        without_outcome=tuple(each for each in range(1, (begun or 0) + 1) if each not in known),
        answered_unseen=answered_unseen(outcomes, seen) if whole_output else (),
        seen=len(seen),
        whole_output=whole_output,
        not_listening_yet=len(too_early),
        not_serving_yet=sum(_answers_too_early(each, led_to(each, addresses), answers) for each in control),
        control_losses=tuple(Counter((each.kind, str(each.lost)) for each in control if each.lost).most_common()),
        longest=_longest(outcomes),
        moved=tuple(each for each in counted if each.moved and not each.lost),
        pods=_shares(counted, lost, addresses),
        balance=_balance(control, lives, addresses, disrupted),
        balance_after=_balance_after(counted, lives, addresses),
        never_answered=_never_answered([*control, *counted], control, lost),
    )


def _never_answered(
    outcomes: Sequence[Outcome], control: Sequence[Outcome], lost: Sequence[LostRequest]
) -> tuple[NeverAnswered, ...]:
    """Those for which no Pod's end is the reason: some were lost before any, or without one."""
    answered = {each.kind for each in outcomes if not each.lost}
    for_another_reason = {each.kind for each in control}
    for_another_reason |= {each.outcome.kind for each in lost if each.cause in ("unexplained", "server error")}
    kinds = dict.fromkeys(each.kind for each in outcomes)
    found = []
    for kind in (each for each in kinds if each not in answered and each in for_another_reason):
        ways = Counter(str(each.lost) for each in outcomes if each.kind == kind)
        found.append(NeverAnswered(kind, ways.total(), ", ".join(way for way, _ in ways.most_common(3))))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Printed:
    """By the applications: ids and how often, messages; and the kinds of requests that they print, none where not all
    that they printed is known."""

    ids: Mapping[int, int]
    messages: Container[str]
    kinds: Container[Kind]

    def of(self, outcome: Outcome) -> Seen:
        if outcome.kind not in self.kinds:
            return "unknown"
        seen: tuple[Seen, ...] = ("never", "begun", "answered")
        return seen[min(self.ids.get(outcome.id, 0), 2)]

    def of_message(self, outcome: Outcome) -> Seen:
        if outcome.kind not in self.kinds or not outcome.unanswered or not self.messages:
            return "unknown"
        return "begun" if outcome.unanswered in self.messages else "never"


def _explained(outcome: Outcome, life: PodLife | None, seen: Mapping[int, int]) -> bool:
    """Whether a loss is the Pod's although the client was held up: its end explains that nobody answered in time, or
    the application has seen the request."""
    if outcome.lost in TIMEOUTS:
        return decide_cause(outcome, life) != "unexplained"
    return outcome.id in seen


def _settled(outcome: Outcome, addresses: Mapping[str, Sequence[PodLife]]) -> Outcome:
    """A stream that ended before the client had enough is what the Pod's end makes of it.

    Without one it was its own end. Where only the close of the connection says that it is over, and the Pod was ending,
    the client cannot tell it from one that was cut.
    """
    if outcome.moved not in ("ended early", "closed early"):
        return outcome
    life = led_to(outcome, addresses)
    ends = [each for each in (life.signalled, life.exited) if each is not None] if life is not None else []
    if not ends or outcome.finished + SKEW_SECONDS < min(ends):
        return replace(outcome, moved="")
    return outcome if outcome.moved == "ended early" else replace(outcome, moved="", lost="truncated")


def led_to(outcome: Outcome, addresses: Mapping[str, Sequence[PodLife]]) -> PodLife | None:
    """The Pod that had the address that it led to: the last one that was there by then."""
    those = addresses.get(outcome.served_by, ()) if outcome.served_by else ()
    there = [life for life in those if not life.records or life.records[0].at_ns / 1e9 <= outcome.sent]
    return there[-1] if there else (those[0] if those else None)


def _shares(
    counted: Iterable[Outcome], lost: Iterable[LostRequest], addresses: Mapping[str, Sequence[PodLife]]
) -> tuple[PodShare, ...]:
    lost_at = Counter(each.pod or NO_POD for each in lost)
    totals = Counter(lost_at)
    for outcome in counted:
        if not outcome.lost:
            life = led_to(outcome, addresses)
            totals[life.name if life is not None else NO_POD] += 1
    return tuple(PodShare(pod, totals[pod], lost_at[pod]) for pod in sorted(totals))


def _longest(outcomes: Iterable[Outcome]) -> dict[Kind, float]:
    found: dict[Kind, float] = {}
    for each in outcomes:
        if not each.lost and not each.moved:
            found[each.kind] = max(each.finished - each.sent, found.get(each.kind, 0.0))
    return found


def _balance_after(
    counted: Sequence[Outcome], lives: Sequence[PodLife], addresses: Mapping[str, Sequence[PodLife]]
) -> tuple[Balance, ...]:
    """Of what was sent when the last Pod had come or gone."""
    changes = (at for life in lives for at in (life.ready, life.routed, life.unrouted, life.exited) if at is not None)
    settled = max(changes, default=0.0)
    later = [each for each in counted if each.sent > settled]
    return _balance(later, lives, addresses, max((each.sent for each in later), default=settled))


def _balance(
    outcomes: Iterable[Outcome],
    lives: Sequence[PodLife],
    addresses: Mapping[str, Sequence[PodLife]],
    at: float,
) -> tuple[Balance, ...]:
    """Over the Pods that were named `at` a moment."""
    named = [life.name for life in lives if life.is_named(at) and life.name]
    requests: dict[Kind, dict[str, int]] = {}
    connections: dict[Kind, set[int]] = {}
    for outcome in outcomes:
        life = led_to(outcome, addresses)
        if life is not None and not outcome.lost:
            of_kind = requests.setdefault(outcome.kind, dict.fromkeys(named, 0))
            of_kind[life.name] = of_kind.get(life.name, 0) + 1
            connections.setdefault(outcome.kind, set()).add(outcome.connection)
    return tuple(Balance(kind, len(connections[kind]), requests[kind]) for kind in requests)


def answered_unseen(outcomes: Iterable[Outcome], seen: Mapping[int, int]) -> tuple[int, ...]:
    """Ids that a client got an answer to and no application printed, of the kinds that it prints."""
    answered = [each for each in outcomes if not each.lost]
    printed = {each.kind for each in answered if each.id in seen}
    return tuple(sorted(each.id for each in answered if each.kind in printed and each.id not in seen))


def _counts(outcome: Outcome, disrupted: float) -> bool:
    if never_connected(outcome):
        return outcome.planned >= disrupted
    return outcome.finished >= disrupted


def _is_too_early(outcome: Outcome, life: PodLife | None, answers: Mapping[str, float]) -> bool:
    """Whether a request was lost to a Pod that listened only later: its first answer came after it."""
    if not outcome.lost or life is None or decide_cause(outcome, life) != "not listening yet":
        return False
    return outcome.sent < answers.get(life.ip, 0.0)


def _answers_too_early(outcome: Outcome, life: PodLife | None, answers: Mapping[str, float]) -> bool:
    """Whether a Pod that was Ready, and that nothing had ended, answered with an error and with nothing better before:
    the first good answer of the same Pod came after it. One that never had a good answer is not a slow start."""
    if outcome.lost != "5xx" or life is None or life.ready is None:
        return False
    ended = life.signalled is not None and outcome.finished + SKEW_SECONDS >= life.signalled
    return not ended and outcome.finished < answers.get(life.ip, 0.0)


def _with_its_start(lost: LostRequest, life: PodLife | None, answers: Mapping[str, float]) -> LostRequest:
    return replace(lost, cause="not serving yet") if _answers_too_early(lost.outcome, life, answers) else lost


def _first_answers(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """Address → the first moment at which it was seen to have answered."""
    found: dict[str, float] = {}
    for each in outcomes:
        if each.served_by and not each.lost:
            found[each.served_by] = min(each.finished, found.get(each.served_by, each.finished))
    return found


def ids_printed(output: Iterable[str]) -> dict[int, int]:
    """Id → how often the applications printed it."""
    found: Counter[int] = Counter()
    for line in output:
        found.update({int(number) for number in _ID.findall(line)})
    return found


def _explain(outcome: Outcome, life: PodLife | None, printed: _Printed, disrupted: float) -> LostRequest:
    at = outcome.sent if outcome.lost == "connect timeout" else outcome.finished
    seen, cause = printed.of(outcome), decide_cause(outcome, life)
    # A close with something unread, or of a connection that was never accepted, is a reset; others end with a FIN.
    if cause == "cut off" and seen == "never" and outcome.lost == "reset before bytes":
        cause = "never read"
    return LostRequest(
        outcome=outcome,
        at=at - disrupted,
        pod=life.name if life is not None else "",
        phase=life.phase(at) if life is not None else "",
        cause=cause,
        between=life.between(at) if life is not None else ("", ""),
        seen=seen,
        message=printed.of_message(outcome),
    )


def _with_nobody_else(lost: LostRequest, lives: Sequence[PodLife]) -> LostRequest:
    """With no Pod ready, the rules go on naming one that ends (topology.go:CategorizeEndpoints), and no lag is to
    blame for what it refuses, or is sent after its stop signal: there was nobody else to send it to. Told where another
    Pod is known: it came too late."""
    sent = lost.outcome.sent
    told = next((life.signalled for life in lives if life.name == lost.pod), None)
    too_late = lost.cause in ("cut off", "never read") and told is not None and sent >= told
    fresh = lost.outcome.kind not in REUSED
    if (lost.cause != "late endpoint" and not (too_late and fresh)) or len(lives) < 2:
        return lost
    if any(life.listens(sent) for life in lives):
        return lost
    return replace(lost, cause="no endpoint")


def _with_somebody_there(lost: LostRequest, lives: Sequence[PodLife]) -> LostRequest:
    """A node that names a Pod does not refuse because it has none: what did is not known. Rules of several nodes may
    differ, and which of them refused is not known either."""
    if lost.cause != "no endpoint" or lost.pod or len({node for life in lives for node in life.nodes}) > 1:
        return lost
    there = any(life.is_named_all_along(lost.outcome.sent, lost.outcome.finished) for life in lives)
    return replace(lost, cause="unexplained") if there else lost


def _life(
    outcome: Outcome, addresses: Mapping[str, Sequence[PodLife]], lives: Sequence[PodLife], answers: Mapping[str, float]
) -> PodLife | None:
    """The Pod a lost request led to: by its address, the last one that had it.

    The kernel forgets at once where a refused connection led to. Then it is the Pod that the rules named and that did
    not listen at that moment, the one that has been ending for the longest time if there are several; or the newest of
    those that had never answered before: inferred.
    """
    if outcome.served_by:
        return led_to(outcome, addresses)
    if not never_connected(outcome):
        return None
    deaf = [life for life in lives if life.refuses(outcome.sent, outcome.finished)]
    if deaf:
        return min(deaf, key=lambda life: life.term or life.exited or 0.0)
    refused = "refused" in (outcome.lost, outcome.behind)
    silent = [
        life
        for life in lives
        if life.is_named(outcome.sent)
        and (life.probed is None or outcome.sent < life.probed)
        and answers.get(life.ip, math.inf) > outcome.sent
    ]
    return max(silent, key=lambda life: life.routed or 0.0) if silent and refused else None


NEVER_CONNECTED: tuple[Lost, ...] = ("refused", "unreachable", "connect timeout")
NO_POD = "no Pod"
REUSED: tuple[Kind, ...] = ("keep-alive", "http2")
"""Requests that come on connections that others were on before."""


def never_connected(outcome: Outcome) -> bool:
    """To no Pod, that is: a published port takes every connection."""
    return outcome.lost in NEVER_CONNECTED or outcome.behind in NEVER_CONNECTED


def decide_cause(outcome: Outcome, life: PodLife | None) -> Cause:
    """Why a request was lost."""
    if outcome.lost == "5xx":
        return "server error"
    if life is None:
        refused = "connect timeout" not in (outcome.lost, outcome.behind) and never_connected(outcome)
        return "no endpoint" if refused else "unexplained"
    outage = life.outage(outcome.sent, outcome.finished)
    if outage is not None:
        return "crashed" if outage.stop is None else "restarted"
    if outcome.lost == "connect timeout" and life.listens(outcome.finished):
        return "unexplained"
    if never_connected(outcome):
        if life.deleted is not None and outcome.finished >= life.deleted:
            return "late endpoint"
        return "not ready yet" if life.is_published_unready(outcome.sent) else "not listening yet"
    if life.exited is None or life.signalled is None or outcome.finished + SKEW_SECONDS < life.signalled:
        return "unexplained"
    if outcome.sent >= life.exited:
        return "stale connection" if outcome.age > 0.01 else "late endpoint"
    if life.killed:
        return "killed"
    if outcome.kind in REUSED and outcome.sent >= life.signalled and outcome.lost.endswith("before bytes"):
        return "stale connection"
    return "cut off"
