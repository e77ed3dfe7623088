"""`--node-capacity`: what is written, what a node has then, and what of it a machine cannot give."""

import re

import pytest

from lastcall.kube.cluster.machine_size import machine_sizes
from lastcall.kube.cluster.node_capacity import (
    RESOURCES,
    NodeCapacity,
    beyond,
    judge,
    parse_node_capacity,
    state_bytes,
)

MACHINE = {"cpu": "2", "memory": "4194304Ki", "ephemeral-storage": "2Gi"}


def test_a_node_has_what_is_said_of_it_and_else_what_is_said_of_all() -> None:
    found = parse_node_capacity(["cpu=2, memory=4Gi", "node-1: memory=512Mi", "node-3:ephemeral-storage=20Gi"])
    assert found.of("node-1") == {"cpu": "2", "memory": "512Mi"}
    assert found.of("node-2") == {"cpu": "2", "memory": "4Gi"}
    assert found.of("node-3") == {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi"}
    assert list(found.nodes) == ["node-1", "node-3"]


def test_what_is_not_said_is_the_machine_s() -> None:
    assert parse_node_capacity([]) == NodeCapacity()
    assert NodeCapacity().of("node-1") == {}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("cpu=0.5", "500m"),
        ("cpu=2000m", "2"),
        ("cpu=10m", "10m"),
        ("cpu=1.0004", "1001m"),
        ("memory=1024Mi", "1Gi"),
        ("memory=1e9", "1e9"),
        ("memory=104857601", "104857601"),
        ("ephemeral-storage=1.5Gi", "1536Mi"),
    ],
)
def test_quantities_are_those_of_kubernetes(text: str, written: str) -> None:
    assert parse_node_capacity([text]).every == {text.partition("=")[0]: written}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["gpu=1"], "'gpu=1': 'gpu' is not a resource of nodes: cpu, memory, ephemeral-storage"),
        (["pods=3"], "use --max-pods for the number of Pods"),
        (["cpu"], "'cpu' is not RESOURCE=QUANTITY: write cpu=2,memory=4Gi,ephemeral-storage=20Gi"),
        (["cpu=1,"], "'' is not RESOURCE=QUANTITY"),
        ([""], "'' is not RESOURCE=QUANTITY"),
        (["memory=much"], "memory=much: 'much' is not a quantity: write 512Mi or 4Gi"),
        (["cpu="], "cpu=: '' is not a quantity: write 2 or 500m"),
        (["cpu=0"], "cpu=0 is too little: give at least 10m: 2 or 500m"),
        (["cpu=-1"], "cpu=-1 is too little: give at least 10m"),
        (["cpu=9m"], "cpu=9m is too little"),
        (["memory=-4Gi"], "memory=-4Gi is too little: give more than 100Mi, which the kubelet keeps free"),
        (["memory=100Mi"], "memory=100Mi is too little: give more than 100Mi"),
        (["ephemeral-storage=0"], "ephemeral-storage=0 is too little: give at least 1Mi"),
        (["cpu=1,cpu=2"], "'cpu=2': cpu has a quantity already: 1. Give one"),
        (["cpu=1", "memory=1Gi"], "'memory=1Gi': All nodes have a size already. Write all of it together: cpu=2,"),
        (["node-1:cpu=1", "node-1:memory=1Gi"], "node-1 has a size already. Write all of it together: node-1:cpu=2,"),
        (["node-1:cpu=1,node-2:cpu=2"], "'node-2:cpu=2': one --node-capacity is for one node. Give each node its own"),
        ([":cpu=1"], "':cpu=1' names no node: write node-1:cpu=2,"),
    ],
)
def test_bad_input_is_refused_with_the_value_and_with_what_is_allowed(texts: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_node_capacity(texts)


def test_control_groups_enforce_cpu_in_thousandths_and_memory_in_bytes() -> None:
    found = parse_node_capacity(["cpu=1.5,ephemeral-storage=1Gi", "node-2:memory=512Mi"])
    assert found.enforced("node-1") == {"cpu": 1500}
    assert found.enforced("node-2") == {"cpu": 1500, "memory": 512 << 20}


def test_a_node_as_large_as_the_machine_is_no_larger() -> None:
    wanted = parse_node_capacity(["cpu=2,memory=4Gi,ephemeral-storage=2048Mi"])
    assert beyond(wanted, ["node-1"], MACHINE) == {}
    assert judge({}, MACHINE, ("cpu", "memory")) == ("", "")


def test_what_control_groups_enforce_cannot_be_more_than_the_machine_has() -> None:
    wanted = parse_node_capacity(["memory=8Gi,ephemeral-storage=20Gi", "node-2:memory=6Gi", "node-3:memory=1Gi"])
    larger = beyond(wanted, ["node-1", "node-2", "node-3", "node-4"], MACHINE)
    assert larger == {
        "memory": "memory=8Gi of node-1, node-4, memory=6Gi of node-2",
        "ephemeral-storage": "ephemeral-storage=20Gi of node-1, node-2, node-3, node-4",
    }
    error, note = judge(larger, MACHINE, ("cpu", "memory"))
    assert error.startswith(
        "--node-capacity memory=8Gi of node-1, node-4, memory=6Gi of node-2: this machine has memory=4"
    )
    assert error.endswith("Give at most that") and not note


@pytest.mark.parametrize("enforced", [(), ("cpu",)])
def test_what_nothing_enforces_may_be_more_and_is_said_in_one_line(enforced: tuple[str, ...]) -> None:
    wanted = parse_node_capacity(["memory=8Gi,ephemeral-storage=20Gi"])
    error, note = judge(beyond(wanted, ["node-1"], MACHINE), MACHINE, enforced)
    assert not error
    assert note == (
        "--node-capacity memory=8Gi of node-1; ephemeral-storage=20Gi of node-1: declared only, because this machine "
        "has memory=4194304Ki, ephemeral-storage=2Gi"
    )


@pytest.mark.parametrize(
    ("size", "amount"), [("50%", 500), ("100%", 1000), ("1k", 1 << 10), ("512m", 512 << 20), ("4G", 4 << 30)]
)
def test_the_files_of_a_cluster_have_a_share_of_the_memory_or_a_size(size: str, amount: int) -> None:
    assert state_bytes(size, 1000) == amount


def test_this_machine_has_some_of_every_resource() -> None:
    assert beyond(parse_node_capacity(["cpu=10m,memory=101Mi"]), ["node-1"], machine_sizes("50%")) == {}
    assert set(
        beyond(parse_node_capacity(["cpu=9999,memory=1Ei,ephemeral-storage=1Ei"]), ["n"], machine_sizes("1g"))
    ) == {*RESOURCES}
