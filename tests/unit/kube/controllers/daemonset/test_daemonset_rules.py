"""Which nodes get a DaemonSet's Pod and which of its Pods go, as tables (daemonset/decide.py)."""

from datetime import UTC, datetime, timedelta

import pytest

from lastcall.kube.controllers.daemonset.decide import (
    TEMPLATE_GENERATION,
    TEMPLATE_GENERATION_LABEL,
    by_node,
    is_updated,
    limits,
    manage,
    new_pod,
    rolling_update,
    seconds_until_change,
    should_run,
    status_of,
    target_node,
)
from lastcall.world.clock import rfc3339

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
NOW = MOMENT.timestamp()


def at(seconds_ago: float) -> str:
    return rfc3339(MOMENT - timedelta(seconds=seconds_ago))


ENDING = {"deletionTimestamp": at(1)}


def owner(*, kind: str = "RollingUpdate", rolling: dict | None = None, pod: dict | None = None, **spec: object) -> dict:
    update = {"type": kind} | ({"rollingUpdate": rolling} if rolling is not None else {})
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "app"}], **(pod or {})}}
    meta = {"name": "agent", "namespace": "default", "uid": "u", "generation": 3}
    return {"metadata": meta, "spec": {"template": template, "updateStrategy": update, **spec}}


def node(name: str, *taints: tuple[str, str]) -> dict:
    return {
        "metadata": {"name": name, "labels": {"disk": "ssd" if name == "n1" else "hdd"}},
        "spec": {"taints": [{"key": key, "effect": effect} for key, effect in taints]},
    }


def pod(
    name: str, *, on: str = "n1", ready: float | None = 100, phase: str = "Running", revision: str = "new",
    age: float = 1000, **meta: object,
) -> dict:  # fmt: skip
    conditions = [] if ready is None else [{"type": "Ready", "status": "True", "lastTransitionTime": at(ready)}]
    labels = {"controller-revision-hash": revision}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels, "creationTimestamp": at(age), **meta},
        "spec": {"nodeName": on} if on else {},
        "status": {"phase": phase, "conditions": conditions},
    }


def pinned(name: str, on: str, operator: str = "In", values: list | None = None) -> dict:
    """A Pod that is meant for a node and has none yet."""
    field = {"key": "metadata.name", "operator": operator, "values": values or [on]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    made = pod(name, on="", ready=None, phase="Pending")
    made["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return made


def managed(of: dict, nodes: list, *pods: dict) -> tuple[tuple, list]:
    plan = manage(of, nodes, by_node(pods), "new", NOW)
    return plan.create, [each.pod["metadata"]["name"] for each in plan.remove]


SURGE = {"maxSurge": 1, "maxUnavailable": 0}
OLD, OLD_UNREADY = pod("a", revision="old"), pod("a", revision="old", ready=None)
OLD_2 = pod("b", on="n2", revision="old")
OLD_C, OLD_C_UNREADY = pod("c", revision="old"), pod("c", revision="old", ready=None)
OLD_C2 = pod("c", on="n2", revision="old")


@pytest.mark.parametrize(
    ("of", "nodes", "pods", "create", "remove"),
    [
        (owner(), [node("n1"), node("n2")], [pod("a")], ("n2",), []),
        (owner(), [node("n1")], [pinned("a", "n1")], (), []),
        (owner(), [node("n1")], [pod("a", **ENDING)], (), []),
        (owner(), [node("n1")], [pod("a", phase="Failed", **ENDING)], ("n1",), []),
        (owner(), [node("n1")], [pod("a", phase="Failed")], (), ["a"]),
        (owner(), [node("n1")], [pod("a", phase="Succeeded")], (), ["a"]),
        (owner(), [node("n1")], [pod("a", age=10), pod("b", age=20)], (), ["a"]),
        (owner(), [node("n1")], [pod("a", age=10), pinned("b", "n1")], (), ["b"]),
        (owner(), [node("n1")], [pod("a", age=10, **ENDING), pod("b", age=20)], (), []),
        (owner(), [], [pinned("a", "n9"), pod("b", on="n9"), pod("c", on="")], (), ["a"]),
        (owner(pod={"nodeSelector": {"disk": "ssd"}}), [node("n1"), node("n2")], [pod("a", on="n2")], ("n1",), ["a"]),
        (owner(), [node("n1", ("x", "NoSchedule"))], [], (), []),
        (owner(), [node("n1", ("x", "NoSchedule"))], [pod("a")], (), []),
        (owner(), [node("n1", ("x", "NoExecute"))], [pod("a"), pod("b", **ENDING)], (), ["a"]),
        (owner(rolling=SURGE), [node("n1")], [pod("a", **ENDING)], ("n1",), []),
        (owner(kind="OnDelete", rolling=SURGE), [node("n1")], [pod("a", **ENDING)], (), []),
        (owner(rolling=SURGE), [node("n1", ("x", "NoSchedule"))], [pod("a", **ENDING)], (), []),
        (owner(rolling=SURGE), [node("n1")], [pod("a"), pod("b", age=5), OLD_C_UNREADY], (), ["b", "c"]),
        (owner(rolling=SURGE), [node("n1")], [pod("a", ready=None), OLD_C], (), []),
        (owner(rolling=SURGE), [node("n1")], [pod("a"), OLD_C], (), ["c"]),
        (owner(rolling=SURGE, minReadySeconds=200), [node("n1")], [pod("a"), OLD_C], (), []),
    ],
)  # fmt: skip
def test_each_node_that_fits_has_one_pod(of: dict, nodes: list, pods: list, create: tuple, remove: list) -> None:
    assert managed(of, nodes, *pods) == (create, remove)


@pytest.mark.parametrize(
    ("of", "pods", "create", "remove"),
    [
        (owner(), [OLD, OLD_2], (), ["a"]),
        (owner(rolling={"maxUnavailable": 2}), [OLD, OLD_2], (), ["a", "b"]),
        (owner(rolling={"maxUnavailable": "50%"}), [OLD, OLD_2], (), ["a"]),
        (owner(), [OLD, pod("b", on="n2", ready=None)], (), []),
        (owner(), [OLD_UNREADY, OLD_2], (), ["a"]),
        (owner(rolling={"maxUnavailable": 2}), [OLD_UNREADY, OLD_2], (), ["a", "b"]),
        (owner(), [OLD, pod("b", on="n2", revision="old", **ENDING)], (), []),
        (owner(), [OLD, pod("b", on="n2"), pod("c", on="n2", age=5)], (), []),
        (owner(), [OLD, pod("b", revision="old"), OLD_C2], (), []),
        (owner(), [OLD, pod("b", on="n2"), OLD_C2], (), []),
        (owner(minReadySeconds=200), [pod("a"), pod("b", on="n2", revision="old", ready=300)], (), []),
        (owner(rolling=SURGE), [OLD, OLD_2], ("n1",), []),
        (owner(rolling=SURGE), [OLD_UNREADY, OLD_2], ("n1", "n2"), []),
        (owner(rolling=SURGE), [OLD, pod("b"), OLD_C2], ("n2",), ["a"]),
        (owner(rolling=SURGE), [OLD, pod("b", ready=None), OLD_C2], (), []),
        (owner(rolling=SURGE), [pod("a"), OLD_C2], ("n2",), []),
    ],
)  # fmt: skip
def test_a_rollout_stays_within_its_limits(of: dict, pods: list, create: tuple, remove: list) -> None:
    plan = rolling_update(of, [node("n1"), node("n2")], by_node(pods), "new", NOW)
    assert (plan.create, [each.pod["metadata"]["name"] for each in plan.remove]) == (create, remove)
    assert all(each.rollout and each.why == "DaemonSet agent rolls out revision new" for each in plan.remove)


@pytest.mark.parametrize(
    ("rolling", "expected"),
    [
        (None, (0, 1)),
        ({"maxUnavailable": "10%"}, (0, 2)),
        ({"maxUnavailable": 0}, (0, 1)),
        ({"maxSurge": "10%", "maxUnavailable": 0}, (2, 0)),
        ({"maxSurge": 3}, (3, 1)),
    ],
)
def test_limits_are_numbers_or_percentages_rounded_up(rolling: dict | None, expected: tuple) -> None:
    assert limits(owner(rolling=rolling), 11) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (pod("a"), "n1"),
        (pinned("a", "n2"), "n2"),
        (pinned("a", "n2", "NotIn"), ""),
        (pinned("a", "n2", values=["n1", "n2"]), ""),
        (pod("a", on=""), ""),
    ],
)
def test_a_pod_is_meant_for_the_node_that_its_affinity_names(obj: dict, expected: str) -> None:
    assert target_node(obj) == expected


def test_a_new_pod_is_pinned_and_tolerates_what_nodes_suffer_from() -> None:
    of = owner(pod={"hostNetwork": True, "affinity": {"podAffinity": {}}, "tolerations": [{"key": "own"}]})
    of["metadata"]["annotations"] = {TEMPLATE_GENERATION: "7"}
    made = new_pod(of, "n2", "r")
    assert target_node(made) == "n2" and "podAffinity" in made["spec"]["affinity"]
    assert made["metadata"]["labels"] == {
        "app": "agent",
        TEMPLATE_GENERATION_LABEL: "7",
        "controller-revision-hash": "r",
    }
    keys = [each["key"].removeprefix("node.kubernetes.io/") for each in made["spec"]["tolerations"]]
    pressures = ["disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"]
    assert keys == ["own", "not-ready", "unreachable", *pressures, "network-unavailable"]
    plain = new_pod(owner(), "n2", "r")
    assert len(plain["spec"]["tolerations"]) == 6 and TEMPLATE_GENERATION_LABEL not in plain["metadata"]["labels"]


def test_a_node_that_the_template_does_not_name_gets_none() -> None:
    of = owner(pod={"nodeName": "n1"})
    assert (should_run(of, node("n1")), should_run(of, node("n2"))) == ((True, True), (False, False))


def test_a_pod_is_updated_by_its_revision_or_by_the_old_generation() -> None:
    of = owner()
    assert is_updated(of, pod("a"), "new") and not is_updated(of, OLD, "new")
    assert not is_updated(of, pod("a", revision=""), "")
    of["metadata"]["annotations"] = {TEMPLATE_GENERATION: "7"}
    old = pod("a", revision="old")
    assert not is_updated(of, old, "new")
    old["metadata"]["labels"][TEMPLATE_GENERATION_LABEL] = "7"
    assert is_updated(of, old, "new")


def test_the_status_counts_the_oldest_pod_of_each_node() -> None:
    nodes = [node("n1"), node("n2"), node("n3"), node("n4", ("x", "NoExecute")), node("n5", ("x", "NoExecute"))]
    pods = [
        pod("a"), pod("b", age=5, ready=None), pod("c", on="n2", ready=5, revision="old"), pod("d", on="n4"),
    ]  # fmt: skip
    of = owner(minReadySeconds=10)
    assert status_of(of, nodes, by_node(pods), "new", NOW, observe=True) == {
        "currentNumberScheduled": 2, "numberMisscheduled": 1, "desiredNumberScheduled": 3, "numberReady": 2,
        "observedGeneration": 3, "updatedNumberScheduled": 1, "numberAvailable": 1, "numberUnavailable": 2,
    }  # fmt: skip
    of["status"] = {"observedGeneration": 2, "collisionCount": 1, "conditions": [{"type": "X"}]}
    status = status_of(of, [], {}, "new", NOW, observe=False)
    assert (status["observedGeneration"], status["collisionCount"], status["conditions"]) == (2, 1, [{"type": "X"}])
    of["status"] = {}
    assert "observedGeneration" not in status_of(of, [], {}, "new", NOW, observe=False)


def test_the_next_pod_becomes_available_by_time_alone() -> None:
    pods = by_node(
        [pod("a", ready=5), pod("b", on="n2", ready=8), pod("c", on="n3", ready=20), pod("d", on="n4", ready=None)]
    )
    assert seconds_until_change(owner(minReadySeconds=10), pods, NOW) == 2.0
    assert seconds_until_change(owner(), pods, NOW) is None
