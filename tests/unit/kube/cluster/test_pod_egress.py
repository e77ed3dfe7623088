"""To where Pods may connect through front, who decides it, and the rules that lead them there."""

import asyncio
import socket

import pytest

from lastcall.kube.cluster.egress import outside
from lastcall.kube.cluster.egress import pods as pod_egress
from lastcall.kube.cluster.egress.outside import outside_address
from lastcall.kube.cluster.egress.pair import EgressClient, EgressServer, egress_pair
from lastcall.kube.cri.sandbox.images.way_out import DialError
from lastcall.kube.nftables.encode import batch
from lastcall.kube.nftables.objects import AddRule
from lastcall.kube.nftables.statements import text_of

REFUSED = [
    "127.0.0.1",
    "127.8.9.10",
    "0.0.0.0",
    "0.0.0.1",
    "169.254.169.254",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "10.244.3.4",
    "10.96.0.1",
    "172.18.0.2",
    "172.18.255.1",
    "::1",
    "::ffff:127.0.0.1",
    "2001:db8::1",
    "localhost",
    "example.com",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.1 ",
    "",
]


@pytest.mark.parametrize("address", REFUSED)
def test_what_is_not_outside_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"not outside|not an IPv4 address"):
        outside_address(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "192.168.1.1", "10.0.0.1", "10.245.0.1", "172.19.0.1", "198.51.100.7"])
def test_other_addresses_are_outside(address: str) -> None:
    assert outside_address(address) == address


@pytest.mark.loopback
@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "0.0.0.0"])
async def test_front_itself_lets_no_pod_to_the_loopback_of_the_host(address: str) -> None:
    front, node = egress_pair()
    server, client = EgressServer(front, pods=True), EgressClient(node)
    server.start()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        try:
            async with asyncio.timeout(60):
                with pytest.raises(DialError, match=r"not outside|not an IPv4 address"):
                    await client.dial_outside(address, listening.getsockname()[1])
            with pytest.raises(BlockingIOError):
                listening.accept()
        finally:
            client.close()
            server.close()


async def test_without_egress_front_dials_nothing_for_pods() -> None:
    front, node = egress_pair()
    server, client = EgressServer(front), EgressClient(node)
    server.start()
    try:
        async with asyncio.timeout(60):
            with pytest.raises(DialError, match="--egress"):
                await client.dial_outside("198.51.100.7", 80)
    finally:
        client.close()
        server.close()


async def test_a_proxy_of_the_host_is_for_https_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, bool, bool]] = []

    def dial_out(host: str, port: int, *, tls: bool, environ: dict[str, str] | None = None) -> socket.socket:
        asked.append((host, port, tls, environ is None))
        return socket.socket()

    monkeypatch.setattr("lastcall.kube.cluster.egress.pair.dial_out", dial_out)
    front, node = egress_pair()
    server, client = EgressServer(front, pods=True), EgressClient(node)
    server.start()
    try:
        async with asyncio.timeout(60):
            for port in (443, 80):
                (await client.dial_outside("198.51.100.7", port)).close()
    finally:
        client.close()
        server.close()
    assert asked == [("198.51.100.7", 443, True, True), ("198.51.100.7", 80, False, False)]


def test_the_rules_leave_the_cluster_alone_and_have_a_table_of_their_own() -> None:
    transaction = pod_egress.redirection("10.244.0.0/24", "172.18.0.2", 4444)
    rules = [text_of(command.rule) for command in transaction.commands if isinstance(command, AddRule)]
    assert rules[:-1] == [f"ip daddr {network} return" for network in outside.NOT_OUTSIDE]
    assert rules[-1] == "ip saddr 10.244.0.0/24 meta l4proto tcp dnat to 172.18.0.2:4444"
    messages = batch(transaction, pod_egress.TABLE)
    assert all(b"lastcall-egress\0" in message.body and b"lastcall-proxy" not in message.body for message in messages)
