"""File descriptors as the streams of CRI's Exec, Attach and PortForward. Nothing is buffered here.

The descriptors come from the shim (`shim/streams/descriptors.py`); the kernel's pipes and sockets are the only buffers.
"""

import asyncio
import errno
import fcntl
import os
import socket
import struct
import termios
from contextlib import suppress

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.shim import messages
from lastcall.kube.cri.sandbox.shim_client import Answer, ShimClient
from lastcall.world.tasks import unless

CHUNK = 32 << 10
"""Bytes read at once."""


class Descriptor:
    """One non-blocking file descriptor: a pipe's end, a terminal or a socket. One reader and one writer at a time."""

    def __init__(self, fd: int) -> None:
        """The fd is this object's from now on."""
        os.set_blocking(fd, False)
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def read(self) -> bytes:
        """Read what is there, at most `CHUNK` bytes; b"" at the end, and after `close`."""
        while self._fd >= 0:
            try:
                return os.read(self._fd, CHUNK)
            except BlockingIOError:
                await self._ready("read")
            except OSError:  # EIO: the last holder of a terminal has closed it; a connection was reset, timed out, …
                return b""
        return b""

    async def write(self, data: bytes) -> None:
        """Write all of `data`. Raises BrokenPipeError if nobody reads any more, and after `close`."""
        view = memoryview(data)
        while view:
            if self._fd < 0:
                raise BrokenPipeError(errno.EPIPE, "closed")
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                await self._ready("write")
            except OSError as error:
                raise BrokenPipeError(errno.EPIPE, error.strerror) from error

    async def _ready(self, direction: str) -> None:
        future = self._loop.create_future()
        self._waiting[direction] = future
        add = self._loop.add_reader if direction == "read" else self._loop.add_writer
        add(self._fd, self._wake, direction)
        try:
            await future
        finally:
            self._wake(direction)

    def _wake(self, direction: str) -> None:
        """Wake the waiting task and end its watch: the loop would call again, and a watched fd must not be closed."""
        future = self._waiting.pop(direction, None)
        if future is None:
            return
        (self._loop.remove_reader if direction == "read" else self._loop.remove_writer)(self._fd)
        if not future.done():
            future.set_result(None)

    def resize(self, width: int, height: int) -> None:
        """Tell a terminal its size in characters; its foreground processes get SIGWINCH."""
        if self._fd >= 0:
            with suppress(OSError):  # the terminal has ended
                fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def shutdown(self) -> None:
        """End the writing side of a socket."""
        if self._fd >= 0:
            with suppress(OSError), socket.socket(fileno=os.dup(self._fd)) as sock:
                sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close it; a task that waits continues with the end. Idempotent."""
        for direction in ("read", "write"):
            self._wake(direction)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _take(answer: Answer) -> dict[str, Descriptor]:
    """The descriptors of an answer by their names."""
    return {name: Descriptor(fd) for name, fd in zip(answer.read(messages.Streams).streams, answer.fds, strict=True)}


class _Streams:
    """What Exec and Attach have in common. A terminal is input and output."""

    def __init__(self, descriptors: dict[str, Descriptor]) -> None:
        self._all = list(descriptors.values())
        self._terminal = descriptors.get("terminal")
        self._stdin = descriptors.get("stdin") or self._terminal
        self._stdout = descriptors.get("stdout")
        self._stderr = descriptors.get("stderr")

    async def read_stdout(self) -> bytes:
        return await self._stdout.read() if self._stdout else b""

    async def read_stderr(self) -> bytes:
        return await self._stderr.read() if self._stderr else b""

    async def write_stdin(self, data: bytes) -> None:
        if self._stdin is None:
            return  # like containerd: a container without `stdin: true` has nothing to write to
        await self._stdin.write(data)

    def resize(self, width: int, height: int) -> None:
        if self._terminal is not None:
            self._terminal.resize(width, height)

    def _close(self) -> None:
        for descriptor in self._all:
            descriptor.close()


class ExecStreams(_Streams):
    """A command that runs."""

    def __init__(self, shim: ShimClient, identity: str, descriptors: dict[str, Descriptor]) -> None:
        super().__init__(descriptors)
        if self._terminal is not None:
            self._stdout = self._terminal
        self._shim, self._id = shim, identity

    async def close_stdin(self) -> None:
        """Close the input. A terminal has no end of input but its character: as with containerd, nothing happens."""
        if self._stdin is not None and self._stdin is not self._terminal:
            self._stdin.close()

    async def wait(self) -> int:
        answer = await self._shim.call(messages.ExecWait(exec_id=self._id))
        return answer.read(messages.Ended).exit_code

    async def close(self) -> None:
        self._close()
        self._shim.post(messages.ExecRelease(exec_id=self._id))


class AttachStreams(_Streams):
    """A running container's own streams. It ends with them, or with its client's input."""

    def __init__(
        self,
        shim: ShimClient,
        container_id: str,
        descriptors: dict[str, Descriptor],
        ended: asyncio.Event,
        *,
        stdin_once: bool,
    ) -> None:
        super().__init__(descriptors)
        self._shim, self._id, self._ended = shim, container_id, ended
        # Source: containerd internal/cri/io/container_io.go:Attach.
        self._closes_stdin = stdin_once and self._stdin is not None and self._terminal is None
        self._detached = asyncio.Event()

    async def close_stdin(self) -> None:
        if self._closes_stdin:
            self._closes_stdin = False
            if self._stdin is not None:
                self._stdin.close()
            await self._shim.call(messages.CloseStdin(id=self._id))
        elif self._stdin is not None:
            self._detached.set()
            self._close()

    async def wait(self) -> int:
        """Return 0; what is attached to no output ends with its input or with the container."""
        if self._stdout is None and self._stderr is None:
            await unless(self._detached.wait(), self._ended)
        return 0

    async def close(self) -> None:
        if self._closes_stdin:
            self._closes_stdin = False
            self._shim.post(messages.CloseStdin(id=self._id))
        self._close()


class SocketStream:
    """A connection to a port of a Pod."""

    def __init__(self, sock: socket.socket) -> None:
        self._descriptor = Descriptor(sock.detach())

    async def read(self) -> bytes:
        return await self._descriptor.read()

    async def write(self, data: bytes) -> None:
        await self._descriptor.write(data)

    async def close_write(self) -> None:
        self._descriptor.shutdown()

    async def close(self) -> None:
        self._descriptor.close()


async def open_exec(
    shim: ShimClient, container_id: str, identity: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool
) -> ExecStreams:
    """Start a command. Raises RuntimeServiceError; a cancelled start is killed."""
    try:
        answer = await shim.call(
            messages.ExecStream(id=container_id, exec_id=identity, argv=list(cmd), tty=tty, stdin=stdin)
        )
    except asyncio.CancelledError:
        shim.post(messages.CancelExec(exec_id=identity))
        shim.post(messages.ExecRelease(exec_id=identity))
        raise
    return ExecStreams(shim, identity, _take(answer))


async def open_attach(
    shim: ShimClient, container_id: str, wanted: dict[str, bool], ended: asyncio.Event, *, stdin_once: bool
) -> AttachStreams:
    """Open an attach; `wanted`: stdin, stdout, stderr. Raises RuntimeServiceError."""
    answer = await shim.call(messages.Attach(id=container_id, **wanted))
    return AttachStreams(shim, container_id, _take(answer), ended, stdin_once=stdin_once)


async def open_port(shim: ShimClient, sandbox_id: str, port: int) -> SocketStream:
    """Connect to `localhost:port` inside the sandbox, IPv4 first.

    Raises RuntimeServiceError. Source: containerd internal/cri/server/sandbox_portforward_linux.go.
    """
    problems = []
    for family, host in (("ipv4", "127.0.0.1"), ("ipv6", "::1")):
        shown = f"[{host}]" if family == "ipv6" else host
        try:
            answer = await shim.call(messages.Socket(id=sandbox_id, family=family))
            sock = socket.socket(fileno=answer.fds[0])
            try:
                sock.setblocking(False)
                await asyncio.get_running_loop().sock_connect(sock, (host, port))
            except BaseException:
                sock.close()
                raise
            return SocketStream(sock)
        except OSError as error:
            words = (os.strerror(error.errno) if error.errno else str(error)).lower()
            problems.append(f"dial tcp{family[-1]} {shown}:{port}: connect: {words}")
        except RuntimeServiceError as error:
            if error.reason:
                raise
            problems.append(f"dial tcp{family[-1]} {shown}:{port}: {error}")  # no such family on this machine
    raise RuntimeServiceError(
        f'failed to execute portforward in network namespace "{sandbox_id}": failed to connect to '
        f'localhost:{port} inside namespace "{sandbox_id}", IPv4: {problems[0]} IPv6 {problems[1]} '
    )
