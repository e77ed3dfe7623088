"""The edges of the rules of nodes (nodes/zones.py, nodes/health.py).

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, scheduler/rate_limited_queue.go.
"""

import pytest

from lastcall.kube.controllers.nodes.health import (
    NodeHealth,
    examine,
    has_taint,
    swapped,
    with_lost_conditions,
    zone_of,
)
from lastcall.kube.controllers.nodes.zones import TaintQueue, Zones, rate, zone_state

CREATED, MOMENT = "2030-01-01T00:00:00Z", "2030-01-01T01:00:00Z"
BORN = 1893456000.0


def node(*conditions: dict) -> dict:
    return {"metadata": {"name": "n", "creationTimestamp": CREATED}, "status": {"conditions": list(conditions)}}


def ready(status: str = "True", heartbeat: str = "t1") -> dict:
    return {"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat}


@pytest.mark.parametrize(
    ("good", "bad", "state"),
    [
        (9, 11, "PartialDisruption"), (10, 10, "Normal"), (1, 2, "Normal"), (1, 3, "PartialDisruption"),
        (0, 1, "FullDisruption"), (0, 3, "FullDisruption"), (3, 0, "Normal"), (0, 0, "Normal"),
    ],
)  # fmt: skip
def test_a_zone_is_disrupted_when_more_than_two_and_more_than_half_of_it_are_gone(
    good: int, bad: int, state: str
) -> None:
    assert zone_state([True] * good + [False] * bad) == state


@pytest.mark.parametrize(
    ("state", "size", "expected"),
    [
        ("PartialDisruption", 50, 0.0), ("PartialDisruption", 51, 0.01), ("Normal", 9, 0.1),
        ("FullDisruption", 99, 0.1),
    ],
)  # fmt: skip
def test_a_disrupted_zone_is_evicted_from_slowly_or_not_at_all(state: str, size: int, expected: float) -> None:
    assert rate(state, size) == expected


def test_a_node_that_recovers_gives_its_turn_to_the_next() -> None:
    queue = TaintQueue()
    assert queue.seconds_to_wait(0.0) is None and queue.take(0.0) is None
    queue.add("a")
    queue.add("b")
    queue.remove("a")
    queue.remove("never")
    assert queue.take(0.0) == "b" and queue.seconds_to_wait(0.0) is None
    queue.add("c")
    assert queue.seconds_to_wait(9.0) == 1.0 and queue.take(9.0) is None
    assert queue.seconds_to_wait(11.0) == 0.0 and queue.take(11.0) == "c"


@pytest.mark.parametrize(
    ("rates", "wait"),
    [
        ([0.01], 100.0),  # from now on, at the new rate
        ([0.1], 5.0),  # the same rate is no change
        ([0.0, 0.1], 5.0),  # a pause does not lengthen the wait
        ([0.0], None),
    ],
)
def test_a_new_rate_counts_from_now_on(rates: list, wait: float | None) -> None:
    queue = TaintQueue()
    queue.add("a")
    queue.take(0.0)
    queue.add("b")
    for each in rates:
        queue.set_rate(each, 5.0)
    assert queue.seconds_to_wait(5.0) == wait and queue.per_second == rates[-1]


def test_a_new_rate_makes_nobody_wait_whose_turn_it_is() -> None:
    queue = TaintQueue()
    queue.add("a")
    queue.set_rate(0.01, 0.0)
    assert queue.seconds_to_wait(0.0) == 0.0
    queue.take(0.0)
    queue.add("b")
    queue.set_rate(0.1, 100.0)
    assert queue.seconds_to_wait(100.0) == 0.0


UP, DOWN = [True, True], [False, False]
HALF = [True] * 2 + [False] * 3


def test_a_whole_cluster_that_is_gone_is_left_alone_until_a_node_is_back() -> None:
    zones = Zones()
    assert zones.handle_disruption({"a": DOWN, "b": DOWN}, 0.0) == "entered"
    assert [zones.queue(each).per_second for each in ("a", "b")] == [0.0, 0.0]
    assert zones.handle_disruption({"a": DOWN, "b": DOWN}, 5.0) == ""
    assert zones.handle_disruption({"a": DOWN, "b": HALF}, 10.0) == "left"
    assert [zones.queue(each).per_second for each in ("a", "b")] == [0.1, 0.0]
    assert zones.handle_disruption({"a": UP, "b": UP}, 15.0) == ""
    assert [zones.queue(each).per_second for each in ("a", "b")] == [0.1, 0.1]


def test_zones_come_and_go() -> None:
    zones = Zones()
    assert zones.handle_disruption({"a": UP, "b": DOWN}, 0.0) == ""
    assert zones.handle_disruption({"b": DOWN}, 5.0) == "", "the only zone that is left was gone before"
    assert zones.handle_disruption({"b": DOWN, "c": DOWN}, 10.0) == "entered", "a new one was not"
    assert zones.queue("c") is zones.queues["c"] and zones.queue("c").per_second == 0.0


def test_a_sign_of_life_is_remembered_with_its_time() -> None:
    now = BORN + 40
    first = examine(node(ready()), None, None, now, MOMENT)
    assert first.health == NodeHealth(now, "t1")
    assert examine(node(), None, None, now, MOMENT).health == NodeHealth(BORN, None)
    lease = {"spec": {"renewTime": "r2"}}
    renewed = examine(node(ready()), lease, NodeHealth(BORN, "t1", "r1"), now, MOMENT)
    assert renewed.health == NodeHealth(now, "t1", "r2")
    assert examine(node(ready()), lease, renewed.health, now + 1, MOMENT).health == renewed.health
    older = examine(node(ready()), {"spec": {"renewTime": "r0"}}, renewed.health, now + 1, MOMENT)
    assert older.health == renewed.health
    assert examine(node(ready()), {}, renewed.health, now + 1, MOMENT).health == renewed.health
    beat = examine(node(ready(heartbeat="t2")), None, renewed.health, now + 1, MOMENT)
    assert beat.health == NodeHealth(now + 1, "t2")
    lost = examine(node(), None, NodeHealth(BORN, None), BORN + 61, MOMENT)
    assert lost.health == NodeHealth(BORN, CREATED), "what is written now is no sign of life later"


def test_a_node_that_never_said_anything_has_all_four_conditions() -> None:
    made = with_lost_conditions({}, CREATED, MOMENT)["conditions"]
    assert [each["type"] for each in made] == ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"]
    assert made[0] == {
        "type": "Ready", "status": "Unknown", "lastHeartbeatTime": CREATED, "lastTransitionTime": MOMENT,
        "reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status.",
    }  # fmt: skip


def test_what_was_unknown_stays_as_it_is() -> None:
    known = {"type": "Ready", "status": "Unknown", "reason": "mine", "lastTransitionTime": CREATED}
    made = with_lost_conditions(
        {"conditions": [known, {**known, "type": "DiskPressure", "status": "False"}]}, None, MOMENT
    )
    assert made["conditions"][0] == known
    assert made["conditions"][1] == {
        "type": "DiskPressure", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": MOMENT,
        "message": "Kubelet stopped posting node status.",
    }  # fmt: skip


def test_a_taint_is_its_key_and_its_effect() -> None:
    tainted = {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}
    assert has_taint(tainted, "k") and not has_taint(tainted, "k", "NoSchedule") and not has_taint(tainted, "x")
    assert not has_taint({"spec": {}}, "k")
    other = [{"key": "k", "effect": "NoSchedule"}]
    assert swapped(other, "NoExecute", ["k"], ["k"], MOMENT) == [
        *other, {"key": "k", "effect": "NoExecute", "timeAdded": MOMENT},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"topology.kubernetes.io/region": "r"}, "r:\x00:"),
        ({"topology.kubernetes.io/zone": "z"}, ":\x00:z"),
        ({"failure-domain.beta.kubernetes.io/region": "r", "failure-domain.beta.kubernetes.io/zone": "z"}, "r:\x00:z"),
        ({"topology.kubernetes.io/zone": "z", "failure-domain.beta.kubernetes.io/zone": "old"}, ":\x00:z"),
        ({}, ""),
    ],
)
def test_the_old_labels_name_a_zone_too(labels: dict, expected: str) -> None:
    assert zone_of({"metadata": {"labels": labels}}) == expected
