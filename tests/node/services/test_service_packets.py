"""Services on the real kernel: real connections in namespaces of the test's own, as root and without a capability."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ordinary_user
import pytest

pytestmark = pytest.mark.real_kernel

SCENARIO = Path(__file__).with_name("service_scenario.py")
NODE_IP = "172.18.0.2"


@pytest.fixture(scope="module", params=ordinary_user.USERS)
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the one run of all scenarios saw, for each user."""
    prefix = ordinary_user.command_prefix(request.param)
    command = [*prefix, sys.executable, str(SCENARIO)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    if prefix:
        assert int(answer["capEff"], 16) == 0
    return answer


def test_endpoints_are_equally_likely_whatever_their_number(seen: dict[str, Any]) -> None:
    """Five standard deviations are allowed."""
    three, seven = seen["three from a Pod"], seen["seven from a Pod"]
    assert list(three) == seen["pods"][:3]
    assert all(140 <= count <= 260 for count in three.values()), three
    assert list(seven) == seen["pods"]
    assert all(50 <= count <= 150 for count in seven.values()), seven
    assert list(seen["three from the node"]) == seen["pods"][:3]


def test_an_endpoint_sees_the_pod_that_connects_and_the_node_for_those_outside(seen: dict[str, Any]) -> None:
    assert seen["Pod sees"] == seen["pods"][3]
    assert seen["outside to the ClusterIP"] == NODE_IP


def test_a_cluster_ip_refuses_what_is_no_port_of_it_and_an_unknown_one_drops(seen: dict[str, Any]) -> None:
    assert seen["another port"] == ["refused", "refused"]
    assert seen["another address"] == ["dropped", "dropped"]


def test_established_connections_stay_when_the_endpoints_change(seen: dict[str, Any]) -> None:
    first, second = seen["pods"][:2]
    assert seen["one"] == {first: 5}
    assert seen["kept before"][0] == seen["kept after"][0] == first
    assert seen["new after"] == {second: 5}
    assert seen["kept when refused"][0] == seen["kept over a new table"][0] == first


def test_the_last_endpoint_is_used_while_it_terminates_and_serves(seen: dict[str, Any]) -> None:
    assert seen["terminating"] == {seen["pods"][1]: 5}
    assert seen["terminating beside a ready one"] == {seen["pods"][2]: 5}


def test_a_service_without_endpoints_refuses_at_once(seen: dict[str, Any]) -> None:
    assert seen["none"] == ["refused", "refused"]


def test_a_pod_reaches_itself_through_its_service(seen: dict[str, Any]) -> None:
    assert seen["hairpin"] == [seen["pods"][0], NODE_IP]


def test_node_ports_and_load_balancers_answer_everybody_and_masquerade(seen: dict[str, Any]) -> None:
    assert seen["NodePort"] == [NODE_IP] * 3
    assert seen["LoadBalancer"] == [NODE_IP] * 3
    assert seen["externalIP"] == NODE_IP


def test_with_the_local_policy_clients_outside_reach_local_endpoints_and_are_seen_as_they_are(
    seen: dict[str, Any],
) -> None:
    first, second = seen["pods"][:2]
    assert seen["Local from outside"] == {first: 20}
    assert seen["Local sees"] == seen["outside"][0]
    assert seen["Local from inside"] == [first, second], "Pods may go anywhere"
    assert seen["Local without endpoints"] == ["dropped", second]
    assert seen["internal Local without endpoints"] == "dropped"


def test_source_ranges_bind_the_load_balancers_address_only(seen: dict[str, Any]) -> None:
    assert seen["source ranges"] == [True, "dropped", True, True]


def test_a_client_stays_with_its_endpoint_until_that_goes(seen: dict[str, Any]) -> None:
    sticky = seen["sticky"]
    assert sticky["first"] == {sticky["mine"]: 20}
    assert sticky["when others go"] == {sticky["mine"]: 20}
    assert len(sticky["when it goes"]) == 1
    assert set(sticky["when it goes"]) <= set(sticky["left"])


def test_a_port_whose_connect_nobody_answered_leads_to_the_gone_pod_until_that_is_forgotten(
    seen: dict[str, Any],
) -> None:
    assert seen["led to"] == "10.244.0.200"
    assert seen["one port"] == ["dropped", "dropped", seen["pods"][1]]


def test_a_udp_flow_leaves_an_endpoint_that_is_gone(seen: dict[str, Any]) -> None:
    first, second = seen["pods"][:2]
    assert seen["UDP"] == [first, first, second], "without being forgotten it would stay forever"
    assert (seen["UDP forgotten"], seen["UDP kept"]) == (1, 0)


def test_the_health_check_port_answers_as_kube_proxy_does(seen: dict[str, Any]) -> None:
    service = {"namespace": "default", "name": "web"}
    healthy, unhealthy, gone = seen["health"]
    assert healthy == [200, {"service": service, "localEndpoints": 2, "serviceProxyHealthy": True}, "2"]
    assert unhealthy == [503, {"service": service, "localEndpoints": 0, "serviceProxyHealthy": True}, "0"]
    assert gone == "refused"
