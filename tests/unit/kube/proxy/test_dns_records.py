"""Names of Services, endpoints and Pods, as the service discovery specification has them."""

from typing import Any

import pytest

from lastcall.kube.proxy.dns_records import Answer, Zone

DOMAIN = "cluster.local"


def service(name: str, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "protocol": "TCP", "port": 80}, {"name": "dns", "protocol": "UDP", "port": 53}]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": "10.96.0.7", "ports": ports, **spec},
    }


def endpoints(name: str, *found: tuple[str, bool], hostnames: dict[str, str] | None = None, suffix: str = "a") -> Any:
    names = hostnames or {}
    items = [
        {"addresses": [ip], "conditions": {"ready": ready}, **({"hostname": names[ip]} if ip in names else {})}
        for ip, ready in found
    ]
    labels = {"kubernetes.io/service-name": name}
    ports = [{"name": "http", "protocol": "TCP", "port": 8080}]
    metadata = {"name": f"{name}-{suffix}", "namespace": "default", "labels": labels}
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": items, "ports": ports}


@pytest.fixture
def zone() -> Zone:
    made = Zone()
    made.put_service(("default", "web"), service("web"))
    made.put_service(("default", "db"), service("db", clusterIP="None"))
    made.put_service(("default", "empty"), service("empty", clusterIP="None"))
    made.put_service(("default", "out"), service("out", clusterIP="", type="ExternalName", externalName="example.com."))
    made.put_slice(("default", "web-a"), endpoints("web", ("10.244.0.9", True)))
    slice_ = endpoints("db", ("10.244.0.2", True), ("10.244.0.3", False), ("10.244.0.4", True),
                       hostnames={"10.244.0.2": "db-0"})  # fmt: skip
    made.put_slice(("default", "db-a"), slice_)
    return made


def told(answer: Answer) -> list[str]:
    return [f"{record.type} {record.data}" for record in answer.records] if answer.exists else ["NXDOMAIN"]


LOOKUPS = [
    ("web.default.svc", "A", ["A 10.96.0.7"]),
    ("web.default.svc", "AAAA", []),
    ("web.other.svc", "A", ["NXDOMAIN"]),
    ("nobody.default.svc", "A", ["NXDOMAIN"]),
    ("db.default.svc", "A", ["A 10.244.0.2", "A 10.244.0.4"]),
    ("db-0.db.default.svc", "A", ["A 10.244.0.2"]),
    ("10-244-0-4.db.default.svc", "A", ["A 10.244.0.4"]),
    ("10-244-0-3.db.default.svc", "A", ["NXDOMAIN"]),
    ("10-244-0-9.web.default.svc", "A", ["NXDOMAIN"]),
    ("empty.default.svc", "A", ["NXDOMAIN"]),
    ("out.default.svc", "A", ["CNAME example.com."]),
    ("_http._tcp.web.default.svc", "SRV", ["SRV 0 100 80 web.default.svc.cluster.local."]),
    ("_dns._udp.web.default.svc", "SRV", ["SRV 0 100 53 web.default.svc.cluster.local."]),
    ("_dns._tcp.web.default.svc", "SRV", ["NXDOMAIN"]),
    ("_http._tcp.db.default.svc", "SRV", [
        "SRV 0 50 8080 db-0.db.default.svc.cluster.local.", "SRV 0 50 8080 10-244-0-4.db.default.svc.cluster.local.",
    ]),
    ("10-244-0-77.default.pod", "A", ["A 10.244.0.77"]),
    ("web.default.pod", "A", ["NXDOMAIN"]),
    ("default.svc", "A", []),
    ("nowhere.svc", "A", ["NXDOMAIN"]),
    ("svc", "A", []),
    ("dns-version", "TXT", ['TXT "1.1.0"']),
    ("web.default", "A", ["NXDOMAIN"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "expected"), LOOKUPS, ids=[f"{name} {kind}" for name, kind, _ in LOOKUPS])
def test_a_name_of_the_cluster_has_these_records(zone: Zone, name: str, kind: str, expected: list[str]) -> None:
    assert told(zone.look_up(f"{name}.{DOMAIN}", kind)) == expected


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("10.96.0.7", ["web.default.svc.cluster.local."]),
        ("10.244.0.2", ["db-0.db.default.svc.cluster.local."]),
        ("10.244.0.9", ["10-244-0-9.web.default.svc.cluster.local."]),
        ("10.244.0.99", []),
    ],
)
def test_an_address_has_the_name_of_its_service_or_endpoint(zone: Zone, address: str, names: list[str]) -> None:
    assert zone.look_up_address(address) == names


def test_what_is_gone_has_no_name_and_late_news_do_no_harm(zone: Zone) -> None:
    zone.put_slice(("default", "db-a"), None)
    zone.put_slice(("default", "db-a"), None)
    assert told(zone.look_up(f"db.default.svc.{DOMAIN}", "A")) == ["NXDOMAIN"]
    assert zone.look_up_address("10.244.0.2") == []
    zone.put_service(("default", "web"), None)
    assert zone.look_up_address("10.96.0.7") == []


def test_the_endpoints_of_several_slices_are_one_answer(zone: Zone) -> None:
    zone.put_slice(("default", "db-b"), endpoints("db", ("10.244.1.5", True), suffix="b"))
    assert told(zone.look_up(f"db.default.svc.{DOMAIN}", "A")) == ["A 10.244.0.2", "A 10.244.0.4", "A 10.244.1.5"]


def test_only_the_clusters_own_names_are_its_own(zone: Zone) -> None:
    assert [zone.is_ours(name) for name in ("cluster.local", "a.cluster.local", "notcluster.local", "com")] == [
        True, True, False, False,
    ]  # fmt: skip
