"""Judge a disruption: the verdict in a sentence, with the advice that follows from it. Pure."""

# check: pure

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from lastcall.endings import said
from lastcall.records.said import Said, fact_of, joined, tell
from lastcall.traffic.account import Account
from lastcall.traffic.advice import MOST_NAMED, advise, too_early
from lastcall.traffic.advice_check import why_not
from lastcall.traffic.bounds import percentage
from lastcall.traffic.causes import WHY
from lastcall.traffic.lives import PodLife
from lastcall.traffic.outcome import Kind
from lastcall.traffic.patches import merged
from lastcall.traffic.proposal import Advice, Disruption
from lastcall.traffic.shares import NeverAnswered
from lastcall.world.dataclass import dataclass

Verdict = Literal["nothing lost", "requests lost", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    sentence: str
    advice: tuple[Advice, ...]

    @property
    def patch(self) -> dict[str, Any]:
        """Return all that a manifest can do, as one; {} when it can do nothing."""
        return merged(each.patch for each in self.advice)

    @property
    def pause(self) -> int:
        """Return the seconds that a preStop hook is to wait, 0 where none has to."""
        return max((each.pause for each in self.advice), default=0)


def judge(
    account: Account,
    lives: Sequence[PodLife],
    owner: dict[str, Any],
    port: int | str,
    *,
    sleep_hooks: bool = True,
    longest_lag: float = 0.0,
    disrupt: str = "rollout",
    path: str = "/",
) -> Judgement:
    """Judge a run. `owner` is the Deployment (or other owner of Pods) as it was; `port` the container's port of the
    Service; `sleep_hooks` whether this Kubernetes has preStop hooks that sleep (1.30 on); `longest_lag` how late, in
    seconds, a
    change of endpoints may usually be, which may be more than what was seen; `disrupt` what was done; `path`
    what requests ask for. Advice whose patch does not hold is given without it."""
    never = joined(map(_never_answered, account.never_answered), "; ")
    if never and not account.control_lost:
        return Judgement("inconclusive", never, ())
    if (account.lost or account.control_lost) and (busy := _too_busy(account)):
        return Judgement("inconclusive", busy, ())
    run = Disruption(account, lives, owner, port, sleep_hooks, longest_lag, disrupt, path)
    early = too_early(run)
    explained = early is not None and early.saves == account.control_lost
    by_limit = early is not None and early.id == "connectionLimitCuts"
    if account.control_lost and (by_limit or not (explained and account.lost)):
        before = tell(
            "$count of $total requests were lost before anything was disrupted ($how)",
            count=account.control_lost,
            total=account.control_total,
            how=_control_losses(account),
        )
        if early is None:
            first = tell("$before: fix that first", before=before)
            return Judgement("inconclusive", joined([first, never], "; "), ())
        early = checked(early, owner)
        which = _of_them(said(early.id), early.saves, account.control_lost if explained else 0)
        return Judgement("inconclusive", with_advice(joined([before, which], ", "), early.sentence), (early,))
    unmeasured = _unmeasured(account)
    if unmeasured and not account.lost:
        return Judgement("inconclusive", tell("$what: try again on a machine that is less busy", what=unmeasured), ())
    share = tell("at most $most with 95 % confidence", most=percentage(account.upper_bound))
    if not account.lost:
        none = tell("none of $total requests was lost ($share)", total=account.total, share=share)
        return Judgement("nothing lost", none, ())
    causes = account.causes
    most, _ = causes[0]
    advice = tuple(checked(each, owner) for each in advise(run))
    if early is not None and not any(each.id == early.id for each in advice):
        advice = (*advice, checked(early, owner))
    lost = len(account.lost)
    facts = {"lost": lost, "total": account.total, "share": share}
    parts: list[str] = [
        tell("$lost of $total requests was lost ($share)", **facts)
        if lost == 1
        else tell("$lost of $total requests were lost ($share)", **facts),
        tell("it was $cause", cause=WHY[most])
        if lost == 1
        else joined([_of_them(WHY[cause], count, lost) for cause, count in causes[:MOST_NAMED]], ", "),
    ]
    if early is not None:
        parts.append(tell("$count more were before the disruption, when the Pods were started", count=early.saves))
    sentence = joined([*parts, unmeasured], "; ")
    return Judgement("requests lost", with_advice(sentence, advice[0].sentence) if advice else sentence, advice)


def _too_busy(account: Account) -> str:
    """Say that most requests came so late, or were measured so badly, that the others show nothing; "" for enough."""
    missed = account.held_up + len(account.unmeasured) + len(account.without_outcome)
    planned = account.total + account.control_total + len(account.unmeasured) + len(account.without_outcome)
    if missed * 2 <= planned:
        return ""
    return tell(
        "this machine was too busy: $missed of $planned requests could not be sent when they were due, or not be "
        "measured, so that the others show nothing: try a lower --load, or a machine that is less busy",
        missed=missed,
        planned=planned,
    )


def _of_them(why: str, count: int, lost: int) -> str:
    """Which of those that were lost had this cause."""
    return tell("all of them $why", why=why) if count == lost else tell("$count of them $why", count=count, why=why)


def with_advice(sentence: str, advice: str) -> str:
    """Return a verdict that ends with the first advice; in place of another one that it ended with."""
    if isinstance(sentence, Said) and sentence.template == "$sentence. $advice":
        sentence = fact_of(sentence, "sentence")
    return tell("$sentence. $advice", sentence=sentence, advice=advice)


def checked(advice: Advice, owner: dict[str, Any]) -> Advice:
    """Return the advice, without its patch where that does not hold for the owner."""
    return refused(advice, why_not(owner, advice.patch)) if advice.patch else advice


def refused(advice: Advice, why: str) -> Advice:
    """Return the advice without its patch; "" for why leaves it as it is."""
    if not why:
        return advice
    sentence = tell("$advice It cannot be tried here: $why.", advice=advice.sentence, why=why)
    return replace(advice, sentence=sentence, patch={}, refused=why)


ASKS: dict[Kind, str] = {
    "fresh": tell("set the path with --path, the port with --port"),
    "keep-alive": tell("set the path with --path, the port with --port"),
    "slow": tell("set the path with --slow-path"),
    "tcp": tell("each sends a line and expects the same line back, without HTTP"),
    "stream": tell("set the path with --stream-path"),
    "websocket": tell("set the path with --websocket-path"),
    "http2": tell("they are HTTP/2 with prior knowledge (h2c)"),
}


def _never_answered(never: NeverAnswered) -> str:
    facts = {"kind": never.kind, "how": never.lost, "ask": ASKS[never.kind]}
    if never.count == 1:
        return tell(
            "the only $kind request was not answered ($how), not even by Pods that nothing ended: check that the "
            "application speaks that kind ($ask)",
            **facts,
        )
    return tell(
        "none of $count $kind ones was answered ($how), not even by Pods that nothing ended: check that the "
        "application speaks that kind ($ask)",
        count=never.count,
        **facts,
    )


def _control_losses(account: Account) -> str:
    return ", ".join(f"{count} {kind}: {how}" for (kind, how), count in account.control_losses[:3])


def _unmeasured(account: Account) -> str:
    """What is not known because the client was held up; "" for all is known."""
    if account.without_outcome:
        count = len(account.without_outcome)
        return tell("1 request has no outcome") if count == 1 else tell("$count requests have no outcome", count=count)
    if not account.unmeasured:
        return ""
    longest = max(max(each.held_up, each.sent - each.planned) for each in account.unmeasured)
    count = len(account.unmeasured)
    if count == 1:
        return tell(
            "1 request was not measured, because the load generator itself was held up for $seconds s",
            seconds=f"{longest:.1f}",
        )
    return tell(
        "$count requests were not measured, because the load generator itself was held up for $seconds s",
        count=count,
        seconds=f"{longest:.1f}",
    )
