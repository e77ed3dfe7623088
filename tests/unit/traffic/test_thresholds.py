"""Limits: what they hold against, over all runs together, and what is told of them."""

import pytest

from lastcall.traffic.latency import Latency
from lastcall.traffic.thresholds import MaxLost, Pooled, Thresholds, check, holds


def pooled(lost: int, total: int = 1000, p99: float = 0.1, least: float | None = None) -> Pooled:
    slow = Latency(50, 1.0, 1.1, 1.2, 1.3, 1.2)
    during = {"fresh": Latency(total - lost, 0.01, 0.05, p99, 2.0, p99 if least is None else least), "slow": slow}
    return Pooled(3, 0, total, lost, {"before": {}, "during": during, "after": {}})  # type: ignore[dict-item]


HOLDS = [
    ("nothing was lost, and nothing was asked for", Thresholds(), pooled(0), True),
    ("without a limit none may be lost", Thresholds(), pooled(1), False),
    ("as many as the limit", Thresholds(MaxLost(3)), pooled(3), True),
    ("one more", Thresholds(MaxLost(3)), pooled(4), False),
    ("a share of them", Thresholds(MaxLost(0.01, share=True)), pooled(10), True),
    ("more than the share", Thresholds(MaxLost(0.01, share=True)), pooled(11), False),
    ("quick enough", Thresholds(None, {"fresh": 0.1}), pooled(0), True),
    ("too slow", Thresholds(None, {"fresh": 0.099}), pooled(0), False),
    ("one limit for all kinds", Thresholds(None, {"": 0.2}), pooled(0), False),
    ("and another for one of them", Thresholds(None, {"": 0.2, "slow": 2.0}), pooled(0), True),
    ("a limit for latencies forgives no loss", Thresholds(None, {"": 9.0}), pooled(1), False),
    ("of a kind that was not sent", Thresholds(None, {"tcp": 0.001}), pooled(0), True),
]


@pytest.mark.parametrize(("limits", "found", "good"), [row[1:] for row in HOLDS], ids=[row[0] for row in HOLDS])
def test_a_limit_holds_or_is_broken_by_what_was_counted(limits: Thresholds, found: Pooled, good: bool) -> None:
    assert holds(limits, found) is good


def test_a_limit_is_told_with_what_was_found_and_how_sure_that_is() -> None:
    lost, fresh, slow = check(Thresholds(MaxLost(0.001, share=True), {"": 0.2}), pooled(2))
    assert lost.sentence == ("max-lost: 2 of 1000 requests (0.2 %; at most 0.63 % with 95 %), limit 0.1 % — broken")
    assert fresh.sentence == "max-p99 fresh: 100 ms (of 998 good answers), limit 200 ms"
    assert slow.broken and slow.name == "max-p99 slow"


def test_a_latency_that_the_generators_own_delay_may_explain_breaks_no_limit() -> None:
    (fresh,) = check(Thresholds(None, {"fresh": 0.2}), pooled(0, p99=0.5, least=0.15))
    assert fresh.unsure and not fresh.broken and "the load generator itself was held up" in fresh.sentence
    (fresh,) = check(Thresholds(None, {"fresh": 0.2}), pooled(0, p99=0.5, least=0.3))
    assert fresh.broken and not fresh.unsure


def test_only_what_was_asked_for_is_told() -> None:
    assert check(Thresholds(), pooled(5)) == []


def test_the_bound_is_that_of_all_runs_together() -> None:
    assert pooled(0, 3000).upper_bound == pytest.approx(0.001, rel=0.01)
