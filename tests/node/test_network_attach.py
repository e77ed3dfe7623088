"""The Pod network on the real kernel, as root and as an ordinary user without a single capability."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ordinary_user
import pytest

pytestmark = pytest.mark.real_kernel

SCENARIO = Path(__file__).with_name("network_scenario.py")


@pytest.fixture(params=ordinary_user.USERS)
def run(request: pytest.FixtureRequest) -> Any:
    """Run one scenario as the user of the tests and, when that is root, as uid 65534 without capabilities."""
    prefix = ordinary_user.command_prefix(request.param)

    def run(scenario: str) -> dict[str, Any]:
        command = [*prefix, sys.executable, str(SCENARIO), scenario]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd="/", check=False)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        if prefix:
            assert int(answer["capEff"], 16) == 0
        return answer

    return run


def test_pods_reach_each_other_themselves_the_services_and_the_node_reaches_them(run: Any) -> None:
    seen = run("traffic")
    assert seen["ips"] == ["10.244.0.2", "10.244.0.3"]
    assert seen["nodeToPod"]["peer"] == "172.18.0.2", "the node's own address is the source"
    assert seen["podToPod"]["peer"] == "10.244.0.2"
    assert seen["podToSelf"]["peer"] == "10.244.0.2"
    assert seen["podToService"]["peer"] == "10.244.0.3"
    assert {seen[name]["echoed"] for name in ("nodeToPod", "podToPod", "podToSelf", "podToService")} == {"ping"}


def test_the_first_packet_in_each_direction_arrives(run: Any) -> None:
    """A link whose queue the kernel has not activated yet drops: a first connect would take a second longer."""
    seen = run("first_packets")
    assert (seen["toPod"], seen["toNode"]) == (0, 0)


def test_the_pod_has_lo_and_eth0_and_the_link_local_gateway(run: Any) -> None:
    seen = run("traffic")
    assert seen["podInterfaces"] == ["eth0", "lo"]
    assert sorted(seen["podRoutes"]) == ["0.0.0.0", "169.254.1.1"]


def test_attaching_twice_gives_the_same_address_and_the_process_stays_in_its_namespace(run: Any) -> None:
    seen = run("traffic")
    assert seen["again"] == seen["ips"][0]
    assert seen["sameNamespace"]


def test_detach_drops_the_route_at_once_and_the_link_ends_with_the_namespace(run: Any) -> None:
    seen = run("teardown")
    assert seen["attached"] == [seen["ip"]]
    assert seen["detached"] == []
    assert seen["interfaces"] == ["lo"]


def test_an_address_without_a_pod_swallows_what_it_is_sent(run: Any) -> None:
    """What the kernel refused to route, TCP would send again a second later, to the endpoint the rules name then."""
    assert run("teardown")["gone"] == "TimeoutError"


@pytest.mark.rule("node-semantics 22.2/del")
def test_repeated_and_unknown_detaches_are_harmless_and_the_address_is_not_reused_at_once(run: Any) -> None:
    seen = run("teardown")
    assert seen["next"] != seen["ip"]


def test_a_late_detach_does_not_cut_the_address_s_next_owner_off(run: Any) -> None:
    seen = run("late")
    assert seen["reused"] == seen["ip"]
    assert seen["routes"] == [seen["ip"]]


@pytest.mark.rule("node-semantics 22.2/add")
def test_an_attach_that_fails_leaves_neither_link_nor_address_behind(run: Any) -> None:
    seen = run("refused")
    assert seen["interfaces"] == ["lo", "vethbbbbbbbbbbb"]
    assert "create veth" in seen["errors"][0]
    assert "File exists" in seen["errors"][1]
    assert seen["used"] == 1


def test_a_full_range_is_an_error_with_the_range_and_a_freed_address_serves_again(run: Any) -> None:
    seen = run("exhausted")
    assert seen["ips"] == [f"10.244.0.{n}" for n in range(2, 7)]
    assert seen["error"] == (
        "failed to setup network for sandbox: no IP addresses available in range set: "
        "10.244.0.2-10.244.0.6 (all 5 are in use by Pods)"
    )
    assert seen["reused"] == "10.244.0.3"


def test_a_cancelled_attach_can_be_detached_and_a_restarted_node_adopts(run: Any) -> None:
    seen = run("recovery")
    assert seen["afterCancel"] == []
    assert seen["adopted"] == "10.244.0.9"
    assert seen["next"] == "10.244.0.10"
    assert seen["routes"] == ["10.244.0.10"]
