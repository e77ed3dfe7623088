"""What a Pod with NET_RAW can say of its address, as root and as an ordinary user without a single capability."""

from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from scenario_process import answer_of

pytestmark = [pytest.mark.real_kernel, pytest.mark.core]

SCENARIO = Path(__file__).with_name("source_scenario.py")


@pytest.fixture(scope="module", params=ordinary_user.USERS)
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    return answer_of(SCENARIO, request.param)


def test_a_forged_source_of_ipv4_or_ipv6_reaches_neither_a_pod_nor_the_node(seen: dict[str, Any]) -> None:
    honest = [seen["honest"]]
    assert seen["checked"] == {"pod": honest, "node": honest, "ipv6": []}


def test_without_the_table_what_is_forged_would_arrive(seen: dict[str, Any]) -> None:
    """Or the test above would see nothing because nothing was sent."""
    arrived = [*seen["forged"], seen["honest"]]
    assert seen["unchecked"]["pod"] == seen["unchecked"]["node"] == arrived
    assert seen["unchecked"]["ipv6"] == ["fe80::bad", "fd00::2"]


def test_the_node_learns_nothing_from_a_pod_s_arp(seen: dict[str, Any]) -> None:
    assert seen["arp"] == []
    assert seen["arp of another link"] == ["10.244.0.2"], "as it would from any other link"


def test_the_next_node_process_checks_again(seen: dict[str, Any]) -> None:
    assert seen["checked again"] == seen["checked"]


def test_a_pod_that_is_detached_sends_no_more(seen: dict[str, Any]) -> None:
    assert seen["detached"] == [["10.244.0.2"], ["10.244.0.2"]]
