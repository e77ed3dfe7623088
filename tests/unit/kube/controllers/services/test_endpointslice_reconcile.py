"""The pure rules of EndpointSlices: conditions, ports, packing, and what must hold for any input."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.kube.api.meta import copy_object
from lastcall.kube.controllers.services.endpointslice.decide import (
    LABEL_HEADLESS,
    MAX_ENDPOINTS_PER_SLICE,
    address_types,
    endpoint_of,
    endpoint_ports,
    reconcile,
    should_be_in_endpoints,
)

NODE = {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}}}


def service(**spec) -> dict:
    return {
        "metadata": {"name": "svc", "namespace": "default", "uid": "svc-uid", "labels": {"team": "a"}},
        "spec": {
            "selector": {"app": "web"},
            "clusterIP": "10.96.0.9",
            "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}],
            **spec,
        },
    }


def pod(name: str = "p", *, ip: str = "10.0.0.1", ready: bool = True, deleted: bool = False, phase="Running", **spec):
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {"app": "web"},
            **({"deletionTimestamp": "2030-01-01T00:00:30Z"} if deleted else {}),
        },
        "spec": {"nodeName": "n", "containers": [], **spec},
        "status": {
            "phase": phase,
            "podIP": ip,
            "podIPs": [{"ip": ip}] if ip else [],
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def node(name: str) -> dict | None:
    return NODE if name == "n" else None


def apply(existing: list[dict], plan, counter=iter(range(10**6))) -> list[dict]:  # noqa: B008
    """What the API server holds after the plan."""
    gone = {o["metadata"]["uid"] for o in plan.deletes}
    changed = {o["metadata"]["uid"]: o for o in plan.updates}
    held = [changed.get(o["metadata"]["uid"], o) for o in existing if o["metadata"]["uid"] not in gone]
    for obj in plan.creates:
        number = next(counter)
        held.append({**obj, "metadata": {**obj["metadata"], "name": f"svc-{number}", "uid": f"slice-{number}"}})
    return copy_object({"held": held})["held"]


@pytest.mark.parametrize("publish", [False, True])
@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("deleted", [False, True])
def test_ready_is_publish_or_serving_and_not_terminating(publish, ready, deleted):
    endpoint = endpoint_of(service(publishNotReadyAddresses=publish), pod(ready=ready, deleted=deleted), NODE, "IPv4")
    assert endpoint["conditions"] == {
        "ready": publish or (ready and not deleted),
        "serving": ready,
        "terminating": deleted,
    }


@pytest.mark.parametrize(
    ("a_pod", "expected"),
    [
        (pod(), True),
        (pod(deleted=True), True),
        (pod(ready=False), True),
        (pod(ip=""), False),
        (pod(phase="Succeeded"), False),
        (pod(phase="Failed", deleted=True), False),
        (pod(phase="Pending"), True),
    ],
)
def test_a_pod_is_listed_while_it_has_an_address_and_no_terminal_phase(a_pod, expected):
    assert should_be_in_endpoints(a_pod) is expected


def test_an_endpoint_names_its_pod_node_zone_and_with_the_right_subdomain_its_hostname():
    endpoint = endpoint_of(service(), pod(hostname="web-0", subdomain="svc"), NODE, "IPv4")
    assert endpoint["targetRef"] == {"kind": "Pod", "namespace": "default", "name": "p", "uid": "uid-p"}
    assert (endpoint["nodeName"], endpoint["zone"], endpoint["hostname"]) == ("n", "z", "web-0")
    assert "hostname" not in endpoint_of(service(), pod(hostname="web-0", subdomain="other"), NODE, "IPv4")


def test_named_ports_are_those_of_the_pod_also_of_its_sidecars_and_missing_ones_are_left_out():
    containers = [{"name": "c", "ports": [{"name": "web", "containerPort": 8080, "protocol": "TCP"}]}]
    init = [
        {"name": "once", "ports": [{"name": "admin", "containerPort": 1}]},
        {"name": "side", "restartPolicy": "Always", "ports": [{"name": "admin", "containerPort": 9000}]},
    ]
    svc = service(
        ports=[
            {"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP", "appProtocol": "http"},
            {"name": "udp", "port": 80, "targetPort": "web", "protocol": "UDP"},
            {"name": "admin", "port": 81, "targetPort": "admin", "protocol": "TCP"},
            {"name": "plain", "port": 82, "protocol": "TCP"},
        ]
    )
    assert endpoint_ports(svc, pod(containers=containers, initContainers=init)) == [
        {"name": "http", "protocol": "TCP", "port": 8080, "appProtocol": "http"},
        {"name": "admin", "protocol": "TCP", "port": 9000},
        {"name": "plain", "protocol": "TCP", "port": 82},
    ]


def test_pods_whose_named_port_differs_go_into_slices_of_their_own():
    def with_port(name, ip, number):
        return pod(name, ip=ip, containers=[{"name": "c", "ports": [{"name": "web", "containerPort": number}]}])

    svc = service(ports=[{"port": 80, "targetPort": "web"}])
    pods = [with_port("a", "10.0.0.1", 8080), with_port("b", "10.0.0.2", 9090), with_port("c", "10.0.0.3", 8080)]
    plan = reconcile(svc, pods, [], node)
    assert sorted((s["ports"][0]["port"], len(s["endpoints"])) for s in plan.creates) == [(8080, 2), (9090, 1)]


def test_both_families_of_a_dual_stack_service_get_slices():
    dual = pod(ip="10.0.0.1")
    dual["status"]["podIPs"].append({"ip": "fd00::1"})
    plan = reconcile(service(ipFamilies=["IPv4", "IPv6"]), [dual], [], node)
    assert [(s["addressType"], s["endpoints"][0]["addresses"]) for s in plan.creates] == [
        ("IPv4", ["10.0.0.1"]),
        ("IPv6", ["fd00::1"]),
    ]
    assert address_types(service(clusterIP="fd00::9")) == ("IPv6",)


def test_a_service_without_pods_keeps_one_empty_slice():
    plan = reconcile(service(), [], [], node)
    (placeholder,) = plan.creates
    assert (placeholder["endpoints"], placeholder["ports"]) == (None, None)
    held = apply([], plan)
    again = reconcile(service(), [], held, node)
    assert not (again.creates or again.updates or again.deletes)


def test_the_first_pod_fills_the_placeholder_and_the_last_one_leaves_it():
    held = apply([], reconcile(service(), [], [], node))
    plan = reconcile(service(), [pod()], held, node)
    assert (len(plan.creates), len(plan.updates), len(plan.deletes)) == (0, 1, 0)
    held = apply(held, plan)
    plan = reconcile(service(), [], held, node)
    assert (len(plan.creates), len(plan.updates), len(plan.deletes)) == (0, 1, 0)
    assert plan.updates[0]["endpoints"] is None


def test_a_headless_service_is_labelled_and_labels_of_the_service_are_copied():
    (plain,) = reconcile(service(), [pod()], [], node).creates
    assert plain["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "svc",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    (headless,) = reconcile(service(clusterIP="None"), [pod()], [], node).creates
    assert headless["metadata"]["labels"][LABEL_HEADLESS] == ""


def test_changed_service_labels_are_written_to_the_slices():
    held = apply([], reconcile(service(), [pod()], [], node))
    changed = service()
    changed["metadata"]["labels"] = {"team": "b"}
    plan = reconcile(changed, [pod()], held, node)
    assert [o["metadata"]["labels"]["team"] for o in plan.updates] == ["b"]


def test_a_pod_on_an_unknown_node_waits_unless_the_service_publishes_unready_addresses():
    lost = pod(nodeName="elsewhere")
    plan = reconcile(service(), [lost, pod("q", ip="10.0.0.2")], [], node)
    assert plan.missing_nodes == ["p"]
    assert [e["targetRef"]["name"] for s in plan.creates for e in s["endpoints"]] == ["q"]
    plan = reconcile(service(publishNotReadyAddresses=True), [lost], [], node)
    assert [e["targetRef"]["name"] for s in plan.creates for e in s["endpoints"]] == ["p"]


@pytest.mark.parametrize(
    ("distribution", "hints"),
    [
        (None, None),
        ("PreferClose", {"forZones": [{"name": "z"}]}),
        ("PreferSameZone", {"forZones": [{"name": "z"}]}),
        ("PreferSameNode", {"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]}),
    ],
)
def test_traffic_distribution_hints_at_zone_or_node_of_ready_endpoints(distribution, hints):
    svc = service(trafficDistribution=distribution) if distribution else service()
    pods = [pod("a", ip="10.0.0.1"), pod("b", ip="10.0.0.2", ready=False)]
    (stored,) = apply([], reconcile(svc, pods, [], node))
    assert [each.get("hints") for each in stored["endpoints"]] == [hints, None]
    settled = reconcile(svc, pods, [stored], node)
    assert not settled.updates


def test_hints_follow_a_change_of_the_service_and_a_topology_annotation_takes_them_away():
    pods = [pod("a")]
    slices = apply([], reconcile(service(), pods, [], node))
    closer = service(trafficDistribution="PreferSameZone")
    slices = apply(slices, reconcile(closer, pods, slices, node))
    assert slices[0]["endpoints"][0]["hints"] == {"forZones": [{"name": "z"}]}
    closer["metadata"]["annotations"] = {"service.kubernetes.io/topology-mode": "Auto"}
    (slice_,) = apply(slices, reconcile(closer, pods, slices, node))
    assert "hints" not in slice_["endpoints"][0]


def test_a_terminating_service_gets_no_new_slices():
    svc = service()
    svc["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert reconcile(svc, [pod()], [], node).creates == []


def test_slices_of_an_earlier_service_of_that_name_are_replaced_not_taken_over():
    held = apply([], reconcile(service(), [pod()], [], node))
    reborn = service()
    reborn["metadata"]["uid"] = "another"
    plan = reconcile(reborn, [pod()], held, node)
    assert (len(plan.creates), len(plan.updates), [o["metadata"]["name"] for o in plan.deletes]) == (
        1,
        0,
        [held[0]["metadata"]["name"]],
    )


def test_a_pod_made_again_under_its_name_and_address_changes_its_endpoint_in_place():
    held = apply([], reconcile(service(), [pod()], [], node))
    reborn = pod()
    reborn["metadata"]["uid"] = "second-life"
    (update,) = reconcile(service(), [reborn], held, node).updates
    assert update["endpoints"][0]["targetRef"]["uid"] == "second-life"


def test_new_endpoints_fill_the_fullest_slice_that_has_room():
    pods = [pod(f"p{n}", ip=f"10.1.{n // 250}.{n % 250}") for n in range(250)]
    held = apply([], reconcile(service(), pods, [], node))
    assert sorted(len(s["endpoints"]) for s in held) == [50, 100, 100]
    held = apply(held, reconcile(service(), pods[:60] + pods[100:], held, node))  # 60, 100, 50
    more = [pod(f"q{n}", ip=f"10.2.0.{n}") for n in range(40)]
    plan = reconcile(service(), pods[:60] + pods[100:] + more, held, node)
    assert (len(plan.creates), len(plan.updates)) == (0, 1)
    assert len(plan.updates[0]["endpoints"]) == 100


def test_a_slice_without_the_field_endpoints_is_an_empty_one_and_is_filled():
    held = apply([], reconcile(service(ports=None, clusterIP="None"), [], [], node))
    for field in ("endpoints", "ports"):
        del held[0][field]
    plan = reconcile(service(ports=None, clusterIP="None"), [pod()], held, node)
    assert (len(plan.creates), len(plan.updates), len(plan.deletes)) == (0, 1, 0)
    assert len(plan.updates[0]["endpoints"]) == 1


def test_the_trigger_time_is_written_and_cleared_beside_other_annotations():
    held = apply([], reconcile(service(), [], [], node, "2030-01-01T00:00:00Z"))
    key = "endpoints.kubernetes.io/last-change-trigger-time"
    assert held[0]["metadata"]["annotations"] == {key: "2030-01-01T00:00:00Z"}
    held[0]["metadata"]["annotations"]["mine"] = "kept"
    (update,) = reconcile(service(), [pod()], held, node).updates
    assert update["metadata"]["annotations"] == {"mine": "kept"}
    assert held[0]["metadata"]["annotations"][key]  # the cache is not touched


pods_strategy = st.lists(
    st.tuples(
        st.integers(0, 260),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["Running", "Running", "Running", "Succeeded", "Pending"]),
        st.sampled_from([8080, 8080, 8080, 9090]),
        st.sampled_from(["n", "n", "n", "unknown"]),
    ),
    max_size=40,
    unique_by=lambda row: row[0],
)


def make_pods(rows, block: int) -> list[dict]:
    """Each row stands for a block of Pods, so that slices overflow."""
    return [
        pod(
            f"p{number}-{part}",
            ip=f"10.{number // 256}.{number % 256}.{part}",
            ready=ready,
            deleted=deleted,
            phase=phase,
            nodeName=node_name,
            containers=[{"name": "c", "ports": [{"name": "web", "containerPort": port}]}],
        )
        for number, ready, deleted, phase, port, node_name in rows
        for part in range(block)
    ]


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(pods_strategy, st.integers(1, 12)), min_size=1, max_size=5), st.booleans())
def test_for_any_history_slices_hold_each_pod_once_at_most_100_and_settle_at_once(history, publish):
    svc = service(ports=[{"port": 80, "targetPort": "web"}], publishNotReadyAddresses=publish)
    held: list[dict] = []
    for rows, block in history:
        pods = make_pods(rows, block)
        before = copy_object({"held": held})["held"]
        plan = reconcile(svc, pods, held, node, "2030-01-01T00:00:00Z")
        assert held == before, "the cache was changed"
        held = apply(held, plan)
        listed = Counter((e["targetRef"]["name"], e["addresses"][0]) for s in held for e in s["endpoints"] or ())
        expected = {
            p["metadata"]["name"]
            for p in pods
            if should_be_in_endpoints(p) and (publish or node(p["spec"]["nodeName"]))
        }
        assert {name for name, _ in listed} == expected
        assert set(listed.values()) <= {1}
        assert all(len(s["endpoints"] or ()) <= MAX_ENDPOINTS_PER_SLICE for s in held)
        assert held, "a managed service always has a slice"
        assert all(s["endpoints"] for s in held) or len(held) == 1
        again = reconcile(svc, pods, held, node)
        assert not (again.creates or again.updates or again.deletes), "not settled"


@settings(max_examples=60, deadline=None)
@given(pods_strategy.filter(lambda rows: len(rows) > 2), st.data())
def test_one_changed_pod_costs_one_write(rows, data):
    rows = [(n, ready, deleted, "Running", 8080, "n") for n, ready, deleted, *_ in rows]
    pods = make_pods(rows, 10)
    held = apply([], reconcile(service(), pods, [], node))
    index = data.draw(st.integers(0, len(pods) - 1))
    old = pods[index]
    pods[index] = pod(
        old["metadata"]["name"],
        ip=old["status"]["podIP"],
        ready=old["status"]["conditions"][0]["status"] == "False",
        deleted="deletionTimestamp" in old["metadata"],
        containers=old["spec"]["containers"],
    )
    plan = reconcile(service(), pods, held, node)
    assert (len(plan.creates), len(plan.updates), len(plan.deletes)) == (0, 1, 0)
