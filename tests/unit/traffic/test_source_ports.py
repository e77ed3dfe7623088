"""Source ports that no node remembers: none comes back within two minutes, also not in the next run."""

import itertools
import socket

import pytest
from ports import reserve_port

from lastcall.traffic.connection import Connection, Dialler
from lastcall.traffic.ports import REMEMBERED_SECONDS, SourcePorts
from lastcall.world.world import World


def first(ports: SourcePorts, at: float) -> int:
    """One that is free at once."""
    return next(ports.take(at))


def test_ports_come_back_after_two_minutes_and_not_before() -> None:
    ports = SourcePorts(32768, 60999)
    used: dict[int, float] = {}
    for number in range(40_000):
        at = 500.0 + number / 200
        port = first(ports, at)
        assert port not in used or at - used[port] >= 120.0
        used[port] = at
    assert set(used) <= set(range(32768, 61000))


def test_a_run_after_another_takes_ports_that_the_other_has_not_had() -> None:
    runs = [{first(ports, begun + number / 150) for number in range(3000)}
            for begun in (1000.0, 1030.0, 1060.0) for ports in [SourcePorts(32768, 60999)]]  # fmt: skip
    assert all(not (one & other) for one, other in itertools.combinations(runs, 2))


def test_more_connections_than_time_has_ports_for_take_the_next_ones() -> None:
    ports = SourcePorts(100, 199)
    assert [first(ports, 0.0) for _ in range(101)] == [*range(100, 200), 100]
    assert first(ports, 2 * REMEMBERED_SECONDS) == 100


@pytest.mark.loopback
def test_a_port_that_somebody_has_is_passed_over() -> None:
    with socket.socket() as taken, socket.socket() as ours:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        SourcePorts(port, port + 50).bind(ours, 0.0)
        assert port < ours.getsockname()[1] <= port + 50


@pytest.mark.loopback
def test_where_all_are_taken_the_kernel_chooses() -> None:
    with socket.socket() as taken, socket.socket() as ours:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        SourcePorts(port, port).bind(ours, 0.0)
        ours.connect_ex(("127.0.0.1", port))
        assert ours.getsockname()[1] != port


@pytest.mark.loopback
async def test_a_connection_goes_out_from_the_port_that_was_chosen() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = reserve_port()
        made = await Dialler(World().clock, None, ports=SourcePorts(port, port)).connect(server.getsockname())
        assert isinstance(made, Connection) and made.port == port
        assert made.writer.get_extra_info("sockname")[1] == port
        made.writer.close()
