"""Which Pods an owner with too many lets go first, a row for each rule (replicaset/ranking.py)."""

from datetime import UTC, datetime, timedelta

import pytest

from lastcall.kube.controllers.replicaset.ranking import RULES, choose_victims, deletion_cost
from lastcall.world.clock import rfc3339

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
NOW = MOMENT.timestamp()


def at(seconds_ago: float) -> str:
    return rfc3339(MOMENT - timedelta(seconds=seconds_ago))


def pod(
    name: str,
    *,
    node: str = "n1",
    phase: str = "Running",
    ready: float | None = 100,
    restarts: int = 0,
    sidecar_restarts: int = 0,
    age: float = 1000,
    cost: str = "",
) -> dict:
    """A Pod that has been Ready for `ready` seconds (None: it is not)."""
    conditions = [] if ready is None else [{"type": "Ready", "status": "True", "lastTransitionTime": at(ready)}]
    inits = [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}]
    init_statuses = [{"name": "side", "restartCount": sidecar_restarts}, {"name": "init", "restartCount": 99}]
    statuses = [{"name": "app", "restartCount": restarts}, {"name": "other", "restartCount": 0}]
    status = {"phase": phase, "conditions": conditions, "containerStatuses": statuses}
    return {
        "metadata": {
            "name": name, "uid": name, "creationTimestamp": at(age),
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": cost} if cost else {},
        },
        "spec": {"initContainers": inits} | ({"nodeName": node} if node else {}),
        "status": status | {"initContainerStatuses": init_statuses},
    }  # fmt: skip


def victims(*pods: dict, count: int = 1, related: tuple[dict, ...] = ()) -> list[tuple[str, str]]:
    found = choose_victims(pods, related, count, NOW)
    return [(each.pod["metadata"]["name"], each.reason) for each in found]


@pytest.mark.parametrize(
    ("goes", "stays", "rule"),
    [
        ({"node": "", "cost": "9"}, {}, 0),
        ({"phase": "Pending", "ready": None, "cost": "9"}, {}, 1),
        ({"phase": "Unknown", "ready": None}, {"phase": "Running", "ready": None}, 1),
        ({"phase": "Pending", "ready": None}, {"phase": "Unknown", "ready": None}, 1),
        ({"ready": None, "cost": "9"}, {}, 2),
        ({"cost": "-1", "ready": 900}, {}, 3),
        ({"cost": "1"}, {"cost": "2"}, 3),
        ({"ready": 10, "age": 3000}, {"ready": 100}, 5),
        ({"restarts": 1}, {}, 6),
        ({"sidecar_restarts": 1}, {}, 6),
        ({"restarts": 2}, {"restarts": 1, "sidecar_restarts": 5}, 6),
        ({"age": 10}, {"age": 1000}, 7),
    ],
)
def test_the_first_difference_decides(goes: dict, stays: dict, rule: int) -> None:
    reason = RULES[rule][0]
    assert victims(pod("z", **goes), pod("a", **stays)) == [("z", reason)]
    assert victims(pod("a", **stays), pod("z", **goes)) == [("z", reason)]


def test_more_relatives_on_the_node_go_first_and_only_active_ones_count() -> None:
    crowded, alone = pod("z", node="n1"), pod("a", node="n2")
    ended = tuple(pod(f"e{number}", node="n2", phase="Succeeded") for number in range(3))
    related = (crowded, pod("x", node="n1"), pod("w", node=""), alone, *ended)
    assert victims(alone, crowded, related=related) == [("z", RULES[4][0])]


def test_within_a_bucket_of_time_the_uid_decides() -> None:
    assert victims(pod("b", ready=70), pod("a", ready=120)) == [("a", RULES[5][0])], (
        "69 to 137 s are one bucket of nanoseconds"
    )
    assert victims(pod("b", ready=None, age=70), pod("a", ready=None, age=120)) == [("a", RULES[7][0])]
    assert victims(pod("b"), pod("a")) == [("b", "no rule tells them apart")]


@pytest.mark.parametrize(("now", "goes"), [(274.877906, "a"), (274.8779068, "a"), (274.877907, "b")])
def test_a_bucket_ends_at_a_power_of_two_nanoseconds(now: float, goes: str) -> None:
    """controller_utils.go:logarithmicRankDiff: log2 of a time.Duration. 2**38 ns are 274.877906944 s."""
    pods = []
    for name, second in (("a", 0), ("b", 1)):
        made = pod(name)
        made["status"]["conditions"][0]["lastTransitionTime"] = f"1970-01-01T00:00:0{second}Z"
        pods.append(made)
    (chosen,) = choose_victims(pods, (), 1, now)
    assert (chosen.pod["metadata"]["name"], chosen.reason) == (goes, RULES[5][0])


def test_a_pod_whose_time_is_not_known_goes_before_the_others() -> None:
    unknown = pod("z", ready=None)
    del unknown["metadata"]["creationTimestamp"]
    assert victims(pod("a", ready=None), unknown) == [("z", RULES[7][0])]
    not_said = pod("z")
    del not_said["status"]["conditions"][0]["lastTransitionTime"]
    assert victims(pod("a"), not_said) == [("z", RULES[5][0])]


def test_a_time_in_the_future_is_younger_than_now() -> None:
    assert victims(pod("b", ready=0.0), pod("a", ready=1)) == [("b", RULES[5][0])]


def test_each_victim_has_its_rank_and_all_of_them_need_no_reason() -> None:
    pods = [pod("c", age=10), pod("a", age=3000), pod("b", age=100)]
    chosen = choose_victims(pods, [], 2, NOW)
    assert [(each.pod["metadata"]["name"], each.rank, each.candidates) for each in chosen] == [("c", 1, 3), ("b", 2, 3)]
    everything = choose_victims(pods, [], 3, NOW)
    assert [(each.rank, each.candidates, each.reason) for each in everything] == [
        (number, 3, "all of them go") for number in (1, 2, 3)
    ]
    assert choose_victims(pods, [], 0, NOW) == []


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", 0), ("7", 7), ("-7", -7), ("0", 0), ("07", 0), ("+7", 0), ("a", 0), ("x", 0), ("2147483647", 2147483647),
        ("2147483648", 0), ("99999999999", 0),
    ],
)  # fmt: skip
def test_a_deletion_cost_is_a_number_of_32_bits(text: str, cost: int) -> None:
    assert deletion_cost(pod("a", cost=text)) == cost
