"""Causes of lost requests on somebody's cluster: claimed where bounds and the clocks' errors leave no other."""

import math
from dataclasses import replace

import pytest
from rollout_lives import pod_life

from lastcall.traffic.account import Account, account
from lastcall.traffic.lives import Outage, PodLife
from lastcall.traffic.lost_request import LostRequest
from lastcall.traffic.moments import Moment
from lastcall.traffic.outcome import Kind, Lost, Outcome
from lastcall.traffic.through_api import (
    Traced,
    explained,
    listens_when_ready,
    reached,
    reasons,
    silent_before,
    with_causes,
    with_lags,
)

BEGAN = 100.0
DOWN = Outage(Moment(101.5, math.inf), Moment(101.5, math.inf))
PRINTED = {"old-1": {7: 1}}


def lost(
    how: Lost = "refused", at: float = 102.0, *, number: int = 7, kind: Kind = "fresh", sent: float | None = None
) -> LostRequest:
    sent = at - 0.001 if sent is None else sent
    outcome = Outcome(number, kind, sent, sent, at, 0, 0.0, 0, "", how)
    (found,) = account([outcome], [], (), 0.0).lost
    return found


def ending(name: str = "old-1", deleted: float = 101.0, exited: float = 101.2, **more: object) -> PodLife:
    """A Pod whose DELETE was seen 20 ms after it was sent, and that had ended by `exited`."""
    began = Moment(deleted - 0.02, deleted)
    stop = Moment(deleted - 0.02, min(deleted + 0.05, exited))
    known = {"deleted": began, "term": stop, "exited": Moment(stop.earliest, exited)}
    return pod_life(name, name, "10.0.0.1", ready=0.0, **(known | more))


def staying(name: str = "old-2") -> PodLife:
    return pod_life(name, name, "10.0.0.2", ready=0.0)


def traced(*pods: PodLife, error: float = 0.002, **more: object) -> Traced:
    known = {"since": 90.0, "error": error, "probed": True}
    return Traced(pods, **(known | more))  # type: ignore[arg-type]


def test_what_was_refused_after_a_pods_end_while_others_were_ready_was_sent_too_late() -> None:
    found = explained(lost(), traced(ending(), staying()))
    assert (found.cause, found.pod, found.not_known) == ("late endpoint", "old-1", "")


def test_of_two_pods_that_had_ended_the_cause_is_known_and_not_which_it_was() -> None:
    found = explained(lost(), traced(ending(), ending("old-3"), staying()))
    assert (found.cause, found.pod) == ("late endpoint", "")


@pytest.mark.parametrize(
    ("error", "cause", "why"),
    [(0.005, "late endpoint", ""), (0.8, "late endpoint", ""), (1.2, "not seen", "aligned to ± 1200.0 ms")],
)
def test_within_the_clocks_error_no_cause_is_claimed(error: float, cause: str, why: str) -> None:
    found = explained(lost(at=102.0), traced(ending(deleted=101.0), staying(), error=error))
    assert found.cause == cause and why in found.not_known


def test_before_any_end_nothing_explains_a_refusal() -> None:
    assert explained(lost(at=100.5), traced(ending(), staying())).cause == "unexplained"


@pytest.mark.parametrize(
    ("pods", "more", "why"),
    [
        ([ending()], {}, "nodes may have had no Pod"),
        ([ending(), staying()], {"whole_service": False}, "nodes may have had no Pod"),
        ([ending(), pod_life("new", "new", ready=103.0)], {}, "nodes may have had no Pod"),
        (
            [ending(), staying(), pod_life("new", "new", created=101.5, ready=101.6)],
            {"probed": False},
            "may not have listened yet",
        ),
        (
            [ending(), pod_life("b", "b", ready=0.0, outages=[DOWN]), staying()],
            {},
            "was started again",
        ),
        ([ending(), staying()], {"failed": True}, "could not be followed"),
    ],
)
def test_where_something_else_fits_too_it_is_not_known(pods: list[PodLife], more: dict[str, object], why: str) -> None:
    found = explained(lost(), traced(*pods, **more))
    assert found.cause == "not seen" and why in found.not_known


def test_just_at_a_delete_the_clocks_are_what_is_told_and_no_other_pod() -> None:
    found = explained(lost(at=100.979), traced(ending(deleted=101.0), staying()))
    assert found.cause == "not seen" and "whether it was before or after" in found.not_known


def test_a_pod_that_sleeps_in_its_hook_still_listens_and_has_refused_nothing() -> None:
    sleeping = ending(exited=107.0, term=Moment(105.98, 107.0))
    assert explained(lost(at=103.0), traced(sleeping, staying())).cause == "unexplained"
    assert explained(lost(at=106.5), traced(sleeping, staying())).cause == "late endpoint"


def test_a_connect_that_nobody_answers_is_an_endeds_only_where_others_never_did_that() -> None:
    late = lost("connect timeout", 103.0, sent=102.0)
    assert explained(late, traced(ending(), staying())).cause == "late endpoint"
    other = explained(late, traced(ending(), staying(), silent_before=True))
    assert other.cause == "not seen" and "nothing answered its connect" in other.not_known
    early = lost("connect timeout", 99.0, sent=98.0).outcome
    assert silent_before([early], BEGAN, 0.1) and not silent_before([late.outcome], BEGAN, 0.1)


def test_a_connect_that_a_listening_pod_did_not_answer_at_once_was_not_sent_to_it() -> None:
    """It was only waited for when the Pod ended: something else has lost it."""
    sleeping = ending(exited=106.9, term=Moment(106.65, 106.7))
    at_once = lost("connect timeout", 109.0, sent=106.0)
    assert explained(at_once, traced(sleeping, staying())).cause == "unexplained"
    unreachable = lost("unreachable", 109.0, sent=106.0)
    assert explained(unreachable, traced(sleeping, staying())).cause == "unexplained"
    after = lost("connect timeout", 110.0, sent=107.0)
    assert explained(after, traced(sleeping, staying())).cause == "late endpoint"


@pytest.mark.parametrize(
    ("others", "passed", "cause"),
    [(1, 9, "late endpoint"), (1, 10, "not seen"), (3, 24, "late endpoint"), (3, 25, "not seen")],
)
def test_rules_that_sent_many_connections_to_others_and_none_to_a_pod_no_longer_named_it(
    others: int, passed: int, cause: str
) -> None:
    """With one other Pod half of them would have gone to it, with three a quarter: (3/4)^25 is less than 0.001."""
    pods = [ending(exited=101.2), *(staying(f"other-{number}") for number in range(others))]
    known = traced(*pods, reached=[101.3 + 0.01 * number for number in range(passed)])
    found = account([lost(at=102.0, number=1).outcome, lost(at=105.0, number=2).outcome], [], (), BEGAN)
    assert {each.cause for each in with_causes(found, known).lost} == {cause}


def test_while_they_sent_to_it_they_named_it_and_once_they_had_left_it_they_do_not_come_back() -> None:
    times = (101.3, 101.4, 101.5, 105.0, 105.1)
    outcomes = [lost(at=at, number=number).outcome for number, at in enumerate(times, 1)]
    passed = sorted([101.35, 101.36, 101.45, *(101.6 + 0.1 * number for number in range(40))])
    known = traced(ending(), staying(), reached=passed)
    found = with_causes(account(outcomes, [], (), BEGAN), known)
    assert [each.cause for each in found.lost] == ["late endpoint"] * 3 + ["not seen"] * 2
    assert "nodes no longer knew the ended ones" in found.lost[-1].not_known


def test_connects_that_were_taken_count_and_requests_on_old_connections_do_not() -> None:
    fine = [replace(lost(number=number, at=at, kind=kind).outcome, lost="") for number, at, kind in
            ((1, 103.0, "fresh"), (2, 102.0, "tcp"), (3, 101.0, "keep-alive"))]  # fmt: skip
    assert reached([*fine, lost("5xx", number=4, at=104.0).outcome, lost(number=5).outcome]) == pytest.approx(
        [101.999, 102.999, 103.999]
    )


def test_what_did_not_take_a_connect_at_a_url_may_be_no_pod() -> None:
    found = explained(lost(), traced(ending(), staying(), direct=False))
    assert found.cause == "not seen" and "what answers at the URL" in found.not_known


def test_a_request_that_had_a_connection_is_explained_by_the_pod_that_printed_it() -> None:
    reset = lost("reset before bytes", 101.5, sent=101.1)
    assert "which Pod" in explained(reset, traced(ending(), staying())).not_known
    pod = ending(exited=101.4, term=Moment(100.98, 101.02))
    found = explained(reset, traced(pod, staying(), printed=PRINTED))
    assert (found.cause, found.pod, found.seen) == ("cut off", "old-1", "begun")
    killed = ending(exited=101.4, term=Moment(100.98, 101.02), killed=True)
    assert explained(reset, traced(killed, printed=PRINTED)).cause == "killed"
    vague = ending(exited=102.4)  # it may have been alive when the request was lost
    vague.term = Moment(100.98, 102.4)
    found = explained(reset, traced(vague, printed=PRINTED))
    assert (found.cause, found.pod) == ("not seen", "old-1") and "stop signal" in found.not_known


def test_an_error_that_was_answered_is_what_it_is_also_where_nothing_is_followed() -> None:
    assert explained(lost("5xx"), traced(failed=True)).cause == "server error"


def test_reasons_are_counted_and_the_lag_is_at_least_what_was_refused() -> None:
    outcomes = [lost(at=at, number=number).outcome for number, at in enumerate((101.5, 102.0, 101.005), 1)]
    found = with_causes(account(outcomes, [], (), BEGAN), traced(ending(), staying(), error=0.05))
    assert isinstance(found, Account) and found.not_followed
    assert dict(found.causes) == {"late endpoint": 2, "not seen": 1}
    ((why, count),) = reasons(found)
    assert count == 1 and "± 50.0 ms" in why
    (life,) = with_lags(found, [pod_life("u", "old-1", deleted=101.0)])
    assert life.routing_lag == pytest.approx(0.999)


def test_a_probe_of_the_port_proves_that_a_ready_pod_listens() -> None:
    ports = [{"name": "http", "containerPort": 8080}]
    assert listens_when_ready({"ports": ports, "readinessProbe": {"httpGet": {"port": "http"}}}, 8080)
    assert listens_when_ready({"ports": ports, "startupProbe": {"tcpSocket": {"port": 8080}}}, "http")
    assert not listens_when_ready({"ports": ports, "readinessProbe": {"httpGet": {"port": 9090}}}, 8080)
    assert not listens_when_ready({"readinessProbe": {"exec": {"command": ["true"]}}}, 8080)
    assert not listens_when_ready({}, 8080)
