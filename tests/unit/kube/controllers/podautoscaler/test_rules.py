"""How many replicas metrics ask for, and how far they may move now."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from lastcall.kube.controllers.podautoscaler.scaling import Memory, Said, bounded, remember, with_conditions

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
EARLIER = "2026-01-01T00:00:00Z"
LATELY = "2026-01-01T00:59:50Z"


def pod(
    name: str, *, phase: str = "Running", ready: str = "True", started: str = EARLIER, since: str = EARLIER, **more
):
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": since}
    resources = {"requests": {"cpu": "100m"}}
    return {
        "metadata": {"name": name, "namespace": "ns", **more},
        "spec": {"containers": [{"name": "c", "resources": resources}]},
        "status": {"phase": phase, "startTime": started, "conditions": [condition]},
    }


def used(**values: int) -> dict[str, Measured]:
    return {name: Measured(value, NOW, timedelta(seconds=15)) for name, value in values.items()}


@pytest.mark.parametrize(
    ("of", "measured", "group"),
    [
        (pod("a"), True, "ready"),
        (pod("a"), False, "missing"),
        (pod("a", phase="Pending"), False, "unready"),
        (pod("a", phase="Failed"), True, "ignored"),
        (pod("a", deletionTimestamp=LATELY), True, "ignored"),
        (pod("a", ready="False", started=LATELY, since=LATELY), True, "unready"),
        (pod("a", started=LATELY, since=LATELY), True, "unready"),  # measured in part before it was ready
        (pod("a", ready="False", since=LATELY), True, "ready"),  # became unready later
        (pod("a", ready="False", since=EARLIER), True, "unready"),  # was never ready
    ],
)
def test_pods_that_warm_up_or_end_are_told_apart(of: dict, measured: bool, group: str) -> None:
    groups = groups_of([of], used(a=1) if measured else {}, "cpu", NOW)
    expected = {"ready": 0, "unready": set(), "missing": set(), "ignored": set()} | {group: {"a"}}
    assert groups == (1 if group == "ready" else 0, *(expected[each] for each in ("unready", "missing", "ignored")))


@pytest.mark.parametrize(
    ("pods", "measured", "target", "replicas", "utilization"),
    [
        ([pod("a"), pod("b")], used(a=100, b=100), 50, 4, 100),
        ([pod("a"), pod("b")], used(a=55, b=54), 50, 2, 54),  # within the tolerance
        ([pod("a"), pod("b"), pod("c")], used(a=10, b=10, c=10), 50, 1, 10),
        ([pod("a"), pod("b")], used(a=10), 50, 2, 10),  # what is missing counts as all that it asks for
        ([pod("a"), pod("b")], used(a=300), 50, 6, 300),  # and as nothing on the way up
        ([pod("a"), pod("b", phase="Pending")], used(a=100), 50, 2, 100),
        ([pod("a"), pod("b", phase="Failed")], used(a=200, b=900), 50, 4, 200),
    ],
)
def test_replicas_by_utilization(pods: list, measured: dict, target: int, replicas: int, utilization: int) -> None:
    wanted = by_utilization(len(pods), target, pods, measured, "cpu", "", NOW, Tolerances())
    assert (wanted.replicas, wanted.utilization) == (replicas, utilization)


def test_replicas_by_a_value_and_why_there_are_none() -> None:
    pods = [pod("a"), pod("b")]
    assert by_value(2, 100, pods, used(a=300, b=100), "memory", NOW, Tolerances()) == (4, None, 200)
    assert by_value(2, 100, pods, used(a=105, b=105), "memory", NOW, Tolerances()).replicas == 2
    assert by_value(2, 100, pods, used(a=105, b=105), "memory", NOW, Tolerances(0.0, 0.0)).replicas == 3
    with pytest.raises(MetricError, match="no pods returned by selector"):
        by_value(2, 100, [], used(a=1), "memory", NOW, Tolerances())
    with pytest.raises(MetricError, match="did not receive metrics for targeted pods"):
        by_value(1, 100, [pod("a", phase="Pending")], used(a=1), "memory", NOW, Tolerances())
    with pytest.raises(MetricError, match="missing request for memory in container c of Pod a"):
        requests_of(pods, "memory")


def test_what_a_metrics_server_says_is_summed_up_by_pod() -> None:
    containers = [{"name": "a", "usage": {"cpu": "1500000n"}}, {"name": "b", "usage": {"cpu": "2"}}]
    item = {
        "metadata": {"name": "p", "namespace": "ns"},
        "timestamp": EARLIER,
        "window": "15.5s",
        "containers": containers,
    }
    assert measured_of([item], "cpu")["p"].value == 2002
    assert measured_of([item], "cpu", "b")["p"].value == 2000
    assert measured_of([item], "memory") == {}
    with pytest.raises(MetricError, match="container x not present in metrics for pod ns/p"):
        measured_of([item], "cpu", "x")
    assert [window_of(each).total_seconds() for each in ("15.5s", "1m5s", "250ms", "x")] == [15.5, 65.0, 0.25, 0.0]


def moved(behavior: dict | None, current: int, wanted: int, memory: Memory | None = None, now: float = 1000.0) -> tuple:
    found = bounded(memory or Memory(), behavior, current, wanted, 1, 10, now)
    return (found.replicas, *(each.reason for each in found.said))


@pytest.mark.parametrize(
    ("behavior", "current", "wanted", "expected"),
    [
        (None, 3, 5, (5, "ReadyForNewScale", "DesiredWithinRange")),
        (None, 3, 20, (6, "ReadyForNewScale", "ScaleUpLimit")),
        (None, 1, 20, (4, "ReadyForNewScale", "ScaleUpLimit")),
        (None, 8, 20, (10, "ReadyForNewScale", "TooManyReplicas")),
        (None, 3, 0, (1, "ReadyForNewScale", "TooFewReplicas")),
        ({}, 3, 20, (7, "ReadyForNewScale", "ScaleUpLimit")),
        ({"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}, 3, 9,
         (4, "ReadyForNewScale", "ScaleUpLimit")),
        ({"scaleUp": {"selectPolicy": "Disabled"}}, 3, 9, (3, "ReadyForNewScale", "ScaleUpLimit")),
        ({"scaleDown": {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]}}, 8, 1,
         (4, "ReadyForNewScale", "ScaleDownLimit")),
        ({"scaleDown": {"selectPolicy": "Disabled"}}, 8, 1, (8, "ReadyForNewScale", "ScaleDownLimit")),
        ({}, 8, 0, (1, "ReadyForNewScale", "TooFewReplicas")),
    ],
)  # fmt: skip
def test_replicas_stay_in_bounds_and_rates(behavior: dict | None, current: int, wanted: int, expected: tuple) -> None:
    assert moved(behavior, current, wanted) == expected


@pytest.mark.parametrize("behavior", [None, {}])
def test_a_way_down_waits_until_nothing_higher_was_recommended_for_five_minutes(behavior: dict | None) -> None:
    memory = Memory()
    assert moved(behavior, 5, 5, memory, 1000.0)[0] == 5
    assert moved(behavior, 5, 2, memory, 1015.0) == (5, "ScaleDownStabilized", "DesiredWithinRange")
    assert moved(behavior, 5, 2, memory, 1299.0)[0] == 5
    assert moved(behavior, 5, 2, memory, 1301.0)[0] == 2


def test_a_window_that_becomes_longer_knows_what_was_recommended_when_the_shorter_one_began() -> None:
    memory = Memory()
    short, long = ({"scaleDown": {"stabilizationWindowSeconds": seconds}} for seconds in (60, 300))
    assert moved(short, 5, 5, memory, 1000.0)[0] == 5
    moved(short, 2, 2, memory, 1060.0)
    assert moved(long, 5, 2, memory, 1061.0)[0] == 5
    assert moved(short, 5, 2, memory, 1121.0)[0] == 2, "and what is older than that is forgotten"
    assert moved(long, 5, 2, memory, 1122.0)[0] == 2


def test_a_way_up_waits_as_long_as_the_window_says() -> None:
    memory, behavior = Memory(), {"scaleUp": {"stabilizationWindowSeconds": 60}}
    assert moved(behavior, 2, 2, memory, 1000.0)[0] == 2
    assert moved(behavior, 2, 4, memory, 1030.0) == (2, "ScaleUpStabilized", "DesiredWithinRange")
    assert moved(behavior, 2, 4, memory, 1061.0)[0] == 4


def test_what_was_added_in_a_period_counts_against_its_policy() -> None:
    policy = {"type": "Pods", "value": 2, "periodSeconds": 60}
    behavior = {"scaleUp": {"policies": [policy]}, "scaleDown": {"policies": [policy], "stabilizationWindowSeconds": 0}}
    memory = Memory()
    remember(memory, behavior, 3, 5, 1000.0)
    assert moved(behavior, 5, 9, memory, 1030.0)[0] == 5
    assert moved(behavior, 5, 9, memory, 1061.0)[0] == 7
    remember(memory, behavior, 5, 3, 1100.0)
    assert moved(behavior, 3, 1, memory, 1130.0)[0] == 3
    remember(memory, None, 5, 3, 1100.0)
    assert len(memory.downs) == 1


POLICIES = st.fixed_dictionaries(
    {"type": st.sampled_from(["Pods", "Percent"]), "value": st.integers(1, 200), "periodSeconds": st.integers(1, 60)}
)
RULES = st.fixed_dictionaries(
    {"policies": st.lists(POLICIES, min_size=1, max_size=3)},
    optional={
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "stabilizationWindowSeconds": st.integers(0, 600),
    },
)
BEHAVIORS = st.none() | st.fixed_dictionaries({}, optional={"scaleUp": RULES, "scaleDown": RULES})


@given(BEHAVIORS, st.lists(st.tuples(st.integers(1, 120), st.integers(0, 60)), min_size=1, max_size=20))
def test_replicas_never_leave_their_bounds_nor_move_away_from_what_is_wanted(behavior, steps) -> None:
    memory, current, moment = Memory(), 3, 1000.0
    for seconds, wanted in steps:
        moment += seconds
        found = bounded(memory, behavior, current, wanted, 2, 20, moment).replicas
        assert 2 <= found <= 20
        if found > current:
            # Up only towards what was wanted, now or in the window of a way down.
            assert found <= max([wanted, 2, *(each for _, each in memory.recommended)])
        remember(memory, behavior, current, found, moment) if found != current else None
        current = found
    assert len(memory.recommended) <= len(steps)


def test_the_time_of_a_condition_is_that_of_its_status() -> None:
    first = with_conditions([], (Said("A", "True", "r", "m"),), "t1")
    second = with_conditions(first, (Said("A", "True", "other", "m2"), Said("B", "False", "x", "y")), "t2")
    assert [(each["type"], each["lastTransitionTime"], each["reason"]) for each in second] == [
        ("A", "t1", "other"),
        ("B", "t2", "x"),
    ]
    assert with_conditions(second, (Said("A", "False", "r", "m"),), "t3")[0]["lastTransitionTime"] == "t3"
