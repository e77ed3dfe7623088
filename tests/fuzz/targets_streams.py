"""What comes over connections: SPDY, WebSocket messages, DNS, the shim's frames."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from aiohttp import WSMsgType
from harness import Target

from lastcall.kube.cluster.control import channel
from lastcall.kube.cluster.control import node as node_control
from lastcall.kube.cluster.control import socket as control
from lastcall.kube.cluster.egress import pair as egress
from lastcall.kube.cri.sandbox.shim import messages
from lastcall.kube.node.streaming.port_forward import _Channels
from lastcall.kube.node.streaming.remote_command import StreamOptions
from lastcall.kube.node.streaming.websocket_client import PROTOCOLS, WebSocketClient
from lastcall.kube.proxy.dns import DNSServer
from lastcall.kube.proxy.dns_records import Zone
from lastcall.kube.streaming import spdy_frames as spdy
from lastcall.kube.streaming.spdy_session import SpdySession, SpdyStream
from lastcall.traffic import process as load
from lastcall.world.messages import Message, Verbs, WrongMessage, shape_of
from lastcall.world.wire import Frames, Packets, WireError, encode, packets_pair

_LOOP = asyncio.new_event_loop()


# -- SPDY ----------------------------------------------------------------------------------------------------------------


def _frames(random: Random) -> list[spdy.Frame]:
    stream = random.choice((1, 3, 5))
    headers = {"streamtype": random.choice(("stdin", "error", "data", "é", "")), "port": "80", "x" * 50: "y" * 500}
    frames: list[spdy.Frame] = [spdy.SynStream(stream, headers)]
    for _ in range(random.randint(0, 8)):
        frames.append(
            random.choice(
                (
                    spdy.Data(stream, random.randbytes(random.choice((0, 1, 100, 9000))), random.random() < 0.3),
                    spdy.SynStream(stream + random.choice((0, 2, 2, 4)), headers, random.random() < 0.5),
                    spdy.SynReply(stream, headers),
                    spdy.Headers(stream, {}),
                    spdy.RstStream(stream, 5),
                    spdy.Settings({7: random.choice((0, 1, 65536, 2**32 - 1))}),
                    spdy.Ping(random.choice((1, 2))),
                    spdy.WindowUpdate(stream, random.choice((0, 1, 2**31 - 1))),
                    spdy.GoAway(stream),
                )
            )
        )
    return frames


def _make_spdy(random: Random, seeds: list[bytes]) -> bytes:
    encoder = spdy.Encoder()
    return b"".join(encoder.encode(frame) for frame in _frames(random))


def _spdy_seeds() -> list[bytes]:
    return [_make_spdy(Random(number), []) for number in range(5)]


def _spdy(data: bytes) -> bool:
    decoder = spdy.Decoder()
    frames, size = [], 1 + len(data) // 3
    for at in range(0, len(data), size):
        frames += decoder.feed(data[at : at + size])
    return bool(frames)


SPDY = Target("spdy", _spdy_seeds, _spdy, (spdy.SpdyError,), _make_spdy)


class _Bytes:
    """A connection that has said all it will say."""

    def __init__(self, data: bytes) -> None:
        self._pieces = [data[at : at + 700] for at in range(0, len(data), 700)]
        self.sent = 0

    async def read(self) -> bytes:
        await asyncio.sleep(0)
        return self._pieces.pop(0) if self._pieces else b""

    async def write(self, data: bytes) -> None:
        self.sent += len(data)

    async def close(self) -> None:
        self._pieces.clear()


def _session(data: bytes) -> bool:
    return _LOOP.run_until_complete(asyncio.wait_for(_served(data), 20))


async def _served(data: bytes) -> bool:
    opened: list[SpdyStream] = []

    def on_stream(stream: SpdyStream) -> None:
        if stream.headers.get("streamtype") not in ("stdin", "error", "data"):
            raise ValueError("not this one")
        opened.append(stream)

    async def drain() -> None:
        while True:
            for stream in opened[:]:
                if not await stream.read():
                    opened.remove(stream)
            await asyncio.sleep(0)

    connection = _Bytes(data)
    reader = asyncio.ensure_future(drain())
    try:
        await SpdySession(connection, on_stream).run()
    finally:
        reader.cancel()
        assert connection.sent < 50 * len(data) + 10_000
    return True


SPDY_SESSION = Target("spdy-session", _spdy_seeds, _session, (spdy.SpdyError,), _make_spdy)


# -- WebSocket -----------------------------------------------------------------------------------------------------------


@dataclass
class _Message:
    type: WSMsgType
    data: object


class _Socket:
    """Messages out of bytes: a kind, a length, what it says."""

    def __init__(self, data: bytes) -> None:
        self.messages: list[_Message] = []
        at = 0
        while at + 3 <= len(data):
            kind, length = struct.unpack_from(">BH", data, at)
            body = data[at + 3 : at + 3 + length]
            at += 3 + length
            if kind % 3 == 2:
                self.messages.append(_Message(WSMsgType.TEXT, body.decode(errors="replace")))
            else:
                self.messages.append(_Message(WSMsgType.BINARY, body))

    async def __aiter__(self) -> AsyncIterator[_Message]:
        for message in self.messages:
            yield message

    async def send_bytes(self, data: bytes) -> None:
        """Nobody listens."""

    async def send_str(self, data: str) -> None:
        """Nobody listens."""


def _websocket(data: bytes) -> bool:
    return _LOOP.run_until_complete(asyncio.wait_for(_talked(data), 20))


async def _talked(data: bytes) -> bool:
    passed = False
    for protocol in PROTOCOLS:
        client = WebSocketClient(_Socket(data), protocol, StreamOptions(True, True, True, True))  # type: ignore[arg-type]
        client._stdin.discard()
        await client.run()
        passed = passed or client.activity > 0
        ports = _Channels(_Socket(data), protocol, 2)  # type: ignore[arg-type]
        for each in ports.clients:
            each.inbox.discard()
        with suppress(ConnectionResetError):
            await ports.run()
    return passed


def _make_websocket(random: Random, seeds: list[bytes]) -> bytes:
    out = b""
    for _ in range(random.randint(1, 6)):
        channel = random.choice((0, 1, 4, 4, 4, 255, 7, 48, 52))
        body = random.choice(
            (
                json.dumps({"Width": random.choice((80, -1, 2**70, 1.5, "9" * 500, None, [])), "Height": 24}).encode(),
                b"[" * random.choice((1, 500, 5000)),
                b'{"Width":1e999,"Height":1}',
                random.randbytes(random.choice((0, 1, 300))),
            )
        )
        message = bytes((channel,)) + body
        out += struct.pack(">BH", random.choice((0, 2)), len(message)) + message
    return out


WEBSOCKET = Target(
    "websocket", lambda: [_make_websocket(Random(number), []) for number in range(5)], _websocket, (), _make_websocket
)


# -- DNS -----------------------------------------------------------------------------------------------------------------


class _Answers(DNSServer):
    """The server without a cluster around it."""

    def __init__(self) -> None:
        self.zone = Zone()
        self._upstream = None
        service = {"metadata": {"namespace": "default", "name": "web"},
                   "spec": {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}}  # fmt: skip
        self.zone.put_service(("default", "web"), service)

    async def _know(self) -> None:
        """All there is."""


_SERVER = _Answers()


def _dns(data: bytes) -> bool:
    passed = False
    for limit in (512, 65535):
        answer = _LOOP.run_until_complete(_SERVER.answer(data, limit=limit))
        assert len(answer) <= (1232 if limit == 512 else limit)
        passed = passed or bool(answer)
    return passed


def _make_dns(random: Random, seeds: list[bytes]) -> bytes:
    import dns.message
    import dns.name

    labels = [
        random.choice((b"web", b"default", b"svc", b"cluster", b"local", b"*", b"_http", b"_tcp", b"a" * 63, b"\xff", b"1", b"10",
                       b"in-addr", b"arpa", b".", b"x y"))
        for _ in range(random.randint(0, 3))
    ]  # fmt: skip
    end = random.choice(((b"svc", b"cluster", b"local", b""), (b"default", b"svc", b"cluster", b"local", b""), (b"",),
                         (b"9", b"0", b"96", b"10", b"in-addr", b"arpa", b"")))  # fmt: skip
    name = dns.name.Name([*labels, *end])
    kind = random.choice(("A", "AAAA", "SRV", "PTR", "ANY", "SOA", "TXT", "CNAME", "TYPE65535", "AXFR", "OPT"))
    query = dns.message.make_query(
        name,
        kind,
        use_edns=random.choice((None, 0)),
        payload=random.choice((0, 512, 4096, 65535)),
        want_dnssec=random.random() < 0.2,
    )
    query.id = random.randrange(65536)
    return query.to_wire()


DNS = Target("dns", lambda: [_make_dns(Random(number), []) for number in range(10)], _dns, (), _make_dns)


# -- the private protocols -----------------------------------------------------------------------------------------------


def _wire(data: bytes) -> bool:
    ours, theirs = socket.socketpair()
    try:
        theirs.setblocking(False)
        try:
            theirs.send(data[:60_000])
        except BlockingIOError:
            return False
        connection = Frames(ours)
        for message, blobs, fds in connection.receive() or ():
            assert isinstance(message, dict)
            assert all(isinstance(blob, bytes) for blob in blobs)
            assert not fds
            return True
        return False
    finally:
        ours.close()
        theirs.close()


def _make_wire(random: Random, seeds: list[bytes]) -> bytes:
    ours, theirs = socket.socketpair()
    try:
        connection = Frames(ours)
        for _ in range(random.randint(1, 3)):
            blobs = tuple(random.randbytes(random.choice((0, 1, 100))) for _ in range(random.randint(0, 3)))
            odd = (
                {}
                if random.random() < 0.9
                else random.choice(
                    (
                        {"blobs": random.choice(([-1], ["a"], 5, None, [2**70], [[1]]))},
                        {"fds": random.choice((-1, "a", 2**70, None, []))},
                    )
                )
            )
            connection.send({"verb": "start", "id": random.choice((1, "é", "\udcff")), **odd}, () if odd else blobs)
        theirs.setblocking(False)
        return theirs.recv(60_000)
    finally:
        ours.close()
        theirs.close()


SHIM_WIRE = Target(
    "shim-wire", lambda: [_make_wire(Random(number), []) for number in range(5)], _wire, (WireError,), _make_wire
)


def _ignore(*_: object) -> None:
    pass


PRIVATE = tuple(
    {
        kind: _ignore
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Message) and kind.verb and kind.__module__ == module.__name__
    }
    for module in (channel, control, egress, load, node_control, messages)
)


def _packet(data: bytes) -> bool:
    """A packet as it came is told to every protocol: each makes a message of it, or says what is wrong."""
    ours, theirs = packets_pair()
    try:
        theirs.send(data[:60_000] or b" ")
        ((fields, fds),) = Packets(ours).read()
        assert not fds
        understood = False
        for table in PRIVATE:
            try:
                _, message = Verbs(table).read(fields)
            except WrongMessage:
                continue
            assert type(message).read(message.to_wire()) == message
            understood = True
        return understood
    finally:
        ours.close()
        theirs.close()


_VALUES = ("", "POD", 0, 80, -1, True, None, [], ["x"], [[1, 2]], {}, {"first": 1}, 1.5, 2**70, "\udcff")


def _make_packet(random: Random, seeds: list[bytes]) -> bytes:
    kind = random.choice([each for table in PRIVATE for each in table])
    guesses: dict[str, tuple[object, ...]] = {
        "str": ("", "POD"), "int": (0, 80), "bool": (True, False), "float": (0, 1.5), "list[str]": ([], ["x"]),
    }  # fmt: skip
    fields = {
        field.wire: random.choice(_VALUES if random.random() < 0.1 else guesses.get(field.said, _VALUES))
        for field in shape_of(kind).fields.values()
        if random.random() < 0.97
    }
    if random.random() < 0.05:
        fields["more"] = 1
    return encode({"verb": kind.verb, "call": random.choice((1, "a", None, [])), **fields})


PACKETS = Target(
    "packets", lambda: [_make_packet(Random(number), []) for number in range(40)], _packet, (), _make_packet
)
