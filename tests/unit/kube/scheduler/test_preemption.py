"""Who has to leave for whom, and where."""

import pytest
from scheduling import cache_of, node, pod, pod_info, requests, running, text

from lastcall.kube.scheduler.filters import Diagnosis
from lastcall.kube.scheduler.placement import look
from lastcall.kube.scheduler.preemption import preempt

NO_VICTIMS = "No preemption victims found for incoming pod"


def small(name, cpu="500m", priority=0, started="2030-01-01T00:00:00Z", **more):
    made = pod(name, priority=priority, **requests(cpu=cpu), **more)
    made["status"] = {"startTime": started}
    return made


def preempted(cache, wanted, budgets=()):
    info = pod_info(cache, wanted)
    diagnosis = look(info, cache)
    assert isinstance(diagnosis, Diagnosis)
    return preempt(info, cache, diagnosis, budgets)


def victims(cache, wanted, budgets=()):
    found = preempted(cache, wanted, budgets)
    return None if found.chosen is None else (found.nominate, sorted(victim.name for victim in found.chosen.victims))


def budget(app, allowed, **status):
    return {
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed, **status},
    }


@pytest.mark.parametrize(
    ("there", "cpu", "expected"),
    [
        ({"n": [("a", "1500m", 0)]}, "1", ["a"]),
        ({"n": [("a", "500m", 0), ("b", "500m", 5), ("c", "1", 9)]}, "500m", ["a"]),  # the least important
        ({"n": [("a", "500m", 0), ("b", "500m", 5), ("c", "1", 9)]}, "1", ["a", "b"]),
        ({"n": [("a", "500m", 5), ("b", "1500m", 0)]}, "1", ["b"]),
        ({"n": [("a", "500m", 0), ("b", "1500m", 0)]}, "1500m", ["b"]),  # a is given back
        ({"n": [("a", "2", 10)]}, "1", None),
        ({"n": [("a", "2", 11)]}, "1", None),
        ({"n": [("a", "500m", 0), ("b", "1500m", 50)]}, "1", None),  # not enough even without it
    ],
)
def test_the_fewest_and_least_important_pods_of_lower_priority_leave(there, cpu, expected):
    cache = cache_of(*(node(name) for name in there))
    for name, on_node in there.items():
        for each, size, priority in on_node:
            running(cache, small(each, size, priority), name)
    found = victims(cache, small("p", cpu, 10))
    assert (found and found[1]) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([("a1", "2", 5)], [("b1", "2", 3)], "b"),  # the lower priority
        ([("a1", "2", 3)], [("b1", "1", 3), ("b2", "1", 3)], "a"),  # the lower sum, and fewer
        ([("a1", "1", 3), ("a2", "1", 3)], [("b1", "2", 3)], "b"),
        ([("a1", "2", 3, "2030-01-01T00:00:00Z")], [("b1", "2", 3, "2030-01-02T00:00:00Z")], "b"),  # started last
        ([("a1", "2", 3)], [("b1", "2", 3)], "a"),  # equal: by name
    ],
)
def test_the_node_where_it_does_the_least_harm_is_taken(first, second, expected):
    cache = cache_of(node("b"), node("a"))
    for name, on_node in (("a", first), ("b", second)):
        for each, size, priority, *started in on_node:
            running(cache, small(each, size, priority, *started), name)
    assert victims(cache, small("p", "2", 10))[0] == expected


def test_a_budget_is_kept_where_another_way_is_there():
    cache = cache_of(node("a"), node("b"))
    running(cache, small("guarded", "2", 1, labels={"app": "x"}), "a")
    running(cache, small("free", "2", 5, labels={"app": "y"}), "b")
    wanted = small("p", "2", 10)
    assert victims(cache, wanted) == ("a", ["guarded"])
    assert victims(cache, wanted, [budget("x", 0)]) == ("b", ["free"])
    assert victims(cache, wanted, [budget("x", 1)]) == ("a", ["guarded"])
    both = [budget("x", 0), budget("y", 0)]
    assert victims(cache, wanted, both) == ("a", ["guarded"]), "preferred, not promised"
    assert preempted(cache, wanted, both).chosen.violations == 1
    told = [budget("x", 0, disruptedPods={"guarded": "2030-01-01T00:00:00Z"}), budget("y", 0)]
    assert victims(cache, wanted, told)[0] == "a"


def test_within_a_node_those_whose_budget_is_spent_are_given_back_first():
    cache = cache_of(node())
    running(cache, small("guarded", "1", 1, labels={"app": "x"}), "n")
    running(cache, small("free", "1", 5), "n")
    assert victims(cache, small("p", "1", 10), [budget("x", 0)]) == ("n", ["free"])


def test_ports_and_neighbours_make_victims_too():
    cache = cache_of(node())
    port = [{"name": "c", "ports": [{"hostPort": 80}]}]
    running(cache, pod("there", priority=0, containers=port), "n")
    assert victims(cache, pod("p", priority=1, containers=port)) == ("n", ["there"])
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    ]}}  # fmt: skip
    cache = cache_of(node())
    running(cache, pod("x", priority=0, labels={"app": "x"}), "n")
    running(cache, pod("y", priority=0, labels={"app": "y"}), "n")
    assert victims(cache, pod("p", priority=1, affinity=apart)) == ("n", ["x"])


def test_what_cannot_be_helped_is_said_in_kubernetes_s_words():
    cache = cache_of(node("a"), node("b"), node("c", unschedulable=True))
    running(cache, small("high", "2", 100), "a")
    running(cache, small("also", "2", 100), "b")
    start = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. no new claims to deallocate, "
    assert text(cache, small("p", "1", 10)) == (
        f"{start}preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 {NO_VICTIMS}."
    )
    assert text(cache, small("p", "1", 10, preemptionPolicy="Never")) == (
        f"{start}preemption: not eligible due to preemptionPolicy=Never."
    )
    assert text(cache, small("p", "64", 1000)) == (
        f"{start}preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    ), "more than the node has"


def test_nobody_is_preempted_while_the_last_victims_are_still_leaving():
    cache = cache_of(node())
    leaving = small("leaving", "1500m", 0)
    leaving["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    leaving["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ]
    running(cache, leaving, "n")
    wanted = small("p", "1", 10)
    cache.nominate(pod_info(cache, wanted), "n")
    found = preempted(cache, wanted)
    assert (found.message, found.nominate, found.chosen) == (
        "not eligible due to a terminating pod on the nominated node.",
        None,
        None,
    )
    leaving["status"]["conditions"] = []
    assert preempted(cache, wanted).chosen is not None, "who is deleted by somebody else is no reason to wait"


def test_a_nomination_that_no_longer_helps_is_taken_back():
    cache = cache_of(node())
    running(cache, small("high", "2", 100), "n")
    assert preempted(cache, small("p", "1", 10)).nominate == ""
