"""Echoes every message of a WebSocket; on SIGTERM, closes each with a close frame and leaves when all are closed."""

import asyncio
import base64
import hashlib
import signal
import struct

draining = asyncio.Event()
connections = {}


async def frame(reader):
    """Opcode and payload of a client's frame, which is masked; longer ones than 125 bytes are not for this server."""
    first, second = await reader.readexactly(2)
    mask, body = await reader.readexactly(4), await reader.readexactly(second & 0x7F)
    return first & 0x0F, bytes(each ^ mask[index % 4] for index, each in enumerate(body))


async def handshake(reader, writer):
    """The id of the request; "" when it was answered as plain HTTP."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n"))}
    if "sec-websocket-key" not in fields:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
        return ""
    key = fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    writer.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept.encode() + b"\r\n\r\n"
    )
    return fields.get("x-request-id", "-")


async def echo(reader, writer):
    """Until the client says goodbye."""
    opcode = 0
    while opcode != 8:
        opcode, body = await frame(reader)
        if opcode == 1:
            print(body.decode(), flush=True)
        writer.write(bytes([0x80 | opcode, len(body)]) + body)


async def say_goodbye(reader, writer):
    """1001, then nothing more is answered until the client's close frame."""
    writer.write(bytes([0x88, 2]) + struct.pack(">H", 1001))
    async with asyncio.timeout(2):
        while (await frame(reader))[0] != 8:
            pass


async def talk(reader, writer):
    name = await handshake(reader, writer)
    if not name:
        return
    print(name, "begun", flush=True)
    talking = asyncio.ensure_future(echo(reader, writer))
    goodbye = asyncio.ensure_future(draining.wait())
    await asyncio.wait((talking, goodbye), return_when=asyncio.FIRST_COMPLETED)
    goodbye.cancel()
    await asyncio.wait((talking,), timeout=0.2)  # what has arrived is echoed
    if talking.done():
        await talking
    else:
        talking.cancel()
        await asyncio.wait((talking,))
        await say_goodbye(reader, writer)
    print(name, "answered", flush=True)


async def connected(reader, writer):
    connections[asyncio.current_task()] = True
    try:
        await talk(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
        pass
    finally:
        writer.close()
        del connections[asyncio.current_task()]


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, draining.set)
    server = await asyncio.start_server(connected, "0.0.0.0", 8080, backlog=128)
    await draining.wait()
    server.close()
    while connections:
        await asyncio.wait(list(connections))


asyncio.run(main())
