"""hostPort on the real kernel, as root and as an ordinary user without a single capability."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ordinary_user
import pytest

pytestmark = pytest.mark.real_kernel

SCENARIO = Path(__file__).with_name("host_port_scenario.py")


@pytest.fixture(params=ordinary_user.USERS)
def run(request: pytest.FixtureRequest) -> Any:
    def run(scenario: str) -> dict[str, Any]:
        command = [*ordinary_user.command_prefix(request.param), sys.executable, str(SCENARIO), scenario]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd="/", check=False)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return run


def test_a_port_of_the_node_leads_to_the_pod_from_wherever_it_is_asked(run: Any) -> None:
    seen = run("traffic")
    _, second = seen["ips"]
    assert seen["node"] == "first to 172.18.0.2"
    assert seen["loopback"] == "first to 172.18.0.2", "an answer to 127.0.0.1 would stay in the Pod"
    assert seen["pod"] == f"first to {second}"
    assert seen["otherNode"] == "first to 172.18.0.3"
    assert seen["itself"] == "first to 172.18.0.2", "hairpin: never the Pod's own address"
    assert seen["podDirectly"] == "first to 172.18.0.2"


def test_udp_is_served_as_tcp_is(run: Any) -> None:
    seen = run("traffic")["udp"]
    assert {name: answer.split()[0] for name, answer in seen.items()} == dict.fromkeys(seen, "first")


def test_other_ports_other_loopbacks_and_the_service_network_stay_what_they_were(run: Any) -> None:
    seen = run("traffic")
    assert seen["otherPort"] == "ConnectionRefusedError"
    assert seen["podOnLoopback"] == "ConnectionRefusedError", "a Pod's 127.0.0.1 is its own"
    assert seen["service"].startswith("api to")


def test_one_port_with_other_addresses_or_protocols_leads_to_other_pods(run: Any) -> None:
    seen = run("one_port")
    assert seen["loopback"].split()[0] == "pod-0"
    assert seen["loopbackFromNodeAddress"].split()[0] == "pod-0"
    assert seen["node"].split()[0] == "pod-1"
    assert seen["udp"].split()[0] == "pod-2"
    assert seen["udpLoopback"] == "TimeoutError", "nobody answers"


def test_a_pod_s_end_closes_its_ports_and_leaves_no_table_and_no_flow(run: Any) -> None:
    seen = run("end")
    assert not seen["stoodBefore"]
    assert seen["served"] == "first"
    assert seen["detached"] == {"tcp": "ConnectionRefusedError", "table": False}
    assert seen["sameClient"] == "second", "a UDP client that goes on sending reaches the Pod that has the port now"


def test_a_node_process_that_follows_a_killed_one_knows_the_ports_and_closes_those_of_nobody(run: Any) -> None:
    seen = run("killed")
    assert seen["kept"].split()[0] == "second"
    assert seen["gone"] == "ConnectionRefusedError"
    assert not seen["table"]
