"""Latencies by phase, and when a control period has shown enough."""

import pytest

from lastcall.traffic.control import SLOW_START_SECONDS, Control, asks_the_application, unanswered
from lastcall.traffic.latency import Span, format_seconds, latencies, percentile
from lastcall.traffic.outcome import Outcome


def request(
    sent: float, took: float = 0.01, lost: str = "", kind: str = "fresh", planned: float | None = None
) -> Outcome:
    at = sent if planned is None else planned
    return Outcome(1, kind, at, sent, sent + took, 1, 0.0, 200, "10.1", lost)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "share", "value"),
    [(100, 0.5, 50), (100, 0.99, 99), (100, 1.0, 100), (1, 0.5, 1), (1, 0.99, 1), (2, 0.5, 1), (1000, 0.999, 999)],
)
def test_a_percentile_is_the_nearest_rank(count: int, share: float, value: int) -> None:
    assert percentile([float(each) for each in range(1, count + 1)], share) == value


def test_latencies_are_of_good_answers_by_the_phase_in_which_they_were_planned() -> None:
    outcomes = [
        request(5.0, 0.1),
        request(9.9, 0.3),  # under way when it began
        request(11.0, 0.2),
        request(12.0, 9.0, lost="timeout"),
        request(15.1, 0.4, planned=14.9),  # the generator was late
        request(15.5, 0.5),
        request(11.0, 5.0, kind="stream"),
    ]
    found = latencies([(outcomes, Span(10.0, 15.0))])
    assert {phase: list(kinds) for phase, kinds in found.items()} == {phase: ["fresh"] for phase in found}
    during = found["during"]["fresh"]
    assert (during.count, round(during.p50, 3), round(during.most, 3)) == (3, 0.3, 0.4)
    assert found["before"]["fresh"].count == found["after"]["fresh"].count == 1


def test_runs_are_pooled_request_by_request_not_percentile_by_percentile() -> None:
    quick = [request(11.0, 0.001) for _ in range(98)]
    slow = [request(111.0, 2.0) for _ in range(2)]
    found = latencies([(quick, Span(10.0, 15.0)), (slow, Span(110.0, 115.0))])["during"]["fresh"]
    assert (found.count, round(found.p50, 3), round(found.p99, 3)) == (100, 0.001, 2.0)


def test_the_clients_own_delay_is_taken_off_the_least_that_it_took() -> None:
    outcomes = [request(11.0, 0.5) for _ in range(10)]
    for each in outcomes:
        each.held_up = 0.4
    found = latencies([(outcomes, Span(10.0, 15.0))])["during"]["fresh"]
    assert (round(found.p99, 3), round(found.p99_least, 3)) == (0.5, 0.1)


def test_without_a_good_answer_there_is_no_latency() -> None:
    assert latencies([([request(11, lost="refused")], Span(10, 15))]) == {"before": {}, "during": {}, "after": {}}


@pytest.mark.parametrize(("seconds", "told"), [(0.00321, "3.21 ms"), (0.25, "250 ms"), (1.0, "1 s"), (12.34, "12.3 s")])
def test_a_latency_is_told_in_the_unit_that_people_read(seconds: float, told: str) -> None:
    assert format_seconds(seconds) == told


REFUSED = [request(100.0 + n / 10, 0.0, "refused") for n in range(10)]
GOOD = [request(100.0 + n / 10) for n in range(40)]
DECISIONS = [
    ("the period is not over", True, GOOD, 101.0, "wait"),
    ("all was answered", True, GOOD, 102.0, "go"),
    ("nothing was, by Pods that a probe calls Ready", True, REFUSED, 102.0, "stop"),
    ("one kind was not", True, [*GOOD, *(request(100.5, 0.0, "truncated", "tcp") for _ in range(3))], 102.0, "stop"),
    ("too few to say so", True, [*GOOD, request(100.5, 0.0, "truncated", "tcp")], 102.0, "go"),
    ("some were lost, by Pods with a probe", True, [*GOOD, *REFUSED], 102.0, "go"),
    ("nothing was, by Pods that may still start", False, REFUSED, 102.0, "wait"),
    ("nor after a long while", False, REFUSED, 100.0 + SLOW_START_SECONDS, "stop"),
    ("they have just begun to answer", False, [*REFUSED, request(101.2)], 102.0, "wait"),
    ("and lost nothing for a whole period", False, [*REFUSED, request(101.2)], 102.95, "go"),
    ("they lose some all the time", False, [*GOOD, request(129.9, 0.0, "refused")], 131.0, "go"),
    ("nothing is known yet, of answers that take long", True, [], 102.0, "go"),
]


@pytest.mark.parametrize(
    ("probed", "outcomes", "now", "decision"), [row[1:] for row in DECISIONS], ids=[row[0] for row in DECISIONS]
)
def test_the_control_period_decides(probed: bool, outcomes: list[Outcome], now: float, decision: str) -> None:
    assert Control(100.0, 2.0, probed).decide(outcomes, now) == decision


def test_kinds_without_a_good_answer_are_told_with_how_they_were_lost() -> None:
    lost = [request(1.0, 0.0, "refused"), request(1.1, 0.0, "refused"), request(1.2, 0.0, "timeout")]
    assert unanswered([*lost, request(1.0, kind="tcp")]) == {"fresh": {"refused": 2, "timeout": 1}}
    assert unanswered([*lost, request(1.3)]) == {}


def test_a_probe_that_only_connects_says_nothing_of_answers() -> None:
    assert not asks_the_application({"readinessProbe": {"tcpSocket": {"port": 80}}}, 80)
    assert not asks_the_application({"name": "app"}, 80)
    assert asks_the_application({"readinessProbe": {"httpGet": {"port": 80}}, "startupProbe": {"tcpSocket": {}}}, 80)


def test_a_probe_of_another_port_says_nothing_of_the_declared_one_that_requests_go_to() -> None:
    ports = [{"name": "http", "containerPort": 8080}, {"name": "mgmt", "containerPort": 8081}]
    container = {"ports": ports, "readinessProbe": {"httpGet": {"port": "mgmt"}}}
    assert not asks_the_application(container, "http")
    assert not asks_the_application(container, 8080)
    assert asks_the_application(container, "mgmt")
    assert asks_the_application(container, 9090), "a port that is not declared is a wrong targetPort: nobody waits"
    assert asks_the_application({**container, "readinessProbe": {"exec": {"command": ["true"]}}}, "http")
