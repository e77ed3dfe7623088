"""Exec and attach over SPDY/3.1: a stream for each of error, stdin, stdout, stderr and resize.

Source: kubelet pkg/cri/streaming/remotecommand/httpstream.go.
"""

import asyncio
from contextlib import suppress
from typing import Any

from lastcall.kube.node.streaming.remote_command import (
    LINGER,
    STREAM_CREATION_TIMEOUT,
    StreamOptions,
    encode_status,
    internal_error_status,
)
from lastcall.kube.node.streaming.websocket_client import Sizes
from lastcall.kube.streaming.spdy_frames import SpdyError
from lastcall.kube.streaming.spdy_session import SpdySession, SpdyStream
from lastcall.kube.streaming.upgrade import ByteStream

PROTOCOLS = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_LONGEST_SIZE = 1024


class SpdyClient:
    """`lastcall.kube.node.streaming.remote_command.RemoteClient` on a connection that has been taken over."""

    def __init__(self, transport: ByteStream, protocol: str, options: StreamOptions) -> None:
        self._session = SpdySession(transport, self._on_stream)
        self._protocol = protocol
        expected = ["error", *options.outputs]
        if options.stdin:
            expected.append("stdin")
        if options.tty and protocol in PROTOCOLS[:2]:
            expected.append("resize")
        self._expected = expected
        self._streams: dict[str, SpdyStream] = {}
        self._complete = asyncio.Event()
        self._over = asyncio.Event()
        self._sizes = Sizes()

    @property
    def activity(self) -> int:
        return self._session.activity

    async def run(self) -> None:
        try:
            await self._session.run()
        except SpdyError as error:
            raise ConnectionResetError(str(error)) from error
        finally:
            self._over.set()

    def _on_stream(self, stream: SpdyStream) -> None:
        kind = stream.headers.get("streamtype", "")
        if kind not in ("error", "stdin", "stdout", "stderr", "resize") or kind in self._streams:
            raise ValueError(f"unexpected stream type: {kind!r}")
        self._streams[kind] = stream
        if all(name in self._streams for name in self._expected):
            self._complete.set()

    async def connected(self) -> None:
        async with asyncio.timeout(STREAM_CREATION_TIMEOUT):
            await self._complete.wait()

    async def read_stdin(self) -> bytes:
        return await self._streams["stdin"].read()

    async def read_size(self) -> tuple[int, int]:
        """Return the next size. Sizes come as JSON texts one after the other, a line or a frame each."""
        while True:
            size = await self._next_size()
            self._sizes.put(size)
            if not size:
                await asyncio.Event().wait()  # no more will come
            if self._sizes.changed:
                return await self._sizes.get()

    async def _next_size(self) -> bytes:
        stream = self._streams.get("resize")
        return b"" if stream is None else (await stream.read()).rstrip(b"\n").rpartition(b"\n")[2][:_LONGEST_SIZE]

    async def write(self, stream: str, data: bytes) -> None:
        await self._streams[stream].write(data)

    async def end(self, stream: str) -> None:
        await self._streams[stream].close_write()

    def internal_error(self, text: str) -> dict[str, Any]:
        return internal_error_status(text)

    async def finish(self, status: dict[str, Any]) -> None:
        as_json = self._protocol == PROTOCOLS[0]
        error = self._streams["error"]
        if as_json or status["status"] != "Success":
            await error.write(encode_status(status, as_json=as_json))
        await error.close_write()
        await self._session.finish()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                await self._over.wait()
        await self._session.close()
