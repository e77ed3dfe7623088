"""Find causes of lost requests from what a cluster's API shows of its Pods' ends. Pure.

The causes are those of `causes.py`. Here the API bounds when something was, and requests are timed by another machine's
clock, wrong by an error that was measured. So a cause is claimed only where every time within the bounds and the error
gives it, and where every Pod that can have been the one gives it. Otherwise it says what is not known, and why.

Three things are concluded: that rules which never had to do without an endpoint named one, so that one of them refused;
that a Pod which listened did not refuse; and that rules which sent many connections to others, one after another, and
none to a Pod, did not name it any more.
"""

# check: pure

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from lastcall.endings import said
from lastcall.traffic.account import Account
from lastcall.traffic.causes import Cause, Loss, NotKnown, exact_cause, one_of, shifted
from lastcall.traffic.lives import PodLife
from lastcall.traffic.lost_request import LostRequest
from lastcall.traffic.moments import Moment, is_over
from lastcall.traffic.outcome import Outcome, never_connected
from lastcall.world.dataclass import dataclass

ANSWER_SECONDS = 0.3
"""So soon a Pod that listens answers a connect; the next packet that asks comes a second after the first."""
NEVER = 0.001
"""What is less likely is not claimed."""
NEW = frozenset({"fresh", "tcp", "stream", "websocket"})
"""Kinds of load that open a connection for each request."""


@dataclass(frozen=True, slots=True)
class Traced:
    """What was seen from outside. `pods` are those of the workload, within bounds; one that came in the experiment has
    `created`. `printed`: of each Pod, by its uid, the ids of requests that it printed after the DELETE, and how often.
    `since`: from then on Pods were followed. `probed`: a Pod is Ready, and named, only when it listens for requests.
    `whole_service`: every node sends to any Pod. `silent_before`: a connect timed out before any Pod ended, so that
    Pods that listen may do that here. `failed`: Pods could not be followed. `direct`: a connect is answered by a Pod,
    and by nothing before it. `reached`: when connects were begun that Pods took, sorted; empty where rules do not
    choose each Pod as often as the others."""

    pods: Sequence[PodLife]
    since: float
    error: float
    probed: bool
    printed: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    whole_service: bool = True
    silent_before: bool = False
    failed: bool = False
    direct: bool = True
    reached: Sequence[float] = ()
    corners: Mapping[str, tuple[PodLife, ...]] = field(init=False, repr=False, compare=False)
    """Of each Pod, by its uid, the exact lives at the ends of its bounds."""

    def __post_init__(self) -> None:
        # When rules stopped to name a Pod is not known.
        named = {pod.uid: replace(pod, routed=Moment.at(-math.inf)) for pod in self.pods}
        object.__setattr__(self, "corners", {uid: tuple(life.corners()) for uid, life in named.items()})

    def printed_by(self, number: int) -> list[PodLife]:
        """Return the Pods that printed a request."""
        return [pod for pod in self.pods if number in self.printed.get(pod.uid, {})]


def with_causes(found: Account, traced: Traced) -> Account:
    """Return the account with the causes that are known, and with why the others are not."""
    lost = _while_named([explained(each, traced) for each in found.lost], traced)
    return replace(found, lost=tuple(lost), not_followed=True)


def reached(outcomes: Sequence[Outcome]) -> list[float]:
    """Return when connects were begun that something accepted, sorted."""
    return sorted(each.sent for each in outcomes if each.kind in NEW and not never_connected(each))


def _while_named(lost: Sequence[LostRequest], traced: Traced) -> Iterator[LostRequest]:
    """Without those late endpoints that rules can no longer have named: once they have left a Pod they do not name it
    again."""
    named = {pod.uid: pod.exited.latest + traced.error for pod in traced.pods if pod.exited is not None}
    still: dict[int, bool] = {}
    for each in sorted(lost, key=lambda each: each.outcome.sent):
        if each.cause == "late endpoint":
            at = each.outcome.sent
            those = [pod for pod in traced.pods if pod.deleted is not None and (not each.pod or pod.name == each.pod)]
            fit = [pod for pod in those if _may_name(pod, named.get(pod.uid, math.inf), at - traced.error, traced)]
            named |= {pod.uid: at for pod in fit if pod.uid in named and at > named[pod.uid]}
            still[each.outcome.id] = bool(fit)
    for each in lost:
        yield each if still.get(each.outcome.id, True) else _not_known(each, "over", traced)


def _may_name(pod: PodLife, since: float, until: float, traced: Traced) -> bool:
    """Whether rules that named a Pod that did not listen may have sent everything to others between two moments."""
    passed = bisect_left(traced.reached, until) - bisect_right(traced.reached, since)
    others = sum(is_over(each.ready, until) for each in traced.pods if each is not pod)
    return passed <= 0 or (others / (others + 1)) ** passed >= NEVER


def explained(lost: LostRequest, traced: Traced) -> LostRequest:
    """Return one lost request with its cause, or with `not_known`."""
    outcome = lost.outcome
    those = traced.printed_by(outcome.id)
    pod = those[0] if len(those) == 1 else None
    if pod is not None:
        lost = replace(lost, seen="answered" if traced.printed[pod.uid][outcome.id] > 1 else "begun")
    if lost.cause == "server error":
        return replace(lost, pod=pod.name if pod else "", phase="", between=("", ""))
    if traced.failed:
        return _not_known(lost, "pods", traced)
    if never_connected(outcome):
        return _explained_refusal(lost, traced) if traced.direct else _not_known(lost, "entrance", traced)
    if pod is None:
        return _not_known(lost, "pod", traced)
    lost = replace(lost, pod=pod.name)
    decision = one_of({exact_cause(each) for each in _of_printed(outcome, pod, traced)})
    if decision.cause in ("unexplained", "not seen"):
        return _not_known(lost, decision.not_known or "signal", traced)
    return replace(lost, cause=decision.cause, phase="", between=("", ""))


def _of_printed(outcome: Outcome, pod: PodLife, traced: Traced) -> Iterator[Loss]:
    """A request with every life of the Pod that has printed it: it had not exited, nor was it down."""
    for at in shifted(outcome, traced.error):
        for life in traced.corners[pod.uid]:
            if life.exited is None or life.exited.latest >= at.sent:
                yield Loss(at, replace(life, outages=[]))


def _explained_refusal(lost: LostRequest, traced: Traced) -> LostRequest:
    """Of one that reached no Pod."""
    worlds = [_refusing(at, traced) for at in shifted(lost.outcome, traced.error)]
    causes = {cause for world in worlds for cause in world}
    if causes == {"late endpoint"} and all(worlds):
        names = {name for world in worlds for name in world["late endpoint"]}
        pod = names.pop() if len(names) == 1 else ""
        return replace(lost, cause="late endpoint", pod=pod, phase="", between=("", ""))
    if len({frozenset(world) for world in worlds}) > 1:
        return _not_known(lost, "clock", traced)
    if not causes:
        return replace(lost, cause="unexplained", pod="", phase="", between=("", ""))
    if causes & {"crashed", "restarted"}:
        return _not_known(lost, "restart", traced)
    if "not listening yet" in causes:
        return _not_known(lost, "start", traced)
    return _not_known(lost, "rules" if "no endpoint" in causes else "silence", traced)


def _refusing(outcome: Outcome, traced: Traced) -> dict[Cause, list[str]]:
    """Each cause that fits → the Pods that may have been the one; {} where nothing explains it."""
    found: dict[Cause, list[str]] = {}
    for pod in traced.pods:
        causes = {exact_cause(Loss(outcome, life)) for life in traced.corners[pod.uid] if _refuses(life, outcome)}
        if not traced.probed and is_over(pod.created, outcome.finished):
            causes.add("not listening yet")
        for cause in causes:
            found.setdefault(cause, []).append(pod.name)
    if "refused" in (outcome.lost, outcome.behind) or outcome.lost == "unreachable":
        if not (traced.whole_service and _always_somebody(traced, outcome.finished)):
            found.setdefault("no endpoint", [])
    elif traced.silent_before:
        found.setdefault("unexplained", [])
    return found


def _refuses(life: PodLife, outcome: Outcome) -> bool:
    """Whether it was down, or its end can have refused it: then that had begun."""
    if life.outage(outcome.sent, outcome.finished) is not None:
        return True
    asked = outcome.finished
    if outcome.lost in _SILENT or outcome.behind in _SILENT:
        asked = min(asked, outcome.sent + ANSWER_SECONDS)  # later it was only waited for
    return is_over(life.deleted, outcome.finished) and life.refuses(outcome.sent, asked)


_SILENT = ("connect timeout", "unreachable")


def _always_somebody(traced: Traced, until: float) -> bool:
    """Whether a Pod was Ready, and not deleted, at every moment since Pods were followed: then the rules, which are
    those of some earlier moment, name one."""
    at = traced.since
    spans = []
    for pod in traced.pods:
        ends = [pod.unreadied, pod.deleted, *(each.exited for each in pod.outages)]
        if pod.ready is not None:
            first = min((each.earliest for each in ends if each is not None), default=math.inf)
            spans.append((pod.ready.latest, first))
    for begin, end in sorted(spans):
        if begin <= at:
            at = max(at, end)
    return at > until


def silent_before(outcomes: Sequence[Outcome], moment: float, error: float) -> bool:
    """Return whether a connect that was begun before any Pod ended was never answered."""
    return any(each.lost == "connect timeout" and each.sent < moment - error for each in outcomes)


def _not_known(lost: LostRequest, why: NotKnown, traced: Traced) -> LostRequest:
    text = said("notSeen", why, error=f"{traced.error * 1000:.1f} ms")
    return replace(lost, cause="not seen", phase="", between=("", ""), not_known=text)


def reasons(found: Account) -> list[tuple[str, int]]:
    """Return why causes are not known, the most frequent first."""
    return Counter(each.not_known for each in found.lost if each.not_known).most_common()


def with_lags(found: Account, lives: Sequence[PodLife]) -> list[PodLife]:
    """Return the lives with how long the rules have named each at least: until the last request was sent that it
    refused."""
    last: dict[str, float] = {}
    for each in found.lost:
        if each.cause == "late endpoint":
            begun = [life for life in lives if is_over(life.deleted, each.outcome.finished)]
            those = [life for life in begun if life.name == each.pod] or begun
            if those:  # of several the last one: its lag is the least
                uid = max(those, key=lambda life: life.deleted.latest if life.deleted is not None else 0.0).uid
                last[uid] = max(each.outcome.sent, last.get(uid, 0.0))
    return [replace(life, unrouted=Moment.at(last[life.uid])) if life.uid in last else life for life in lives]


def listens_when_ready(container: Mapping[str, Any], port: int | str) -> bool:
    """Return whether a probe that keeps it from being Ready asks the port of the requests."""
    names = {each.get("name"): each["containerPort"] for each in container.get("ports") or ()}
    number = names.get(port, port)
    for name in ("readinessProbe", "startupProbe"):
        probe = container.get(name) or {}
        for handler in ("httpGet", "tcpSocket", "grpc"):
            asked = (probe.get(handler) or {}).get("port")
            if asked is not None and names.get(asked, asked) == number:
                return True
    return False
