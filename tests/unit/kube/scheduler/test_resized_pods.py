"""What a Pod holds of its node while a resize is under way: the most of wanted, given and had."""

from lastcall.kube.scheduler.pod_resources import held_spec, pod_requests


def pod(asked, given=None, has=None, conditions=()):
    status = {"name": "a"}
    if given:
        status["allocatedResources"] = {"cpu": given}
    if has:
        status["resources"] = {"requests": {"cpu": has}}
    containers = [{"name": "a", "image": "x", "resources": {"requests": {"cpu": asked}}}]
    return {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": containers},
        "status": {"containerStatuses": [status], "conditions": list(conditions)},
    }


def cpu(made):
    return pod_requests(held_spec(made))["cpu"]


def test_a_pod_that_is_not_resized_is_what_its_spec_says():
    made = pod("100m", "100m", "100m")
    assert held_spec(made) is made["spec"]
    made = pod("0.1", "100m", "100m")
    assert held_spec(made) is made["spec"]


def test_the_most_of_wanted_given_and_had_counts():
    assert cpu(pod("300m", "100m", "100m")) == 300
    assert cpu(pod("100m", "300m", "200m")) == 300
    assert cpu(pod("100m", "100m", "300m")) == 300


def test_what_the_node_can_never_give_does_not_count():
    never = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    assert cpu(pod("300m", "100m", "200m", [never])) == 200


def test_a_pod_without_a_status_is_what_its_spec_says():
    made = pod("100m")
    del made["status"]
    assert held_spec(made) is made["spec"]
