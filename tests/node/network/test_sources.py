"""What a Pod with NET_RAW can say of its address, as root and as an ordinary user without a single capability."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ordinary_user
import pytest

pytestmark = [pytest.mark.real_kernel, pytest.mark.core]

SCENARIO = Path(__file__).with_name("source_scenario.py")


@pytest.fixture(scope="module", params=ordinary_user.USERS)
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    command = [*ordinary_user.command_prefix(request.param), sys.executable, str(SCENARIO)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


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
