"""PriorityClasses: what a Pod gets from one, and what is refused."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.apiserver.admission.chain import add_not_ready_taint
from lastcall.kube.apiserver.admission.priority import check_default, default_class, set_priority


def pod(**spec):
    return {"metadata": {"name": "p"}, "spec": spec}


def of(name, value, **more):
    return {"metadata": {"name": name}, "value": value, **more}


@pytest.mark.parametrize(
    ("spec", "priority_class", "expected"),
    [
        ({}, None, {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}),
        ({"priority": 0}, None, {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}),
        (
            {},
            of("default", 7, preemptionPolicy="Never", globalDefault=True),
            {"priorityClassName": "default", "priority": 7, "preemptionPolicy": "Never"},
        ),
        (
            {"priorityClassName": "c"},
            of("c", -5, preemptionPolicy="PreemptLowerPriority"),
            {"priorityClassName": "c", "priority": -5, "preemptionPolicy": "PreemptLowerPriority"},
        ),
    ],
)
def test_a_pod_gets_what_its_class_says(spec, priority_class, expected):
    made = pod(**spec)
    set_priority(made, priority_class)
    assert made["spec"] == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"priority": 5},
            'pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority '
            "admission controller computed 7 from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "PreemptLowerPriority"},
            'pods "p" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided '
            "in pod spec; priority admission controller computed Never from the given PriorityClass name",
        ),
    ],
)
def test_a_pod_may_not_disagree_with_its_class(spec, message):
    with pytest.raises(StatusError) as refused:
        set_priority(pod(**spec), of("c", 7, preemptionPolicy="Never"))
    assert (refused.value.code, refused.value.message) == (403, message)


def test_there_is_one_default_at_most_and_of_several_the_lowest_counts():
    classes = [of("a", 5, globalDefault=True), of("b", 3, globalDefault=True), of("c", 1)]
    assert default_class(classes) == classes[1]
    assert default_class(classes[2:]) is None
    check_default(of("c", 1), classes)
    check_default(of("b", 3, globalDefault=True), classes[1:])
    with pytest.raises(StatusError) as refused:
        check_default(of("c", 1, globalDefault=True), classes[1:])
    assert refused.value.message == (
        'priorityclasses.scheduling.k8s.io "c" is forbidden: PriorityClass b is already marked as default. Only one '
        "default can exist"
    )


def test_a_new_node_is_tainted_once():
    node = {"metadata": {"name": "n"}}
    add_not_ready_taint(node)
    add_not_ready_taint(node)
    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
