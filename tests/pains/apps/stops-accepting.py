"""Stops accepting on SIGTERM, tidies up for a second with its socket still open, and leaves. Prints what it reads."""

import asyncio
import os
import signal


async def connected(reader, writer):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        print(
            next((line for line in head.decode().splitlines() if line.lower().startswith("x-request-id")), ""),
            flush=True,
        )
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    server = await asyncio.start_server(connected, "0.0.0.0", 8080, backlog=128)
    await stopping.wait()
    for each in server.sockets:
        loop.remove_reader(each.fileno())  # the socket stays open: the kernel goes on accepting for it
    await asyncio.sleep(1)
    os._exit(0)


asyncio.run(main())
