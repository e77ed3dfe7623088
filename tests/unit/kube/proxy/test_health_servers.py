"""healthCheckNodePort: what a load balancer is answered, over HTTP."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from ports import reserve_port

from lastcall.kube.proxy import health
from lastcall.kube.proxy.health import HTTPHealthServers, ServiceHealth

pytestmark = pytest.mark.loopback


@pytest.mark.parametrize(("endpoints", "status"), [(2, 200), (0, 503)])
async def test_a_load_balancer_is_told_of_the_endpoints_also_beside_a_client_that_asks_nothing(
    monkeypatch: pytest.MonkeyPatch, endpoints: int, status: int
) -> None:
    monkeypatch.setattr(health, "MOST_CONNECTIONS", 1)
    servers, port = HTTPHealthServers(("127.0.0.1",)), reserve_port()
    await servers.update({("default", "web"): ServiceHealth(port, endpoints)})
    silent, kept = await asyncio.open_connection("127.0.0.1", port)
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/any") as answer:
        assert (answer.status, (await answer.json())["localEndpoints"]) == (status, endpoints)
    with suppress(ConnectionResetError):
        assert await silent.read() == b""
    kept.close()
    await servers.close()
