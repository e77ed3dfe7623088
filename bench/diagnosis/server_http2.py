"""Writes the HTTP/2 server (prior knowledge, h2c): an asyncio program of frames, for the standard library has none."""

from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.diagnosis.programs import Program

_HTTP2 = Template(
    """
import re

DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7
ACK = END_STREAM = 1
END_HEADERS = 4
HIGHEST = 2**31 - 1
STATUS_200 = b'\\x88'
STATUS_500 = b'\\x8e'

leaving = asyncio.Event()
connections = {}
loop = asyncio.new_event_loop()

def stop():
    loop.call_soon_threadsafe(leaving.set)
$signals

def frame(kind, stream, body=b'', flags=0):
    return len(body).to_bytes(3, 'big') + bytes([kind, flags]) + stream.to_bytes(4, 'big') + body


async def read_frame(reader):
    head = await reader.readexactly(9)
    body = await reader.readexactly(int.from_bytes(head[:3], 'big'))
    return head[3], head[4], int.from_bytes(head[5:], 'big'), body


class Connection:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.streams = {}
        self.over = asyncio.Event()

    async def answer(self, stream, block):
        $note_begin
        self.writer.write(frame(HEADERS, stream, $status, END_HEADERS))
        for _ in range($pieces):
            await asyncio.sleep(0.1)
            self.writer.write(frame(DATA, stream, b'piece'))
        self.writer.write(frame(DATA, stream, b'', END_STREAM))
        $note_end

    async def read(self):
        await self.reader.readexactly(24)
        self.writer.write(frame(SETTINGS, 0))
        while True:
            kind, flags, stream, body = await read_frame(self.reader)
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.writer.write(frame(kind, 0, body if kind == PING else b'', ACK))
            elif kind == HEADERS:
                $take

    async def finish(self):
        while open_streams := [each for each in self.streams.values() if not each.done()]:
            await asyncio.wait(open_streams)

    async def end(self):
        waited = [asyncio.ensure_future(each.wait()) for each in (self.over, leaving)]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        $end

    def go_away(self, last):
        self.writer.write(frame(GOAWAY, 0, last.to_bytes(4, 'big') + bytes(4)))


async def connected(reader, writer):
    connection = Connection(reader, writer)
    connections[connection] = True
    end = asyncio.ensure_future(connection.end())
    try:
        await connection.read()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        end.cancel()
        writer.close()
        del connections[connection]
        if leaving.is_set() and not connections:
            idle.set()


async def main():
    global idle
    idle = asyncio.Event()
    server = await asyncio.start_server(connected, '0.0.0.0', $port, backlog=128)
    print('serving $word on $port', flush=True)
    await leaving.wait()
    server.close()
    $leave


loop.run_until_complete(main())
"""
)
_TAKE = """self.streams[stream] = asyncio.ensure_future(self.answer(stream, body))"""
_TAKE_FEW = """
                if len(self.streams) >= $most:
                    self.over.set()"""
_TAKE_NONE = """if leaving.is_set():
                    await self.finish()
                    return
                """
_CUT = """
                if len(self.streams) > $most:
                    return"""
_SAY = """self.go_away(HIGHEST)
        await asyncio.sleep(0.3)
        self.go_away(max(self.streams, default=0))
        await self.finish()
        await asyncio.sleep(1)  # the client closes first
        self.writer.close()"""
_NOTE = """name = (re.search(rb'lc-[0-9]+', block) or [b''])[0].decode()
        if name:
            print(name, 'begun', flush=True)"""


def http2(program: "Program", signals: str) -> str:
    """Return an HTTP/2 server; `signals` is how it treats SIGTERM.

    The sound one says GOAWAY twice (RFC 9113, 6.8), answers the streams that it took, and lets the client close.
    """
    take, end = _TAKE, _SAY
    leave = "if connections:\n        await idle.wait()"
    if program.most_requests:
        take += Template(_TAKE_FEW if program.recycles_properly else _CUT).substitute(most=program.most_requests)
    if program.on_stop == "waitForClients":
        end = "await self.over.wait()"
    elif not program.closes_idle:
        take, end = _TAKE_NONE + take, "await self.over.wait()"
        leave = "await asyncio.sleep(0.7)\n    os._exit(0)"
    elif not program.finishes:
        end = "self.go_away(max(self.streams, default=0))"
        leave = f"await asyncio.sleep(0.05)\n    os._exit({program.exit_code})"
    return _HTTP2.substitute(
        signals=signals,
        note_begin=_NOTE if program.prints_ids else "",
        note_end="if name:\n            print(name, 'answered', flush=True)" if program.prints_ids else "",
        status="STATUS_500" if program.errors else "STATUS_200",
        pieces=max(1, round(program.slow_seconds * 10)),
        take=take,
        end=end,
        port=program.port,
        word=program.words[0],
        leave=leave,
    )
