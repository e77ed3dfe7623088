"""A runtime whose streams are the test's, and a client that speaks SPDY."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from waiting import until

from lastcall.kube.cri.api import (
    ContainerMetadata,
    ContainerState,
    ContainerStatus,
    ExecSyncResponse,
    PodSandboxMetadata,
    PodSandboxState,
    PodSandboxStatus,
    RuntimeServiceError,
)
from lastcall.kube.streaming.spdy_session import SpdySession, SpdyStream
from lastcall.kube.streaming.upgrade import SocketStream

POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "uid-1"},
    "spec": {"nodeName": "node1", "containers": [{"name": "c"}]},
}


@dataclass
class FakeStreams:
    """Outputs are queues (b"" ends one); what the client says is kept."""

    exit_code: int = 0
    stdin: list[bytes] = field(default_factory=list)
    stdin_closed: asyncio.Event = field(default_factory=asyncio.Event)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    stdout: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    stderr: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    reads_stdin: bool = True
    echo: bool = False

    def exit(self, code: int = 0) -> None:
        self.exit_code = code
        self.exited.set()
        self.stdout.put_nowait(b"")
        self.stderr.put_nowait(b"")

    async def read_stdout(self) -> bytes:
        return await self.stdout.get()

    async def read_stderr(self) -> bytes:
        return await self.stderr.get()

    async def write_stdin(self, data: bytes) -> None:
        if not self.reads_stdin:
            raise BrokenPipeError(32, "Broken pipe")
        self.stdin.append(data)
        if self.echo:
            self.stdout.put_nowait(data)

    async def close_stdin(self) -> None:
        self.stdin_closed.set()
        if self.echo:
            self.exit()

    def resize(self, width: int, height: int) -> None:
        self.sizes.append((width, height))

    async def wait(self) -> int:
        await self.exited.wait()
        if self.exit_code < 0:
            raise RuntimeServiceError("the connection to the shim is gone")
        return self.exit_code

    async def close(self) -> None:
        self.closed.set()


class FakePort:
    """A connection to a port that answers in upper case, and ends when the client does."""

    def __init__(self) -> None:
        self._answers: asyncio.Queue[bytes] = asyncio.Queue()
        self.closed = asyncio.Event()

    async def read(self) -> bytes:
        return await self._answers.get()

    async def write(self, data: bytes) -> None:
        if data == b"bye":
            self._answers.put_nowait(b"")
        else:
            self._answers.put_nowait(data.upper())

    async def close_write(self) -> None:
        self._answers.put_nowait(b"end")
        self._answers.put_nowait(b"")

    async def close(self) -> None:
        self.closed.set()


class FakeRuntime:
    """What the streaming endpoints ask of a runtime. One container, `c`."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.streams: list[FakeStreams] = []
        self.ports: list[FakePort] = []
        self.state = ContainerState.CONTAINER_RUNNING
        self.error = ""
        self.prepare: Callable[[FakeStreams], None] = lambda streams: None

    async def list_containers(self, pod_uid: str = "") -> list[ContainerStatus]:
        return [ContainerStatus("c-id", ContainerMetadata("c"), "s-id", self.state, "", "", 0)]

    async def list_pod_sandbox(self, pod_uid: str = "") -> list[PodSandboxStatus]:
        return [PodSandboxStatus("s-id", PodSandboxMetadata("p", pod_uid, "default"), PodSandboxState.SANDBOX_READY, 0)]

    def _open(self) -> FakeStreams:
        if self.error:
            raise RuntimeServiceError(self.error)
        self.streams.append(FakeStreams())
        self.prepare(self.streams[-1])
        return self.streams[-1]

    async def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool) -> FakeStreams:
        self.calls.append(("exec", container_id, cmd, tty, stdin))
        return self._open()

    async def attach(self, container_id: str, *, stdin: bool, stdout: bool, stderr: bool) -> FakeStreams:
        self.calls.append(("attach", container_id, stdin, stdout, stderr))
        return self._open()

    async def exec_sync(self, container_id: str, cmd: tuple[str, ...], timeout: float) -> ExecSyncResponse:
        return ExecSyncResponse(" ".join(cmd).encode(), b"", 1 if cmd[0] == "false" else 0)

    async def port_forward(self, pod_sandbox_id: str, port: int) -> FakePort:
        if port == 9999:
            raise RuntimeServiceError("failed to connect to localhost:9999")
        self.ports.append(FakePort())
        return self.ports[-1]

    async def until(self, condition: Callable[[], object]) -> None:
        await until(condition, pause=0.002)


class SpdyConnection:
    """A client as kubectl is one: `async with await SpdyConnection.open(…) as connection`."""

    def __init__(self, head: str, session: SpdySession | None, writer: asyncio.StreamWriter, body: bytes) -> None:
        self.head, self.writer, self.body = head, writer, body
        self._session = session
        self._task: asyncio.Task[None] | None = None

    @property
    def session(self) -> SpdySession:
        assert self._session is not None, self.head
        return self._session

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        path: str,
        protocols: Sequence[str],
        *,
        headers: Sequence[str] = (),
        ssl: object = None,
    ) -> "SpdyConnection":
        reader, writer = await asyncio.open_connection(host, port, ssl=ssl)
        lines = [f"POST {path} HTTP/1.1", f"Host: {host}:{port}", "Connection: Upgrade", "Upgrade: SPDY/3.1"]
        lines += [f"X-Stream-Protocol-Version: {name}" for name in protocols]
        writer.write("\r\n".join([*lines, *headers, "Content-Length: 0", "", ""]).encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if head.startswith("HTTP/1.1 101 "):
            return cls(head, SpdySession(SocketStream(reader, writer), client=True), writer, b"")
        length = next(int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:"))
        return cls(head, None, writer, await reader.readexactly(length))

    async def __aenter__(self) -> "SpdyConnection":
        self._task = asyncio.create_task(self.session.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        await self.session.close()
        with suppress(ConnectionError):
            await self._task

    async def remote_command(self, *kinds: str) -> dict[str, SpdyStream]:
        return {kind: await self.session.open({"streamtype": kind}) for kind in ("error", *kinds)}


async def all_of(stream: SpdyStream) -> bytes:
    data = b""
    async with asyncio.timeout(60):
        while piece := await stream.read():
            data += piece
    return data
