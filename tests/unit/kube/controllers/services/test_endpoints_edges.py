"""The edges of endpoints: triggers, addresses, ports, labels (services/endpointslice, services/endpoints, mirroring).

Source: staging/src/k8s.io/endpointslice (utils.go, util, trigger_time_tracker.go), pkg/controller/endpoint.
"""

import pytest

from lastcall.kube.controllers.services.endpoints.decide import (
    OVER_CAPACITY,
    address_of,
    desired_endpoints,
    desired_labels,
    is_headless,
    is_listed,
    is_up_to_date,
    repack,
)
from lastcall.kube.controllers.services.endpointslice.decide import (
    LABEL_HEADLESS,
    TRIGGER_TIME,
    address_types,
    endpoint_of,
    endpoint_ports,
    new_slice,
    owned_by,
    pod_ips,
    pod_ready,
    reconcile,
    wanted_hints,
)
from lastcall.kube.controllers.services.endpointslice.triggers import (
    TriggerTimeTracker,
    pod_endpoints_changed,
    pod_membership_changed,
    selector_matches,
)
from lastcall.kube.controllers.services.mirroring import mirror, should_mirror

FIRST, SECOND, THIRD = (f"2030-01-01T00:00:0{second}Z" for second in (1, 2, 3))


def service(created: str = FIRST, **spec: object) -> dict:
    meta = {"name": "svc", "namespace": "default", "uid": "s", "labels": {"team": "a"}, "creationTimestamp": created}
    return {"metadata": meta, "spec": {"clusterIP": "10.96.0.9", "ports": [{"port": 80}], **spec}}


def pod(
    name: str = "p", *ips: str, ready: str = "True", moved: str = "", meta: dict | None = None, **spec: object
) -> dict:
    condition = {"type": "Ready", "status": ready} | ({"lastTransitionTime": moved} if moved else {})
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **(meta or {})},
        "spec": {"nodeName": "n", "containers": [], **spec},
        "status": {"podIPs": [{"ip": ip} for ip in ips or ("10.0.0.1",)], "conditions": [condition]},
    }


ENDING = {"deletionTimestamp": FIRST}
LABELED = {"labels": {"a": "b"}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (pod(), pod(), False), (pod(), pod(ready="False"), True), (pod(), pod("p", "10.0.0.2"), True),
        (pod(meta=ENDING), pod(), True), (pod(), pod(meta=ENDING), True), (pod(), pod(meta=LABELED), False),
        (pod(), {**pod(), "status": {**pod()["status"], "phase": "Failed"}}, False),
    ],
)  # fmt: skip
def test_readiness_addresses_and_a_deletion_change_an_endpoint(old: dict, new: dict, expected: bool) -> None:
    assert pod_endpoints_changed(old, new) is expected


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (pod(), False), (pod(meta=LABELED), True), (pod(hostname="h"), True), (pod(subdomain="svc"), True),
        (pod(hostname="", subdomain=""), False), (pod(ready="False"), False),
    ],
)  # fmt: skip
def test_labels_hostname_and_subdomain_change_the_services_of_a_pod(new: dict, expected: bool) -> None:
    assert pod_membership_changed(pod(), new) is pod_membership_changed(new, pod()) is expected
    bare = {"metadata": {"name": "p"}}
    assert not pod_membership_changed(bare, bare)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [({"a": "b"}, True), ({"a": "c"}, False), ({"a": "b", "c": "d"}, False), ({}, False), (None, False)],
)
def test_an_empty_selector_matches_nothing(selector: dict | None, expected: bool) -> None:
    assert selector_matches(selector, {"a": "b", "x": "y"}) is expected


def test_the_earliest_change_that_no_slice_shows_yet_is_the_trigger() -> None:
    tracker = TriggerTimeTracker()
    first, moved = pod("a", moved=SECOND), pod("a", moved=THIRD)
    assert tracker.compute("k", service(), [first]) == FIRST, "a new Service counts from its creation"
    assert tracker.compute("k", service(), [first]) == ""
    assert tracker.compute("k", service(), [moved]) == THIRD
    assert tracker.compute("k", service(), [first]) == "", "an older time is no change"
    assert tracker.compute("k", service(), [first, pod("b", moved=THIRD)]) == THIRD
    assert tracker.compute("k", service(), [moved, pod("c", moved=SECOND)]) == SECOND
    assert tracker.compute("k", service(THIRD), [moved]) == THIRD, "another Service of this name"
    assert tracker.compute("k", service(FIRST), [moved]) == ""
    assert tracker.compute("k", service(THIRD), []) == ""
    assert tracker.compute("other", service(SECOND), [moved]) == SECOND
    tracker.forget("k")
    tracker.forget("k")
    assert tracker.compute("k", service(), [moved]) == FIRST
    assert tracker.compute("k", service(), [pod("q")]) == "", "a condition without a time"
    assert tracker.compute("new", {"metadata": {}}, []) == ""


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ("IPv4",)), ({"clusterIP": "fd00::1"}, ("IPv6",)), ({"clusterIP": None}, ("IPv4",)),
        ({"ipFamilies": ["IPv6", "IPv4"]}, ("IPv6", "IPv4")), ({"ipFamilies": ["IPv6", "IPv6", ""]}, ("IPv6",)),
        ({"ipFamilies": [""], "clusterIP": "fd00::1"}, ("IPv6",)),
    ],
)  # fmt: skip
def test_the_families_of_a_service(spec: dict, expected: tuple) -> None:
    assert address_types(service(**spec)) == expected


def test_a_pod_without_a_list_of_addresses_has_the_one_of_its_status() -> None:
    assert pod_ips({"status": {"podIP": "10.0.0.1"}}) == ["10.0.0.1"]
    assert pod_ips({"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}, {"ip": ""}, {}]}}) == ["10.0.0.2"]
    assert pod_ips({"status": {"podIP": ""}}) == [] and pod_ips({}) == []
    assert not pod_ready({}) and not pod_ready({"status": {"conditions": [{"type": "Other", "status": "True"}]}})


NODE = {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}}}


def test_an_endpoint_has_one_address_of_its_family_and_only_what_is_known_of_the_node() -> None:
    both = pod("p", "10.0.0.1", "10.0.0.2", "fd00::1")
    assert endpoint_of(service(), both, NODE, "IPv4")["addresses"] == ["10.0.0.1"]
    assert endpoint_of(service(), both, NODE, "IPv6")["addresses"] == ["fd00::1"]
    assert endpoint_of(service(), pod(), NODE, "IPv6") is None
    bare = endpoint_of(service(), pod(nodeName=""), None, "IPv4")
    assert "nodeName" not in bare and "zone" not in bare and "hostname" not in bare
    assert "zone" not in endpoint_of(service(), pod(), {"metadata": {"name": "n"}}, "IPv4")
    assert "hostname" not in endpoint_of(service(), pod(subdomain="svc"), NODE, "IPv4")


def test_a_port_has_a_name_and_a_protocol_and_a_target_of_its_protocol() -> None:
    containers = [
        {"ports": [{"name": "web", "containerPort": 1, "protocol": "UDP"}, {"name": "web", "containerPort": 2}]}
    ]
    ports = [{"port": 80, "targetPort": "web"}, {"port": 81, "targetPort": 0}, {"port": 82, "targetPort": "x"}]
    assert endpoint_ports(service(ports=ports), pod(containers=[{}, *containers])) == [
        {"name": "", "protocol": "TCP", "port": 2}, {"name": "", "protocol": "TCP", "port": 81},
    ]  # fmt: skip
    assert endpoint_ports(service(ports=None), pod()) == []


def test_a_slice_to_create_is_owned_and_says_null_for_what_is_empty() -> None:
    made = new_slice(service(), "IPv4", [], [])
    assert (made["kind"], made["apiVersion"], made["addressType"]) == ("EndpointSlice", "discovery.k8s.io/v1", "IPv4")
    assert (made["endpoints"], made["ports"], made["metadata"]["generateName"]) == (None, None, "svc-")
    (reference,) = made["metadata"]["ownerReferences"]
    assert reference == {
        "apiVersion": "v1", "kind": "Service", "name": "svc", "uid": "s", "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    assert owned_by(made, service())
    for change in ({"uid": "other"}, {"controller": False}):
        made["metadata"]["ownerReferences"] = [{**reference, **change}]
        assert not owned_by(made, service())
    made["metadata"]["ownerReferences"] = [{**reference, "uid": "other"}, reference]
    assert owned_by(made, service()), "any of them"
    full = new_slice(service(), "IPv6", [{"port": 1}], [{"addresses": ["fd00::1"]}])
    assert (full["endpoints"], full["ports"]) == ([{"addresses": ["fd00::1"]}], [{"port": 1}])


def test_slices_of_a_family_that_the_service_left_are_deleted() -> None:
    six = {**new_slice(service(), "IPv6", [], []), "metadata": {"name": "x", "uid": "x"}}
    plan = reconcile(service(), [pod()], [six], lambda _: NODE)
    assert (plan.deletes, [each["addressType"] for each in plan.creates]) == ([six], ["IPv4"])


def test_a_pod_that_waits_for_its_node_is_named_once_for_both_families() -> None:
    both = pod("p", "10.0.0.1", "fd00::1")
    plan = reconcile(service(ipFamilies=["IPv4", "IPv6"]), [both], [], lambda _: None)
    assert plan.missing_nodes == ["p"]


def test_a_memo_changes_no_result_and_keeps_only_what_is_there() -> None:
    memo: dict = {}
    one, other, of = pod("a"), pod("b", "10.0.0.2"), service()

    def listed(*pods: dict, by: dict = of, node: dict = NODE) -> list:
        plan = reconcile(by, pods, [], lambda _: node, memo=memo)
        return [(each["targetRef"]["name"], each.get("zone")) for each in plan.creates[0]["endpoints"]]

    assert listed(one, other) == [("a", "z"), ("b", "z")] and len(memo) == 2
    kept = memo["uid-a", "IPv4"]
    assert listed(one) == [("a", "z")] and list(memo) == [("uid-a", "IPv4")]
    assert memo["uid-a", "IPv4"] is kept
    moved = {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "y"}}}
    assert listed(one, node=moved) == [("a", "y")]
    assert listed(pod("a"), node=moved) == [("a", "y")] and memo["uid-a", "IPv4"] is not kept
    assert listed(one, by=service(), node=moved) == [("a", "y")]


@pytest.mark.parametrize(
    ("wish", "endpoint", "expected"),
    [
        ("PreferClose", {"zone": "z", "nodeName": "n"}, {"forZones": [{"name": "z"}]}),
        ("PreferSameNode", {"zone": "z", "nodeName": "n"}, {"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]}),
        ("PreferSameNode", {"nodeName": "n"}, {"forNodes": [{"name": "n"}]}),
        ("PreferClose", {"nodeName": "n"}, None), ("Other", {"zone": "z"}, None), (None, {"zone": "z"}, None),
    ],
)  # fmt: skip
def test_hints_name_the_zone_or_the_node(wish: str | None, endpoint: dict, expected: dict | None) -> None:
    assert wanted_hints(service(trafficDistribution=wish), endpoint) == expected


# -- Endpoints -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ip", "expected"), [(None, True), ("", True), ("None", True), ("10.96.0.9", False)])
def test_a_service_without_an_address_of_its_own_is_headless(ip: str | None, expected: bool) -> None:
    of = service(clusterIP=ip)
    assert is_headless(of) is expected
    assert (LABEL_HEADLESS in desired_labels(of)) is expected
    of["metadata"]["labels"][LABEL_HEADLESS] = "mine"
    assert desired_labels(of).get(LABEL_HEADLESS) == ("" if expected else None)


@pytest.mark.parametrize(
    ("of", "publish", "expected"),
    [
        (pod(), False, True), (pod(meta=ENDING), False, False), (pod(meta=ENDING), True, True),
        ({**pod(), "status": {"podIP": "10.0.0.1", "phase": "Succeeded"}}, True, False),
        ({**pod(), "status": {"podIP": "10.0.0.1", "phase": "Failed"}}, True, False),
        ({**pod(), "status": {"phase": "Running"}}, True, False),
    ],
)  # fmt: skip
def test_a_pod_is_listed_while_it_has_an_address_and_has_not_ended(of: dict, publish: bool, expected: bool) -> None:
    assert is_listed(of, publish) is expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "10.0.0.1"), ({"clusterIP": "fd00::9"}, "fd00::1"), ({"ipFamilies": ["IPv6", "IPv4"]}, "fd00::1"),
        ({"ipFamilies": ["IPv4"], "clusterIP": "fd00::9"}, "10.0.0.1"), ({"clusterIP": None}, "10.0.0.1"),
    ],
)  # fmt: skip
def test_an_address_is_of_the_first_family_of_the_service(spec: dict, expected: str) -> None:
    assert address_of(service(**spec), pod("p", "10.0.0.1", "fd00::1"))["ip"] == expected
    assert address_of(service(), pod("p", "fd00::1")) is None
    assert address_of(service(), pod(nodeName="")) == {
        "ip": "10.0.0.1", "targetRef": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "uid-p"},
    }  # fmt: skip


def test_an_address_that_is_ready_for_a_port_somewhere_is_ready_for_it() -> None:
    one, port = {"ip": "10.0.0.1"}, {"port": 80}
    ready, unready = {"addresses": [one], "ports": [port]}, {"notReadyAddresses": [one], "ports": [port]}
    assert repack([ready, unready]) == repack([unready, ready]) == repack([ready, ready]) == [ready]
    assert repack([unready]) == [unready]
    other = {"ip": "10.0.0.1", "targetRef": {"uid": "u"}}
    assert repack([ready, {"addresses": [other], "ports": [port]}]) == [{"addresses": [one, other], "ports": [port]}]


def test_ports_are_ordered_by_name_number_protocol_and_application() -> None:
    one = {"ip": "10.0.0.1"}
    ports = [
        {"port": 1}, {"port": 2}, {"port": 2, "protocol": "TCP"}, {"port": 2, "protocol": "UDP"},
        {"port": 2, "protocol": "UDP", "appProtocol": "x"}, {"name": "a", "port": 1},
    ]  # fmt: skip
    assert repack([{"addresses": [one], "ports": ports[::-1]}]) == [{"addresses": [one], "ports": ports}]


def test_a_subset_without_ports_stands_beside_those_with_ports() -> None:
    one, two = {"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}
    without, with_ports = {"addresses": [one]}, {"addresses": [two], "ports": [{"port": 80}]}
    assert repack([with_ports, without]) == [without, with_ports]


def test_marks_of_what_is_over_come_off_and_other_annotations_stay() -> None:
    current = {
        "metadata": {"name": "svc", "annotations": {"mine": "x", TRIGGER_TIME: FIRST, OVER_CAPACITY: "truncated"}}
    }
    made = desired_endpoints(service(), [pod()], current, "")
    assert made["metadata"]["annotations"] == {"mine": "x"} and (made["kind"], made["apiVersion"]) == (
        "Endpoints",
        "v1",
    )
    assert TRIGGER_TIME in current["metadata"]["annotations"] and "labels" not in current["metadata"]
    assert not is_up_to_date({**made, "metadata": {**made["metadata"], "annotations": {OVER_CAPACITY: "x"}}}, made)
    del current["metadata"]["annotations"]["mine"]
    assert "annotations" not in desired_endpoints(service(), [], current, "")["metadata"]


def test_what_is_published_before_it_is_ready_stands_as_ready() -> None:
    (subset,) = desired_endpoints(service(publishNotReadyAddresses=True), [pod(ready="False")], None, "")["subsets"]
    assert "notReadyAddresses" not in subset
    (subset,) = desired_endpoints(service(), [pod(ready="False"), pod("q", "fd00::1")], None, "")["subsets"]
    assert [each["ip"] for each in subset["notReadyAddresses"]] == ["10.0.0.1"] and "addresses" not in subset


def test_a_headless_service_has_its_ports_too_and_one_with_an_address_needs_them() -> None:
    subsets = desired_endpoints(service(clusterIP="None"), [pod()], None, "")["subsets"]
    assert [each["ports"] for each in subsets] == [[{"protocol": "TCP", "port": 80}]]
    assert "subsets" not in desired_endpoints(service(ports=[]), [pod()], None, "")


# -- mirrors -------------------------------------------------------------------------------------------------------


def endpoints(*subsets: dict, **meta: object) -> dict:
    return {"metadata": {"name": "db", "namespace": "default", "uid": "e", **meta}, "subsets": list(subsets)}


@pytest.mark.parametrize(("value", "expected"), [("true", False), ("T", False), ("1", False), ("no", True), ("", True)])
def test_a_label_asks_to_be_left_out(value: str, expected: bool) -> None:
    assert should_mirror(endpoints(labels={"endpointslice.kubernetes.io/skip-mirror": value})) is expected


def test_a_mirror_says_of_an_address_what_the_endpoints_say() -> None:
    full = {"ip": "192.0.2.1", "hostname": "h", "nodeName": "n", "targetRef": {"kind": "Pod", "name": "p"}}
    (made,) = mirror(
        endpoints({"addresses": [full], "ports": [{"port": 1, "name": "x", "protocol": "UDP"}]}), []
    ).creates
    assert made["endpoints"] == [{
        "addresses": ["192.0.2.1"], "conditions": {"ready": True}, "hostname": "h", "nodeName": "n",
        "targetRef": {"kind": "Pod", "name": "p"},
    }]  # fmt: skip
    assert made["ports"] == [{"port": 1, "name": "x", "protocol": "UDP"}]
    assert (made["kind"], made["apiVersion"], made["metadata"]["generateName"]) == (
        "EndpointSlice", "discovery.k8s.io/v1", "db-",
    )  # fmt: skip
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Endpoints", "name": "db", "uid": "e", "controller": True,
         "blockOwnerDeletion": True},
    ]  # fmt: skip
    (bare,) = mirror(endpoints({"addresses": [{"ip": "192.0.2.1"}]}), []).creates
    assert (bare["ports"], bare["endpoints"]) == (None, [{"addresses": ["192.0.2.1"], "conditions": {"ready": True}}])


@pytest.mark.parametrize(
    ("change", "updates"),
    [
        ({}, 0),
        ({"labels": {"a": "b"}}, 1),
        ({"annotations": {"a": "b"}}, 1),
        ({"annotations": {TRIGGER_TIME: FIRST}}, 0),
    ],
)
def test_labels_and_annotations_are_mirrored_too(change: dict, updates: int) -> None:
    subset = {"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 1}]}
    (held,) = mirror(endpoints(subset), []).creates
    plan = mirror(endpoints(subset, **change), [held])
    assert (len(plan.creates), len(plan.updates), len(plan.deletes)) == (0, updates, 0)
