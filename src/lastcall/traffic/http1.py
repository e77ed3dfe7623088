"""Do one HTTP/1.1 exchange on an open connection, and report it as precisely as sockets allow. Parsing is h11's."""

import asyncio
from typing import Literal

import h11

from lastcall.traffic.outcome import Lost
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

READ_SIZE = 16 << 10
"""Bytes that are read at once: of the smallest frames and chunks these take 10 ms, in which nothing else is done."""
MOST_UNSENT_BYTES = 1 << 20
"""What one connection keeps of answers to pings and settings that the server does not read."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """`lost` is "" for a whole answer below 500. `reusable`: the connection takes another request."""

    status: int
    lost: Lost | Literal[""]
    reusable: bool


async def wait_until_sent(writer: asyncio.StreamWriter) -> None:
    """Wait while the server leaves too much unread. Raises OSError."""
    if writer.transport.get_write_buffer_size() > MOST_UNSENT_BYTES:
        await writer.drain()


async def read_in_turn(reader: asyncio.StreamReader, clock: Clock) -> bytes:
    """Return what the server sent, b"" at its end, after others got their turn. Raises OSError.

    A reader that has more does not suspend, so a server that sends without end would stop timeouts and other requests.
    """
    await clock.sleep(0)
    return await reader.read(READ_SIZE)


async def exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    host: str,
    path: str,
    request_id: str,
    close: bool,
    clock: Clock,
) -> Exchange:
    """Send GET `path`. Never raises for what the network or the server does; cancelling is the caller's timeout."""
    connection = h11.Connection(h11.CLIENT)
    headers = [("Host", host), ("User-Agent", "lastcall"), ("X-Request-ID", request_id)]
    if close:
        headers.append(("Connection", "close"))
    data = connection.send(h11.Request(method="GET", target=path, headers=headers))
    assert data is not None
    data += connection.send(h11.EndOfMessage()) or b""
    status, seen = 0, False
    try:
        writer.write(data)
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                received = await (read_in_turn(reader, clock) if seen else reader.read(READ_SIZE))
                seen = seen or received != b""
                if not received and not seen:
                    return Exchange(0, "closed before bytes", False)
                connection.receive_data(received)
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.EndOfMessage):
                reusable = connection.our_state is h11.DONE and connection.their_state is h11.DONE
                return Exchange(status, "5xx" if status >= 500 else "", reusable)
            elif isinstance(event, h11.ConnectionClosed):
                return Exchange(status, "truncated", False)
    except h11.RemoteProtocolError:
        return Exchange(status, "truncated", False)
    except (ConnectionError, OSError):
        return Exchange(status, "reset after bytes" if seen else "reset before bytes", False)
