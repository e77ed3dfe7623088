"""Writes the servers: HTTP with streams and WebSockets, and lines over TCP, as asyncio programs."""

from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.diagnosis.programs import Program

_HTTP = Template(
    """
import base64
import hashlib

leaving = asyncio.Event()
connections = {}
begun = time.monotonic()
$places
loop = asyncio.new_event_loop()

def stop():
    loop.call_soon_threadsafe(leaving.set)
$signals

def is_probe(path):
    return path.startswith('$ready_path')


async def stream(writer):
    writer.write(b'HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n')
    while $stream_goes_on:
        writer.write(b'9\\r\\ndata: 1\\n\\n\\r\\n')
        await writer.drain()
        await asyncio.sleep(0.1)
    writer.write(b'0\\r\\n\\r\\n')
    await writer.drain()


async def websocket(reader, writer, lines):
    key = next(line.split(':', 1)[1].strip() for line in lines if line.lower().startswith('sec-websocket-key'))
    accept = base64.b64encode(hashlib.sha1((key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode()).digest()).decode()
    upgrade = 'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n'
    writer.write(f'{upgrade}Sec-WebSocket-Accept: {accept}\\r\\n\\r\\n'.encode())
    goodbye = asyncio.ensure_future(leaving.wait())
    said_goodbye = False
    while True:
        head = asyncio.ensure_future(reader.readexactly(2))
        waited = {head} if said_goodbye else {head, goodbye}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not head.done():
            $websocket_goodbye
            said_goodbye = True
        first, second = await head
        length = second & 127
        if length == 126:
            length = int.from_bytes(await reader.readexactly(2), 'big')
        mask = await reader.readexactly(4) if second & 128 else bytes(4)
        body = bytes(b ^ mask[i % 4] for i, b in enumerate(await reader.readexactly(length)))
        size = bytes([length]) if length < 126 else bytes([126]) + length.to_bytes(2, 'big')
        if first & 15 == 8:
            if not said_goodbye:
                writer.write(bytes([0x88]) + size + body)
                await writer.drain()
            return
        if first & 15 == 9:
            first = 0x8A
        writer.write(bytes([first]) + size + body)
        await writer.drain()


async def serve(reader, writer):
    while True:
        request = asyncio.ensure_future(reader.readuntil(b'\\r\\n\\r\\n'))
        $await_request
        lines = request.result().decode().split('\\r\\n')
        path = lines[0].split()[1]
        $note_begin
        if path.startswith('/events'):
            return await stream(writer)
        if path.startswith('/socket'):
            return await websocket(reader, writer, lines)
        status = '200 OK'
        $status
        if path.startswith('/slow'):
            await asyncio.sleep($slow_seconds)
        close = 'Connection: close\\r\\n' if $closes else ''
        writer.write(f'HTTP/1.1 {status}\\r\\nContent-Length: 2\\r\\n{close}\\r\\nok'.encode())
        await writer.drain()
        $note_end
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


async def main():$globals
    server = await asyncio.start_server(connected, '0.0.0.0', $port, backlog=128)
    print('serving $word on $port', flush=True)
    await leaving.wait()
    $leave


loop.run_until_complete(main())
"""
)
_POLITE = """goodbye = asyncio.ensure_future(leaving.wait())
        await asyncio.wait((request, goodbye), return_when=asyncio.FIRST_COMPLETED)
        if not request.done():  # a client that is about to ask has a moment to do so
            await asyncio.wait((request,), timeout=1)
        goodbye.cancel()
        if not request.done():
            request.cancel()
            return"""
_ABRUPT = """await request
        if leaving.is_set():
            return"""
_NOTE = """name = next((each.split()[1] for each in lines if each.lower().startswith('x-request-id:')), '')
        if name:
            print(name, 'begun', flush=True)"""


def http(program: "Program", signals: str) -> str:
    """Return an HTTP server; `signals` is how it treats SIGTERM."""
    leave = "server.close()\n    while connections:\n        await asyncio.wait(list(connections))"
    if program.on_stop == "deaf":
        leave = "loop.remove_reader(server.sockets[0].fileno())\n    await asyncio.sleep(1)\n    os._exit(0)"
    elif not program.closes_idle:
        leave = "server.close()\n    await asyncio.sleep(0.7)\n    os._exit(0)"
    elif not program.finishes:
        leave = f"server.close()\n    os._exit({program.exit_code})"
    status = []
    if program.crash_at_request:
        status.append("if not is_probe(path) and next(places, None) is None:")
        status.append(f"    print('fatal: no {program.words[0]} left', flush=True)")
        status.append("    os._exit(70)")
    if program.errors:
        status.append("if not is_probe(path):\n            status = '500 Internal Server Error'")
    if program.quit_path:
        status.append(f"if path.startswith('{program.quit_path}'):")
        status.append("    server.close()")
    if program.warm_seconds:
        status.append(f"if time.monotonic() - begun < {program.warm_seconds + program.start_seconds:g}:")
        status.append("    status = '503 Service Unavailable'")
    if program.stalls_for:
        since, until = program.stalls_after, program.stalls_after + program.stalls_for
        status.append(f"if is_probe(path) and {since:g} < time.monotonic() - begun < {until:g}:")
        status.append("    await asyncio.sleep(2)")
    waits = program.on_stop == "waitForClients"
    polite = program.closes_idle and not waits
    return _HTTP.substitute(
        signals=signals,
        ready_path=program.ready_path,
        stream_goes_on="not leaving.is_set()" if program.ends_streams else "True",
        websocket_goodbye="writer.write(b'\\x88\\x02\\x03\\xe9')" if program.ends_streams else "pass",
        await_request=_POLITE if polite else "await request" if waits else _ABRUPT,
        note_begin=_NOTE if program.prints_ids else "",
        note_end="if name:\n            print(name, 'answered', flush=True)" if program.prints_ids else "",
        places=f"places = iter(range({program.crash_at_request - 1}))" if program.crash_at_request else "",
        status="\n        ".join(status),
        globals="\n    global server" if program.quit_path else "",
        slow_seconds=f"{program.slow_seconds:g}",
        closes="leaving.is_set()" if polite else "False",
        port=program.port,
        word=program.words[0],
        leave=leave,
    )


_LINES = Template(
    """
leaving = asyncio.Event()
clients = {}
loop = asyncio.new_event_loop()

def stop():
    loop.call_soon_threadsafe(leaving.set)
$signals


async def connected(reader, writer):
    clients[asyncio.current_task()] = writer
    try:
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
        del clients[asyncio.current_task()]


async def main():
    server = await asyncio.start_server(connected, '0.0.0.0', $port)
    print('$word ready for connections', flush=True)
    await leaving.wait()
    print('$word shutting down', flush=True)
    server.close()
    $leave


loop.run_until_complete(main())
"""
)


def lines(program: "Program", signals: str) -> str:
    """Return a server of lines over TCP, such as a database."""
    leave = "while clients:\n        await asyncio.wait(list(clients))"
    if program.on_stop != "waitForClients":
        leave = "for writer in clients.values():\n        writer.close()"
    return _LINES.substitute(signals=signals, port=program.port, word=program.words[0], leave=leave)
