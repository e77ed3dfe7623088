"""Hints, and what holds for every choice of endpoints."""

from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.proxy.endpoints import Endpoint
from lastcall.kube.proxy.topology import Node, categorize_endpoints, topology_mode

NODE = Node("a", zone="z1")


def ready(address: str, zones: tuple[str, ...] = (), nodes: tuple[str, ...] = (), node: str = "a") -> Endpoint:
    return Endpoint(address, 80, node=node, zone_hints=zones, node_hints=nodes)


def test_zone_hints_are_followed_when_every_ready_endpoint_has_one_and_one_names_this_zone() -> None:
    mine, other = ready("1", ("z1",)), ready("2", ("z2",))
    assert categorize_endpoints([mine, other], NODE).cluster == (mine,)
    assert categorize_endpoints([mine, ready("2")], NODE).cluster == (mine, ready("2")), "one without a hint"
    assert categorize_endpoints([other], NODE).cluster == (other,), "no hint names this zone"
    assert categorize_endpoints([mine, other], Node("a")).cluster == (mine, other), "the zone of the node is unknown"


def test_node_hints_come_before_zone_hints() -> None:
    here, there = ready("1", ("z1",), ("a",)), ready("2", ("z1",), ("b",))
    assert topology_mode([here, there], NODE) == "PreferSameNode"
    assert categorize_endpoints([here, there], NODE).cluster == (here,)
    assert topology_mode([here, ready("2", ("z1",))], NODE) == "PreferSameZone"


def test_hints_of_endpoints_that_are_not_ready_count_for_nothing() -> None:
    mine = ready("1", ("z1",))
    unhinted = Endpoint("2", 80, ready=False)
    assert topology_mode([mine, unhinted], NODE) == "PreferSameZone"


def test_the_fallback_to_terminating_endpoints_ignores_hints() -> None:
    ends = Endpoint("2", 80, ready=False, terminating=True, zone_hints=("z2",))
    assert categorize_endpoints([ends], NODE).cluster == (ends,)


endpoints = st.lists(
    st.builds(
        Endpoint,
        address=st.integers(1, 9).map(str),
        port=st.just(80),
        ready=st.booleans(),
        serving=st.booleans(),
        terminating=st.booleans(),
        node=st.sampled_from(["a", "b"]),
        zone_hints=st.sampled_from([(), ("z1",), ("z2",)]),
        node_hints=st.sampled_from([(), ("a",), ("b",)]),
    ),
    unique_by=lambda e: e.address,
)


@given(endpoints)
def test_who_can_serve_is_used_and_nobody_else(given_endpoints: list[Endpoint]) -> None:
    found = categorize_endpoints(given_endpoints, NODE, uses_local=True)
    usable = [e for e in given_endpoints if e.ready or (e.serving and e.terminating)]
    assert found.any == bool(usable)
    assert bool(found.cluster) == bool(usable)
    assert bool(found.local) == any(e.node == "a" for e in usable)
    assert all(e in usable for e in (*found.cluster, *found.local))
    for chosen in (found.cluster, found.local):
        assert len({e.ready for e in chosen}) <= 1, "ready ones and terminating ones are never mixed"
    if any(e.ready for e in given_endpoints):
        assert all(e.ready for e in found.cluster)
