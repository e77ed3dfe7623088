"""The cluster's DNS server, one on every node: UDP and TCP on the cluster DNS address.

Names of the cluster come from its Services and EndpointSlices; all others from `upstream`, where there is one, and are
SERVFAIL without. Messages are dnspython's, imported by the first question: 60 ms that no Pod's start waits for.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import dns.flags
import dns.rcode

from lastcall.kube.api.meta import AnyObject, name_of, namespace_of
from lastcall.kube.api.resources import ENDPOINTSLICES, SERVICES
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.proxy.dns_records import TTL, Answer, Key, Record, Zone
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    import dns.message

    from lastcall.kube.api.types.service import EndpointSlice, Service
    from lastcall.kube.client.informer import T

PORT = 53
TCP_IDLE_SECONDS = 10.0
_UDP_SIZE = 1232
"""What is answered by UDP without EDNS having asked for more is 512 bytes; more than this is never sent."""
_AT_ONCE = 200
"""Questions by UDP under way, above which one is dropped; connections, above which the oldest one is closed."""
_REVERSE = ".in-addr.arpa"

Upstream = Callable[[str, str], Awaitable[list[str]]]
"""(name, A or AAAA) → addresses of a name outside of the cluster; raises OSError."""


class DNSServer:
    """`run` until cancelled. The first answer waits until Services and EndpointSlices are known."""

    def __init__(
        self, *, world: World, client: Client, address: str, port: int = PORT, upstream: Upstream | None = None
    ) -> None:
        self.zone = Zone()
        self._world = world
        self._address = (address, port)
        self._upstream = upstream
        self._services: Informer[Service] = Informer(client, SERVICES, world=world)
        self._slices: Informer[EndpointSlice] = Informer(client, ENDPOINTSLICES, world=world)
        self._tasks: Tasks | None = None
        self._knows = False
        self._under_way = 0
        self._connections: dict[asyncio.StreamWriter, None] = {}
        """Of clients over TCP, in the order in which they were made."""
        _follow(self._services, self.zone.put_service)
        _follow(self._slices, self.zone.put_slice)

    async def run(self) -> None:
        """Serve DNS until cancelled. Raises OSError if it cannot listen on the address."""
        loop = asyncio.get_running_loop()
        async with Tasks() as tasks:
            self._tasks = tasks
            datagrams, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self._datagram), self._address)
            server = await asyncio.start_server(self._connected, *self._address)
            try:
                await server.serve_forever()
            finally:
                datagrams.close()

    async def _know(self) -> None:
        """The first question starts the caches: a node whose Pods ask nothing pays nothing."""
        if not self._knows and self._tasks is not None:
            self._knows = True
            self._tasks.spawn(self._services.run(), name="DNS informer services")
            self._tasks.spawn(self._slices.run(), name="DNS informer slices")
        await self._services.synced()
        await self._slices.synced()

    # -- transports ----------------------------------------------------------------------------------------------------

    def _datagram(self, data: bytes, peer: Any, reply: Callable[[bytes], None]) -> None:
        if self._tasks is None or self._under_way >= _AT_ONCE:
            return  # the client asks again

        async def answer() -> None:
            self._under_way += 1
            try:
                with crash_guard.Turn("DNS", str(peer)):
                    found = await self.answer(data, limit=512)
                    if found:
                        reply(found)
            finally:
                self._under_way -= 1

        self._tasks.spawn(answer(), name="DNS question")

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= _AT_ONCE:
            oldest = next(iter(self._connections))
            del self._connections[oldest]
            oldest.transport.abort()
        self._connections[writer] = None
        try:
            await self._answer_on(reader, writer)
        finally:
            self._connections.pop(writer, None)
            writer.close()

    async def _answer_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):  # asyncio logs what else there may be
            while True:
                async with asyncio.timeout(TCP_IDLE_SECONDS):
                    (length,) = struct.unpack(">H", await reader.readexactly(2))
                    data = await reader.readexactly(length)
                found = b""
                with crash_guard.Turn("DNS", "TCP"):
                    found = await self.answer(data, limit=65535)
                if not found:
                    break
                writer.write(struct.pack(">H", len(found)) + found)
                await writer.drain()

    # -- questions -----------------------------------------------------------------------------------------------------

    async def answer(self, data: bytes, *, limit: int) -> bytes:
        """Return the answer to one message, b"" for an invalid one. `limit`: bytes, for a client that names no size."""
        # late: 47 ms of a node's start
        import dns.exception
        import dns.flags
        import dns.message
        import dns.opcode
        import dns.rcode
        import dns.rdatatype

        try:
            query = dns.message.from_wire(data)
        except (dns.exception.DNSException, ValueError, struct.error):
            return b""
        if query.flags & dns.flags.QR or len(query.question) != 1:
            return b""
        response = dns.message.make_response(query, recursion_available=self._upstream is not None)
        question = query.question[0]
        name = question.name.to_text(omit_final_dot=True).lower()
        if query.opcode() != dns.opcode.QUERY:
            response.set_rcode(dns.rcode.NOTIMP)
        else:
            with crash_guard.Turn("DNS", name) as turn:
                await self._fill(response, name, dns.rdatatype.to_text(question.rdtype))
            if turn.error is not None:
                response.set_rcode(dns.rcode.SERVFAIL)
        size = min(max(query.payload, 512), _UDP_SIZE) if limit == 512 else limit
        try:
            return response.to_wire(max_size=size)
        except dns.exception.TooBig:
            for section in (response.answer, response.additional, response.authority):
                section.clear()
            response.flags |= dns.flags.TC
            return response.to_wire()

    async def _fill(self, response: dns.message.Message, name: str, kind: str) -> None:
        await self._know()
        address = _reversed_address(name)
        if address and (names := self.zone.look_up_address(address)):
            response.flags |= dns.flags.AA
            found = Answer(tuple(Record(name, "PTR", each) for each in names) if kind in ("PTR", "ANY") else ())
        elif self.zone.is_ours(name):
            response.flags |= dns.flags.AA
            found = self.zone.look_up(name, kind)
        else:
            await self._ask_upstream(response, name, name, kind)
            return
        self._add(response.answer, found.records)
        self._add(response.additional, found.additional)
        if found.forward:
            if self.zone.is_ours(found.forward):
                self._add(response.answer, self.zone.look_up(found.forward, kind).records)
            else:
                await self._ask_upstream(response, name, found.forward, kind)
        elif not found.exists or not found.records:
            response.set_rcode(dns.rcode.NOERROR if found.exists else dns.rcode.NXDOMAIN)
            self._add(response.authority, (self._soa(),))

    async def _ask_upstream(self, response: dns.message.Message, asked: str, name: str, kind: str) -> None:
        if self._upstream is None or kind not in ("A", "AAAA"):
            if name == asked:
                response.set_rcode(dns.rcode.SERVFAIL if self._upstream is None else dns.rcode.NOTIMP)
            return
        try:
            addresses = await self._upstream(name, kind)
        except OSError:
            response.set_rcode(dns.rcode.SERVFAIL)
            return
        self._add(response.answer, tuple(Record(name, cast(Any, kind), address) for address in addresses))
        if not addresses:
            response.set_rcode(dns.rcode.NXDOMAIN)

    def _add(self, section: Any, records: tuple[Record, ...]) -> None:
        """Several addresses come in another order each time (dnspython's), for resolvers mostly take the first."""
        # late: 30 ms of a node's start
        import dns.rrset

        by_set: dict[tuple[str, str], list[str]] = {}
        for record in records:
            by_set.setdefault((record.name, record.type), []).append(record.data)
        for (name, kind), data in by_set.items():
            owner = name if name.endswith(".") else f"{name}."
            try:
                section.append(dns.rrset.from_text(owner, TTL, "IN", kind, *data))
            except Exception as error:  # what an object says, and DNS cannot
                crash_guard.caught("DNS record", name, error)
                for each in data if len(data) > 1 else ():
                    with suppress(Exception):
                        section.append(dns.rrset.from_text(owner, TTL, "IN", kind, each))

    def _soa(self) -> Record:
        domain = self.zone.domain
        return Record(domain, "SOA", f"ns.dns.{domain}. hostmaster.{domain}. 1 7200 1800 86400 {TTL}")


def _follow(informer: Informer[T], put: Callable[[Key, T | None], None]) -> None:
    def key(obj: AnyObject) -> Key:
        return namespace_of(obj), name_of(obj)

    informer.add_handler(
        lambda obj: put(key(obj), obj), lambda _, obj: put(key(obj), obj), lambda obj: put(key(obj), None)
    )


def _reversed_address(name: str) -> str:
    """`2.0.244.10.in-addr.arpa` → 10.244.0.2; "" for anything else."""
    labels = name.removesuffix(_REVERSE).split(".")
    if not name.endswith(_REVERSE) or len(labels) != 4:
        return ""
    try:
        return socket.inet_ntoa(bytes(int(label) for label in reversed(labels)))
    except ValueError:
        return ""


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, received: Callable[[bytes, Any, Callable[[bytes], None]], None]) -> None:
        self._received = received
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        def reply(answer: bytes) -> None:
            if self._transport is not None and not self._transport.is_closing():
                self._transport.sendto(answer, addr)

        self._received(data, addr, reply)
