"""HTTP/2 with prior knowledge (h2c) whose connections end with a GOAWAY after three requests, and on SIGTERM."""

import asyncio
import re
import signal
import struct

DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7
ACK = END_STREAM = 1
END_HEADERS = 4
MOST_REQUESTS = 3


def frame(kind, stream, body=b"", flags=0):
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


async def read_frame(reader):
    head = await reader.readexactly(9)
    return head[3], head[4], int.from_bytes(head[5:], "big"), await reader.readexactly(int.from_bytes(head[:3], "big"))


draining = asyncio.Event()
connections = {}


async def answer(writer, stream, block):
    """lastcall sends the id uncompressed; a real server decodes the headers (HPACK)."""
    name = re.search(rb"lc-\d+", block)[0].decode()
    print(name, "begun", flush=True)
    await asyncio.sleep(0.02)
    writer.write(frame(HEADERS, stream, b"\x88", END_HEADERS) + frame(DATA, stream, b"ok\n", END_STREAM))  # 200
    print(name, "answered", flush=True)


async def say_goodbye(writer, streams, full):
    """RFC 9113 6.8: the highest stream id first, the last one that was taken when all have arrived."""
    waits = [asyncio.ensure_future(each.wait()) for each in (draining, full)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for each in waits:
        each.cancel()
    writer.write(frame(GOAWAY, 0, struct.pack(">II", 2**31 - 1, 0)))
    await asyncio.sleep(0.5)
    writer.write(frame(GOAWAY, 0, struct.pack(">II", max(streams, default=0), 0)))
    await asyncio.gather(*streams.values())
    await asyncio.sleep(2)  # the client closes: a close with something unread would be a reset
    writer.close()


async def serve(reader, writer, streams, full):
    await reader.readexactly(24)  # PRI * HTTP/2.0
    writer.write(frame(SETTINGS, 0))
    while True:
        kind, flags, stream, body = await read_frame(reader)
        if kind in (SETTINGS, PING) and not flags & ACK:
            writer.write(frame(kind, 0, body if kind == PING else b"", ACK))
        elif kind == HEADERS:
            streams[stream] = asyncio.ensure_future(answer(writer, stream, body))
            if len(streams) >= MOST_REQUESTS:
                full.set()


async def connected(reader, writer):
    streams, full = {}, asyncio.Event()
    goodbye = asyncio.ensure_future(say_goodbye(writer, streams, full))
    connections[goodbye] = True
    try:
        await serve(reader, writer, streams, full)
    except (asyncio.IncompleteReadError, ConnectionError):
        goodbye.cancel()
        writer.close()
    finally:
        del connections[goodbye]


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, draining.set)
    server = await asyncio.start_server(connected, "0.0.0.0", 8080, backlog=128)
    await draining.wait()
    server.close()
    while connections:
        await asyncio.wait(list(connections))


asyncio.run(main())
