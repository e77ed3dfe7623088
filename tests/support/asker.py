"""Plain requests to a test's API server, with headers as they come; a fault of the server fails the test."""

import asyncio
import http.client
import json
import socket
from typing import Any

from api_server import RunningServer


def raw_answer(running: RunningServer, request: bytes) -> bytes:
    """All that is answered to bytes as they are, until the server closes."""
    port = int(running.url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        running.trust.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(request)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer


class Asker:
    """Asks, one request a connection, beside the server's loop; what is not an answer or a fault of ours fails."""

    def __init__(self, running: RunningServer) -> None:
        self._port = int(running.url.rpartition(":")[2])
        self._token, self._trust = running.token, running.trust
        self.warnings: list[str] = []
        """The `Warning` headers of the last answer, as bytes in Latin-1."""

    async def __call__(
        self, method: str, path: str, body: Any = None, ct: str = "application/json", accept: str = ""
    ) -> Any:
        text = body if body is None or isinstance(body, bytes | str) else json.dumps(body)
        status, answer = await asyncio.to_thread(self._ask, method, path, text, ct, accept)
        assert b"Internal error occurred" not in answer, (method, path, answer[:200])
        return status, answer

    def _ask(self, method: str, path: str, body: bytes | str | None, ct: str, accept: str) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=60, context=self._trust)
        headers = {"Authorization": f"Bearer {self._token}"}
        headers |= {"Content-Type": ct} if body is not None else {}
        headers |= {"Accept": accept} if accept else {}
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            self.warnings = answer.headers.get_all("Warning", [])
            return answer.status, answer.read()
        finally:
            connection.close()
