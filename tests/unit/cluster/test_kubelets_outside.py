"""How the API server reaches kubelets that are not lastcall's, and where it may be reached itself."""

import socket

import click
import pytest
from click.testing import CliRunner

from lastcall.cli.commands import cli
from lastcall.cluster.egress.kubelets import KubeletWay, is_inside
from lastcall.cluster.egress.pair import EgressServer, egress_pair
from lastcall.cluster.plan import _api_sockets
from lastcall.streaming.dialing import DialError


@pytest.mark.parametrize(
    ("host", "inside"), [("172.18.0.2", True), ("10.126.0.2", False), ("node.example", False), ("::1", False)]
)
def test_only_addresses_of_lastcalls_nodes_are_dialed_from_inside(host: str, inside: bool) -> None:
    assert is_inside(host) is inside


@pytest.mark.parametrize("host", ["127.0.0.1", "169.254.169.254", "10.96.0.1", "node.example"])
async def test_a_node_that_says_an_address_of_the_loopback_is_not_dialed(host: str) -> None:
    """What a Node says of itself is a kubelet's word: front never connects to its own machine's loopback for it."""
    front, inner = egress_pair()
    server = EgressServer(front, pods=True)
    server.start()
    way = KubeletWay(inner)
    try:
        with pytest.raises(DialError, match=r"is not outside of the cluster|is not an IPv4 address"):
            await way.dial(host, 10250)
    finally:
        way.close()
        server.close()


def test_the_api_server_has_one_port_at_both_addresses() -> None:
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        first, second = _api_sockets(port, "127.0.0.2")
        assert second is not None
        with first, second:
            assert first.getsockname()[0] == "127.0.0.1"
            assert second.getsockname()[0] == "127.0.0.2"
            assert first.getsockname()[1] == second.getsockname()[1] != port


def test_without_an_address_only_the_loopback_listens() -> None:
    first, second = _api_sockets(0, "")
    with first:
        assert second is None


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(OSError, match=r"--listen 203\.0\.113\.9"):
        _api_sockets(0, "203.0.113.9")


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "172.18.0.1", "localhost", "::1"])
def test_listen_takes_an_address_of_this_machine_alone(address: str) -> None:
    result = CliRunner().invoke(cli, ["up", "--listen", address])
    assert result.exit_code == click.UsageError.exit_code
    assert "--listen" in result.output and "fix: name an IPv4 address of this machine" in result.output
