"""A request that waits for its answer has left: whoever goes by that may block the event loop."""

import asyncio
import socket
import threading
from typing import Any

import pytest
import uvloop

from lastcall.kube.api.resources import PODS
from lastcall.kube.client.http import HTTPClient
from lastcall.world.tasks import Tasks, at_first_wait

pytestmark = pytest.mark.loopback

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
SECONDS = 60.0


class Server:
    """Answers the first request of its only connection, and says what it gets of the second."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        self._listener.settimeout(SECONDS)
        self.connection, _ = self._listener.accept()
        self.connection.settimeout(SECONDS)
        self.connection.recv(65536)
        self.connection.sendall(ANSWER)

    def got(self) -> bytes:
        """What has come by now. The event loop does not run meanwhile."""
        self._thread.join(SECONDS)
        self.connection.settimeout(1.0)
        try:
            return self.connection.recv(65536)
        except TimeoutError:
            return b""

    def close(self) -> None:
        self.connection.close()
        self._listener.close()


async def _second_request(server: Server, wait: bool) -> bytes:
    """What the server has of it once it waits, and a task that went by that has its turn."""
    client = HTTPClient(f"http://127.0.0.1:{server.port}", ssl_context=None)
    waits = asyncio.Event()

    async def patch() -> Any:
        at_first_wait(waits.set)
        return await client.patch(PODS, "p", {"status": {}}, "default", subresource="status")

    async with Tasks() as tasks:
        await client.get(PODS, "p", "default")
        tasks.spawn(patch(), name="patch")
        if wait:
            await waits.wait()
        got = server.got()
        tasks.cancel()
    await client.close()
    return got


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("wait", [True, False])
def test_a_request_that_waits_has_left_with_either_loop(run: Any, wait: bool) -> None:
    server = Server()
    try:
        got = run(_second_request(server, wait))
    finally:
        server.close()
    assert (b"PATCH /api/v1/namespaces/default/pods/p/status" in got and b'{"status":{}}' in got) == wait
