"""What `--publish` may say, and which addresses Services and Pods have for it."""

import pytest

from lastcall.kube.cluster.published.port import (
    PublishedPort,
    outside_ports,
    parse_published_port,
    pod_target,
    service_target,
    shown_address,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8080:svc/web:80", PublishedPort("127.0.0.1", 8080, "svc", "default", "web", "80")),
        ("8080:service/web:080", PublishedPort("127.0.0.1", 8080, "svc", "default", "web", "80")),
        ("127.0.0.1:8080:svc/ns/web:http", PublishedPort("127.0.0.1", 8080, "svc", "ns", "web", "http")),
        ("localhost:0:pod/ns/a.b-0:80", PublishedPort("127.0.0.1", 0, "pod", "ns", "a.b-0", "80")),
        ("127.9.9.9:1:pod/name:p-1", PublishedPort("127.9.9.9", 1, "pod", "default", "name", "p-1")),
        ("[::1]:8080:svc/web:80", PublishedPort("::1", 8080, "svc", "default", "web", "80")),
    ],
)
def test_a_published_port_is_read(text: str, expected: PublishedPort) -> None:
    assert parse_published_port(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is needed"),
        ("8080", "is needed"),
        ("8080:web:80", "is needed"),
        ("8080:deploy/web:80", "is needed"),
        ("8080:svc/a/b/c:80", "is needed"),
        ("8080:svc/../web:80", "is needed"),
        ("8080:svc/web", "is needed"),
        ("-1:svc/web:80", "is needed"),
        ("8080:svc/web:80\n", "is needed"),
        ("65536:svc/web:80", "not between 0 and 65535"),
        ("8080:svc/web:0", "not between 1 and 65535"),
        ("8080:svc/web:65536", "not between 1 and 65535"),
        ("8080:svc/web:a-name-that-is-too-long", "not a valid port name"),
        ("0.0.0.0:8080:svc/web:80", "loopback only"),
        ("192.168.1.2:8080:svc/web:80", "loopback only"),
        ("[::]:8080:svc/web:80", "loopback only"),
        ("example.com:8080:svc/web:80", "is not an address"),
        (":8080:svc/web:80", "is not an address"),
    ],
)
def test_what_cannot_be_published_says_why(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_published_port(text)


def service(**spec: object) -> dict:
    ports = [
        {"name": "http", "port": 80, "nodePort": 30080},
        {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053},
    ]
    return {"metadata": {"name": "web"}, "spec": {"clusterIP": "10.96.3.4", "ports": ports, **spec}}


def test_a_service_is_reached_on_its_cluster_ip_by_number_or_name() -> None:
    assert service_target(service(), "80") == ("10.96.3.4", 80)
    assert service_target(service(), "http") == ("10.96.3.4", 80)
    assert service_target(service(), "81") is None
    assert service_target(service(), "dns") is None, "UDP is not published"
    assert service_target(service(clusterIP="None"), "80") is None
    assert service_target(service(type="ExternalName", clusterIP=""), "80") is None


def test_a_pod_is_reached_on_its_address() -> None:
    containers = [{"ports": [{"name": "http", "containerPort": 8080}]}]
    pod = {"metadata": {"name": "a"}, "spec": {"containers": containers}, "status": {"podIP": "10.244.0.7"}}
    assert pod_target(pod, "http") == ("10.244.0.7", 8080)
    assert pod_target(pod, "99") == ("10.244.0.7", 99), "a number need not be declared"
    assert pod_target(pod, "other") is None
    assert pod_target({**pod, "status": {}}, "http") is None


def test_node_ports_and_load_balancer_ports_are_found() -> None:
    assert outside_ports(service(), "172.18.0.2") == []
    assert outside_ports(service(type="NodePort"), "172.18.0.2") == [(30080, ("172.18.0.2", 30080))]
    balancer = service(type="LoadBalancer")
    assert outside_ports(balancer, "172.18.0.2") == [(30080, ("172.18.0.2", 30080))], "it has no address yet"
    balancer["status"] = {"loadBalancer": {"ingress": [{"ip": "172.18.255.1"}]}}
    assert outside_ports(balancer, "172.18.0.2")[1:] == [(80, ("172.18.255.1", 80))]


def test_an_ipv6_address_is_shown_in_brackets() -> None:
    assert shown_address("::1", 80) == "[::1]:80"
