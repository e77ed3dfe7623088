"""/metrics and the probes, asked by a real HTTP client."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest

from lastcall.trace.exporting import server as server_module
from lastcall.trace.exporting.addresses import parse_listen
from lastcall.trace.exporting.health import Health
from lastcall.trace.exporting.metrics import Metrics
from lastcall.trace.exporting.server import Server
from lastcall.world.world import World

pytestmark = pytest.mark.loopback


async def asked(server, *paths, method="GET", headers=None):
    found = []
    async with server.listening(parse_listen("127.0.0.1:0")) as listen, aiohttp.ClientSession() as session:
        assert listen.port
        for path in paths:
            async with session.request(method, f"http://{listen}{path}", headers=headers) as answer:
                found.append((answer.status, answer.headers["Content-Type"], await answer.text()))
    return found


async def test_metrics_are_served_in_the_format_that_is_asked_for(ending_of, container):
    metrics = Metrics(World(), Health)
    metrics.ended(ending_of(container()))
    server = Server(metrics, Health)
    (plain,) = await asked(server, "/metrics")
    assert plain[0] == 200 and plain[1].startswith("text/plain") and "lastcall_pod_ends_total{" in plain[2]
    accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
    (opened,) = await asked(server, "/metrics", headers=accept)
    assert opened[1].startswith("application/openmetrics-text")
    assert opened[2].endswith("# EOF\n") and "# {" in opened[2]


async def test_it_is_ready_once_everything_is_watched_and_until_its_end_begins():
    now = [Health(watches={"pods": False, "endpointslices": True})]
    server = Server(Metrics(World(), lambda: now[0]), lambda: now[0])
    assert await asked(server, "/readyz", "/healthz") == [
        (503, "text/plain; charset=utf-8", "not watched yet: pods\n"),
        (200, "text/plain; charset=utf-8", "ok\n"),
    ]
    now[0] = Health(watches={"pods": True})
    assert [each[0] for each in await asked(server, "/readyz")] == [200]
    server.ending = True
    assert [each[0] for each in await asked(server, "/readyz", "/metrics", "/healthz")] == [503, 200, 200]


async def test_a_client_that_asks_nothing_gives_its_place_to_the_next_one(monkeypatch):
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 1)
    async with Server(Metrics(World(), Health), Health).listening(parse_listen("127.0.0.1:0")) as listen:
        silent, kept = await asyncio.open_connection("127.0.0.1", listen.port)
        async with aiohttp.ClientSession() as session, session.get(f"http://{listen}/healthz") as answer:
            assert answer.status == 200
        with suppress(ConnectionResetError):
            assert await silent.read() == b""
        kept.close()


async def test_nothing_can_be_written():
    server = Server(Metrics(World(), Health), Health)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert [each[0] for each in await asked(server, "/metrics", "/", method=method)] == [405, 405]
    assert [each[0] for each in await asked(server, "/metrics/x", "/etc/passwd")] == [404, 404]
