"""Leaves at once when it is told to."""

import asyncio
import os
import signal


async def serve(reader, writer):
    while head := await reader.readuntil(b"\r\n\r\n"):
        lines = head.decode().split("\r\n")
        name = next((line.split()[1] for line in lines if line.lower().startswith("x-request-id:")), "")
        if name:
            print(name, "begun", flush=True)
        if lines[0].startswith("GET /slow"):
            await asyncio.sleep(1)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
        await writer.drain()
        if name:
            print(name, "answered", flush=True)


async def connected(reader, writer):
    try:
        await serve(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    server = await asyncio.start_server(connected, "0.0.0.0", 8080, backlog=128)
    await server.serve_forever()


asyncio.run(main())
