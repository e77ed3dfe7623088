"""What happens to a connection to a Service, from the objects of the API."""

from typing import Any

import pytest
from services import endpoint, endpoint_slice, service

from lastcall.kube.proxy.endpoints import endpoints_of, service_of
from lastcall.kube.proxy.rules import Frontend, PortRules, Target, local_ready_addresses, rules_of
from lastcall.kube.proxy.services import parse_service
from lastcall.kube.proxy.topology import Node

NODE = Node("node-1", addresses=("172.18.0.2",))
HERE, THERE = "node-1", "node-2"
REJECT, DROP = Target(refusal="reject"), Target(refusal="drop")


def rules(obj: dict[str, Any], *slices: dict[str, Any], node: Node = NODE) -> tuple[PortRules, ...]:
    parsed = parse_service(obj)
    return rules_of(parsed, endpoints_of(slices, node.name), node) if parsed else ()


def frontend(obj: dict[str, Any], *endpoints: dict[str, Any], address: str = "10.96.0.10") -> Frontend:
    (port,) = rules(obj, endpoint_slice(*endpoints))
    return next(f for f in port.frontends if f.address == address)


def to(*addresses: str, port: int = 8080) -> Target:
    return Target(tuple((address, port) for address in addresses))


A, B = "10.244.0.2", "10.244.0.3"


def test_a_cluster_ip_goes_to_the_ready_endpoints() -> None:
    found = frontend(service(), endpoint(A), endpoint(B, ready=False))
    assert (found.inside, found.outside, found.port, found.masquerade) == (to(A), None, 80, False)


@pytest.mark.parametrize(
    ("endpoints", "target"),
    [
        pytest.param([], REJECT, id="none at all"),
        pytest.param([endpoint(A, ready=False)], REJECT, id="an unready one is never used"),
        pytest.param([endpoint(A, False, True, True)], to(A), id="terminating but serving, when no one is ready"),
        pytest.param([endpoint(A, False, False, True)], REJECT, id="terminating and not serving"),
        pytest.param([endpoint(A, False, True, True), endpoint(B)], to(B), id="a ready one spares the terminating"),
        pytest.param([endpoint(A, True, False, True)], to(A), id="publishNotReadyAddresses: the slice says ready"),
        pytest.param([endpoint(A, None, None)], to(A), id="what the slice does not say is true"),
    ],
)
def test_which_endpoints_get_connections(endpoints: list[dict[str, Any]], target: Target) -> None:
    assert frontend(service(), *endpoints).inside == target


def test_headless_and_external_name_services_and_those_of_other_proxies_are_left_alone() -> None:
    name = service(type="ExternalName", externalName="example.org")
    labelled = service(labels={"service.kubernetes.io/service-proxy-name": "other"})
    assert [rules(obj) for obj in (service(cluster_ip="None"), name, labelled, service(cluster_ip=""))] == [()] * 4


def test_slices_of_headless_services_and_other_address_families_are_nobodys() -> None:
    assert service_of(endpoint_slice()) == ("default", "web")
    assert service_of(endpoint_slice(labels={"service.kubernetes.io/headless": ""})) is None
    assert service_of(endpoint_slice(addressType="IPv6")) is None
    assert service_of(endpoint_slice(addressType="FQDN")) is None


def test_a_service_whose_endpoint_listens_on_its_own_address_needs_no_rule() -> None:
    (port,) = rules(service(cluster_ip="10.96.0.1"), endpoint_slice(endpoint("10.96.0.1"), ports=_ports(80)))
    assert (port.frontends, port.served_here) == ((), ("10.96.0.1",))


def test_the_address_of_the_api_server_needs_no_rule_though_its_endpoint_is_another_one() -> None:
    api = service("kubernetes", cluster_ip="10.96.0.1")
    (port,) = rules(api, endpoint_slice(endpoint("172.18.0.1"), ports=_ports(6443)))
    assert (port.frontends, port.served_here) == ((), ("10.96.0.1",))


def test_ports_find_each_other_by_name_and_protocol() -> None:
    dns = [{"name": "dns", "protocol": "UDP", "port": 53}, {"name": "dns-tcp", "protocol": "TCP", "port": 53}]
    ports = [{"name": "dns", "protocol": "UDP", "port": 5353}, {"name": "dns-tcp", "protocol": "TCP", "port": 5354}]
    udp, tcp = rules(service(ports=dns), endpoint_slice(endpoint(A), ports=ports))
    assert [f.inside for f in udp.frontends] == [to(A, port=5353)]
    assert [f.inside for f in tcp.frontends] == [to(A, port=5354)]
    assert udp.frontends[0].protocol == "UDP"


def test_endpoints_of_all_slices_count_and_one_in_two_slices_counts_once() -> None:
    first, second = endpoint_slice(endpoint(A)), endpoint_slice(endpoint(A), endpoint(B), name="web-2")
    (port,) = rules(service(), second, first)
    assert port.frontends[0].inside == to(A, B)


def test_what_the_kernel_could_not_be_told_is_left_out() -> None:
    """Slices and Services are anybody's to write: nothing of them may stop the proxy."""
    bad = [endpoint("not-an-address"), endpoint("2001:db8::1"), endpoint("10.1"), {"conditions": {}}, endpoint(A)]
    bad[-1]["hints"] = {"forZones": [{}]}
    assert frontend(service(), *bad).inside == to(A)
    ports = [{"name": "http", "port": 70000}, {"name": "http", "port": None}, {"name": "http"}]
    assert rules(service(), endpoint_slice(endpoint(A), ports=ports))[0].frontends[0].inside == REJECT
    odd = [{"name": "a", "port": 80, "protocol": "QUIC"}, {"name": "b"}, {"name": "c", "port": 0}]
    assert (
        rules(service(ports=odd, externalIPs=["?"], loadBalancerSourceRanges=["?"]), endpoint_slice(endpoint(A))) == ()
    )


NODE_PORT = [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080}]


def _ports(number: int) -> list[dict[str, Any]]:
    return [{"name": "http", "protocol": "TCP", "port": number}]


def test_node_ports_answer_on_every_address_of_the_node_and_masquerade() -> None:
    node = Node("node-1", addresses=("172.18.0.2", "192.168.1.5"))
    (port,) = rules(service(type="NodePort", ports=NODE_PORT), endpoint_slice(endpoint(A)), node=node)
    assert [(f.address, f.port, f.masquerade) for f in port.frontends] == [
        ("10.96.0.10", 80, False),
        ("172.18.0.2", 30080, True),
        ("192.168.1.5", 30080, True),
    ]


@pytest.mark.parametrize(
    ("endpoints", "inside", "outside"),
    [
        pytest.param([endpoint(A), endpoint(B, node=THERE)], to(A, B), to(A), id="only local ones from outside"),
        pytest.param([endpoint(B, node=THERE)], to(B), DROP, id="dropped when there are none here"),
        pytest.param([endpoint(A, False, True, True), endpoint(B, node=THERE)], to(B), to(A), id="local terminating"),
        pytest.param([], REJECT, REJECT, id="refused when there are none anywhere"),
    ],
)
def test_external_traffic_policy_local(endpoints: list[dict[str, Any]], inside: Target, outside: Target) -> None:
    obj = service(type="NodePort", ports=NODE_PORT, externalTrafficPolicy="Local")
    found = frontend(obj, *endpoints, address="172.18.0.2")
    assert (found.inside, found.outside, found.masquerade) == (inside, outside, False)
    assert frontend(obj, *endpoints).outside is None, "a ClusterIP does not know this policy"


@pytest.mark.parametrize(
    ("endpoints", "target"),
    [
        pytest.param([endpoint(A), endpoint(B, node=THERE)], to(A), id="local ones only"),
        pytest.param([endpoint(B, node=THERE)], DROP, id="dropped when there are none here"),
        pytest.param([endpoint(A, False, True, True), endpoint(B, node=THERE)], to(A), id="local terminating"),
        pytest.param([endpoint(B, ready=False, node=THERE)], REJECT, id="refused when no one is ready anywhere"),
    ],
)
def test_internal_traffic_policy_local(endpoints: list[dict[str, Any]], target: Target) -> None:
    assert frontend(service(internalTrafficPolicy="Local"), *endpoints).inside == target


def test_load_balancer_addresses_and_external_ips() -> None:
    obj = service(
        type="LoadBalancer",
        ingress=[{"ip": "172.18.255.1", "ipMode": "VIP"}, {"ip": "172.18.255.2", "ipMode": "Proxy"}, {"hostname": "x"}],
        externalIPs=["192.0.2.7", "2001:db8::1"],
        loadBalancerSourceRanges=["10.1.0.0/16", " 192.0.2.1/32"],
    )
    (port,) = rules(obj, endpoint_slice(endpoint(A)))
    assert [(f.address, f.masquerade, f.source_ranges) for f in port.frontends] == [
        ("10.96.0.10", False, ()),
        ("192.0.2.7", True, ()),
        ("172.18.255.1", True, ("10.1.0.0/16", "192.0.2.1/32")),
    ]


def test_the_status_of_a_service_that_is_no_load_balancer_any_more_counts_for_nothing() -> None:
    (port,) = rules(service(ingress=[{"ip": "172.18.255.1"}]), endpoint_slice(endpoint(A)))
    assert [f.address for f in port.frontends] == ["10.96.0.10"]


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({}, 0),
        ({"sessionAffinity": "ClientIP"}, 10800),
        ({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}, 5),
    ],
)
def test_session_affinity(spec: dict[str, Any], seconds: int) -> None:
    (port,) = rules(service(**spec), endpoint_slice(endpoint(A)))
    assert port.affinity_seconds == seconds


def test_the_health_of_a_node_counts_its_ready_endpoints_and_no_terminating_ones() -> None:
    obj = service(type="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=31000)
    parsed = parse_service(obj)
    assert parsed is not None
    assert parsed.health_check_node_port == 31000
    endpoints = [endpoint(A), endpoint(B, False, True, True), endpoint("10.244.1.9", node=THERE)]
    assert local_ready_addresses(endpoints_of([endpoint_slice(*endpoints)]), NODE) == 1


def test_udp_flows_may_stay_with_endpoints_that_serve() -> None:
    (port,) = rules(
        service(), endpoint_slice(endpoint(A), endpoint(B, False, True, True), endpoint("10.244.0.4", False))
    )
    assert port.serving == (A, B)
