"""Exec, attach and port-forward at the URLs that a runtime answers: the client's side of SPDY/3.1.

Source: client-go tools/remotecommand/{v2,v4}.go, tools/portforward/portforward.go.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import orjson

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.streaming.spdy_frames import SpdyError
from lastcall.kube.streaming.spdy_session import SpdySession, SpdyStream
from lastcall.kube.streaming.upgrade import SocketStream
from lastcall.world.tasks import Tasks

PROTOCOL = "v4.channel.k8s.io"
PORT_FORWARD = "portforward.k8s.io"
PROTOCOL_HEADER = "X-Stream-Protocol-Version"
LAST_WORDS_SECONDS = 1.0
"""For a runtime to say why a port cannot be reached, after it has ended the connection to it."""

Dial = Callable[[str, int], Awaitable[socket.socket]]
"""A connected, non-blocking socket to host and port, as the runtime sees them. Raises OSError."""


async def open_session(url: str, protocol: str, dial: Dial, tasks: Tasks) -> SpdySession:
    """Open a session with the server of `url`, read by a task of `tasks`. Raises RuntimeServiceError."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise RuntimeServiceError(f"the runtime's streams are at {url}: only http://HOST:PORT/… can be used")
    port = parts.port or 80
    try:
        connected = await dial(parts.hostname, port)
        reader, writer = await asyncio.open_connection(sock=connected)
    except OSError as error:
        raise RuntimeServiceError(f"the runtime's streams at {parts.netloc}: {error}") from None
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        f"{PROTOCOL_HEADER}: {protocol}\r\nContent-Length: 0\r\n\r\n"
    )
    try:
        writer.write(head.encode("ascii"))
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        if " 101 " not in answer.split("\r\n", 1)[0] + " ":
            text = (await reader.read(1024)).decode(errors="replace").strip()
            raise RuntimeServiceError(f"the runtime's streams: {answer.splitlines()[0]}: {text}")
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise RuntimeServiceError(f"the runtime's streams at {parts.netloc}: {error}") from None
    except BaseException:
        writer.close()
        raise
    session = SpdySession(SocketStream(reader, writer), client=True)
    tasks.spawn(_read(session), name=f"streams at {parts.netloc}")
    return session


async def _read(session: SpdySession) -> None:
    with suppress(SpdyError, ConnectionError):
        await session.run()


class RemoteStreams:
    """`lastcall.kube.cri.api.ContainerStreams` of an exec or an attach."""

    def __init__(self, session: SpdySession, streams: dict[str, SpdyStream], *, is_attach: bool) -> None:
        self._session, self._streams, self._is_attach = session, streams, is_attach
        self._resizes: asyncio.Queue[bytes] = asyncio.Queue(1)

    @classmethod
    async def open(cls, session: SpdySession, wanted: list[str], tasks: Tasks, *, is_attach: bool) -> "RemoteStreams":
        """Open the streams; `wanted` are those of stdin, stdout, stderr, resize. Raises RuntimeServiceError."""
        try:
            streams = {name: await session.open({"streamtype": name}) for name in ("error", *wanted)}
        except ConnectionError as error:
            raise RuntimeServiceError(f"the runtime's streams: {error}") from None
        found = cls(session, streams, is_attach=is_attach)
        if "resize" in streams:
            tasks.spawn(found._send_sizes(), name="sizes of a terminal")
        return found

    async def read_stdout(self) -> bytes:
        return await self._read("stdout")

    async def read_stderr(self) -> bytes:
        return await self._read("stderr")

    async def _read(self, name: str) -> bytes:
        stream = self._streams.get(name)
        return b"" if stream is None else await stream.read()

    async def write_stdin(self, data: bytes) -> None:
        """Write to stdin. Raises BrokenPipeError."""
        stream = self._streams.get("stdin")
        if stream is None:
            raise BrokenPipeError
        try:
            await stream.write(data)
        except ConnectionError:
            raise BrokenPipeError from None

    async def close_stdin(self) -> None:
        if stream := self._streams.get("stdin"):
            await stream.close_write()

    def resize(self, width: int, height: int) -> None:
        """Set the size; only the newest one matters."""
        with suppress(asyncio.QueueEmpty):
            self._resizes.get_nowait()
        self._resizes.put_nowait(orjson.dumps({"Width": width, "Height": height}))

    async def _send_sizes(self) -> None:
        stream = self._streams["resize"]
        with suppress(ConnectionError):
            while not stream.over:
                await stream.write(await self._resizes.get())

    async def wait(self) -> int:
        """Wait for the exit code. Raises RuntimeServiceError: it could not be started, or its end is unknown."""
        said = b""
        error = self._streams["error"]
        while data := await error.read():
            said += data
        if not said and not self._is_attach:
            raise RuntimeServiceError("how the command ended is not known: its stream ended without a status")
        return exit_code_of(said)

    async def close(self) -> None:
        if stream := self._streams.get("resize"):
            await stream.reset()
            self.resize(0, 0)  # a task that waits for a size ends
        await self._session.close()


def exit_code_of(said: bytes) -> int:
    """Return the code of the Status that a runtime writes last; none: the attach is over. Raises RuntimeServiceError.

    Source: client-go tools/remotecommand/v4.go:errorDecoderV4.
    """
    if not said:
        return 0
    try:
        status: dict[str, Any] = orjson.loads(said)
    except ValueError:
        raise RuntimeServiceError(said.decode(errors="replace")) from None
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            with suppress(ValueError):
                return int(cause.get("message", ""))
    text = str(status.get("message") or "unknown error")
    raise RuntimeServiceError(text.removeprefix("Internal error occurred: "))


class RemotePort:
    """`lastcall.kube.cri.api.PortForwardStream`: a session of its own for each connection."""

    def __init__(self, session: SpdySession, data: SpdyStream, error: SpdyStream) -> None:
        self._session, self._data, self._error = session, data, error

    @classmethod
    async def open(cls, session: SpdySession, port: int) -> "RemotePort":
        """Open a port. Raises RuntimeServiceError."""
        headers = {"port": str(port), "requestid": "0"}
        try:
            error = await session.open({"streamtype": "error", **headers})
            await error.close_write()
            data = await session.open({"streamtype": "data", **headers})
        except ConnectionError as gone:
            raise RuntimeServiceError(f"the runtime's streams: {gone}") from None
        return cls(session, data, error)

    async def read(self) -> bytes:
        """Read data. Raises RuntimeServiceError with what the runtime says of an unreachable port."""
        if data := await self._data.read():
            return data
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                if said := await self._error.read():
                    raise RuntimeServiceError(said.decode(errors="replace"))
        return b""

    async def write(self, data: bytes) -> None:
        """Write data. Raises BrokenPipeError."""
        try:
            await self._data.write(data)
        except ConnectionError:
            raise BrokenPipeError from None

    async def close_write(self) -> None:
        await self._data.close_write()

    async def close(self) -> None:
        await self._session.close()
