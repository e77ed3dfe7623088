"""The other side of the API measurements, in a process of its own: it sends prepared bytes and looks for ends.

    python -m bench.api_load requests   < JSON
    python -m bench.api_load watchers   < JSON

It parses no more than it must, so that it is not what is measured; `cpu` in its answer is the share of one core that it
used. Input: `port`, `token`, `ca`, for `requests` also `host` (127.0.0.1), and

- `requests`: `connections`, `bodies` (a list per connection of [method, path, body]; each connection sends the next one
  when the last is answered), `expect` (status codes that are right). Output: `seconds`, `latencies` (ms), `bytes`.
- `watchers`: `count`, `path` (of the watch), `writes` (list of [method, path, body], one after the other). Output:
  `last` and `first`, ms from the sending of a write to the arrival of its event at the last and at the first watcher,
  `answered`, ms until the write was answered. Arrival is that of the ciphertext; it is decrypted and checked later.
"""

import asyncio
import json
import resource
import select
import socket
import ssl
import sys
import time
from typing import Any

import uvloop


def context(ca: str) -> ssl.SSLContext:
    trust = ssl.create_default_context(cadata=ca)
    trust.set_alpn_protocols(["http/1.1"])
    return trust


def encoded(token: str, method: str, path: str, body: str) -> bytes:
    content = body.encode()
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: application/json\r\n"
        f"Authorization: Bearer {token}\r\n"
    )
    if content:
        head += f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
    return head.encode() + b"\r\n" + content


class Connection(asyncio.Protocol):
    """Sends its requests one after the other."""

    def __init__(self, requests: list[bytes], expect: set[int], done: asyncio.Future[None]) -> None:
        self._requests = iter(requests)
        self._expect = expect
        self._done = done
        self._left = 0
        self._head = b""
        self.latencies: list[float] = []
        self.bytes = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def go(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        if self._left:
            self._left -= len(data)
        else:
            data = self._head + data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._head = data
                return
            self._head = b""
            status = int(data[9:12])
            if status not in self._expect:
                self._done.set_exception(RuntimeError(data.decode(errors="replace")))
                self._transport.abort()
                return
            at = data.find(b"Content-Length: ", 0, end) + 16
            length = int(data[at : data.index(b"\r", at)])
            self._left = length - (len(data) - end - 4)
            self.bytes += length
        if self._left == 0:
            self._answered()

    def _answered(self) -> None:
        now = time.perf_counter()
        self.latencies.append((now - self._sent) * 1e3)
        following = next(self._requests, None)
        if following is None:
            self._done.set_result(None)
        else:
            self._sent = now
            self._transport.write(following)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error or RuntimeError("the server closed the connection"))


async def requests(task: dict[str, Any]) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    trust, host = context(task["ca"]), task.get("host", "127.0.0.1")
    connections = []
    ends: list[asyncio.Future[None]] = []
    for bodies in task["bodies"]:
        known: dict[tuple[str, ...], bytes] = {}
        prepared = []
        for each in map(tuple, bodies):
            if each not in known:
                known[each] = encoded(task["token"], *each)
            prepared.append(known[each])
        end = loop.create_future()

        def make(prepared: list[bytes] = prepared, end: asyncio.Future[None] = end) -> Connection:
            return Connection(prepared, set(task["expect"]), end)

        _, protocol = await loop.create_connection(make, host, task["port"], ssl=trust, server_hostname=host)
        connections.append(protocol)
        ends.append(end)
    cpu, started = time.process_time(), time.perf_counter()
    for protocol in connections:
        protocol.go()
    await asyncio.gather(*ends)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "cpu": (time.process_time() - cpu) / seconds,
        "latencies": [latency for protocol in connections for latency in protocol.latencies],
        "bytes": sum(protocol.bytes for protocol in connections),
    }


class Watcher:
    """A TLS connection whose ciphertext is kept when it comes and decrypted when there is time."""

    def __init__(self, port: int, trust: ssl.SSLContext, request: bytes) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = trust.wrap_bio(self._in, self._out, server_hostname="127.0.0.1")
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.sock.sendall(self._out.read())
                self._in.write(self.sock.recv(65536))
        self.sock.sendall(self._out.read())
        self._tls.write(request)
        self.sock.sendall(self._out.read())
        self.came = 0.0

    def receive(self, now: float) -> None:
        self._in.write(self.sock.recv(1 << 20))
        self.came = now

    def text(self) -> bytes:
        parts = []
        while True:
            try:
                parts.append(self._tls.read(1 << 20))
            except ssl.SSLWantReadError:
                return b"".join(parts)


def watchers(task: dict[str, Any]) -> dict[str, Any]:
    trust = context(task["ca"])
    watch = encoded(task["token"], "GET", task["path"], "")
    poll = select.epoll()
    everybody: dict[int, Watcher] = {}
    for _ in range(task["count"]):
        watcher = Watcher(task["port"], trust, watch)
        everybody[watcher.sock.fileno()] = watcher
        poll.register(watcher.sock.fileno(), select.EPOLLIN)
    writer = trust.wrap_socket(
        socket.create_connection(("127.0.0.1", task["port"])), server_hostname="127.0.0.1", suppress_ragged_eofs=False
    )
    receive_all(poll, everybody, quiet=0.5)
    for watcher in everybody.values():
        assert b" 200 " in watcher.text()
    result: dict[str, Any] = {"first": [], "last": [], "answered": []}
    cpu, began = time.process_time(), time.perf_counter()
    for number, (method, path, body) in enumerate(task["writes"]):
        mark = f"mark-{number}-".encode()
        request = encoded(task["token"], method, path, body.replace("MARK", mark.decode()))
        for watcher in everybody.values():
            watcher.came = 0.0
        poll.register(writer.fileno(), select.EPOLLIN)
        sent = time.perf_counter()
        writer.sendall(request)
        answered = receive_all(poll, everybody, quiet=0.1, writer=writer)
        arrivals = [watcher.came for watcher in everybody.values()]
        for watcher in everybody.values():
            assert watcher.text().count(mark) >= 1, "an event is missing"
        result["first"].append((min(arrivals) - sent) * 1e3)
        result["last"].append((max(arrivals) - sent) * 1e3)
        result["answered"].append((answered - sent) * 1e3)
    result["cpu"] = (time.process_time() - cpu) / (time.perf_counter() - began)
    return result


def receive_all(
    poll: select.epoll, everybody: dict[int, Watcher], *, quiet: float, writer: ssl.SSLSocket | None = None
) -> float:
    """Receive until nothing has come for `quiet` seconds; when the writer was answered."""
    answered = 0.0
    while ready := poll.poll(quiet):
        for fd, _ in ready:
            now = time.perf_counter()
            if fd in everybody:
                everybody[fd].receive(now)
            elif writer is not None:
                answered = now
                assert b" 200 " in writer.recv(1 << 20)[:20]
                poll.unregister(writer.fileno())
    return answered


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    given = json.load(sys.stdin)
    result = uvloop.run(requests(given)) if sys.argv[1] == "requests" else watchers(given)
    with open(1, "w", closefd=False) as output:  # buffered, also under PYTHONUNBUFFERED, where a short write is the end
        json.dump(result, output)
