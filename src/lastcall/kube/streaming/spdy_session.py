"""A SPDY/3.1 session: streams over one byte stream, from either side.

Flow control: what is read is announced with WINDOW_UPDATE, and a window is respected once the other side has shown that
it announces any. Go's spdystream, which is kubectl's, does neither; so a stream whose reader is slow makes the whole
session wait, because nothing else bounds its buffer.
"""

# check: many attributes SpdySession because it is the state of one connection of the protocol

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from lastcall.kube.streaming.spdy_frames import (
    INITIAL_WINDOW,
    SETTINGS_INITIAL_WINDOW_SIZE,
    Data,
    Decoder,
    Encoder,
    Frame,
    GoAway,
    Headers,
    Ping,
    ResetStatus,
    RstStream,
    Settings,
    SpdyError,
    SynReply,
    SynStream,
    WindowUpdate,
)
from lastcall.kube.streaming.upgrade import ByteStream

LARGEST_FRAME = 32 << 10
MOST_UNREAD = 2 * INITIAL_WINDOW
"""Bytes of a stream that may wait for their reader before the session waits."""
MOST_STREAMS = 1000
"""Open at once; a Pod's port-forward needs two for each connection."""


class SpdyStream:
    """One stream. One reader and one writer at a time."""

    def __init__(self, session: "SpdySession", number: int, headers: Mapping[str, str]) -> None:
        self.id = number
        self.headers = dict(headers)
        self._session = session
        self._unread: deque[bytes] = deque()
        self._unread_size = 0
        self._unannounced = 0
        self._changed = asyncio.Event()
        self._window = session.initial_window
        self._window_open = asyncio.Event()
        self._ended_here = self._ended_there = False
        self._reset = False

    async def read(self) -> bytes:
        """Return the data that has arrived, a frame at a time; b"" at the end, also after a reset or the session."""
        while not self._unread:
            if self._ended_there:
                return b""
            self._changed.clear()
            await self._changed.wait()
        data = self._unread.popleft()
        self._unread_size -= len(data)
        self._unannounced += len(data)
        self._session.room()
        if self._unannounced >= INITIAL_WINDOW // 2 and not self._ended_there:
            announced, self._unannounced = self._unannounced, 0
            with suppress(ConnectionError):  # what has arrived is still to be read
                await self._session.send(WindowUpdate(self.id, announced))
        return data

    async def write(self, data: bytes) -> None:
        """Write all of `data`. Raises ConnectionResetError if the other side refuses it or the session is over."""
        for start in range(0, len(data), LARGEST_FRAME):
            piece = data[start : start + LARGEST_FRAME]
            while piece:
                while self._session.respects_windows and self._window <= 0 and not self._ended_here:
                    self._window_open.clear()
                    await self._window_open.wait()
                if self._ended_here:
                    raise ConnectionResetError(f"stream {self.id} is closed")
                size = min(len(piece), self._window) if self._session.respects_windows else len(piece)
                self._window -= size
                await self._session.send(Data(self.id, piece[:size]))
                piece = piece[size:]

    async def close_write(self) -> None:
        """Close this side: write no more. Idempotent."""
        if not self._ended_here:
            self._ended_here = True
            self._session.forget_if_over(self)
            with suppress(ConnectionError):
                await self._session.send(Data(self.id, b"", fin=True))

    async def reset(self, status: ResetStatus = ResetStatus.CANCEL) -> None:
        """Reset the stream: no more in either direction. Idempotent."""
        if not (self._ended_here and self._ended_there):
            self.end(reset=True)
            with suppress(ConnectionError):
                await self._session.send(RstStream(self.id, status))

    @property
    def was_reset(self) -> bool:
        return self._reset

    def forget(self) -> None:
        """Drop the stream: nobody here sends or reads more; nothing is sent."""
        self.end(reset=True)

    @property
    def closed_here(self) -> bool:
        return self._ended_here

    @property
    def over(self) -> bool:
        return self._ended_here and self._ended_there

    # -- what the session calls ----------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        return self._unread_size >= MOST_UNREAD and not self._reset

    def received(self, data: bytes) -> None:
        if data and not self._reset:
            self._unread.append(data)
            self._unread_size += len(data)
            self._changed.set()

    def ended_there(self) -> None:
        self._ended_there = True
        self._changed.set()

    def end(self, *, reset: bool, keep: bool = False) -> None:
        """End both directions. `reset`: drop what has not been read, unless `keep`."""
        self._ended_here = self._ended_there = True
        self._reset = self._reset or reset
        if reset and not keep:
            self._unread.clear()
            self._unread_size = 0
        self._changed.set()
        self._window_open.set()
        self._session.room()
        self._session.forget_if_over(self)

    def widen(self, delta: int) -> None:
        self._window += delta
        self._window_open.set()


class SpdySession:
    """`run` reads until the other side, or `close`, ends it. `on_stream` hears of streams the other side opens.

    `on_stream` may raise ValueError, which refuses the stream; otherwise the stream is answered when it returns.
    """

    def __init__(
        self, transport: ByteStream, on_stream: Callable[[SpdyStream], None] | None = None, *, client: bool = False
    ) -> None:
        self._transport = transport
        self._on_stream = on_stream
        self._encoder = Encoder()
        self._streams: dict[int, SpdyStream] = {}
        self._next, self._is_client = (1 if client else 2), client
        self._last_there = 0
        self._room = asyncio.Event()
        self._closed = False
        self._going_away = False
        self.initial_window = INITIAL_WINDOW
        self.respects_windows = False
        self.activity = 0
        """Grows with every read and every write."""

    async def run(self) -> None:
        """Run the session until it ends; then every stream is over. Raises SpdyError after closing an invalid one."""
        decoder = Decoder()
        try:
            while not self._closed and (data := await self._transport.read()):
                self.activity += 1
                for frame in decoder.feed(data):
                    await self._received(frame)
        except SpdyError:
            with suppress(ConnectionError):
                await self.send(GoAway(self._last_there, 1))
            raise
        finally:
            self._closed = True
            for stream in list(self._streams.values()):
                stream.end(reset=False)
            self._streams.clear()
            await self._transport.close()

    async def open(self, headers: Mapping[str, str]) -> SpdyStream:
        """Open a new stream. Raises ConnectionResetError."""
        if self._going_away:
            raise ConnectionResetError("the other side takes no new streams")
        stream = SpdyStream(self, self._next, headers)
        self._next += 2
        self._streams[stream.id] = stream
        await self.send(SynStream(stream.id, headers))
        return stream

    async def send(self, frame: Frame) -> None:
        """Send a frame, in the order of the calls. Raises ConnectionResetError."""
        if self._closed:
            raise ConnectionResetError("the session is over")
        self.activity += 1
        await self._transport.write(self._encoder.encode(frame))

    async def go_away(self) -> None:
        """Announce that this side takes no new streams; `run` goes on until the other side closes."""
        if not self._going_away:
            self._going_away = True
            with suppress(ConnectionError):
                await self.send(GoAway(self._last_there))

    async def finish(self) -> None:
        """Close our side; read on and drop what comes, until the other side has closed and `run` ends."""
        await self.go_away()
        for stream in list(self._streams.values()):
            if stream.closed_here:
                stream.forget()
            else:
                await stream.reset()

    async def close(self) -> None:
        """End the session now. Idempotent."""
        await self.go_away()
        self._closed = True
        self._room.set()
        await self._transport.close()

    def forget_if_over(self, stream: SpdyStream) -> None:
        if stream.over:
            self._streams.pop(stream.id, None)

    def room(self) -> None:
        self._room.set()

    async def _received(self, frame: Frame) -> None:
        match frame:
            case Data():
                await self._data(frame)
            case SynStream():
                await self._opened(frame)
            case SynReply(number, _, fin) | Headers(number, _, fin):
                if fin and number in self._streams:
                    self._ended(self._streams[number])
            case RstStream(number, _):
                if number in self._streams:
                    # A Go server resets all streams when it is done, its last words among them: Go's client reads on.
                    self._streams[number].end(reset=True, keep=self._is_client)
            case WindowUpdate(number, delta):
                self.respects_windows = True
                if number in self._streams:
                    self._streams[number].widen(delta)
            case Settings(values):
                self._set(values)
            case Ping(number):
                if number % 2 != self._next % 2:  # theirs; ours would be an answer
                    await self.send(frame)
            case GoAway():
                self._going_away = True

    async def _data(self, frame: Data) -> None:
        stream = self._streams.get(frame.stream)
        if stream is None:
            return  # reset or closed by us a moment ago
        stream.received(frame.data)
        if frame.fin:
            self._ended(stream)
        while stream.full and not self._closed:
            self._room.clear()
            await self._room.wait()

    async def _opened(self, frame: SynStream) -> None:
        number = frame.stream
        if number <= self._last_there or number % 2 == self._next % 2:
            raise SpdyError(f"a new stream with the number {number} after {self._last_there}")
        self._last_there = number
        if self._going_away or self._on_stream is None or len(self._streams) >= MOST_STREAMS:
            await self.send(RstStream(number, ResetStatus.REFUSED_STREAM))
            return
        stream = SpdyStream(self, number, frame.headers)
        self._streams[number] = stream
        if frame.fin:
            stream.ended_there()
        try:
            self._on_stream(stream)
        except ValueError:
            await stream.reset()
            return
        await self.send(SynReply(number))

    def _ended(self, stream: SpdyStream) -> None:
        stream.ended_there()
        self.forget_if_over(stream)

    def _set(self, values: Mapping[int, int]) -> None:
        window = values.get(SETTINGS_INITIAL_WINDOW_SIZE)
        if window is None:
            return
        if window > 0x7FFFFFFF:
            raise SpdyError(f"a window of {window} bytes")
        self.respects_windows = True
        for stream in self._streams.values():
            stream.widen(window - self.initial_window)
        self.initial_window = window
