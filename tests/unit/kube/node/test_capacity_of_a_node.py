"""What a node has, and what of it Pods may ask for."""

from pathlib import Path

import pytest

from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.node.capacity import KEPT_FREE, allocatable_of, machine_capacity


def test_the_capacity_of_this_machine(tmp_path: Path) -> None:
    capacity = machine_capacity(tmp_path)
    allocatable = allocatable_of(capacity)
    assert int(capacity["cpu"]) >= 1
    assert parse_quantity(capacity["memory"]).whole - parse_quantity(allocatable["memory"]).whole == KEPT_FREE
    assert capacity["pods"] == "110"
    assert {name for name in capacity if capacity[name] != allocatable[name]} == {"memory"}


@pytest.mark.parametrize(
    ("memory", "left"),
    [("256Mi", "156Mi"), ("4Gi", "3996Mi"), ("1962540Ki", "1860140Ki"), ("1G", "895142400"), ("64Mi", "0")],
)
def test_pods_may_ask_for_the_memory_that_is_not_kept_free(memory: str, left: str) -> None:
    assert allocatable_of({"memory": memory}) == {"memory": left}
