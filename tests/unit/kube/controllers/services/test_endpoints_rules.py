"""What v1 Endpoints list, and which EndpointSlices mirror those that somebody wrote."""

from lastcall.kube.controllers.services.endpoints.decide import (
    MAX_CAPACITY,
    OVER_CAPACITY,
    desired_endpoints,
    is_up_to_date,
    repack,
    truncate,
)
from lastcall.kube.controllers.services.endpointslice.decide import TRIGGER_TIME
from lastcall.kube.controllers.services.mirroring import MIRRORED_BY, mirror, should_mirror, skipped_addresses

T = "2030-01-01T00:00:00Z"


def service(**spec):
    ports = [{"port": 80, "protocol": "TCP", "targetPort": 8080}]
    spec = {"selector": {"app": "web"}, "clusterIP": "10.96.0.9", "ports": ports, **spec}
    return {"metadata": {"name": "web", "namespace": "default", "uid": "s", "labels": {"tier": "a"}}, "spec": spec}


def pod(name, ip, *, ready=True, phase="Running", terminating=False, **spec):
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if terminating:
        meta["deletionTimestamp"] = T
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": meta,
        "spec": {"nodeName": "n", "containers": [], **spec},
        "status": {"phase": phase, "podIPs": [{"ip": ip}], "conditions": conditions},
    }


def ips(subset, kind="addresses"):
    return [address["ip"] for address in subset.get(kind) or ()]


def test_addresses_stand_by_readiness_and_ended_and_terminating_pods_do_not_stand_at_all():
    pods = [
        pod("b", "10.0.0.2"), pod("a", "10.0.0.1"), pod("c", "10.0.0.3", ready=False),
        pod("d", "10.0.0.4", phase="Failed"), pod("e", "10.0.0.5", terminating=True),
    ]  # fmt: skip
    new = desired_endpoints(service(), pods, None, T)
    (subset,) = new["subsets"]
    assert ips(subset) == ["10.0.0.1", "10.0.0.2"]
    assert ips(subset, "notReadyAddresses") == ["10.0.0.3"]
    assert subset["ports"] == [{"protocol": "TCP", "port": 8080}]
    assert subset["addresses"][0] == {
        "ip": "10.0.0.1",
        "nodeName": "n",
        "targetRef": {"kind": "Pod", "namespace": "default", "name": "a", "uid": "uid-a"},
    }
    assert new["metadata"] == {
        "name": "web",
        "namespace": "default",
        "labels": {"tier": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"},
        "annotations": {TRIGGER_TIME: T},
    }


def test_publishing_addresses_that_are_not_ready_lists_all_of_them_as_ready():
    pods = [pod("a", "10.0.0.1", ready=False), pod("b", "10.0.0.2", terminating=True, ready=False)]
    (subset,) = desired_endpoints(service(publishNotReadyAddresses=True), pods, None, "")["subsets"]
    assert ips(subset) == ["10.0.0.1", "10.0.0.2"]


def test_a_headless_service_without_ports_has_addresses_all_the_same():
    new = desired_endpoints(service(clusterIP="None", ports=[]), [pod("a", "10.0.0.1")], None, "")
    assert [sorted(subset) for subset in new["subsets"]] == [["addresses"]]
    assert new["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


def test_a_hostname_is_told_where_the_subdomain_is_the_service():
    pods = [pod("a", "10.0.0.1", hostname="h", subdomain="web"), pod("b", "10.0.0.2", hostname="h", subdomain="x")]
    (subset,) = desired_endpoints(service(), pods, None, "")["subsets"]
    assert [address.get("hostname") for address in subset["addresses"]] == ["h", None]


def test_a_service_without_pods_has_endpoints_without_subsets():
    assert "subsets" not in desired_endpoints(service(), [], None, T)


def test_only_subsets_labels_and_the_capacity_mark_are_worth_a_write():
    current = desired_endpoints(service(), [pod("a", "10.0.0.1")], None, T)
    again = desired_endpoints(service(), [pod("a", "10.0.0.1")], current, "")
    assert is_up_to_date(current, again)
    assert not is_up_to_date(current, desired_endpoints(service(), [pod("a", "10.0.0.2")], current, ""))
    relabelled = service()
    relabelled["metadata"]["labels"] = {"tier": "b"}
    assert not is_up_to_date(current, desired_endpoints(relabelled, [pod("a", "10.0.0.1")], current, ""))


def test_ports_with_the_same_addresses_share_a_subset():
    one, two = {"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}
    http, https = {"name": "http", "port": 80}, {"name": "https", "port": 443}
    packed = repack([
        {"addresses": [one], "ports": [http]}, {"addresses": [one], "ports": [https]},
        {"addresses": [two], "ports": [https]},
    ])  # fmt: skip
    assert packed == [
        {"addresses": [one], "ports": [http]},
        {"addresses": [one, two], "ports": [https]},
    ]
    assert repack([{"addresses": [one], "ports": [http, https]}]) == [{"addresses": [one], "ports": [http, https]}]


def test_more_than_a_thousand_addresses_are_cut_off_ready_ones_last():
    def subset(first, ready, unready):
        at = lambda n: {"ip": f"10.0.{n // 250}.{n % 250}"}  # noqa: E731
        return {
            "addresses": [at(first + n) for n in range(ready)],
            "notReadyAddresses": [at(first + ready + n) for n in range(unready)],
            "ports": [{"port": first}],
        }

    kept, cut = truncate([subset(1, 600, 300), subset(2000, 300, 100)])
    assert cut
    assert sum(len(ips(each)) for each in kept) == 900
    assert sum(len(ips(each, "notReadyAddresses")) for each in kept) == MAX_CAPACITY - 900
    kept, _ = truncate([subset(1, 900, 5), subset(2000, 900, 5)])
    assert [len(ips(each)) for each in kept] == [500, 500]
    assert not any(each.get("notReadyAddresses") for each in kept)
    kept, _ = truncate([subset(1, 100, 900), subset(2000, 100, 300)])
    assert [len(each["notReadyAddresses"]) for each in kept] == [600, 200], "in proportion, where ready ones leave room"
    assert truncate([subset(1, 500, 500)]) == ([subset(1, 500, 500)], False)
    many = [pod(f"p{n}", f"10.1.{n // 250}.{n % 250}") for n in range(1001)]
    new = desired_endpoints(service(), many, None, "")
    assert new["metadata"]["annotations"] == {OVER_CAPACITY: "truncated"}


# -- mirroring -----------------------------------------------------------------------------------------------------


def endpoints(subsets, **meta):
    return {"metadata": {"name": "db", "namespace": "default", "uid": "e", **meta}, "subsets": subsets}


def test_written_endpoints_become_one_slice_for_each_set_of_ports_and_family():
    subsets = [
        {
            "addresses": [{"ip": "192.0.2.1", "hostname": "h"}, {"ip": "2001:db8::1"}, {"ip": "nonsense"}],
            "notReadyAddresses": [{"ip": "192.0.2.2"}],
            "ports": [{"port": 5432}],
        }
    ]
    plan = mirror(endpoints(subsets, labels={"a": "b"}, annotations={"note": "x", TRIGGER_TIME: T}), [])
    four, six = sorted(plan.creates, key=lambda slice_: slice_["addressType"])
    assert (four["addressType"], six["addressType"]) == ("IPv4", "IPv6")
    assert four["endpoints"] == [
        {"addresses": ["192.0.2.1"], "conditions": {"ready": True}, "hostname": "h"},
        {"addresses": ["192.0.2.2"], "conditions": {"ready": False}},
    ]
    assert four["ports"] == [{"port": 5432, "name": "", "protocol": "TCP"}]
    meta = four["metadata"]
    assert meta["labels"] == {
        "a": "b", "kubernetes.io/service-name": "db", "endpointslice.kubernetes.io/managed-by": MIRRORED_BY,
    }  # fmt: skip
    assert meta["annotations"] == {"note": "x"}
    assert [(r["kind"], r["name"], r["controller"]) for r in meta["ownerReferences"]] == [("Endpoints", "db", True)]


def test_a_mirror_that_shows_what_it_should_is_left_alone_and_others_are_written_or_deleted():
    old = endpoints([{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 1}]}])
    (slice_,) = mirror(old, []).creates
    assert mirror(old, [slice_]) == mirror(endpoints([]), [])
    moved = endpoints([{"addresses": [{"ip": "192.0.2.9"}], "ports": [{"port": 1}]}])
    plan = mirror(moved, [slice_])
    assert (len(plan.creates), len(plan.updates), len(plan.deletes)) == (0, 1, 0)
    slice_["metadata"] |= {"name": "db-x", "uid": "x"}
    plan = mirror(endpoints([{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 2}]}]), [slice_])
    assert (len(plan.creates), len(plan.updates), len(plan.deletes)) == (0, 1, 0)
    assert (plan.updates[0]["metadata"]["name"], plan.updates[0]["ports"][0]["port"]) == ("db-x", 2)
    plan = mirror(endpoints([{"addresses": [{"ip": "2001:db8::1"}], "ports": [{"port": 2}]}]), [slice_])
    assert (len(plan.creates), len(plan.updates), len(plan.deletes)) == (1, 0, 1)


def test_addresses_beyond_a_thousand_of_a_subset_are_not_mirrored():
    many = [{"ip": f"10.1.{number // 256}.{number % 256}"} for number in range(1003)]
    old = endpoints([{"addresses": many, "ports": [{"port": 1}]}, {"addresses": many[:5], "ports": [{"port": 2}]}])
    assert skipped_addresses(old) == 3
    assert sorted(len(slice_["endpoints"]) for slice_ in mirror(old, []).creates) == [5, 1000]


def test_locks_and_what_asks_for_it_are_not_mirrored():
    assert should_mirror(endpoints([]))
    assert not should_mirror(endpoints([], labels={"endpointslice.kubernetes.io/skip-mirror": "true"}))
    assert not should_mirror(endpoints([], annotations={"control-plane.alpha.kubernetes.io/leader": "{}"}))
