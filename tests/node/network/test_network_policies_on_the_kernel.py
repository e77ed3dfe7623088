"""What the rules of NetworkPolicies do to packets, as root and as an ordinary user without a single capability."""

from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from scenario_process import answer_of

pytestmark = [pytest.mark.real_kernel, pytest.mark.core]

SCENARIO = Path(__file__).with_name("network_policy_scenario.py")


@pytest.fixture(scope="module", params=ordinary_user.USERS)
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    return answer_of(SCENARIO, request.param)


def test_without_a_policy_everybody_is_reached(seen: dict[str, Any]) -> None:
    assert seen["free"] == ["server", "bad"]


def test_an_isolated_pod_receives_what_is_allowed_and_what_its_node_and_itself_send(seen: dict[str, Any]) -> None:
    assert seen["ingress"] == {
        "good": "server",
        "goodOtherPort": "TimeoutError",
        "bad": "TimeoutError",
        "udp": "TimeoutError",
        "node": "server",
        "itself": "server",
        "outside": "TimeoutError",
        "sends": "bad",
        "standing": "server",
    }


def test_an_isolated_pod_sends_what_is_allowed_and_answers(seen: dict[str, Any]) -> None:
    """The block names the API server's endpoint, so its Service is reached; a Pod's own node always is."""
    assert seen["egress"] == {
        "excepted": "TimeoutError",
        "pod": "TimeoutError",
        "api": "api",
        "ownNode": "ConnectionRefusedError",
        "receives": "server",
    }


def test_a_range_of_ports_and_both_ends_of_a_connection_decide(seen: dict[str, Any]) -> None:
    assert seen["range"] == {"outside": "outside", "api": "TimeoutError", "pod": "TimeoutError"}


def test_five_thousand_excepts_are_enforced_and_changed(seen: dict[str, Any]) -> None:
    """10.0.0.0/25, 10.0.1.0/25 … 10.19.135.0/25; Pods are in 10.244.0.0/24."""
    assert seen["0 excepted"] == ["server", "server"]
    assert seen["1 excepted"] == ["TimeoutError", "server"]
    assert seen["fewer excepts"] == "server"


def test_with_the_last_policy_everybody_is_reached_again_and_no_table_is_left(seen: dict[str, Any]) -> None:
    assert seen["none"] == "server"
    assert not seen["stands"]
