"""HTTP/2 with prior knowledge (h2c), as little of it as will do; leaves at once on SIGTERM."""

import asyncio
import os
import re
import signal

DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7
ACK = END_STREAM = 1
END_HEADERS = 4


def frame(kind, stream, body=b"", flags=0):
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


async def read_frame(reader):
    head = await reader.readexactly(9)
    return head[3], head[4], int.from_bytes(head[5:], "big"), await reader.readexactly(int.from_bytes(head[:3], "big"))


async def answer(writer, stream, block):
    """Half a second of work. lastcall sends the id uncompressed; a real server decodes the headers (HPACK)."""
    name = re.search(rb"lc-\d+", block)[0].decode()
    print(name, "begun", flush=True)
    await asyncio.sleep(0.5)
    writer.write(frame(HEADERS, stream, b"\x88", END_HEADERS) + frame(DATA, stream, b"ok\n", END_STREAM))  # 200
    print(name, "answered", flush=True)


async def connected(reader, writer):
    tasks = []
    try:
        await reader.readexactly(24)  # PRI * HTTP/2.0
        writer.write(frame(SETTINGS, 0))
        while True:
            kind, flags, stream, body = await read_frame(reader)
            if kind in (SETTINGS, PING) and not flags & ACK:
                writer.write(frame(kind, 0, body if kind == PING else b"", ACK))
            elif kind == HEADERS:
                tasks.append(asyncio.ensure_future(answer(writer, stream, body)))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    server = await asyncio.start_server(connected, "0.0.0.0", 8080, backlog=128)
    await server.serve_forever()


asyncio.run(main())
