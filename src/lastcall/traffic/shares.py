"""How requests were spread over Pods and kinds, of those that count. Pure."""

# check: pure

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lastcall.traffic.bounds import upper_bound
from lastcall.traffic.lives import PodLife, led_to
from lastcall.traffic.lost_request import NO_POD, LostRequest
from lastcall.traffic.outcome import Kind, Outcome
from lastcall.world.dataclass import dataclass


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
        """Return the most that a Pod got, as a multiple of its even share."""
        total = sum(self.requests.values())
        return max(self.requests.values()) * len(self.requests) / total if total else 1.0


@dataclass(frozen=True, slots=True)
class NeverAnswered:
    """A kind of which no request at all had a good answer, and how most of them were lost."""

    kind: Kind
    count: int
    lost: str


def never_answered(
    outcomes: Sequence[Outcome], control: Sequence[Outcome], lost: Sequence[LostRequest]
) -> tuple[NeverAnswered, ...]:
    """Return the kinds never answered without a Pod's end as the reason: some were lost before any, or without one."""
    answered = {each.kind for each in outcomes if not each.lost}
    for_another_reason = {each.kind for each in control}
    for_another_reason |= {each.outcome.kind for each in lost if each.cause in ("unexplained", "server error")}
    kinds = dict.fromkeys(each.kind for each in outcomes)
    found = []
    for kind in (each for each in kinds if each not in answered and each in for_another_reason):
        ways = Counter(str(each.lost) for each in outcomes if each.kind == kind)
        found.append(NeverAnswered(kind, ways.total(), ", ".join(way for way, _ in ways.most_common(3))))
    return tuple(found)


def pod_shares(
    counted: Iterable[Outcome], lost: Iterable[LostRequest], addresses: Mapping[str, Sequence[PodLife]]
) -> tuple[PodShare, ...]:
    lost_at = Counter(each.pod or NO_POD for each in lost)
    totals = Counter(lost_at)
    for outcome in counted:
        if not outcome.lost:
            life = led_to(outcome, addresses)
            totals[life.name if life is not None else NO_POD] += 1
    return tuple(PodShare(pod, totals[pod], lost_at[pod]) for pod in sorted(totals))


def longest_answers(outcomes: Iterable[Outcome]) -> dict[Kind, float]:
    found: dict[Kind, float] = {}
    for each in outcomes:
        if not each.lost and not each.moved:
            found[each.kind] = max(each.finished - each.sent, found.get(each.kind, 0.0))
    return found


def balance_after(
    counted: Sequence[Outcome], lives: Sequence[PodLife], addresses: Mapping[str, Sequence[PodLife]]
) -> tuple[Balance, ...]:
    """Return the balance of what was sent when the last Pod had come or gone."""
    moments = [(life.ready, life.routed, life.unrouted, life.exited) for life in lives]
    settled = max((each.latest for changes in moments for each in changes if each is not None), default=0.0)
    later = [each for each in counted if each.sent > settled]
    return balance(later, lives, addresses, max((each.sent for each in later), default=settled))


def balance(
    outcomes: Iterable[Outcome],
    lives: Sequence[PodLife],
    addresses: Mapping[str, Sequence[PodLife]],
    at: float,
) -> tuple[Balance, ...]:
    """Return the balance over the Pods that were named `at` a moment."""
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
