"""Which nodes a kept cluster has at its next start."""

import json
from pathlib import Path

import pytest

from lastcall.kube.cluster.errors import ClusterUsageError
from lastcall.kube.cluster.layout import joining_layout, layouts, number_of
from lastcall.kube.cluster.node_capacity import NodeCapacity
from lastcall.kube.cluster.staying.kept_nodes import NODES_FILE, KeptNodes
from lastcall.kube.cluster.staying.state import StateDirectory


@pytest.mark.parametrize(
    ("added", "removed", "count", "numbers"),
    [
        ([], [], 1, (1,)),
        (["node-2"], [], 1, (1, 2)),
        (["node-5"], ["node-2"], 3, (1, 3, 5)),
        (["node-2"], [], 3, (1, 2, 3)),
        ([], ["node-2"], 1, (1,)),
    ],
)
def test_a_start_has_its_nodes_with_those_added_and_without_those_removed(
    added: list[str], removed: list[str], count: int, numbers: tuple[int, ...]
) -> None:
    assert KeptNodes({name: {} for name in added}, set(removed)).numbers(count) == numbers


def test_a_node_that_was_removed_may_come_back_and_the_other_way_round() -> None:
    kept = KeptNodes()
    kept.add("node-2", {"cpu": "1"})
    kept.remove("node-2")
    assert (kept.added, kept.removed) == ({}, {"node-2"})
    kept.add("node-2", {})
    assert (kept.added, kept.removed) == ({"node-2": {}}, set())


def test_what_is_asked_for_at_a_start_comes_before_what_was_declared_once() -> None:
    kept = KeptNodes({"node-2": {"cpu": "1"}, "node-3": {"cpu": "1"}})
    asked = kept.capacity(NodeCapacity({"memory": "1Gi"}, {"node-3": {"cpu": "2"}}))
    assert asked.of("node-2") == {"memory": "1Gi", "cpu": "1"}
    assert asked.of("node-3") == {"memory": "1Gi", "cpu": "2"}


def test_the_state_directory_keeps_them(tmp_path: Path) -> None:
    for number in (2, 3):
        state = StateDirectory.open(str(tmp_path / "s"))
        kept = state.nodes()
        kept.add(f"node-{number}", {"cpu": str(number)})
        state.close()
    state = StateDirectory.open(str(tmp_path / "s"))
    assert state.nodes().added == {"node-2": {"cpu": "2"}, "node-3": {"cpu": "3"}}
    state.close()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"added": [], "removed": []}', '{"added": {"x": {}}, "removed": []}',
     '{"added": {"node-2": {"cpu": 1}}, "removed": []}', '{"added": {}, "removed": ["node-99"]}'],
)  # fmt: skip
def test_a_file_that_cannot_be_understood_is_named_with_the_way_out(tmp_path: Path, text: str) -> None:
    state = StateDirectory.open(str(tmp_path / "s"))
    (tmp_path / "s" / NODES_FILE).write_text(text)
    with pytest.raises(ClusterUsageError, match=r"nodes\.json cannot be understood .* or remove it"):
        state.nodes()
    state.close()


def test_a_change_that_cannot_be_written_has_not_happened() -> None:
    def full(text: str) -> None:
        assert json.loads(text)["added"] == {"node-2": {}}
        raise OSError(28, "full")

    kept = KeptNodes(write=full)
    with pytest.raises(OSError, match="full"):
        kept.add("node-2", {})
    assert not kept.added


def test_a_node_that_joins_has_a_network_of_its_own_and_one_that_starts_alone_has_not() -> None:
    assert [each.has_netns for each in layouts(1)] == [False]
    assert [each.has_netns for each in layouts(2, (1, 5))] == [True, True]
    assert [joining_layout(number).has_netns for number in (2, 64)] == [True, True]


@pytest.mark.parametrize(
    ("name", "number"), [("node-1", 1), ("node-64", 64), ("node-65", None), ("node-01", None), ("x", None), ("", None)]
)
def test_the_name_of_a_node_has_its_number(name: str, number: int | None) -> None:
    assert number_of(name) == number
