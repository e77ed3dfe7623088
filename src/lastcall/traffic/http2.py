"""Run a connection of HTTP/2 (prior knowledge, RFC 9113) with many requests at a time. Frames and headers are h2's.

GOAWAY is read here: to h2 a connection that got GOAWAY is closed at once, to the RFC (6.8) the streams up to
the last stream id go on, and those above it were not begun and can be sent again (8.7: REFUSED_STREAM, too).
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hpack

from lastcall.traffic.http1 import read_in_turn, wait_until_sent
from lastcall.traffic.outcome import Answer, Lost
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

_FRAME_HEAD, _GOAWAY, _GOAWAY_SIZE = 9, 7, 8
_PREFACE_WINDOW = (1 << 24) - 65535
"""What is added to the connection's window: many answers at a time must not wait for one another."""


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The server said so, or nothing was sent: the request can be sent again (RFC 9113 8.7)."""


class _Plain(hpack.Encoder):
    """Header fields go out as they are, without Huffman coding: a capture of packets shows the ids, and a server of a
    few lines can find them."""

    def encode(self, headers: Any, huffman: bool = False) -> bytes:
        return super().encode(headers, huffman)


@dataclass(slots=True)
class _Open:
    answer: asyncio.Future[Answer | NotBegun]
    status: int = 0
    seen: bool = False


class Http2Connection:
    """`run` reads until the connection is over; `request` any number of times meanwhile."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        host: str,
        scheme: str = "http",
        *,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._reader = reader
        self._writer = writer
        self._host, self._scheme = host, scheme
        self._h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding=None, validate_outbound_headers=False)
        )
        self._h2.encoder = _Plain()
        self._streams: dict[int, _Open] = {}
        self._last_stream: int | None = None
        self._over = False
        self._how: Lost = "closed before bytes"
        self._spoken = False
        self._frames = b""
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_PREFACE_WINDOW)
        self._flush()

    @property
    def takes_requests(self) -> bool:
        """Return False after GOAWAY, and if it is full or over."""
        if self._over or self._last_stream is not None or self._writer.is_closing():
            return False
        return len(self._streams) < self._h2.remote_settings.max_concurrent_streams

    def close(self) -> None:
        """Take no more; what is under way goes on to its end."""
        self._last_stream = self._last_stream if self._last_stream is not None else 1 << 31
        self._close_when_idle()

    async def request(self, path: str, request_id: str) -> Answer | NotBegun:
        """Send GET `path`. Cancelling resets the stream. Never raises for what the server does."""
        if self._over:  # it ended before this request: without HTTP/2, another connection would end so, too
            return Answer(lost=self._how) if self._how == "not HTTP/2" else NotBegun()
        try:
            stream = self._h2.get_next_available_stream_id()
            headers = [(":method", "GET"), (":scheme", self._scheme), (":authority", self._host), (":path", path)]
            headers += [("user-agent", "lastcall"), ("x-request-id", request_id)]
            self._h2.send_headers(stream, headers, end_stream=True)
        except h2.exceptions.ProtocolError:  # full, or no stream ids are left: nothing was sent
            return NotBegun()
        found = self._streams[stream] = _Open(asyncio.get_running_loop().create_future())
        self._flush()
        try:
            return await found.answer
        except asyncio.CancelledError:
            if not self._over:
                with suppress(h2.exceptions.H2Error):
                    self._h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
                    self._flush()
            raise
        finally:
            self._streams.pop(stream, None)
            self._close_when_idle()

    async def run(self) -> None:
        """Read until the end."""
        try:
            while data := await read_in_turn(self._reader, self._clock):
                for frame in self._whole_frames(data):
                    self._take(frame)
                self._flush()
                await wait_until_sent(self._writer)
        except h2.exceptions.ProtocolError:
            self._how = "truncated" if self._spoken else "not HTTP/2"
        except (ConnectionError, OSError):
            self._how = "reset before bytes"
        how, self._over = self._how, True
        for found in self._streams.values():
            self._resolve(found, Answer(found.status, _after_bytes(how) if found.seen else how))
        self._writer.close()

    # -- frames --------------------------------------------------------------------------------------------------------

    def _whole_frames(self, data: bytes) -> Iterator[bytes]:
        data, begin = self._frames + data, 0
        while len(data) >= begin + _FRAME_HEAD:
            end = begin + _FRAME_HEAD + int.from_bytes(data[begin : begin + 3], "big")
            if end > begin + _FRAME_HEAD + self._h2.max_inbound_frame_size:
                raise h2.exceptions.FrameTooLargeError("it does not speak HTTP/2")
            if len(data) < end:
                break
            yield data[begin:end]
            begin = end
        self._frames = data[begin:]

    def _take(self, frame: bytes) -> None:
        if frame[3] == _GOAWAY and len(frame) >= _FRAME_HEAD + _GOAWAY_SIZE:
            self._go_away(int.from_bytes(frame[_FRAME_HEAD : _FRAME_HEAD + 4], "big") & 0x7FFFFFFF)
            return
        self._handle(self._h2.receive_data(frame))
        self._spoken = True

    def _go_away(self, last_stream: int) -> None:
        """The server takes no more streams; it says it twice where it is careful, with a lower id then."""
        self._last_stream = min(last_stream, self._last_stream if self._last_stream is not None else last_stream)
        for number, found in list(self._streams.items()):
            if number > self._last_stream:
                self._resolve(found, NotBegun())
        self._close_when_idle()

    def _handle(self, events: Iterable[h2.events.Event]) -> None:
        for event in events:
            found = self._streams.get(getattr(event, "stream_id", None) or 0)
            if isinstance(event, h2.events.DataReceived):
                with suppress(h2.exceptions.H2Error):
                    self._h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            if found is None:
                continue
            if isinstance(event, h2.events.ResponseReceived):
                found.seen = True
                found.status = _status_of(event.headers or ())
                if not found.status:
                    self._resolve(found, Answer(lost="truncated"))
            elif isinstance(event, h2.events.StreamEnded):
                self._resolve(found, Answer(found.status, "5xx" if found.status >= 500 else ""))
            elif isinstance(event, h2.events.StreamReset):
                lost: Lost = "reset after bytes" if found.seen else "reset before bytes"
                refused = event.error_code == h2.errors.ErrorCodes.REFUSED_STREAM
                self._resolve(found, NotBegun() if refused else Answer(found.status, lost))

    def _resolve(self, found: _Open, answer: Answer | NotBegun) -> None:
        if not found.answer.done():
            found.answer.set_result(answer)

    def _close_when_idle(self) -> None:
        if self._last_stream is not None and not self._streams and not self._writer.is_closing():
            self._writer.close()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and not self._writer.is_closing():
            self._writer.write(data)


def _status_of(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Return the status of an answer, 0 if it is not one (RFC 9110 15: three digits, the first of them 1 to 5)."""
    status = next((value for name, value in headers if name == b":status"), b"")
    return int(status) if len(status) == 3 and status.isdigit() and b"100" <= status < b"600" else 0


def _after_bytes(how: Lost) -> Lost:
    return "reset after bytes" if how == "reset before bytes" else "truncated"
