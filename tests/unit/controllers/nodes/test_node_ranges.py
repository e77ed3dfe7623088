"""Which range of the Pod network a node gets."""

from ipaddress import IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.controllers.nodes.ipam.ranges import NodeRanges, checked_ranges, next_range, range_for

SMALL = NodeRanges("10.244.0.0/22")


def test_ranges_come_one_after_the_other_and_round_and_round() -> None:
    assert next_range(SMALL, []) == ("10.244.0.0/24", 1)
    assert next_range(SMALL, [], 3) == ("10.244.3.0/24", 0)
    assert next_range(SMALL, ["10.244.3.0/24"], 3) == ("10.244.0.0/24", 1)


@pytest.mark.parametrize(
    ("taken", "spared", "found"),
    [
        (["10.244.0.0/23"], (), "10.244.2.0/24"),
        (["10.244.0.128/25"], (), "10.244.1.0/24"),
        (["10.0.0.0/8"], (), None),
        (["10.244.0.0/24", "", "fd00::/64", "what"], (), "10.244.1.0/24"),
        ([], ("10.244.0.0/24", "10.244.1.0/24"), "10.244.2.0/24"),
        (["10.244.0.5/24"], (), "10.244.1.0/24"),
    ],
)
def test_what_a_network_touches_is_not_given(taken: list[str], spared: tuple[str, ...], found: str | None) -> None:
    answer = next_range(NodeRanges("10.244.0.0/22", spared=spared), taken)
    assert (answer[0] if answer else None) == found


def test_a_node_whose_range_is_known_beforehand_gets_it_and_nobody_else_does() -> None:
    ranges = NodeRanges("10.244.0.0/22", own={"node-1": "10.244.0.0/24"})
    assert range_for("other", ranges, [], 0) == ("10.244.1.0/24", 2)
    assert range_for("node-1", ranges, ["10.244.1.0/24"], 2) == ("10.244.0.0/24", 2)
    assert range_for("node-1", ranges, ["10.244.0.0/24"], 2) == ("10.244.2.0/24", 3)


@pytest.mark.parametrize(
    ("cidr", "mask", "told"),
    [
        ("10.244.0.0", 24, "divide"),
        ("pods", 24, "'pods' is not an IPv4 network"),
        ("fd00::/64", 80, "is not an IPv4 network"),
        ("10.244.0.0/16", 15, "does not divide 10.244.0.0/16"),
        ("10.0.0.0/8", 25, "does not divide 10.0.0.0/8"),
    ],
)
def test_networks_that_cannot_be_divided_are_refused(cidr: str, mask: int, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        checked_ranges(cidr, mask)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 31), st.integers(25, 30))),
    st.integers(0, 31),
    st.sets(st.integers(0, 31), max_size=8),
)
def test_whatever_is_taken_a_range_that_is_given_touches_none_of_it(
    parts: list[tuple[int, int]], start: int, spared: set[int]
) -> None:
    ranges = NodeRanges("10.8.0.0/19", spared=tuple(f"10.8.{each}.0/24" for each in spared))
    taken: list[str] = [f"10.8.{number}.0/{length}" for number, length in parts]
    given_out: list[str] = []
    while (found := next_range(ranges, taken, start)) is not None:
        cidr, start = found
        network = IPv4Network(cidr)
        assert not any(network.overlaps(IPv4Network(each)) for each in (*taken, *ranges.spared))
        taken.append(cidr)
        given_out.append(cidr)
    full = {number for number, _ in parts} | spared
    assert len(given_out) == 32 - len(full)
