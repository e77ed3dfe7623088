"""Two sockets joined: bytes, half-closes, resets; and how a connection is handed to the node."""

import asyncio
import socket

import pytest

from lastcall.kube.cluster.egress.pair import Carried, EgressClient, EgressServer, egress_pair
from lastcall.kube.cluster.published.carrier import Carrier
from lastcall.kube.cluster.splice import splice
from lastcall.world.tasks import Tasks

pytestmark = pytest.mark.loopback


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
    one.setblocking(False)
    other.setblocking(False)
    return one, other


async def read_all(sock: socket.socket) -> bytes:
    data = b""
    while piece := await asyncio.get_running_loop().sock_recv(sock, 65536):
        data += piece
    return data


async def test_bytes_go_both_ways_and_each_direction_ends_for_itself() -> None:
    loop = asyncio.get_running_loop()
    (client, accepted), (dialed, server) = tcp_pair(), tcp_pair()
    question, answer = b"q" * 1_000_000, b"a" * 3_000_000

    async def ask() -> None:
        await loop.sock_sendall(client, question)
        client.shutdown(socket.SHUT_WR)

    async with asyncio.timeout(60), Tasks() as tasks:
        joined = tasks.spawn(splice(accepted, dialed), name="splice")
        tasks.spawn(ask(), name="ask")
        assert await read_all(server) == question
        assert not joined.done(), "the other direction goes on"
        tasks.spawn(loop.sock_sendall(server, answer), name="answer").add_done_callback(lambda _: server.close())
        assert await read_all(client) == answer
        await joined
    assert accepted.fileno() == dialed.fileno() == -1
    client.close()


async def test_a_reset_of_one_end_is_a_reset_of_the_other() -> None:
    (client, accepted), (dialed, server) = tcp_pair(), tcp_pair()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    server.close()
    async with asyncio.timeout(60):
        await splice(accepted, dialed)
        with pytest.raises(ConnectionResetError):
            await read_all(client)
    client.close()


async def test_a_connection_is_handed_to_the_node_that_joins_it_to_its_target() -> None:
    loop = asyncio.get_running_loop()
    front, node = egress_pair()
    server_end, node_end = EgressServer(front), EgressClient(node)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    try:
        async with asyncio.timeout(60), Tasks() as tasks:
            node_end.take_connections(Carrier(tasks).take)
            client, accepted = tcp_pair()
            assert server_end.hand_over(accepted, *listening.getsockname())
            accepted.close()
            target, _ = await loop.sock_accept(listening)
            await loop.sock_sendall(client, b"hello")
            assert await loop.sock_recv(target, 100) == b"hello"
            target.close()
            assert await read_all(client) == b""
            client.close()

            refusing = listening.getsockname()
            listening.close()
            client, accepted = tcp_pair()
            assert server_end.hand_over(accepted, *refusing)
            accepted.close()
            with pytest.raises(ConnectionResetError):
                await read_all(client)
            client.close()
    finally:
        node_end.close()
        server_end.close()


async def test_a_node_tells_what_became_of_a_connection_where_it_is_asked_to() -> None:
    front, node = egress_pair()
    server_end, node_end = EgressServer(front), EgressClient(node)
    server_end.start()
    told: asyncio.Queue[Carried] = asyncio.Queue()
    server_end.on_carried = told.put_nowait
    listening = socket.create_server(("127.0.0.1", 0))
    address = listening.getsockname()
    try:
        async with asyncio.timeout(60), Tasks() as tasks:
            node_end.take_connections(Carrier(tasks).take)
            for failed in ("", "refused"):
                client, accepted = tcp_pair()
                port = client.getsockname()[1]
                assert server_end.hand_over(accepted, *address, tell=True)
                accepted.close()
                found = await told.get()
                assert (found.port, found.failed) == (port, failed)
                assert found.endpoint in ("", address[0])  # as far as this kernel tracks connections
                client.close()
                listening.close()
    finally:
        node_end.close()
        server_end.close()


def test_a_node_that_reads_nothing_takes_no_more_connections_at_some_point() -> None:
    front, node = egress_pair()
    server_end = EgressServer(front)
    one, other = tcp_pair()
    taken = 0
    while server_end.hand_over(one, "10.96.3.4", 80):
        taken += 1
        assert taken < 100_000
    assert taken > 10
    for sock in (one, other, node):
        sock.close()
    server_end.close()
