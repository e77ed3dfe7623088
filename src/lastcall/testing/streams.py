"""exec and port-forward over WebSockets, as kubectl does them.

Source: apimachinery util/remotecommand/constants.go (StreamProtocolV5Name: channels, the close signal), apiserver
util/wsstream/conn.go (a channel's number is the first byte of a message), kubelet portforward/websocket.go (the first
message of each channel is the port).
"""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from lastcall.errors import LastcallError
from lastcall.kube.api import StatusError
from lastcall.kube.client import ConnectionLost, HTTPClient
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

STDIN, STDOUT, STDERR, ERROR, CLOSE = 0, 1, 2, 3, 255
EXEC_PROTOCOL = "v5.channel.k8s.io"
FORWARD_PROTOCOL = "v4.channel.k8s.io"
_CHUNK = 32768


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What a command printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str

    def check(self) -> "ExecResult":
        """Return self, or raise LastcallError with stderr if the exit code is not 0."""
        if self.exit_code != 0:
            raise LastcallError(f"the command ended with exit code {self.exit_code}: {self.stderr or self.stdout}")
        return self


async def run_command(
    client: HTTPClient, path: str, command: Sequence[str], container: str, stdin: bytes | None
) -> ExecResult:
    """Run a command in a container. Raises LastcallError, StatusError, ConnectionLost."""
    query = [("command", word) for word in command]
    query += [("stdout", "true"), ("stderr", "true")]
    query += [("container", container)] if container else []
    query += [("stdin", "true")] if stdin is not None else []
    printed: dict[int, list[bytes]] = {STDOUT: [], STDERR: [], ERROR: []}
    async with client.websocket(path, query, (EXEC_PROTOCOL,)) as socket:
        for start in range(0, len(stdin or b""), _CHUNK):
            await socket.send_bytes(bytes([STDIN]) + (stdin or b"")[start : start + _CHUNK])
        if stdin is not None:
            await socket.send_bytes(bytes([CLOSE, STDIN]))
        async for message in socket:
            if isinstance(message.data, bytes) and message.data[:1]:
                printed.get(message.data[0], []).append(message.data[1:])
    stdout, stderr = (b"".join(printed[each]).decode(errors="replace") for each in (STDOUT, STDERR))
    return ExecResult(_exit_code(b"".join(printed[ERROR])), stdout, stderr)


def _exit_code(status: bytes) -> int:
    """Of the Status on the error channel. Raises LastcallError where the command never ran."""
    if not status:
        raise LastcallError("the connection ended before the command did")
    answer: dict[str, Any] = json.loads(status)
    if answer.get("status") == "Success":
        return 0
    for cause in (answer.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise LastcallError(f"the command did not run: {answer.get('message')}")


@asynccontextmanager
async def forwarded(client: HTTPClient, path: str, port: int) -> AsyncIterator[tuple[str, int]]:
    """Yield an address on this machine's loopback whose connections reach a Pod's port, until the block ends."""
    async with Tasks() as tasks:

        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.spawn(_carry(client, path, port, reader, writer), name="forwarded connection")

        server = await asyncio.start_server(accepted, "127.0.0.1", 0)
        try:
            host, number = server.sockets[0].getsockname()[:2]
            yield host, number
        finally:
            server.close()
            tasks.cancel()


async def _carry(
    client: HTTPClient, path: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """One connection, a WebSocket of its own. A failure closes it, as a refused connection would be."""
    try:
        async with client.websocket(path, [("ports", str(port))], (FORWARD_PROTOCOL,)) as socket, Tasks() as tasks:

            async def up() -> None:
                while data := await reader.read(_CHUNK):
                    await socket.send_bytes(b"\0" + data)
                await socket.close()  # this protocol has no half-close

            tasks.spawn(up(), name="forwarded data")
            begun: set[int] = set()
            async for message in socket:
                if not isinstance(message.data, bytes) or not message.data:
                    continue
                channel, data = message.data[0], message.data[1:]
                if channel not in begun:  # its port
                    begun.add(channel)
                    data = data[struct.calcsize("<H") :]
                if channel == 1 and data:
                    break
                writer.write(data)
                await writer.drain()
            tasks.cancel()
    except (StatusError, ConnectionLost, OSError, ExceptionGroup):
        pass  # whatever it was, the peer sees the end of its connection
    finally:
        with suppress(OSError):
            writer.close()
