"""Several machines: who is where, what each machine routes, what the ConfigMap says, what doctor advises."""

from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.cluster.machines.advice import Guard, Seen, judge
from lastcall.cluster.machines.elsewhere import cni_configuration
from lastcall.cluster.machines.rules import MACHINE, NODE_NETWORK, Peer, hardware_address, network_of, vxlan_source
from lastcall.cluster.machines.settings import PodNetwork, SettingsError, from_config_map, to_config_map, vni_of

PODS = "10.244.0.0/16"
FIRST, SECOND, THIRD = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def node(name: str, cidr: str = "", address: str = "", *, machine: str = "", age: int = 0) -> Any:
    meta = {"name": name, "creationTimestamp": f"2030-01-01T00:00:{59 - age:02}Z"}
    if machine:
        meta["annotations"] = {MACHINE: machine}  # type: ignore[assignment]
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]
    return {
        "metadata": meta,
        "spec": {"podCIDR": cidr, "podCIDRs": [cidr]} if cidr else {},
        "status": {"addresses": addresses},
    }


UP = node("node-1", "10.244.0.0/24", "172.18.0.2", machine=FIRST, age=9)
OTHER = node("other", "10.244.64.0/24", SECOND, age=5)


def test_each_machine_routes_what_is_on_the_others() -> None:
    here, there = network_of([UP, OTHER], FIRST, PODS), network_of([UP, OTHER], SECOND, PODS)
    assert here.peers == (Peer(SECOND, ("10.244.64.0/24",)),)
    assert here.own == ("10.244.0.0/24", NODE_NETWORK)
    assert there.routes == {"10.244.0.0/24": FIRST, NODE_NETWORK: FIRST}
    assert there.own == ("10.244.64.0/24",)
    assert not here.refused + there.refused


def test_several_nodes_of_one_machine_are_one_peer() -> None:
    second = node("node-2", "10.244.1.0/24", "172.18.0.3", machine=FIRST)
    found = network_of([second, UP, OTHER], SECOND, PODS)
    assert found.peers == (Peer(FIRST, ("10.244.0.0/24", NODE_NETWORK, "10.244.1.0/24")),)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (node("bad", "0.0.0.0/0", THIRD), "node bad: podCIDR 0.0.0.0/0 is not in the Pod network 10.244.0.0/16"),
        (node("bad", "10.0.0.0/24", THIRD), "node bad: podCIDR 10.0.0.0/24 is not in the Pod network 10.244.0.0/16"),
        (node("bad", "10.244.64.0/25", THIRD), "node bad: podCIDR 10.244.64.0/25 is node other's"),
        (node("bad", "10.244.9.0/33", THIRD), "node bad: podCIDR 10.244.9.0/33 is not an IPv4 network"),
        (node("bad", "10.244.9.0/24", "fd00::1"), "node bad has no InternalIP (IPv4)"),
        (node("bad", "10.244.9.0/24", "127.0.0.1"), "node bad has no InternalIP (IPv4)"),
        (node("bad", "", "172.18.0.9", machine=THIRD), f"node bad: {NODE_NETWORK} is on another machine"),
    ],
)
def test_what_a_node_says_draws_no_traffic_that_is_not_its_pods(bad: Any, told: str) -> None:
    found = network_of([bad, UP, OTHER], SECOND, PODS)
    assert told in found.refused
    assert {network: at for network, at in found.routes.items() if at == THIRD} == {}
    assert found.routes["10.244.0.0/24"] == FIRST


def test_a_range_of_another_machine_stays_that_of_the_older_node() -> None:
    older, younger = node("a", "10.244.64.0/24", THIRD, age=8), node("b", "10.244.64.0/24", SECOND, age=2)
    assert network_of([younger, older], FIRST, PODS).routes == {"10.244.64.0/24": THIRD}


def test_a_node_without_a_range_is_a_machine_all_the_same() -> None:
    assert network_of([node("new", "", SECOND)], FIRST, PODS).peers == (Peer(SECOND, ()),)


NODES = st.lists(
    st.builds(
        node,
        st.text("abc", min_size=1, max_size=2),
        st.sampled_from(["", "10.244.1.0/24", "10.244.1.0/25", "10.244.0.0/16", "10.9.0.0/24", "x", "10.244.7.0/24"]),
        st.sampled_from([FIRST, SECOND, THIRD, "", "172.18.0.2", "224.0.0.1"]),
        machine=st.sampled_from(["", FIRST, THIRD, "x"]),
        age=st.integers(0, 9),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(NODES)
def test_whatever_nodes_say_each_address_has_one_way_and_all_machines_agree(nodes: list[Any]) -> None:
    views = {at: network_of(nodes, at, PODS) for at in (FIRST, SECOND, THIRD)}
    for at, view in views.items():
        networks = [IPv4Network(each) for each in (*view.routes, *view.own)]
        assert not any(a.overlaps(b) for i, a in enumerate(networks) for b in networks[:i])
        allowed = (IPv4Network(PODS), IPv4Network(NODE_NETWORK))
        assert all(any(each.subnet_of(whole) for whole in allowed) for each in networks)
        assert at not in view.routes.values()
        for network, to in view.routes.items():
            if to in views:
                assert network in views[to].own


def test_what_the_config_map_says_is_read_as_it_was_written() -> None:
    for network in (PodNetwork("host-gw", PODS, 1500), PodNetwork("vxlan", PODS, 1450, 77, 8472)):
        assert from_config_map(to_config_map(network)) == network


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("mode", "ipip", "mode 'ipip': is not one of host-gw, vxlan"),
        ("clusterCIDR", "pods", "clusterCIDR 'pods': is not an IPv4 network"),
        ("mtu", "-1", "mtu '-1': is not a number from 576 to 65535"),
        ("vni", "16777216", "vni '16777216': is not a number from 1 to 16777215"),
        ("port", "99999999999999", "port '99999999999999': is not a number from 1 to 65535"),
        ("port", "²", "port '²': is not a number from 1 to 65535"),
    ],
)
def test_a_config_map_that_somebody_changed_is_refused_by_the_field(key: str, value: str, told: str) -> None:
    written = to_config_map(PodNetwork("vxlan", PODS, 1450, 77))
    with pytest.raises(SettingsError, match=told.replace("(", r"\(")):
        from_config_map({**written, "data": {**written["data"], key: value}})
    with pytest.raises(SettingsError):
        from_config_map({})


def test_addresses_and_numbers_that_nobody_has_to_tell() -> None:
    assert hardware_address(SECOND).hex(":") == "02:03:0a:00:00:02"
    assert vxlan_source((NODE_NETWORK, "10.244.64.0/24")) == "10.244.64.0"
    assert vxlan_source(()) == ""
    assert 0 < vni_of(b"one") < 1 << 24
    assert vni_of(b"one") != vni_of(b"another")


def test_the_cni_configuration_has_the_range_of_the_node_and_what_fits_through_the_tunnel() -> None:
    text = cni_configuration(PodNetwork("vxlan", PODS, 1450, 7), ["10.244.64.0/24"])
    assert '"subnet": "10.244.64.0/24"' in text
    assert '"mtu": 1450' in text


GOOD = Seen("vxlan", FIRST, 0, forwards=True, mtu=1450)


def test_a_machine_with_all_that_others_need_is_ok() -> None:
    assert {each.status for each in judge(GOOD)} == {"ok"}
    assert {each.status for each in judge(replace(GOOD, mode="host-gw"))} == {"ok"}


@pytest.mark.parametrize(
    ("seen", "status", "found", "fix"),
    [
        (replace(GOOD, uid=1000), "missing", "routes on this machine need root", "sudo lastcall up …"),
        (replace(GOOD, forwards=False), "missing", "does not forward packets", "net.ipv4.ip_forward=1"),
        (replace(GOOD, address_error="10.0.0.1 is not an address of this machine; fix: name one"), "missing",
         "10.0.0.1 is not an address", "name one"),
        (replace(GOOD, vxlan_error="such links cannot be made: Operation not supported"), "missing", "not supported",
         "sudo modprobe vxlan"),
        (replace(GOOD, unread="Operation not permitted"), "degraded", "not looked at", "UDP 4789, TCP 10250"),
        (replace(GOOD, guards=(Guard("ip", "filter", "FORWARD", "forward"),)), "degraded", "drops what no rule",
         "sudo iptables -I FORWARD -s 10.244.0.0/16 -j ACCEPT; sudo iptables -I FORWARD -d 10.244.0.0/16 -j ACCEPT"),
        (replace(GOOD, guards=(Guard("inet", "f", "fwd", "forward"),)), "degraded", "drops what no rule",
         "sudo nft insert rule inet f fwd ip saddr 172.18.0.0/24 accept"),
        (replace(GOOD, guards=(Guard("inet", "f", "in", "input", frozenset({"TCP 10250"})),)), "degraded",
         "drops what no rule", "sudo nft insert rule inet f in udp dport 4789 accept"),
    ],
)  # fmt: skip
def test_what_is_missing_is_told_with_the_way_out(seen: Seen, status: str, found: str, fix: str) -> None:
    (need,) = [each for each in judge(seen) if each.status != "ok"]
    assert need.status == status
    assert found in need.found
    assert fix in need.fix


def test_a_firewall_whose_rules_name_our_packets_is_ok() -> None:
    guards = (
        Guard("ip", "filter", "FORWARD", "forward", frozenset({PODS})),
        Guard("ip", "filter", "INPUT", "input", frozenset({"UDP 4789", "TCP 10250"})),
    )
    assert {each.status for each in judge(replace(GOOD, guards=guards))} == {"ok"}
