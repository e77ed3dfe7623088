"""Which rules a Pod's hostPorts are."""

import struct

import pytest

from lastcall.kube.cri.api import PortMapping
from lastcall.kube.cri.sandbox.host_ports import HostPorts, Kept, PodPorts, rules_of, udp_frontends, wanted
from lastcall.kube.nftables.objects import AddRule
from lastcall.kube.nftables.statements import text_of

KEPT = Kept(("10.96.0.0/16",), (("172.18.0.2", 10250),))


def rules(chain: str, *pods: PodPorts) -> list[str]:
    commands = rules_of(pods, KEPT).commands
    return [text_of(each.rule) for each in commands if isinstance(each, AddRule) and each.chain == chain]


def test_a_port_for_one_address_comes_before_the_same_port_for_all() -> None:
    all_of_them = PodPorts("10.244.0.2", (PortMapping(80, 8080),))
    one_address = PodPorts("10.244.0.3", (PortMapping(80, 8080, "TCP", "127.0.0.1"),))
    assert rules("ports", all_of_them, one_address) == [
        "ip daddr 127.0.0.1 tcp dport 80 meta l4proto tcp dnat to 10.244.0.3:8080",
        "tcp dport 80 meta l4proto tcp dnat to 10.244.0.2:8080",
    ]


@pytest.mark.parametrize("protocol", ["TCP", "UDP", "SCTP"])
def test_every_protocol_of_kubernetes_has_a_rule(protocol: str) -> None:
    found = rules("ports", PodPorts("10.244.0.2", (PortMapping(80, 8080, protocol),)))
    assert found == [f"{protocol.lower()} dport 80 meta l4proto {protocol.lower()} dnat to 10.244.0.2:8080"]


def test_the_service_network_and_the_kubelet_keep_their_ports() -> None:
    found = rules("nat-prerouting", PodPorts("10.244.0.2", (PortMapping(10250, 80),)))
    assert found == [
        "ip daddr 10.96.0.0/16 return",
        "ip daddr 172.18.0.2 tcp dport 10250 return",
        "fib daddr type local jump ports",
    ]
    assert rules("nat-output", PodPorts("10.244.0.2", (PortMapping(10250, 80),))) == found


def test_nobody_outside_reaches_the_node_s_loopback() -> None:
    assert rules("guard", PodPorts("10.244.0.2", (PortMapping(80, 80),))) == ['iif != "lo" ip daddr 127.0.0.0/8 drop']


@pytest.mark.parametrize("host_ip", ["", "0.0.0.0", "::", "172.18.0.2"])
def test_addresses_of_ipv4_and_all_addresses_are_served(host_ip: str) -> None:
    assert wanted([PortMapping(80, 80, "TCP", host_ip)])


@pytest.mark.parametrize(("host_port", "host_ip"), [(0, ""), (80, "::1"), (80, "fd00::1"), (80, "node")])
def test_no_port_of_the_node_and_addresses_of_ipv6_are_not(host_port: int, host_ip: str) -> None:
    assert not wanted([PortMapping(host_port, 80, "TCP", host_ip)])


def test_udp_flows_are_known_by_every_address_that_clients_may_send_to() -> None:
    pod = PodPorts(
        "10.244.0.2", (PortMapping(53, 53, "UDP"), PortMapping(54, 53, "UDP", "127.0.0.1"), PortMapping(80, 80))
    )
    assert list(udp_frontends(pod, ["172.18.0.2", "127.0.0.1"])) == [
        ("172.18.0.2", 53),
        ("127.0.0.1", 53),
        ("127.0.0.1", 54),
    ]


class Written(HostPorts):
    """Keeps the mappings of each write, or fails."""

    def __init__(self) -> None:
        super().__init__(KEPT)
        self.ports: list[list[int]] = []
        self.failure: Exception | None = None

    def write(self) -> None:
        if self.failure is not None:
            raise self.failure
        self.ports.append([each.host_port for pod in self._pods.values() for each in pod.mappings])


@pytest.mark.parametrize("mapping", [PortMapping(80, 1 << 16), PortMapping(1 << 16, 80), PortMapping(80, 80, "ICMP")])
def test_a_pod_whose_ports_no_rule_can_express_keeps_no_other_from_its_own(mapping: PortMapping) -> None:
    ports = Written()
    ports.open("a", "10.244.0.2", [PortMapping(8080, 80)], [])
    with pytest.raises((struct.error, KeyError)):
        ports.open("bad", "10.244.0.3", [mapping], [])
    with pytest.raises((struct.error, KeyError)):
        ports.adopt("bad", "10.244.0.3", [mapping])
    ports.open("c", "10.244.0.4", [PortMapping(8081, 80)], [])
    assert ports.ports == [[8080], [8080, 8081]]


@pytest.mark.parametrize("error", [OSError("no"), MemoryError()])
def test_a_pod_whose_ports_cannot_be_written_is_in_no_later_write(error: Exception) -> None:
    ports = Written()
    ports.failure = error
    with pytest.raises(type(error)):
        ports.open("a", "10.244.0.3", [PortMapping(80, 80)], [])
    ports.failure = None
    ports.open("b", "10.244.0.4", [PortMapping(81, 80)], [])
    assert ports.ports == [[81]]
