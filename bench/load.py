"""`python -m bench.load [--seconds N] [--rounds N]`: how true the load generator of `lastcall rollout` is to its rate.

The generator and the server are processes of their own, as in a rollout. Streams and WebSockets are held for a second,
so that as many of them are open at a time as are begun in one; requests of HTTP/2 share four connections. wrk, where it
is installed, takes turns with it on the same server: it sends as much as it can, which says how much more the server
would have taken.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from typing import Any

from bench.figures import machine, percentile

RATES = {
    "fresh": (200, 1000, 3000),
    "keep-alive": (200, 1000, 3000),
    "http2": (200, 1000),
    "stream": (100, 300),
    "websocket": (100, 300),
}
"""Begun a second; 200 is the rate of a rollout by default."""
LENGTH = 1.0
"""Of a stream or a WebSocket, in seconds."""
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ntick\n\r\n"


def serve() -> None:
    """Run the server: it prints its port, and ends with its stdin."""
    import h2.config
    import h2.connection
    import h2.events
    import uvloop
    import wsproto
    import wsproto.events

    class Answers(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            if data.startswith((b"GET /ws", b"PRI * HTTP/2.0")):
                talk = WebSocket if data.startswith(b"GET") else Http2
                self.transport.set_protocol(talk(self.transport))
                self.transport.get_protocol().data_received(data)
            elif data.startswith(b"GET /stream"):
                self.transport.write(_CHUNKED)  # the client leaves
            else:
                self.transport.write(_ANSWER * data.count(b"\r\n\r\n"))
                if b"Connection: close" in data:
                    self.transport.close()

    class WebSocket(asyncio.Protocol):
        def __init__(self, transport: Any) -> None:
            self.transport = transport
            self.talk = wsproto.WSConnection(wsproto.ConnectionType.SERVER)

        def data_received(self, data: bytes) -> None:
            self.talk.receive_data(data)
            for event in self.talk.events():
                if isinstance(event, wsproto.events.Request):
                    self.transport.write(self.talk.send(wsproto.events.AcceptConnection()))
                elif isinstance(event, wsproto.events.TextMessage):
                    self.transport.write(self.talk.send(wsproto.events.TextMessage(data=event.data)))
                elif isinstance(event, wsproto.events.CloseConnection):
                    self.transport.write(self.talk.send(event.response()))
                    self.transport.close()

    class Http2(asyncio.Protocol):
        def __init__(self, transport: Any) -> None:
            self.transport = transport
            self.talk = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
            self.talk.initiate_connection()

        def data_received(self, data: bytes) -> None:
            for event in self.talk.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.talk.send_headers(event.stream_id, [(":status", "200")])
                    self.talk.send_data(event.stream_id, b"ok\n", end_stream=True)
            self.transport.write(self.talk.data_to_send())

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Answers, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        await loop.run_in_executor(None, sys.stdin.read)
        server.close()

    uvloop.run(run())


def generate(port: int, kind: str, rate: float, seconds: float) -> None:
    """Run the generator once: prints what it sent and how late, in milliseconds."""
    import uvloop

    from lastcall.traffic.generator import Generator
    from lastcall.traffic.load import Load
    from lastcall.traffic.outcome import KINDS, Outcome
    from lastcall.world.world import World

    found: list[Outcome] = []

    async def run() -> None:
        chosen = next(each for each in KINDS if each == kind)
        load = Load(("127.0.0.1", port), {chosen: rate}, length=LENGTH)
        generator = Generator(World(), load, found.append)
        running = asyncio.ensure_future(generator.run())
        await asyncio.sleep(seconds)
        generator.stop()
        await running

    uvloop.run(run())
    late = [(each.sent - each.planned) * 1000 for each in found]
    span = max(each.sent for each in found) - min(each.sent for each in found)
    figures = {"rate": (len(found) - 1) / span, "p50": percentile(late, 0.5), "p99": percentile(late, 0.99)}
    print(json.dumps({**figures, "max": max(late), "lost": sum(1 for each in found if each.lost), "n": len(found)}))


def wrk(port: int, seconds: float) -> float:
    """Return the requests a second of wrk with 32 connections and one thread."""
    command = ["wrk", "-t1", "-c32", f"-d{max(1, round(seconds))}s", f"http://127.0.0.1:{port}/"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 30)
    found = re.search(r"Requests/sec:\s*([\d.]+)", done.stdout)
    return float(found[1]) if found else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.load", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    port = int(server.stdout.readline())
    runs: dict[tuple[str, float], list[dict[str, float]]] = {}
    peers: list[float] = []
    for _ in range(arguments.rounds):
        for kind, rates in RATES.items():
            for rate in rates:
                command = [sys.executable, "-m", "bench.load", "generate", str(port), kind, str(rate)]
                done = subprocess.run([*command, str(arguments.seconds)], capture_output=True, text=True, check=True)
                runs.setdefault((kind, rate), []).append(json.loads(done.stdout))
        if shutil.which("wrk"):
            peers.append(wrk(port, arguments.seconds))
    server.stdin.close()
    server.wait(10)
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}")
    print("\n| kind, asked rate | n | sent, requests/s | lateness p50, ms | p99, ms (least-most) | latest, ms | lost |")
    print("|---|---|---|---|---|---|---|")
    for (kind, rate), found in runs.items():
        middle = sorted(found, key=lambda each: each["p99"])[len(found) // 2]
        spread = f"{min(each['p99'] for each in found):.2f}-{max(each['p99'] for each in found):.2f}"
        lateness = f"{middle['p50']:.2f} | {middle['p99']:.2f} ({spread}) | {max(each['max'] for each in found):.1f}"
        lost = sum(each["lost"] for each in found)
        print(f"| {kind}, {rate:g}/s | {len(found)} | {middle['rate']:.1f} | {lateness} | {lost:g} |")
    if peers:
        middle_peer = sorted(peers)[len(peers) // 2]
        print(f"| wrk, 32 connections, as fast as it can | {len(peers)} | {middle_peer:.0f} | | | | |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve()
    elif sys.argv[1:2] == ["generate"]:
        generate(int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
