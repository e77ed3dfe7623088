"""Experiments that lost nothing say what they have not shown: endpoint changes that came at once hide a race, and
streams that the client left hide an application that waits for them."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.experiment.rollout.report import delay_hint, stream_hint
from lastcall.experiment.rollout.result import Result
from lastcall.traffic.account import account
from lastcall.traffic.lives import PodLife
from lastcall.traffic.moments import Moment
from lastcall.traffic.outcome import Kind, Moved, Outcome
from lastcall.traffic.verdict import Judgement

WELL = Result(
    account=account([], [], [], 0.0),
    judgement=Judgement("nothing lost", "none of 100 requests was lost", ()),
    lives=[],
    outcomes=[],
    owner={},
    what="Deployment web",
    service="web",
    disrupt="rollout",
    propagation="0s",
    source="node",
    began=1.0,
    seconds=2.0,
)


def test_nothing_lost_without_a_delay_names_the_option_and_why() -> None:
    hint = delay_hint([WELL, WELL])
    assert hint.endswith("Try --propagation 1s") and "closes its port at once loses requests" in hint


@pytest.mark.parametrize(
    "change",
    [
        {"propagation": "1s"},
        {"propagation": ""},
        {"judgement": Judgement("requests lost", "1 of 100 requests was lost", ())},
        {"judgement": Judgement("inconclusive", "none was answered", ())},
        {"unheard": True},
    ],
)
def test_what_had_a_delay_or_lost_requests_names_none(change: dict[str, Any]) -> None:
    assert delay_hint([WELL, replace(WELL, **change)]) == ""


ENDED = PodLife("u", ip="10.244.0.2", term=Moment.at(10.0), exited=Moment.at(15.0))
OWNER = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 6}}}}


def stream(sent: float, finished: float, moved: Moved | None = None, kind: Kind = "stream") -> Outcome:
    return Outcome(1, kind, sent, sent, finished, 1, 0.0, 200, ENDED.ip, "", moved=moved or "")


def with_streams(*outcomes: Outcome, **change: Any) -> Result:
    return replace(WELL, lives=[ENDED], outcomes=list(outcomes), owner=OWNER, **change)


def test_streams_that_the_client_left_while_their_pod_ended_prove_nothing_and_a_longer_one_is_advised() -> None:
    hint = stream_hint([WELL, with_streams(stream(9, 14), stream(8, 13), stream(9.5, 14.5, kind="websocket"))])
    assert hint == (
        "not tested: 3 streams that were open at the stop signal ended because the client left them. Whether the "
        "application ends its streams itself, or waits for them until SIGKILL, shows with longer ones. "
        "Try --stream-length 36s"
    )


@pytest.mark.parametrize(
    "result",
    [
        with_streams(stream(2, 7)),
        with_streams(stream(11, 16)),
        with_streams(stream(9, 11, "ended early")),
        with_streams(stream(9, 14), stream(9, 11, "ended early")),
        with_streams(stream(9, 14, kind="fresh")),
        with_streams(stream(9, 14), judgement=Judgement("requests lost", "1 of 100 requests was lost", ())),
        with_streams(),
    ],
)
def test_streams_that_the_stop_did_not_meet_are_no_matter_nor_any_once_one_showed_how_the_server_ends_it(
    result: Result,
) -> None:
    assert stream_hint([result]) == ""
