"""CPU shares and weights of the groups of a node, and the groups that follow from its Pods."""

import errno
import os
from typing import Any

import pytest

from lastcall.kube.cri.cpu_shares import (
    BEST_EFFORT,
    BURSTABLE,
    KUBEPODS,
    cpu_shares,
    cpu_weight,
    level_shares,
    milli_cpu,
)
from lastcall.kube.cri.sandbox.shim.pod_groups import NodeSize, PodGroups


@pytest.mark.parametrize(
    ("milli", "shares", "weight"),
    [
        (0, 2, 1),
        (1, 2, 1),
        (2, 2, 1),
        (3, 3, 1),
        (100, 102, 4),
        (250, 256, 10),
        (500, 512, 20),
        (1000, 1024, 39),
        (2000, 2048, 79),
        (8000, 8192, 313),
        (256_000, 262_144, 10_000),
        (300_000, 262_144, 10_000),
    ],
)
def test_shares_and_weights_are_those_of_the_kubelet(milli: int, shares: int, weight: int) -> None:
    assert (cpu_shares(milli), cpu_weight(cpu_shares(milli))) == (shares, weight)


def test_no_shares_are_the_smallest_weight() -> None:
    assert cpu_weight(0) == 1


def test_every_request_above_the_smallest_can_be_read_from_its_shares() -> None:
    assert all(milli_cpu(cpu_shares(milli)) == milli for milli in range(3, 256_001))
    assert [milli_cpu(cpu_shares(milli)) for milli in (0, 1, 2)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("pods", "burstable"),
    [
        ({}, 2),
        ({"kubepods/poda": 1024}, 2),
        ({"kubepods/besteffort/poda": 2}, 2),
        ({"kubepods/burstable/poda": 2}, 2),
        ({"kubepods/burstable/poda": 102, "kubepods/burstable/podb": 102, "kubepods/burstable/podc": 102}, 307),
        ({"kubepods/burstable/poda": 256, "kubepods/burstable/podb": 1024, "kubepods/podc": 512}, 1280),
        ({"kubepods/burstable/poda": 262_144, "kubepods/burstable/podb": 102}, 262_144),
    ],
)
def test_burstable_has_the_shares_of_the_requests_of_its_pods_together(pods: dict[str, int], burstable: int) -> None:
    assert level_shares(2000, pods) == {KUBEPODS: 2048, BURSTABLE: burstable, BEST_EFFORT: 2}


class Groups:
    """Remembers the shares that every group has now, and each change of them."""

    def __init__(self) -> None:
        self.shares: dict[str, int] = {}
        self.limits: dict[str, dict[str, int]] = {}
        self.written: list[tuple[str, int]] = []
        self.refuses = ""

    def create(self, path: str, resources: dict[str, Any]) -> None:
        if path == self.refuses:
            raise OSError(errno.ENOSPC, "no")
        self.update(path, resources)

    def update(self, path: str, resources: dict[str, Any]) -> None:
        self.shares[path] = resources["cpu_shares"]
        self.limits[path] = {name: value for name, value in resources.items() if name != "cpu_shares"}
        self.written.append((path, resources["cpu_shares"]))

    def remove(self, path: str) -> bool:
        return self.shares.pop(path, None) is not None


def test_burstable_follows_its_pods_as_they_come_are_resized_and_go() -> None:
    groups = Groups()
    pods = PodGroups(groups, NodeSize({"cpu": 2000}))  # type: ignore[arg-type]
    pods.start("/kubepods/burstable/poda", {"cpu_shares": 256})
    assert groups.shares == {KUBEPODS: 2048, BURSTABLE: 256, "kubepods/burstable/poda": 256}
    pods.start("/kubepods/burstable/podb", {"cpu_shares": 1024})
    assert groups.shares[BURSTABLE] == 1280
    pods.update("/kubepods/burstable/podb", {"cpu_shares": 512})
    assert groups.shares[BURSTABLE] == 768
    pods.remove("/kubepods/burstable/poda")
    pods.remove("/kubepods/burstable/poda")
    assert groups.shares == {KUBEPODS: 2048, BURSTABLE: 512, "kubepods/burstable/podb": 512}
    pods.remove("/kubepods/burstable/podb")
    assert groups.shares == {KUBEPODS: 2048, BURSTABLE: 2}


def test_a_group_above_the_pods_is_written_only_when_it_changes() -> None:
    groups = Groups()
    pods = PodGroups(groups, NodeSize({"cpu": 2000}))  # type: ignore[arg-type]
    pods.start("/kubepods/besteffort/poda", {"cpu_shares": 2})
    pods.start("/kubepods/besteffort/podb", {"cpu_shares": 2})
    pods.start("/kubepods/podc", {"cpu_shares": 1024})
    assert [path for path, _ in groups.written] == [
        KUBEPODS, BEST_EFFORT, "kubepods/besteffort/poda", "kubepods/besteffort/podb", "kubepods/podc",
    ]  # fmt: skip


def test_a_pod_whose_group_cannot_be_made_does_not_count() -> None:
    groups = Groups()
    pods = PodGroups(groups, NodeSize({"cpu": 2000}))  # type: ignore[arg-type]
    groups.refuses = "kubepods/burstable/poda"
    with pytest.raises(OSError, match="no"):
        pods.start("/kubepods/burstable/poda", {"cpu_shares": 256})
    pods.start("/kubepods/burstable/podb", {"cpu_shares": 512})
    assert groups.shares[BURSTABLE] == 512


def test_a_pod_without_a_group_changes_nothing() -> None:
    groups = Groups()
    pods = PodGroups(groups, NodeSize({"cpu": 2000}))  # type: ignore[arg-type]
    pods.start("", {})
    pods.update("", {})
    pods.remove("")
    assert not groups.written


@pytest.mark.parametrize(
    ("declared", "shares", "limits"),
    [
        ({"memory": 256 << 20}, None, {"memory_limit_in_bytes": 256 << 20}),
        ({"cpu": 500}, 512, {"cpu_period": 100_000, "cpu_quota": 50_000}),
        (
            {"cpu": 10, "memory": 1 << 30},
            10,
            {"cpu_period": 100_000, "cpu_quota": 1000, "memory_limit_in_bytes": 1 << 30},
        ),
        ({}, None, {}),
    ],
)
def test_the_pods_of_a_node_have_its_size_together_and_nothing_below_them_is_limited_for_it(
    declared: dict[str, int], shares: int | None, limits: dict[str, int]
) -> None:
    groups = Groups()
    pods = PodGroups(groups, NodeSize(declared))  # type: ignore[arg-type]
    pods.start("/kubepods/burstable/poda", {"cpu_shares": 256})
    assert groups.limits == {KUBEPODS: limits, BURSTABLE: {}, "kubepods/burstable/poda": {}}
    assert groups.shares[KUBEPODS] == (shares or 1024 * len(os.sched_getaffinity(0)))
