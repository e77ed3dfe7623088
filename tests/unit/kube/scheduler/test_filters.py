"""Which nodes may take which Pod, and Kubernetes's words when none may."""

import pytest
from scheduling import cache_of, node, pod, pod_info, requests, running, text

from lastcall.kube.scheduler.filters import CycleState, refusal
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.placement import look

UNSCHEDULABLE = "node(s) were unschedulable"
NAME = "node(s) didn't match the requested node name"
TAINT = "node(s) had untolerated taint(s)"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"


def taint(key="k", value="v", effect="NoSchedule") -> dict:
    return {"key": key, "value": value, "effect": effect}


def affinity(*terms) -> dict:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def expression(key, operator, *values) -> dict:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("a_pod", "a_node", "expected"),
    [
        (pod(), node(), ""),
        (pod(), node(unschedulable=True), UNSCHEDULABLE),
        (pod(tolerations=[{"operator": "Exists"}]), node(unschedulable=True), ""),
        (
            pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
            node(unschedulable=True),
            "",
        ),
        (pod(nodeName="other"), node(), NAME),
        (pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]), node(ready="False"), ""),
        (pod(), node(taints=[taint()]), TAINT),
        (pod(), node(taints=[taint(effect="NoExecute")]), TAINT),
        (pod(), node(taints=[taint(effect="PreferNoSchedule")]), ""),
        (pod(tolerations=[{"key": "k", "value": "v"}]), node(taints=[taint()]), ""),
        (pod(tolerations=[{"key": "k", "operator": "Equal", "value": "w"}]), node(taints=[taint()]), TAINT),
        (pod(tolerations=[{"key": "k", "operator": "Exists"}]), node(taints=[taint()]), ""),
        (
            pod(tolerations=[{"key": "k", "operator": "Exists", "effect": "NoExecute"}]),
            node(taints=[taint()]),
            TAINT,
        ),
        (pod(tolerations=[{"key": "k", "value": "v"}]), node(taints=[taint(), taint("other")]), TAINT),
        (pod(nodeSelector={"disk": "ssd"}), node(), AFFINITY),
        (pod(nodeSelector={"disk": "ssd"}), node(labels={"disk": "ssd"}), ""),
        (pod(affinity=affinity(expression("a", "In", "1", "2"))), node(labels={"a": "2"}), ""),
        (pod(affinity=affinity(expression("a", "In", "1", "2"))), node(), AFFINITY),
        (pod(affinity=affinity(expression("a", "NotIn", "1"))), node(), ""),
        (pod(affinity=affinity(expression("a", "Exists"))), node(), AFFINITY),
        (pod(affinity=affinity(expression("a", "DoesNotExist"))), node(), ""),
        (pod(affinity=affinity(expression("a", "Gt", "5"))), node(labels={"a": "6"}), ""),
        (pod(affinity=affinity(expression("a", "Gt", "5"))), node(labels={"a": "5"}), AFFINITY),
        (pod(affinity=affinity(expression("a", "Lt", "5"))), node(labels={"a": "4"}), ""),
        (pod(affinity=affinity(expression("a", "Lt", "5"))), node(labels={"a": "many"}), AFFINITY),
        (pod(affinity=affinity({})), node(), AFFINITY),
        (pod(affinity=affinity(expression("a", "Exists"), expression("b", "Exists"))), node(labels={"b": ""}), ""),
        (
            pod(affinity=affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]})),
            node(),
            "",
        ),
        (
            pod(nodeSelector={"x": "y"}, affinity=affinity(expression("a", "Exists"))),
            node(labels={"a": "1"}),
            AFFINITY,
        ),
    ],
)
def test_the_first_filter_that_refuses_gives_the_reason(a_pod, a_node, expected):
    cache = cache_of(a_node)
    found = refusal(CycleState(pod_info(cache, a_pod), cache), cache.nodes["n"])
    assert ("" if found is None else ", ".join(found.reasons)) == expected


def test_the_text_for_one_mismatching_node_is_the_recorded_one():
    assert text(cache_of(node()), pod(nodeSelector={"no": "where"})) == (
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_reasons_are_counted_and_sorted():
    nodes = [node("a", unschedulable=True), node("b", taints=[taint()]), node("c", taints=[taint()]), node("d")]
    assert text(cache_of(*nodes), pod(nodeSelector={"no": "where"})).startswith(
        "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) were unschedulable, 2 node(s) had untolerated taint(s). "
    )


def test_without_nodes_the_text_says_so():
    assert text(cache_of(), pod()) == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("there", "wanted", "expected"),
    [
        ([], requests(cpu="2"), ""),
        ([], requests(cpu="2001m"), "Insufficient cpu"),
        ([requests(cpu="1500m")], requests(cpu="500m"), ""),
        ([requests(cpu="1500m")], requests(cpu="501m"), "Insufficient cpu"),
        ([requests(memory="3Gi")], requests(memory="1025Mi"), "Insufficient memory"),
        ([requests(cpu="1", memory="4Gi")], requests(cpu="2", memory="1"), "Insufficient cpu, Insufficient memory"),
        ([], requests(**{"ephemeral-storage": "21Gi"}), "Insufficient ephemeral-storage"),
        ([requests(**{"example.com/gpu": "1"})], requests(**{"example.com/gpu": "1"}), ""),
        ([requests(**{"example.com/gpu": "1"})], requests(**{"example.com/gpu": "2"}), "Insufficient example.com/gpu"),
        ([], requests(**{"example.com/other": "1"}), "Insufficient example.com/other"),
        ([{}, {}, {}, {}], {}, "Too many pods"),
        ([{}, {}, {}, requests(cpu="2")], requests(cpu="1"), "Too many pods, Insufficient cpu"),
    ],
)
def test_what_pods_take_of_a_node_is_not_there_for_others(there, wanted, expected):
    cache = cache_of(node(pods="4", **{"example.com/gpu": "2"}))
    for number, spec in enumerate(there):
        running(cache, pod(f"there-{number}", **spec), "n")
    found = look(pod_info(cache, pod(**wanted)), cache)
    assert ("" if isinstance(found, NodeInfo) else ", ".join(found.refusals["n"].reasons)) == expected


@pytest.mark.parametrize(
    ("taken", "wanted", "free"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"containerPort": 80}, {"hostPort": 80}, True),
    ],
)
def test_a_port_of_the_node_is_one_pods(taken, wanted, free):
    cache = cache_of(node())
    running(cache, pod("there", containers=[{"name": "c", "ports": [taken]}]), "n")
    found = look(pod_info(cache, pod(containers=[{"name": "c", "ports": [wanted]}])), cache)
    if free:
        assert isinstance(found, NodeInfo)
    else:
        assert found.refusals["n"].reasons == ("node(s) didn't have free ports for the requested pod ports",)


def test_a_pod_that_leaves_gives_back_all_it_took():
    cache = cache_of(node())
    wanted = pod(containers=[{"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "2"}}}])
    running(cache, pod("there", **wanted["spec"]), "n")
    assert not isinstance(look(pod_info(cache, wanted), cache), NodeInfo)
    cache.remove_pod("there")
    assert isinstance(look(pod_info(cache, wanted), cache), NodeInfo)
    assert cache.nodes["n"].ports == {}


@pytest.mark.parametrize(
    ("spec", "cpu", "memory"),
    [
        (requests(cpu="1", memory="1Gi"), 1000, 1 << 30),
        ({"containers": [{"resources": {"requests": {"cpu": "1"}}}] * 3}, 3000, 0),
        (
            {
                "initContainers": [{"resources": {"requests": {"cpu": "2"}}}],
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            },
            2000,
            0,
        ),
        (
            {
                "initContainers": [
                    {"restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
                    {"resources": {"requests": {"cpu": "2"}}},
                ],
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            },
            2500,
            0,
        ),
        (
            {
                "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}],
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
                "overhead": {"cpu": "10m"},
            },
            1510,
            0,
        ),
        ({**requests(cpu="1"), "resources": {"requests": {"cpu": "3", "memory": "1"}}}, 3000, 1),
    ],
)
def test_requests_add_up_as_kubernetes_adds_them(spec, cpu, memory):
    asked = pod_info(cache_of(), pod(**spec)).requirements.requests
    assert (asked.get("cpu", 0), asked.get("memory", 0)) == (cpu, memory)


def test_a_pod_that_names_its_node_by_field_is_told_about_the_others_in_one_word():
    wanted = affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]})
    cache = cache_of(node("a"), node("b", unschedulable=True), node("c"))
    assert text(cache, pod(affinity=wanted)).startswith(
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
    )
    none = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    conflict = affinity({"matchFields": [none, {**none, "values": ["b"]}]})
    assert text(cache, pod(affinity=conflict)).startswith("0/3 nodes are available: pod affinity terms conflict. ")
