"""When a node counts as lost, what its taints are, and how long a Pod tolerates them."""

import pytest

from lastcall.kube.api.taints import first_untolerated, seconds_tolerated, taint_text
from lastcall.kube.controllers.nodes.health import NodeHealth, examine, no_schedule_taints, swapped, zone_of
from lastcall.kube.controllers.nodes.ttl import step_for
from lastcall.kube.controllers.nodes.zones import TaintQueue, Zones, zone_state

CREATED = "2030-01-01T00:00:00Z"
BORN = 1893456000.0
MOMENT = "2030-01-01T01:00:00Z"


def node(*conditions, **spec):
    return {
        "metadata": {"name": "n", "creationTimestamp": CREATED},
        "spec": spec,
        "status": {
            "conditions": [dict(zip(("type", "status", "lastHeartbeatTime"), c, strict=False)) for c in conditions]
        },
    }


def lease(renewed):
    return {"spec": {"renewTime": renewed}}


READY = ("Ready", "True", "t1")


@pytest.mark.parametrize(
    ("a_node", "health", "a_lease", "after", "expected"),
    [
        # (observed, current, whether the status is written)
        (node(READY), None, None, 1000, ("True", "True", False)),  # first seen: its time begins now
        (node(READY), NodeHealth(BORN, "t1"), None, 50, ("True", "True", False)),
        (node(READY), NodeHealth(BORN, "t1"), None, 50.1, ("True", "Unknown", True)),
        (node(READY), NodeHealth(BORN, "t0"), None, 50.1, ("True", "True", False)),  # a heartbeat came
        (node(READY), NodeHealth(BORN, "t1", "r1"), lease("r1"), 50.1, ("True", "Unknown", True)),
        (node(READY), NodeHealth(BORN, "t1", "r1"), lease("r2"), 50.1, ("True", "True", False)),
        (node(("Ready", "False", "t1")), NodeHealth(BORN, "t1"), None, 50.1, ("False", "Unknown", True)),
        (node(("Ready", "Unknown", "t1")), NodeHealth(BORN, "t1"), None, 500, ("Unknown", "Unknown", False)),
        (node(), None, None, 59, ("Unknown", None, False)),  # never posted a status
        (node(), None, None, 60.1, ("Unknown", "Unknown", True)),
        (node(), NodeHealth(BORN, None), None, 60.1, ("Unknown", "Unknown", True)),
        (node(), NodeHealth(BORN, None), lease("r1"), 60.1, ("Unknown", None, False)),
    ],
)
def test_a_node_is_lost_when_neither_its_status_nor_its_lease_moves(a_node, health, a_lease, after, expected):
    found = examine(a_node, a_lease, health, BORN + after, MOMENT)
    assert (found.observed, found.current, found.status is not None) == expected


def test_what_a_lost_node_said_of_itself_is_unknown_and_the_network_is_left_alone():
    a_node = node(READY, ("MemoryPressure", "False", "t1"), ("NetworkUnavailable", "False", "t1"))
    conditions = examine(a_node, None, NodeHealth(BORN, "t1"), BORN + 51, MOMENT).status["conditions"]
    assert [(c["type"], c["status"], c.get("reason")) for c in conditions] == [
        ("Ready", "Unknown", "NodeStatusUnknown"),
        ("MemoryPressure", "Unknown", "NodeStatusUnknown"),
        ("NetworkUnavailable", "False", None),
        ("DiskPressure", "Unknown", "NodeStatusNeverUpdated"),
        ("PIDPressure", "Unknown", "NodeStatusNeverUpdated"),
    ]
    assert a_node["status"]["conditions"][0]["status"] == "True", "the cache's object is not changed"


@pytest.mark.parametrize(
    ("a_node", "add", "remove"),
    [
        (node(READY), [], []),
        (node(("Ready", "False")), ["not-ready"], []),
        (node(("Ready", "Unknown")), ["unreachable"], []),
        (node(READY, ("DiskPressure", "True"), ("PIDPressure", "True")), ["disk-pressure", "pid-pressure"], []),
        (node(READY, unschedulable=True), ["unschedulable"], []),
        (node(READY, taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]), [], ["not-ready"]),
        (node(READY, taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]), [], []),
        (node(READY, taints=[{"key": "mine", "effect": "NoSchedule"}]), [], []),
        (
            node(("Ready", "Unknown"), taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
            ["unreachable"],
            ["not-ready"],
        ),
    ],
)
def test_no_schedule_taints_follow_conditions(a_node, add, remove):
    prefix = "node.kubernetes.io/"
    assert no_schedule_taints(a_node) == ([prefix + key for key in add], [prefix + key for key in remove])


def test_taints_of_others_and_their_times_stay():
    there = [{"key": "mine", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute", "timeAdded": CREATED}]
    assert swapped(there, "NoExecute", ["a", "b"], [], MOMENT) == [
        *there,
        {"key": "b", "effect": "NoExecute", "timeAdded": MOMENT},
    ]
    assert swapped(there, "NoExecute", [], ["a", "mine"], MOMENT) == there[:1]


@pytest.mark.parametrize(
    ("ready", "state"),
    [
        ([], "Normal"),
        ([True], "Normal"),
        ([False], "FullDisruption"),
        ([True, False, False], "Normal"),
        ([True, True, False, False, False], "PartialDisruption"),
        ([True, True, True, False, False, False], "Normal"),
        ([False] * 5, "FullDisruption"),
    ],
)
def test_the_state_of_a_zone(ready, state):
    assert zone_state(ready) == state


def test_nodes_are_tainted_one_every_ten_seconds():
    queue = TaintQueue()
    for name in ("a", "b", "a"):
        queue.add(name)
    assert (queue.take(0.0), queue.take(0.0)) == ("a", None)
    assert queue.seconds_to_wait(4.0) == 6.0
    assert queue.take(10.0) == "b"
    queue.add("a")
    assert queue.take(20.0) is None, "it has had its turn"
    queue.remove("a")
    queue.add("a")
    assert queue.seconds_to_wait(20.0) == 0.0
    queue.set_rate(0.0, 20.0)
    assert queue.take(100.0) is None and queue.seconds_to_wait(100.0) is None


def test_nothing_is_evicted_while_no_node_is_ready_and_half_a_zone_is_slower():
    zones = Zones()
    assert zones.handle_disruption({"": [True, True]}, 0.0) == ""
    assert zones.handle_disruption({"": [False, False]}, 5.0) == "entered"
    assert zones.queue("").per_second == 0.0
    assert zones.handle_disruption({"": [False, False]}, 10.0) == ""
    assert zones.handle_disruption({"": [True, False]}, 15.0) == "left"
    assert zones.queue("").per_second == 0.1
    zones.handle_disruption({"": [True] * 2 + [False] * 3}, 20.0)
    assert zones.queue("").per_second == 0.0
    zones.handle_disruption({"": [True] * 20 + [False] * 40}, 25.0)
    assert zones.queue("").per_second == 0.0, "the state is the same, so the rate is too"
    zones.handle_disruption({"": [True] * 60}, 30.0)
    zones.handle_disruption({"": [True] * 20 + [False] * 40}, 35.0)
    assert zones.queue("").per_second == 0.01
    # One zone that is gone is evicted from as long as another one is there.
    assert zones.handle_disruption({"": [True], "other": [False]}, 40.0) == ""
    assert zones.queue("other").per_second == 0.1


def test_a_zone_is_named_by_region_and_zone():
    assert zone_of(node()) == ""
    labels = {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}
    assert zone_of({"metadata": {"labels": labels}}) == "r:\x00:z"


def taint(key="k", value="", effect="NoExecute"):
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def toleration(key="k", seconds=None, **more):
    return {"key": key, "operator": "Exists", **({"tolerationSeconds": seconds} if seconds is not None else {}), **more}


@pytest.mark.parametrize(
    ("tolerations", "taints", "seconds"),
    [
        ([], [taint()], 0.0),
        ([toleration()], [taint()], None),
        ([toleration(seconds=5)], [taint()], 5.0),
        ([toleration(seconds=0)], [taint()], 0.0),
        ([toleration(seconds=-3)], [taint()], 0.0),
        ([toleration(seconds=5), toleration(seconds=3)], [taint()], 3.0),
        ([toleration(seconds=5), toleration()], [taint()], 5.0),
        ([toleration(seconds=5)], [taint(), taint("other")], 0.0),
        ([toleration(seconds=5), toleration("other", 2)], [taint(), taint("other")], 2.0),
        ([toleration(seconds=5, effect="NoSchedule")], [taint()], 0.0),
        ([{"key": "k", "operator": "Equal", "value": "v"}], [taint(value="v")], None),
        ([{"key": "k", "operator": "Equal", "value": "w"}], [taint(value="v")], 0.0),
        ([{"operator": "Exists"}], [taint(), taint("other")], None),
    ],
)
def test_the_least_tolerance_of_those_that_match_counts(tolerations, taints, seconds):
    assert seconds_tolerated(tolerations, taints) == seconds


def test_the_taint_to_blame_is_the_one_that_is_not_tolerated_or_for_the_shortest_time():
    taints = [taint("a"), taint("b"), taint("c", "v")]
    assert taint_text(first_untolerated([toleration("a")], taints)) == "b:NoExecute"
    tolerations = [toleration("a"), toleration("b", 5), toleration("c", 2)]
    assert taint_text(first_untolerated(tolerations, taints)) == "c=v:NoExecute"


@pytest.mark.parametrize(
    ("counts", "step"),
    [([1], 0), ([100], 0), ([101], 1), ([101, 95], 1), ([101, 89], 0), ([3000], 4), ([3000, 5], 0)],
)
def test_one_node_more_or_less_does_not_change_the_ttl_to_and_fro(counts, step):
    found = 0
    for count in counts:
        found = step_for(found, count)
    assert found == step
