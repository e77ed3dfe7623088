"""The DNS server on loopback, asked by dnspython as by any resolver."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import dns.asyncquery
import dns.edns
import dns.flags
import dns.message
import dns.rcode
import pytest
from ports import reserve_port

from lastcall.kube.api.resources import ENDPOINTSLICES, SERVICES
from lastcall.kube.client.api import ListResult
from lastcall.kube.proxy import dns as dns_server
from lastcall.kube.proxy.dns import DNSServer
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

PORTS = [{"name": "http", "protocol": "TCP", "port": 80}]
WEB = {"metadata": {"name": "web", "namespace": "default", "resourceVersion": "1"},
       "spec": {"clusterIP": "10.96.0.7", "ports": PORTS}}  # fmt: skip
BIG = {"metadata": {"name": "big", "namespace": "default", "resourceVersion": "2"},
       "spec": {"clusterIP": "None", "ports": PORTS}}  # fmt: skip
OUT = {"metadata": {"name": "out", "namespace": "default", "resourceVersion": "3"},
       "spec": {"type": "ExternalName", "externalName": "example.com"}}  # fmt: skip
SLICE = {
    "metadata": {"name": "big-a", "namespace": "default", "resourceVersion": "4",
                 "labels": {"kubernetes.io/service-name": "big"}},
    "addressType": "IPv4", "ports": PORTS,
    "endpoints": [{"addresses": [f"10.244.0.{n}"], "conditions": {"ready": True}} for n in range(1, 101)],
}  # fmt: skip


class Client:
    """Lists what there is; nothing changes."""

    async def list(self, resource: Any, namespace: str = "", **selectors: str) -> ListResult:
        return ListResult({SERVICES: [WEB, BIG, OUT], ENDPOINTSLICES: [SLICE]}[resource], "9")

    @asynccontextmanager
    async def watch(self, *arguments: Any, **options: Any) -> AsyncIterator[AsyncIterator[Any]]:
        async def nothing() -> AsyncIterator[Any]:
            await asyncio.Event().wait()
            yield

        yield nothing()


async def upstream(name: str, kind: str) -> list[str]:
    if name == "broken.example":
        raise OSError("no answer")
    return ["192.0.2.1"] if (name, kind) == ("example.com", "A") else []


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[int]:
    port = reserve_port()
    server = DNSServer(world=World(), client=Client(), address="127.0.0.1", port=port, **options)  # type: ignore[arg-type]
    running = asyncio.ensure_future(server.run())
    try:
        yield port
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def ask(port: int, name: str, kind: str = "A", *, tcp: bool = False, **options: Any) -> dns.message.Message:
    query = dns.message.make_query(name, kind, **options)
    send = dns.asyncquery.tcp if tcp else dns.asyncquery.udp
    for attempt in range(50):
        try:
            return await send(query, "127.0.0.1", port=port, timeout=10)
        except ConnectionRefusedError:  # it does not listen yet
            await asyncio.sleep(0.02 * attempt)  # pause of a retry
    raise AssertionError("nobody listens")


def told(answer: dns.message.Message) -> list[str]:
    return [item.to_text() for rrset in answer.answer for item in rrset]


async def test_a_service_is_found_by_udp_and_by_tcp() -> None:
    async with serving() as port:
        for tcp in (False, True):
            answer = await ask(port, "WEB.default.svc.cluster.local.", tcp=tcp)
            assert told(answer) == ["10.96.0.7"] and answer.rcode() == dns.rcode.NOERROR
            assert answer.flags & dns.flags.AA and answer.answer[0].ttl == 5


async def test_a_client_that_asks_nothing_gives_its_connection_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_server, "_AT_ONCE", 1)
    async with serving() as port:
        await ask(port, "web.default.svc.cluster.local.")  # it listens
        silent, kept = await asyncio.open_connection("127.0.0.1", port)
        assert told(await ask(port, "web.default.svc.cluster.local.", tcp=True)) == ["10.96.0.7"]
        with suppress(ConnectionResetError):
            assert await silent.read() == b""
        kept.close()


async def test_a_name_that_is_not_there_and_one_without_such_records_differ() -> None:
    async with serving() as port:
        missing = await ask(port, "nobody.default.svc.cluster.local.")
        empty = await ask(port, "web.default.svc.cluster.local.", "AAAA")
        assert (missing.rcode(), empty.rcode()) == (dns.rcode.NXDOMAIN, dns.rcode.NOERROR)
        # Both say with a SOA how long that may be remembered.
        assert [answer.authority[0].rdtype.name for answer in (missing, empty)] == ["SOA", "SOA"]


async def test_what_does_not_fit_a_datagram_is_cut_and_asked_again_by_tcp() -> None:
    async with serving() as port:
        short = await ask(port, "big.default.svc.cluster.local.")
        assert short.flags & dns.flags.TC and told(short) == []
        whole = await ask(port, "big.default.svc.cluster.local.", tcp=True)
        assert len(told(whole)) == 100 and not whole.flags & dns.flags.TC


async def test_answers_begin_with_another_address_each_time() -> None:
    async with serving() as port:
        firsts = [told(await ask(port, "big.default.svc.cluster.local.", tcp=True))[0] for _ in range(20)]
        assert len(set(firsts)) > 3


async def test_addresses_have_names() -> None:
    async with serving() as port:
        assert told(await ask(port, "7.0.96.10.in-addr.arpa.", "PTR")) == ["web.default.svc.cluster.local."]


async def test_names_outside_are_the_upstreams_where_there_is_one() -> None:
    async with serving(upstream=upstream) as port:
        assert told(await ask(port, "example.com.")) == ["192.0.2.1"]
        assert (await ask(port, "nothing.example.")).rcode() == dns.rcode.NXDOMAIN
        assert (await ask(port, "broken.example.")).rcode() == dns.rcode.SERVFAIL
        assert told(await ask(port, "out.default.svc.cluster.local.")) == ["example.com.", "192.0.2.1"]
    async with serving() as port:
        assert (await ask(port, "example.com.")).rcode() == dns.rcode.SERVFAIL
        assert told(await ask(port, "out.default.svc.cluster.local.")) == ["example.com."]


@pytest.mark.parametrize("data", [b"", b"\0" * 5, b"\xff" * 100])
async def test_what_is_no_question_gets_no_answer(data: bytes) -> None:
    server = DNSServer(world=World(), client=Client(), address="127.0.0.1")  # type: ignore[arg-type]
    assert await server.answer(data, limit=512) == b""
