"""Connections whose TLS handshake does not end are bounded in number and in time."""

import asyncio
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
import uvloop

from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.apiserver.auth.tls import server_context
from lastcall.world import crash_guard, listeners
from lastcall.world.clock import RealClock
from lastcall.world.listeners import TLSListener
from lastcall.world.tasks import Tasks

pytestmark = pytest.mark.loopback
AUTHORITY = ClusterCA.create()
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""The first bytes of a ClientHello that does not come."""


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)  # type: ignore[attr-defined]


@asynccontextmanager
async def listening(protocols: Callable[[], asyncio.BaseProtocol] = Echo) -> AsyncIterator[int]:
    """The port of an echo server."""
    tls = server_context(*AUTHORITY.issue_server(["127.0.0.1"]), client_ca=AUTHORITY.certificate_pem)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        async with Tasks() as tasks:
            tasks.spawn(TLSListener(protocols, sock, tls, RealClock()).run(), name="listener")
            yield sock.getsockname()[1]
            tasks.cancel()


async def echoed(port: int) -> bytes:
    trust = ssl.create_default_context(cadata=AUTHORITY.certificate_pem.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    writer.write(b"hello")
    answer = await reader.readexactly(5)
    writer.close()
    return answer


async def begun(port: int, sent: bytes) -> asyncio.StreamReader:
    """What comes on a connection on which no more than `sent` is sent. It is accepted when a later one is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    reader.kept = writer  # type: ignore[attr-defined]
    return reader


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], object]], None]:
    def run(main: Callable[[], object]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(main(), 60))  # type: ignore[arg-type]

    return run


@pytest.mark.parametrize("sent", [b"", HELLO])
def test_one_handshake_too_many_takes_the_place_of_the_oldest(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(listeners, "MOST_HANDSHAKES", 3)

    async def main() -> None:
        async with listening() as port:
            silent = [await begun(port, sent) for _ in range(5)]
            assert await echoed(port) == b"hello"
            assert [await ended(each) for each in silent[:3]] == [True] * 3
            assert not any(each.at_eof() or each.exception() for each in silent[3:])
            assert await echoed(port) == b"hello", "a finished handshake has given its place back"
            assert not any(each.at_eof() or each.exception() for each in silent[3:])
            for each in silent:
                each.kept.close()  # type: ignore[attr-defined]

    run(main)


@pytest.mark.parametrize("sent", [b"", HELLO])
def test_a_handshake_that_takes_too_long_is_ended(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(listeners, "HANDSHAKE_SECONDS", 0.05)

    async def main() -> None:
        async with listening() as port:
            silent = await begun(port, sent)
            assert await ended(silent)
            silent.kept.close()  # type: ignore[attr-defined]

    run(main)


def test_what_is_no_tls_is_ended_and_the_next_client_is_answered(
    run: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with listening() as port:
            plain = await begun(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await plain.read()  # to its end
            plain.kept.close()  # type: ignore[attr-defined]
            assert await echoed(port) == b"hello"

    run(main)
    assert caplog.records == []


def test_a_connection_that_fails_in_a_way_nobody_expected_ends_no_other(run: Callable[..., None]) -> None:
    class Failing(Echo):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            if failing:
                failing.pop()
                raise RuntimeError("nobody expected this")

    failing = [1]

    async def main() -> None:
        async with listening(Failing) as port:
            with suppress(OSError, asyncio.IncompleteReadError):
                await echoed(port)
            assert failing == [] and await echoed(port) == b"hello"

    with crash_guard.installed():
        run(main)


def test_a_process_may_have_as_many_connections_as_it_may_ask_for() -> None:
    code = (
        "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (64, r.getrlimit(r.RLIMIT_NOFILE)[1]))\n"
        "from lastcall.world.listeners import allow_most_connections; allow_most_connections()\n"
        "print(len(set(r.getrlimit(r.RLIMIT_NOFILE))))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"1\n"


class Refusing(socket.socket):
    """A listening socket whose first accepts fail."""

    errors: list[OSError]

    def accept(self) -> "tuple[socket.socket, object]":
        if self.errors:
            raise self.errors.pop(0)
        return super().accept()


def refusing(*errors: OSError) -> Refusing:
    listening = Refusing()
    listening.errors = list(errors)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    return listening


class CountedRests(RealClock):
    def __init__(self) -> None:
        self.rests: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)


def test_a_listener_without_descriptors_goes_on_when_there_are_some(run: Callable[..., None]) -> None:
    async def main() -> None:
        clock, taken = CountedRests(), asyncio.Queue[socket.socket]()
        with refusing(ConnectionAbortedError(), OSError(24, "Too many open files")) as listening:
            accepting = asyncio.ensure_future(listeners.accept_each(listening, clock, taken.put_nowait))
            with socket.create_connection(listening.getsockname()), await taken.get() as accepted:
                assert not accepted.getblocking()
            accepting.cancel()
        assert listening.errors == [] and len(clock.rests) == 1

    run(main)


def test_connections_that_come_at_once_are_all_taken(run: Callable[..., None]) -> None:
    async def main() -> None:
        taken = asyncio.Queue[socket.socket]()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            clients = [socket.create_connection(listening.getsockname()) for _ in range(20)]
            accepting = asyncio.ensure_future(listeners.accept_each(listening, RealClock(), taken.put_nowait))
            accepted = [await taken.get() for _ in clients]
            assert {each.getpeername() for each in accepted} == {each.getsockname() for each in clients}
            accepting.cancel()
            for each in (*accepted, *clients):
                each.close()

    run(main)


def test_an_error_of_the_one_who_takes_a_connection_closes_it_and_is_raised(run: Callable[..., None]) -> None:
    def take(accepted: socket.socket) -> None:
        raise RuntimeError("no place for it")

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            with pytest.raises(RuntimeError, match="no place for it"):
                await listeners.accept_each(listening, RealClock(), take)
            assert await ended(reader)
            writer.close()

    run(main)
