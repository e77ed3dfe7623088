"""One long answer on an open connection: an HTTP/1.1 response that is followed as it comes. Parsing is h11's.

The client leaves by itself after so many seconds, which is a good end. A server may end it before: by the book (the
last chunk, the last byte of Content-Length), or not.
"""

import asyncio
from typing import Literal

import h11

from lastcall.traffic.http1 import READ_SIZE, read_in_turn
from lastcall.traffic.outcome import Answer, Moved
from lastcall.traffic.stay import Stay
from lastcall.world.clock import Clock


async def follow(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    host: str,
    path: str,
    request_id: str,
    stay: Stay,
    timeout: float,
    clock: Clock,
) -> Answer:
    """Send GET `path`, and follow the answer from its head on until `stay` is over.

    Never raises for what the server does. `moved` says that the server ended it before the client had enough, and how;
    by what right is for others to say.
    """
    connection = h11.Connection(h11.CLIENT)
    headers = [("Host", host), ("User-Agent", "lastcall"), ("X-Request-ID", request_id)]
    headers += [("Accept", "text/event-stream, */*"), ("Cache-Control", "no-store"), ("Connection", "close")]
    data = connection.send(h11.Request(method="GET", target=path, headers=headers)) or b""
    data += connection.send(h11.EndOfMessage()) or b""
    status, seen = 0, False
    end: Moved | Literal[""] = ""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout) as limit:
            writer.write(data)
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    received = await (read_in_turn(reader, clock) if seen else reader.read(READ_SIZE))
                    seen = seen or received != b""
                    if not received and not seen:
                        return Answer(0, "closed before bytes")
                    connection.receive_data(received)
                elif isinstance(event, h11.Response):
                    status = event.status_code
                    names = {name for name, _ in event.headers}
                    if b"content-length" not in names:  # which promises an end; the others may have come early
                        end = "ended early" if b"transfer-encoding" in names else "closed early"
                    stay.waits = limit
                    limit.reschedule(loop.time() + stay.seconds)
                elif isinstance(event, h11.EndOfMessage):
                    if status >= 500:
                        return Answer(status, "5xx")
                    return Answer(status, "", end)
                elif isinstance(event, h11.ConnectionClosed):
                    return Answer(status, "truncated")
    except TimeoutError:
        return Answer(status, "" if status else "timeout")
    except h11.RemoteProtocolError:
        return Answer(status, "truncated")
    except (ConnectionError, OSError):
        return Answer(status, "reset after bytes" if seen else "reset before bytes")
    raise AssertionError("the loop ends by returning")
