"""Which Pods a drain evicts, and what the machine does with a node's packets."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.cluster.joined.drain import to_evict
from lastcall.cluster.joined.facts import Joined
from lastcall.cluster.joined.link import rules
from lastcall.cluster.joined.ports import ports_of
from lastcall.nftables.statements import text_of

JOINED = Joined("https://10.0.0.1:6443", b"", "n1", "10.0.0.2", "10.244.3.0/24")


@pytest.mark.parametrize(
    ("metadata", "phase", "evicted"),
    [
        ({}, "Running", True),
        ({"ownerReferences": [{"kind": "ReplicaSet", "controller": True}]}, "Pending", True),
        ({"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}, "Running", False),
        ({"ownerReferences": [{"kind": "DaemonSet"}]}, "Running", True),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, "Running", False),
        ({}, "Succeeded", False),
        ({}, "Failed", False),
    ],
)
def test_a_drain_leaves_what_belongs_to_the_node_and_what_has_ended(
    metadata: dict[str, Any], phase: str, evicted: bool
) -> None:
    pod = {"metadata": metadata, "status": {"phase": phase}}
    assert to_evict([pod]) == ([pod] if evicted else [])


@pytest.mark.parametrize(
    ("ports", "phase", "found"),
    [
        ([{"containerPort": 80, "hostPort": 8080}], "Running", {("TCP", 8080)}),
        ([{"containerPort": 53, "hostPort": 53, "protocol": "UDP"}], "Pending", {("UDP", 53)}),
        ([{"containerPort": 80}], "Running", set()),
        ([{"containerPort": 10250, "hostPort": 10250}], "Running", set()),
        ([{"containerPort": 80, "hostPort": 8080}], "Failed", set()),
    ],
)
def test_declared_ports_of_the_node_are_its_machine_s(
    ports: list[dict[str, Any]], phase: str, found: set[tuple[str, int]]
) -> None:
    pod = {"spec": {"containers": [{"ports": ports}]}, "status": {"phase": phase}}
    assert ports_of([pod], 10250) == found


@pytest.mark.parametrize(
    ("server", "beside"),
    [
        ("https://10.0.0.2:6443", True),
        ("https://10.0.0.2", True),
        ("https://10.0.0.2:6443/k8s/clusters/c-1", True),
        ("https://10.0.0.1:6443", False),
        ("https://api.example.com", False),
    ],
)
def test_an_api_server_at_the_node_s_address_is_beside_it(server: str, beside: bool) -> None:
    assert replace(JOINED, server=server).is_beside_server is beside


def test_the_node_s_packets_are_the_machine_s_and_pods_keep_their_addresses_in_private_networks() -> None:
    chains = {
        command.chain.name: [text_of(rule) for rule in command.chain.rules]
        for command in rules(JOINED, "169.254.77.2").commands
        if hasattr(command, "chain") and not isinstance(command.chain, str)
    }
    out = chains["nat-postrouting"]
    assert out[0] == "ip saddr 169.254.77.2 masquerade fully-random"
    assert out[-1].startswith("ip saddr 10.244.3.0/24 ip daddr != 10.0.0.0/8 ip daddr != 172.16.0.0/12")
    assert (
        chains["nat-prerouting"]
        == chains["nat-output"]
        == [
            "ip daddr 10.0.0.2 tcp dport 30000-32767 dnat to 169.254.77.2",
            "ip daddr 10.0.0.2 udp dport 30000-32767 dnat to 169.254.77.2",
            "jump ports",
        ]
    )
