"""Which Node may take which Pod, and Kubernetes's words when none may."""

import pytest

from lastcall.scheduler.filters import find_nodes, refusal

UNSCHEDULABLE = "node(s) were unschedulable"
NAME = "node(s) didn't match the requested node name"
TAINT = "node(s) had untolerated taint(s)"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"


def node(name="n", ready="True", labels=None, taints=(), unschedulable=False) -> dict:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints), **({"unschedulable": True} if unschedulable else {})},
        "status": {"conditions": conditions},
    }


def pod(**spec) -> dict:
    return {"metadata": {"name": "p", "namespace": "default"}, "spec": spec}


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
        (pod(), node(ready="False"), TAINT),
        (pod(), node(ready="Unknown"), TAINT),
        (pod(), node(ready=""), TAINT),
        (pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]), node(ready="False"), ""),
        (
            pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]),
            node(ready="False"),
            TAINT,
        ),
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
    assert refusal(a_pod, a_node) == expected


def test_the_text_for_one_mismatching_node_is_the_recorded_one():
    _, message = find_nodes(pod(nodeSelector={"no": "where"}), [node()])
    assert message == (
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_reasons_are_counted_and_sorted():
    nodes = [node("a", unschedulable=True), node("b", taints=[taint()]), node("c", taints=[taint()]), node("d")]
    _, message = find_nodes(pod(nodeSelector={"no": "where"}), nodes)
    assert message.startswith(
        "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) were unschedulable, 2 node(s) had untolerated taint(s). "
    )


def test_without_nodes_the_text_says_so():
    assert find_nodes(pod(), []) == ([], "no nodes available to schedule pods")


def test_all_fitting_nodes_are_answered():
    fitting, message = find_nodes(pod(), [node("a"), node("b", ready="False"), node("c")])
    assert ([n["metadata"]["name"] for n in fitting], message) == (["a", "c"], "")
