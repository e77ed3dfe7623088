"""On SIGTERM: stops listening, answers what is under way with `Connection: close`, and leaves then."""

import asyncio
import signal

draining = asyncio.Event()
connections = {}


async def serve(reader, writer):
    """Answer request after request; while draining, the next answer is the last."""
    while True:
        request = asyncio.ensure_future(reader.readuntil(b"\r\n\r\n"))
        goodbye = asyncio.ensure_future(draining.wait())
        await asyncio.wait((request, goodbye), return_when=asyncio.FIRST_COMPLETED)
        if not request.done():  # idle: a client that is about to ask has a moment to do it
            await asyncio.wait((request,), timeout=1)
        goodbye.cancel()
        if not request.done():
            request.cancel()
            return
        lines = request.result().decode().split("\r\n")
        name = next((line.split()[1] for line in lines if line.lower().startswith("x-request-id:")), "")
        if name:
            print(name, "begun", flush=True)
        if lines[0].startswith("GET /slow"):
            await asyncio.sleep(1)
        close = "Connection: close\r\n" if draining.is_set() else ""
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n{close}\r\nok\n".encode())
        await writer.drain()
        if name:
            print(name, "answered", flush=True)
        if close:
            return


async def connected(reader, writer):
    connections[asyncio.current_task()] = True
    try:
        await serve(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
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
