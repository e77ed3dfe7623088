"""The HTTP/2 server of `bench.diagnosis`: frames in, frames out, in virtual time."""

import asyncio
from typing import Any

import pytest
from bench.diagnosis.programs import Program, render

from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7
END_STREAM, ACK = 1, 1
HIGHEST = 2**31 - 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, stream: int = 0, body: bytes = b"", flags: int = 0) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


class Writer:
    """Keeps the frames that a server writes."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.data, self.closed, self._reader = b"", False, reader

    def write(self, data: bytes) -> None:
        if not self.closed:
            self.data += data

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._reader.feed_eof()

    def frames(self) -> list[tuple[int, int, int, bytes]]:
        """Return kind, flags, stream and body of each frame."""
        data, found = self.data, []
        while data:
            size = int.from_bytes(data[:3], "big")
            found.append((data[3], data[4], int.from_bytes(data[5:9], "big"), data[9 : 9 + size]))
            data = data[9 + size :]
        return found

    def answered(self) -> list[int]:
        """Return the streams whose answers came to their end, by number."""
        return sorted(stream for kind, flags, stream, _ in self.frames() if kind == DATA and flags & END_STREAM)

    def goaways(self) -> list[int]:
        return [int.from_bytes(body[:4], "big") for kind, _, _, body in self.frames() if kind == GOAWAY]


class Client:
    """One connection to a server, whose functions are those of the program's text."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names, self.reader, self.over = names, asyncio.StreamReader(), False
        self.writer = Writer(self.reader)
        names["idle"] = asyncio.Event()
        self.served = asyncio.ensure_future(names["connected"](self.reader, self.writer))
        self.reader.feed_data(PREFACE + frame(SETTINGS))

    def ask(self, *streams: int) -> None:
        for stream in streams:
            self.reader.feed_data(frame(HEADERS, stream, b"x-request-id lc-%d" % stream, 5))

    def stop(self) -> None:
        self.names["leaving"].set()


def program(**more: Any) -> Program:
    return Program("http2", 4711, "/ready", "main.py", ("orders", "mail", "stock"), slow_seconds=1.0, **more)


def serve(made: Program, scenario: Any) -> Client:
    """Run a scenario with a connection to the program's server."""
    text = render(made)["main.py"].partition("loop.run_until_complete")[0]
    names: dict[str, Any] = {"__name__": "main"}
    exec(text, names)
    names["loop"].close()

    async def main(world: World) -> Client:
        client = Client(names)
        await scenario(client, world.clock.sleep)
        client.over = client.served.done()
        client.served.cancel()
        return client

    return run_virtual(main)


@pytest.fixture(autouse=True)
def _signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the signal handlers of this process alone."""
    monkeypatch.setattr("signal.signal", lambda *_: None)


async def _asked_and_stopped(client: Client, sleep: Any) -> None:
    client.ask(1, 3)
    await sleep(0.5)
    client.stop()
    await sleep(0.05)
    client.ask(5)
    await sleep(10)


def test_the_sound_server_says_goaway_twice_and_answers_what_it_took() -> None:
    writer = serve(program(), _asked_and_stopped).writer
    assert writer.goaways() == [HIGHEST, 5]
    assert writer.answered() == [1, 3, 5]
    assert writer.closed


def test_a_server_that_says_no_goaway_drops_what_comes_after_the_signal() -> None:
    writer = serve(program(closes_idle=False), _asked_and_stopped).writer
    assert writer.goaways() == []
    assert writer.answered() == [1, 3]
    assert writer.closed


def test_a_server_that_waits_for_its_clients_answers_on_and_on() -> None:
    client = serve(program(on_stop="waitForClients"), _asked_and_stopped)
    assert client.writer.goaways() == []
    assert client.writer.answered() == [1, 3, 5]
    assert not client.over


def test_a_server_that_leaves_after_its_goaway_has_answered_nothing_by_then() -> None:
    async def scenario(client: Client, sleep: Any) -> None:
        client.ask(1, 3)
        await sleep(0.5)
        client.stop()
        await sleep(0.06)

    writer = serve(program(finishes=False), scenario).writer
    assert (writer.goaways(), writer.answered()) == ([3], [])
    assert "asyncio.sleep(0.05)\n    os._exit(0)" in render(program(finishes=False))["main.py"]


async def _three_requests(client: Client, sleep: Any) -> None:
    for stream in (1, 3, 5):
        client.ask(stream)
        await sleep(0.1)
    await sleep(10)


@pytest.mark.parametrize(
    ("more", "answered", "goaways", "over"),
    [
        pytest.param({}, [1, 3, 5], [], False, id="no limit"),
        pytest.param({"most_requests": 2}, [1, 3, 5], [HIGHEST, 5], True, id="properly"),
        pytest.param({"most_requests": 2, "recycles_properly": False}, [], [], True, id="rudely"),
    ],
)
def test_a_server_ends_a_connection_that_had_so_many_requests(more, answered, goaways, over) -> None:
    client = serve(program(**more), _three_requests)
    assert (client.writer.goaways(), client.over) == (goaways, over)
    assert client.writer.answered() == answered


def test_settings_and_pings_are_acknowledged() -> None:
    async def scenario(client: Client, sleep: Any) -> None:
        client.reader.feed_data(frame(PING, 0, b"12345678"))
        await sleep(1)

    frames = serve(program(), scenario).writer.frames()
    assert (SETTINGS, ACK, 0, b"") in frames
    assert (PING, ACK, 0, b"12345678") in frames
