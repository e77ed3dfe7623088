"""The edges of the autoscaler's arithmetic (podautoscaler/replicas.py, podautoscaler/scaling.py).

Source: pkg/controller/podautoscaler/replica_calculator.go, horizontal.go.
"""

from datetime import UTC, datetime, timedelta

import pytest

from lastcall.kube.controllers.podautoscaler.replicas import (
    Measured,
    MetricError,
    Tolerances,
    by_utilization,
    by_value,
    groups_of,
    measured_of,
    requests_of,
    window_of,
)
from lastcall.kube.controllers.podautoscaler.scaling import Memory, bounded, remember

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
WINDOW = timedelta(seconds=15)


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(
    name: str = "a", *, ready: str | None = "True", started: float | None = 3600, since: float | None = 3600,
    cpu: str | None = "100m", **status: object,
) -> dict:  # fmt: skip
    condition = {"type": "Ready", "status": ready} | ({} if since is None else {"lastTransitionTime": ago(since)})
    known = {"phase": "Running"} | ({} if started is None else {"startTime": ago(started)})
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"containers": [{"name": "c", "resources": resources}]},
        "status": {**known, "conditions": [condition] if ready else [], **status},
    }


def used(**values: int) -> dict[str, Measured]:
    return {name: Measured(value, NOW, WINDOW) for name, value in values.items()}


@pytest.mark.parametrize(
    ("of", "measured", "resource", "ready"),
    [
        (pod(ready=None), 0, "cpu", False),
        (pod(started=None), 0, "cpu", False),
        (pod(ready=None), 0, "memory", True),
        # within five minutes of its start: Ready, and measured since
        (pod(started=299, since=60), 45, "cpu", True),
        (pod(started=299, since=60), 46, "cpu", False),
        (pod(started=299, since=60, ready="False"), 0, "cpu", False),
        (pod(started=299, since=None), 284, "cpu", True),
        (pod(started=299, since=None), 285, "cpu", False),
        # later: not Ready since its start plus 30 s
        (pod(started=300, since=60), 3600, "cpu", True),
        (pod(started=300, since=271, ready="False"), 0, "cpu", False),
        (pod(started=300, since=270, ready="False"), 0, "cpu", True),
        (pod(started=300, since=271), 0, "cpu", True),
    ],
)
def test_the_cpu_of_a_pod_that_warms_up_does_not_count(of: dict, measured: float, resource: str, ready: bool) -> None:
    found = {"a": Measured(1, NOW - timedelta(seconds=measured), WINDOW)}
    groups = groups_of([of], found, resource, NOW)
    assert groups == (1, set(), set(), set()) if ready else (0, {"a"}, set(), set())


def test_each_pod_is_in_one_group() -> None:
    pods = [
        pod("a"),
        pod("b"),
        pod("m"),
        pod("p", phase="Pending"),
        pod("f", phase="Failed"),
        {"metadata": {"name": "x"}},
    ]
    assert groups_of(pods, used(a=1, b=1), "memory", NOW) == (2, {"p"}, {"m", "x"}, {"f"})


def with_sidecar(restart: str | None) -> dict:
    made = pod()
    sidecar = {"name": "s", "resources": {"requests": {"cpu": "50m"}}} | ({"restartPolicy": restart} if restart else {})
    made["spec"]["initContainers"] = [sidecar]
    return made


@pytest.mark.parametrize(
    ("of", "container", "expected"),
    [
        (pod(), "", 100), (pod(cpu="2"), "", 2000), (with_sidecar("Always"), "", 150), (with_sidecar(None), "", 100),
        (with_sidecar("Always"), "c", 100), (with_sidecar("Always"), "s", 50), (pod(), "x", 0),
    ],
)  # fmt: skip
def test_what_a_pod_asks_for_is_the_sum_of_what_runs_all_the_time(of: dict, container: str, expected: int) -> None:
    assert requests_of([of], "cpu", container) == {"a": expected}


def test_a_request_that_is_missing_is_an_error_unless_another_container_counts() -> None:
    of = pod(cpu=None)
    with pytest.raises(MetricError, match="missing request for cpu in container c of Pod a"):
        requests_of([of], "cpu")
    del of["spec"]["containers"][0]["resources"]
    with pytest.raises(MetricError, match="missing request for cpu in container c of Pod a"):
        requests_of([of], "cpu")
    assert requests_of([of], "cpu", "other") == {"a": 0}


A, B, C = pod("a"), pod("b"), pod("c")
WAITS = pod("b", phase="Pending")


@pytest.mark.parametrize(
    ("current", "pods", "measured", "target", "expected"),
    [
        (1, [A], used(a=100), 100, (1, 100, 100)),
        (1, [A], used(a=110), 100, (1, 110, 110)),
        (1, [A], used(a=111), 100, (2, 111, 111)),
        (1, [A], used(a=90), 100, (1, 90, 90)),
        (2, [A, B], used(a=89, b=89), 100, (2, 89, 89)),
        (4, [A, B], used(a=40, b=40), 100, (1, 40, 40)),
        (2, [A, B], used(a=100, b=200), 50, (6, 150, 150)),
        # missing: on the way up it uses nothing, on the way down all that it asks for (or the target)
        (2, [A, B], used(a=150), 100, (2, 150, 150)),
        (2, [A, B], used(a=220), 100, (2, 220, 220)),
        (2, [A, B], used(a=230), 100, (3, 230, 230)),
        (3, [A, B, C], used(a=10, b=10), 100, (2, 10, 10)),
        (2, [A, B], used(a=10), 200, (2, 10, 10)),
        (3, [A, B, C], used(a=10), 200, (3, 10, 10)),
        (3, [A, B, C], used(a=2), 110, (3, 2, 2)),  # 2 and twice 110: 74 % of 110 %, times 3 is above 2
        (3, [A, B, C], used(a=1), 110, (2, 1, 1)),
        (2, [A, B], used(a=100), 100, (2, 100, 100)),
        # one that waits counts only on the way up
        (2, [A, WAITS], used(a=300), 100, (3, 300, 300)),
        (2, [A, WAITS], used(a=150), 100, (2, 150, 150)),
        (2, [A, WAITS], used(a=50), 100, (1, 50, 50)),
        (2, [A, WAITS], used(a=100), 100, (2, 100, 100)),
        # more than it would be with what is known: nothing changes
        (5, [A, WAITS], used(a=300), 100, (5, 300, 300)),
        (1, [A, B, C], used(a=10, b=10), 100, (1, 10, 10)),
    ],
)
def test_replicas_follow_the_share_of_the_target(
    current: int, pods: list, measured: dict, target: int, expected: tuple
) -> None:
    assert by_utilization(current, target, pods, measured, "cpu", "", NOW, Tolerances()) == expected


def test_only_pods_that_ask_for_something_have_a_utilization() -> None:
    with pytest.raises(MetricError, match="no metrics returned matched known pods"):
        by_utilization(1, 50, [A], used(a=100), "cpu", "other", NOW, Tolerances())
    with pytest.raises(MetricError, match="no metrics returned matched known pods"):
        by_utilization(1, 50, [A], used(other=100), "cpu", "", NOW, Tolerances())


@pytest.mark.parametrize(
    ("pods", "measured", "target", "expected"),
    [
        ([A, B], used(a=300, b=100), 100, (4, None, 200)),
        ([A, B], used(a=300, b=101), 100, (4, None, 200)),
        ([A, B, C], used(a=300), 100, (3, None, 300)),
        ([A, B, C], used(a=10), 100, (3, None, 10)),
        ([A, B, C], used(a=10, b=10), 100, (2, None, 10)),
    ],
)
def test_replicas_follow_the_average_of_a_value(pods: list, measured: dict, target: int, expected: tuple) -> None:
    assert by_value(len(pods), target, pods, measured, "memory", NOW, Tolerances()) == expected


@pytest.mark.parametrize(("ratio", "expected"), [(0.8, True), (0.79, False), (1.0, True), (1.3, True), (1.31, False)])
def test_both_tolerances_are_inclusive(ratio: float, expected: bool) -> None:
    assert Tolerances(0.2, 0.3).holds(ratio) is expected


def item(*usages: dict | None, **more: object) -> dict:
    containers = [{"name": f"c{number}", "usage": usage} for number, usage in enumerate(usages)]
    return {"metadata": {"name": "p", "namespace": "ns"}, "timestamp": ago(0), "containers": containers, **more}


def test_a_pod_of_which_a_container_is_not_measured_is_not_measured() -> None:
    assert measured_of([item({"cpu": "1"}, {"cpu": "2"})], "cpu")["p"] == Measured(3000, NOW, timedelta())
    assert measured_of([item({"cpu": "1"}, window="30s")], "cpu")["p"].window == timedelta(seconds=30)
    assert measured_of([item({"cpu": "1"}, {})], "cpu") == {}
    assert measured_of([item({"cpu": "1"}, None)], "cpu") == {}
    assert measured_of([item()], "cpu") == {}
    assert measured_of([item({"cpu": "1"}, {})], "cpu", "c0")["p"].value == 1000
    assert list(measured_of([item({}), {**item({"cpu": "1"}), "metadata": {"name": "q"}}], "cpu")) == ["q"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("1m", 60), ("2m0.5s", 120.5), ("500ms", 0.5), ("", 0), ("0s", 0), ("xm1s", 0), ("15.013s", 15.013)],
)
def test_a_window_is_a_duration(text: str, seconds: float) -> None:
    assert window_of(text).total_seconds() == seconds


# -- how far -------------------------------------------------------------------------------------------------------


def moved(
    behavior: dict | None, current: int, wanted: int, memory: Memory | None = None, *, least: int = 1, most: int = 20,
    now: float = 1000.0,
) -> tuple[int, str, str, str]:  # fmt: skip
    found = bounded(memory or Memory(), behavior, current, wanted, least, most, now)
    able, limited = found.said
    assert (able.type, able.status, limited.type) == ("AbleToScale", "True", "ScalingLimited")
    return found.replicas, able.reason, limited.status, limited.reason


OK, READY = ("False", "DesiredWithinRange"), "ReadyForNewScale"


@pytest.mark.parametrize(
    ("current", "wanted", "least", "most", "expected"),
    [
        (3, 3, 3, 20, (3, *OK)), (3, 2, 3, 20, (3, "True", "TooFewReplicas")), (3, 6, 1, 20, (6, *OK)),
        (3, 7, 1, 20, (6, "True", "ScaleUpLimit")), (3, 7, 1, 6, (6, "True", "TooManyReplicas")),
        (3, 7, 1, 5, (5, "True", "TooManyReplicas")), (1, 4, 1, 20, (4, *OK)),
        (1, 5, 1, 20, (4, "True", "ScaleUpLimit")),
        (2, 5, 1, 20, (4, "True", "ScaleUpLimit")), (0, 5, 1, 20, (4, "True", "ScaleUpLimit")),
    ],
)  # fmt: skip
def test_without_a_behavior_replicas_at_most_double_or_become_four(
    current: int, wanted: int, least: int, most: int, expected: tuple
) -> None:
    assert moved(None, current, wanted, least=least, most=most) == (expected[0], READY, *expected[1:])


def policy(kind: str, value: int, seconds: int = 60) -> dict:
    return {"type": kind, "value": value, "periodSeconds": seconds}


def rules(direction: str, *policies: dict, **more: object) -> dict:
    return {direction: {"policies": list(policies), **more}}


PODS_2, HALF = policy("Pods", 2), policy("Percent", 50)


@pytest.mark.parametrize(
    ("behavior", "current", "wanted", "bounds", "expected"),
    [
        ({}, 3, 7, (1, 20), (7, *OK)),
        ({}, 3, 8, (1, 20), (7, "True", "ScaleUpLimit")),
        ({}, 10, 21, (1, 30), (20, "True", "ScaleUpLimit")),
        ({}, 3, 8, (1, 7), (7, "True", "TooManyReplicas")),
        ({}, 3, 3, (1, 20), (3, *OK)),
        ({}, 9, 1, (1, 20), (1, *OK)),
        ({}, 9, 1, (2, 20), (2, "True", "TooFewReplicas")),
        (rules("scaleUp", PODS_2, HALF), 10, 20, (1, 20), (15, "True", "ScaleUpLimit")),
        (rules("scaleUp", PODS_2, HALF, selectPolicy="Min"), 10, 20, (1, 20), (12, "True", "ScaleUpLimit")),
        (rules("scaleUp", HALF), 3, 20, (1, 20), (5, "True", "ScaleUpLimit")),
        (rules("scaleUp", selectPolicy="Disabled"), 3, 20, (1, 20), (3, "True", "ScaleUpLimit")),
        (rules("scaleDown", PODS_2, HALF), 10, 1, (1, 20), (5, "True", "ScaleDownLimit")),
        (rules("scaleDown", PODS_2, HALF, selectPolicy="Min"), 10, 1, (1, 20), (8, "True", "ScaleDownLimit")),
        (rules("scaleDown", HALF), 5, 1, (1, 20), (2, "True", "ScaleDownLimit")),
        (rules("scaleDown", HALF), 5, 1, (2, 20), (2, "True", "TooFewReplicas")),
        (rules("scaleDown", PODS_2), 5, 3, (1, 20), (3, *OK)),
    ],
)
def test_policies_bound_a_step(behavior: dict, current: int, wanted: int, bounds: tuple, expected: tuple) -> None:
    found = moved(behavior, current, wanted, least=bounds[0], most=bounds[1])
    assert found == (expected[0], READY, *expected[1:])


@pytest.mark.parametrize(
    ("behavior", "after", "expected"),
    [
        (None, 300, 5),
        (None, 301, 2),
        ({}, 299, 5),
        ({}, 300, 2),
        (rules("scaleDown", stabilizationWindowSeconds=60), 60, 2),
    ],
)
def test_the_window_of_a_way_down_ends(behavior: dict | None, after: float, expected: int) -> None:
    memory = Memory()
    moved(behavior, 5, 5, memory)
    replicas, reason, *_ = moved(behavior, 5, 2, memory, now=1000.0 + after)
    assert (replicas, reason) == (expected, READY if expected == 2 else "ScaleDownStabilized")


def test_recommendations_are_forgotten_after_the_longest_window() -> None:
    memory = Memory()
    behavior = rules("scaleUp", stabilizationWindowSeconds=600)
    for now in (1000.0, 1300.0, 1600.0, 1601.0):
        moved(behavior, 5, 5, memory, now=now)
    assert [at for at, _ in memory.recommended] == [1300.0, 1600.0, 1601.0]
    memory = Memory()
    for now in (1000.0, 1300.0, 1301.0):
        moved(None, 5, int(now) % 7, memory, now=now)
    assert memory.recommended == [(1300.0, 5), (1301.0, 6)]


def test_the_lowest_recommendation_of_a_window_counts_on_the_way_up() -> None:
    memory = Memory([(990.0, 3), (995.0, 6)])
    found = bounded(memory, rules("scaleUp", stabilizationWindowSeconds=60), 2, 8, 1, 20, 1000.0)
    assert found.replicas == 3
    assert (found.said[0].reason, found.said[0].message) == (
        "ScaleUpStabilized",
        "recent recommendations were lower than current one, applying the lowest recent recommendation",
    )


def test_a_change_is_remembered_for_the_longest_period_of_its_direction() -> None:
    behavior = rules("scaleUp", policy("Pods", 5, 30), policy("Percent", 10, 60)) | rules(
        "scaleDown", policy("Pods", 1, 90)
    )
    memory = Memory()
    for now, before, after in ((1000.0, 2, 5), (1060.0, 5, 6), (1061.0, 6, 8), (1100.0, 8, 4)):
        remember(memory, behavior, before, after, now)
    assert (memory.ups, memory.downs) == ([(1060.0, 1), (1061.0, 2)], [(1100.0, 4)])
    remember(memory, behavior, 4, 3, 1190.0)
    assert memory.downs == [(1100.0, 4), (1190.0, 1)]
    remember(memory, None, 4, 3, 1191.0)
    assert len(memory.downs) == 2


@pytest.mark.parametrize(
    ("direction", "current", "wanted", "after", "expected"),
    [
        ("scaleUp", 5, 20, 59, 5), ("scaleUp", 5, 20, 60, 8), ("scaleDown", 5, 1, 59, 5), ("scaleDown", 5, 1, 60, 2),
    ],
)  # fmt: skip
def test_what_changed_within_the_period_counts_against_the_policy(
    direction: str, current: int, wanted: int, after: float, expected: int
) -> None:
    memory = Memory(ups=[(1000.0, 3)], downs=[(1000.0, 3)])
    behavior = rules(direction, policy("Pods", 3), stabilizationWindowSeconds=0)
    assert moved(behavior, current, wanted, memory, now=1000.0 + after)[0] == expected
