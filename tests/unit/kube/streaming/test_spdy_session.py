"""SPDY sessions between two ends of a pipe."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lastcall.kube.streaming.spdy_frames import (
    SETTINGS_INITIAL_WINDOW_SIZE,
    Data,
    Decoder,
    Encoder,
    GoAway,
    Ping,
    RstStream,
    Settings,
    SpdyError,
    SynReply,
    SynStream,
    WindowUpdate,
)
from lastcall.kube.streaming.spdy_session import MOST_UNREAD, SpdySession, SpdyStream
from lastcall.world.tasks import Tasks


class Pipe:
    """One end of a byte stream that holds 64 KiB."""

    def __init__(self) -> None:
        self.other: Pipe
        self.buffer = bytearray()
        self.ended = False
        self.changed = asyncio.Condition()

    @classmethod
    def pair(cls) -> "tuple[Pipe, Pipe]":
        one, two = cls(), cls()
        one.other, two.other = two, one
        return one, two

    async def read(self) -> bytes:
        async with self.changed:
            await self.changed.wait_for(lambda: self.buffer or self.ended)
            data = bytes(self.buffer[:5000])
            del self.buffer[:5000]
            self.changed.notify_all()
            return data

    async def write(self, data: bytes) -> None:
        async with self.other.changed:
            await self.other.changed.wait_for(lambda: len(self.other.buffer) < 65536 or self.other.ended)
            if self.other.ended:
                raise ConnectionResetError("closed")
            self.other.buffer += data
            self.other.changed.notify_all()

    async def close(self) -> None:
        for end in (self, self.other):
            async with end.changed:
                end.ended = True
                end.changed.notify_all()


class Peer:
    """The other side, frame by frame."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe, self.encoder, self.decoder = pipe, Encoder(), Decoder()
        self.frames: list = []

    async def send(self, *frames) -> None:
        for frame in frames:
            await self.pipe.write(self.encoder.encode(frame))

    async def receive(self):
        async with asyncio.timeout(60):
            while not self.frames:
                data = await self.pipe.read()
                assert data, "the session has ended"
                self.frames += self.decoder.feed(data)
        return self.frames.pop(0)


@asynccontextmanager
async def server(refuse: bool = False) -> AsyncIterator[tuple[Peer, SpdySession, list[SpdyStream]]]:
    ours, theirs = Pipe.pair()
    streams: list[SpdyStream] = []

    def on_stream(stream: SpdyStream) -> None:
        if refuse:
            raise ValueError("no")
        streams.append(stream)

    session = SpdySession(ours, on_stream)
    async with Tasks() as tasks:
        tasks.spawn(session.run(), name="session")
        yield Peer(theirs), session, streams
        await theirs.close()


async def test_a_stream_is_answered_and_carries_both_directions_until_both_have_ended():
    async with server() as (peer, _, streams):
        await peer.send(SynStream(1, {"streamtype": "data"}), Data(1, b"ping"))
        assert await peer.receive() == SynReply(1)
        assert streams[0].headers == {"streamtype": "data"}
        assert await streams[0].read() == b"ping"
        await peer.send(Data(1, b"", fin=True))
        assert await streams[0].read() == b""
        await streams[0].write(b"pong")
        await streams[0].close_write()
        assert [await peer.receive(), await peer.receive()] == [Data(1, b"pong"), Data(1, b"", fin=True)]
        assert streams[0].over


async def test_two_sessions_carry_many_streams_at_once():
    one, two = Pipe.pair()

    async def echo(stream: SpdyStream) -> None:
        while data := await stream.read():
            await stream.write(data)
        await stream.close_write()

    async with Tasks() as tasks:
        server = SpdySession(one, lambda stream: tasks.spawn(echo(stream), name="echo") and None)
        client = SpdySession(two, client=True)
        runs = [tasks.spawn(each.run(), name="run") for each in (server, client)]

        async def one_stream(number: int) -> None:
            stream = await client.open({"number": str(number)})
            data = bytes([number]) * 300_000

            async def send() -> None:
                await stream.write(data)
                await stream.close_write()

            sending = tasks.spawn(send(), name="send")
            got = b""
            while piece := await stream.read():
                got += piece
            assert got == data
            await sending

        for each in [tasks.spawn(one_stream(number), name="stream") for number in range(12)]:
            await each
        assert client.respects_windows
        await client.close()
        for run in runs:
            await run


async def test_a_ping_comes_back_and_an_answer_to_none_does_not():
    async with server() as (peer, _, _):
        await peer.send(Ping(2), Ping(9))
        assert await peer.receive() == Ping(9)


async def test_a_refused_stream_is_reset_and_the_session_goes_on():
    async with server(refuse=True) as (peer, _, _):
        await peer.send(SynStream(1, {}), Ping(1))
        assert await peer.receive() == RstStream(1, 5)
        assert await peer.receive() == Ping(1)


async def test_a_reset_ends_reads_and_writes():
    async with server() as (peer, _, streams):
        await peer.send(SynStream(1, {}), Data(1, b"unread"), RstStream(1, 5), Ping(1))
        assert await peer.receive() == SynReply(1)
        assert await peer.receive() == Ping(1)
        assert await streams[0].read() == b""
        assert streams[0].was_reset
        with pytest.raises(ConnectionResetError):
            await streams[0].write(b"x")
        await peer.send(Data(1, b"late"), Ping(3))
        assert await peer.receive() == Ping(3)


async def test_a_slow_reader_makes_the_sender_wait_and_no_buffer_grows():
    async with server() as (peer, _, streams):
        await peer.send(SynStream(1, {}))
        sent = 0

        async def send() -> None:
            nonlocal sent
            for _ in range(100):
                await peer.send(Data(1, bytes(10_000)))
                sent += 10_000
            await peer.send(Data(1, b"", fin=True))

        async with Tasks() as tasks:
            tasks.spawn(send(), name="send")
            for _ in range(200):
                await asyncio.sleep(0)
            assert sent <= MOST_UNREAD + 65536 + 3 * 10_000
            size = 0
            while data := await streams[0].read():
                size += len(data)
            assert size == 1_000_000


async def test_what_nobody_wants_any_more_does_not_hold_the_session():
    async with server() as (peer, session, streams):
        await peer.send(SynStream(1, {}))

        async def send() -> None:
            for _ in range(100):
                await peer.send(Data(1, bytes(10_000)))
            await peer.send(Ping(5))

        async with Tasks() as tasks:
            tasks.spawn(send(), name="send")
            for _ in range(200):
                await asyncio.sleep(0)
            await session.finish()
            while await peer.receive() != Ping(5):
                pass
        assert streams[0].over


async def test_windows_are_announced_and_respected_once_the_other_side_announces_any():
    async with server() as (peer, _, streams):
        await peer.send(Settings({SETTINGS_INITIAL_WINDOW_SIZE: 10}), SynStream(1, {}))
        assert await peer.receive() == SynReply(1)
        async with Tasks() as tasks:
            writing = tasks.spawn(streams[0].write(b"0123456789abcdef"), name="write")
            assert await peer.receive() == Data(1, b"0123456789")
            assert not writing.done()
            await peer.send(WindowUpdate(1, 100))
            assert await peer.receive() == Data(1, b"abcdef")
        await peer.send(Data(1, bytes(40_000)))
        size = 0
        while size < 40_000:
            size += len(await streams[0].read())
        assert isinstance(update := await peer.receive(), WindowUpdate)
        assert update.delta >= 32 << 10


@pytest.mark.parametrize("frames", [[SynStream(2)], [SynStream(3), SynStream(3)], [SynStream(5), SynStream(3)]])
async def test_stream_numbers_that_cannot_be_end_the_session_with_a_word(frames):
    ours, theirs = Pipe.pair()
    session = SpdySession(ours, lambda stream: None)
    peer = Peer(theirs)
    await peer.send(*frames)
    with pytest.raises(SpdyError, match="a new stream with the number"):
        await session.run()
    said = []
    while data := await theirs.read():
        said += peer.decoder.feed(data)
    last = said[-1]
    assert isinstance(last, GoAway) and last.status == 1


async def test_the_end_of_the_connection_is_the_end_of_every_stream():
    async with server() as (peer, session, streams):
        await peer.send(SynStream(1, {}), Data(1, b"last words"))
        await peer.receive()
        await peer.pipe.close()
        assert await streams[0].read() == b"last words"
        assert await streams[0].read() == b""
        with pytest.raises(ConnectionResetError):
            await streams[0].write(b"x")
        with pytest.raises(ConnectionResetError):
            await session.send(Ping(2))


async def test_more_streams_than_anybody_needs_are_refused():
    async with server() as (peer, _, streams):
        for number in range(1, 2 * 1000 + 2, 2):
            await peer.send(SynStream(number))
            last = await peer.receive()
        assert last == RstStream(2001, 3)
        assert len(streams) == 1000
