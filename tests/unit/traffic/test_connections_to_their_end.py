"""Connections that a server never ends until it is killed, and those that it cuts at a limit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rollout_lives import pod_life

from lastcall.traffic.account import Account, account
from lastcall.traffic.connection_use import Limit
from lastcall.traffic.lives import Outage, PodLife
from lastcall.traffic.moments import Moment
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.verdict import Judgement, judge

OWNER: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "terminationGracePeriodSeconds": 6,
                "containers": [{"name": "app", "image": "app:1", "ports": [{"containerPort": 8080}]}],
            },
        },
    },
}


def pod(**times: Any) -> PodLife:
    """A Pod that is deleted at 8, gets SIGTERM at 10 and is killed at 14."""
    usual = {"ready": 0.5, "routed": 1.0, "deleted": 8.0, "term": 10.0, "exited": 14.0, "unrouted": 9.0, "killed": True}
    return pod_life("e", name="web-1", ip="10.244.0.2", **(usual | times))


def paced(first: float, last: float, gap: float, end: float, took: float, kind: str = "http2",
          connection: int = 1) -> Iterator[Outcome]:  # fmt: skip
    """Requests of one connection, one each `gap` s, which is cut at `end`."""
    for number in range(round((last - first) / gap) + 1):
        sent = first + number * gap
        lost = "truncated" if sent + took > end else ""
        yield Outcome(number + 1, kind, sent, sent, min(sent + took, end), connection, sent - first,  # type: ignore[arg-type]
                      200, "10.244.0.2", lost)  # type: ignore[arg-type]  # fmt: skip


def judged(outcomes: list[Outcome], ending: PodLife, disrupted: float = 8.0) -> tuple[Account, Judgement]:
    outcomes = [replace(each, id=number) for number, each in enumerate(outcomes, 1)]
    found = account(outcomes, [ending], [], disrupted)
    return found, judge(found, [ending], OWNER, 8080)


@pytest.mark.parametrize(("kind", "program", "words"), [
    ("http2", "endStreams", "send GOAWAY on SIGTERM"),
    ("keep-alive", "closeIdleConnections", "answer `Connection: close` from SIGTERM on"),
])  # fmt: skip
def test_a_connection_that_carries_requests_until_the_kill_is_not_given_more_time(
    kind: str, program: str, words: str
) -> None:
    found, told = judged(list(paced(5.0, 13.9, 0.2, 14.0, 0.3, kind)), pod())
    assert {each.cause for each in found.lost} == {"held open"}
    (advice,) = told.advice
    assert (advice.id, advice.program, advice.patch) == ("connectionsOpenAtKill", program, {})
    assert words in advice.sentence and "terminationGracePeriodSeconds" not in told.sentence


@pytest.mark.parametrize("last", [9.8, 10.005, 10.6], ids=["before SIGTERM", "at SIGTERM", "soon after SIGTERM"])
def test_long_answers_on_a_connection_that_its_client_left_are_given_more_time(last: float) -> None:
    found, told = judged(list(paced(last - 4.0, last, 0.2, 14.0, 5.0)), pod())
    assert {each.cause for each in found.lost} == {"killed"}
    assert [each.id for each in told.advice] == ["requestKilled"] and told.advice[0].patch


def in_turn(counts: list[int], gap: float = 0.1, took: float = 0.25) -> list[Outcome]:
    """Connections one after the other, each cut a moment after its last request."""
    found: list[Outcome] = []
    begin = 1.0
    for number, count in enumerate(counts, 1):
        last = begin + (count - 1) * gap
        found += paced(begin, last, gap, last + 0.05, took, connection=number)
        begin = last + 0.06
    return found


def test_a_server_that_cuts_each_connection_after_as_many_requests_is_named_before_a_disruption() -> None:
    found, told = judged(in_turn([10, 11, 10, 10]), pod(), disrupted=7.0)
    assert (found.cut_at_limit, found.control_lost, found.limit) == (10, 10, Limit("requests", 10.0))
    assert told.verdict == "inconclusive"
    (advice,) = told.advice
    assert (advice.id, advice.program, advice.patch) == ("connectionLimitCuts", "finishRequests", {})
    assert "after about 10 requests" in advice.sentence and "GOAWAY" in advice.sentence
    assert "all of them cut off by a Pod that nothing ended" in told.sentence


def test_a_server_that_cuts_each_connection_at_an_age_is_named_in_a_disruption() -> None:
    outcomes: list[Outcome] = []
    for number, gap in enumerate((0.1, 0.05, 0.2, 0.04), 1):
        begin, end = 1.0 + 1.5 * number, 2.0 + 1.5 * number
        outcomes += paced(begin, end - gap, gap, end, 0.3, connection=number)
    found, told = judged(outcomes, pod(deleted=20.0, term=20.0, exited=20.1, unrouted=20.0, killed=False), 1.0)
    assert {each.cause for each in found.lost} == {"cut at a limit"}
    assert found.limit is not None and (found.limit.of, round(found.limit.value, 2)) == ("seconds", 1.0)
    (advice,) = told.advice
    assert advice.id == "connectionLimitCuts" and "after about 1 s" in advice.sentence


SAME = in_turn([10, 10, 10, 10])


@pytest.mark.parametrize(("outcomes", "ending"), [
    (in_turn([10, 10, 10]), pod()),
    (in_turn([10, 17, 6, 12]), pod()),
    (in_turn([1, 1, 1, 1], took=0.01), pod()),
    ([replace(each, connection=n, sent=each.sent + n / 1000) for n in range(1, 6) for each in in_turn([10])], pod()),
    ([replace(each, lost=each.lost and "timeout") for each in SAME], pod()),
    ([replace(each, served_by="") for each in SAME], pod()),
    (SAME, pod(deleted=0.6, term=0.7, exited=4.0, killed=False)),
    (SAME, pod(outages=[Outage(Moment.at(1.5), Moment.at(6.0))])),
], ids=["too few", "not alike", "nothing was under way", "all at once", "not closed", "of no known Pod", "its Pod had "
        "ended", "its Pod was down"])  # fmt: skip
def test_connections_that_show_no_limit_are_not_said_to_have_one(outcomes: list[Outcome], ending: PodLife) -> None:
    found, told = judged(outcomes, ending, 7.0)
    assert (found.limit, found.cut_at_limit) == (None, 0)
    assert all(each.id != "connectionLimitCuts" for each in told.advice)


def test_what_is_to_be_said_on_a_stale_connection_is_filed_under_that() -> None:
    late = [replace(each, lost="closed before bytes") for each in paced(12.0, 12.1, 0.1, 12.15, 0.2)]
    found, told = judged(late, pod(exited=12.15, killed=False))
    assert {each.cause for each in found.lost} == {"stale connection"}
    assert [(each.id, "GOAWAY" in each.sentence) for each in told.advice] == [("staleConnection", True)]
