"""What a Pod's end means for each kind of load: seen in a run, and the rule that predicts from it."""

from typing import Any

import pytest
from rollout_lives import pod_life

from lastcall.traffic.find_safe import MeasuredEnd
from lastcall.traffic.kind_ends import KindEnd, combine, drains, measure_kinds, probe_lag, short_seconds
from lastcall.traffic.lives import PodLife
from lastcall.traffic.outcome import Outcome

POD = "10.244.0.2"


def life() -> PodLife:
    """Deleted at 10, its stop signal at 12, its exit at 13."""
    return pod_life(
        "u", name="web-1", ip=POD, deleted=10.0, hook=10.0, stop=12.0, term=12.0, exited=13.0, unrouted=10.1
    )


def sent(kind: Any, at: float, until: float, number: int = 1, **more: Any) -> Outcome:
    return Outcome(number, kind, at, at, until, 1, 0.0, 200, POD, "", **more)


STOPS = [
    ("over before the stop signal: nobody knows", sent("slow", 10, 11), None, ("unknown", 0)),
    ("begun after it: neither", sent("slow", 12.2, 12.9), None, ("unknown", 0)),
    ("under way and answered", sent("slow", 11.5, 12.5), None, ("answered", 1)),
    ("under way and cut off", sent("slow", 11.5, 12.5), "cut off", ("lost", 1)),
    ("under way and never read", sent("tcp", 11.9, 12.5), "never read", ("lost", 1)),
    ("under way until it was killed: it was at it", sent("slow", 11.5, 13), "killed", ("answered", 1)),
    ("told to go elsewhere", sent("websocket", 9, 12.1, moved="going away"), None, ("answered", 1)),
    ("refused: of connections, not of what is under way", sent("slow", 12.5, 12.5), "late endpoint", ("unknown", 0)),
    ("a kept connection that was there", sent("keep-alive", 11.9, 11.91), None, ("answered", 1)),
    ("one that was not used lately", sent("keep-alive", 10.1, 10.2), None, ("unknown", 0)),
    ("a kept one that was closed", sent("keep-alive", 12.5, 12.6), "stale connection", ("lost", 1)),
]


@pytest.mark.parametrize(("outcome", "cause", "found"), [row[1:] for row in STOPS], ids=[row[0] for row in STOPS])
def test_what_becomes_of_requests_at_a_stop_signal(outcome: Outcome, cause: Any, found: tuple[str, int]) -> None:
    (kind,) = measure_kinds([outcome.kind], [outcome], {1: cause} if cause else {}, [life()])
    assert (kind.at_stop, kind.seen) == found


def test_one_that_was_lost_outweighs_all_that_were_answered() -> None:
    outcomes = [sent("slow", 11.5, 12.5, number) for number in range(1, 21)]
    (kind,) = measure_kinds(["slow"], outcomes, {7: "cut off"}, [life()])
    assert (kind.at_stop, kind.seen) == ("lost", 20)


def test_an_answer_takes_what_nearly_all_take() -> None:
    outcomes = [sent("fresh", 5, 5.01, number) for number in range(1, 100)] + [sent("fresh", 5, 6, 100)]
    (kind,) = measure_kinds(["fresh"], outcomes, {}, [life()])
    assert kind.took == pytest.approx(0.01) and kind.quick and kind.finished
    (silent,) = measure_kinds(["slow"], outcomes, {}, [life()])
    assert silent == KindEnd("slow", 0.0)


def test_two_runs_know_more_than_one() -> None:
    first = (KindEnd("slow", 1.0), KindEnd("fresh", 0.01))
    second = (KindEnd("slow", 1.2, "answered", 4), KindEnd("fresh", 0.02))
    assert combine(first, second) == (KindEnd("slow", 1.2, "answered", 4), KindEnd("fresh", 0.02))
    assert combine(second, (KindEnd("slow", 1.0, "lost", 1),))[0] == KindEnd("slow", 1.2, "lost", 5)


END = MeasuredEnd(to_hook=0.1, to_term=5.0, accepts=0.0, drains=0.2, own_lag=0.1, killed=False)
FRESH = KindEnd("fresh", 0.01)
RULES = [
    ("a new connection needs a listener", FRESH, 4.9, None, 30, 0.0),
    ("beyond that it is too late", FRESH, 5.4, None, 30, 0.5),
    ("a longer sleep helps", FRESH, 5.4, 7.0, 30, -1.6),
    ("what is cut off has to be over by the stop signal", KindEnd("slow", 1.0, "lost", 3), 4.4, None, 30, 0.5),
    ("what nobody saw is taken to be cut off", KindEnd("slow", 1.0), 4.4, None, 30, 0.5),
    ("what is finished has to be over by the grace period", KindEnd("slow", 26.0, "answered"), 4.9, None, 30, 1.0),
    ("and fits when it does", KindEnd("slow", 20.0, "answered"), 4.9, None, 30, 0.0),
    ("an open connection that is said goodbye to", KindEnd("http2", 0.5, "answered"), 4.9, None, 30, 0.0),
    ("one that is not is lost whatever the lag", KindEnd("keep-alive", 0.01, "lost"), 0.0, None, 30, 0.1),
]


@pytest.mark.parametrize(
    ("kind", "lag", "sleep", "grace", "short"), [row[1:] for row in RULES], ids=[row[0] for row in RULES]
)
def test_the_rule_says_by_how_much_an_end_is_too_early(
    kind: KindEnd, lag: float, sleep: float | None, grace: float, short: float
) -> None:
    assert short_seconds(END, kind, lag, grace, sleep) == pytest.approx(short)


def test_a_second_run_is_asked_for_where_the_first_saw_nothing_under_way() -> None:
    lag = probe_lag(END, [FRESH, KindEnd("slow", 2.0), KindEnd("stream", 8.0)], others=0.4)
    assert lag == pytest.approx(5.0 - 0.1 - 0.4 - 0.5)  # the shortest of them is under way for certain
    assert probe_lag(END, [FRESH, KindEnd("slow", 2.0, "lost", 1), KindEnd("http2", 0.5)], 0.0) is None
    at_once = MeasuredEnd(to_hook=0.0, to_term=0.1, accepts=0.0, drains=0.0, own_lag=0.1, killed=False)
    assert probe_lag(at_once, [KindEnd("slow", 2.0)], 0.0) is None


def test_an_application_drains_until_its_last_answer() -> None:
    assert drains(END, [FRESH, KindEnd("slow", 2.0, "lost", 1)]) == 0.2
    assert drains(END, [FRESH, KindEnd("slow", 2.0, "answered", 1)]) == 2.0
