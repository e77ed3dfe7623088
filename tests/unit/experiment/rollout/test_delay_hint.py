"""Experiments that lost nothing say what they have not shown: endpoint changes that came at once hide a race."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.experiment.rollout.report import delay_hint
from lastcall.experiment.rollout.result import Result
from lastcall.traffic.account import account
from lastcall.traffic.advice import Judgement

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
