"""Answers request after request on each connection, until SIGTERM: then it drops them all."""

import asyncio
import signal

stopping = asyncio.Event()


async def connected(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n") and not stopping.is_set():
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    server = await asyncio.start_server(connected, "0.0.0.0", 8080, backlog=128)
    await stopping.wait()
    server.close()
    await asyncio.sleep(1)


asyncio.run(main())
