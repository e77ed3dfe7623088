"""Commands in containers, and streams to containers and Pods."""

from typing import Protocol

from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ExecSyncResponse:
    stdout: bytes
    stderr: bytes
    exit_code: int


class ContainerStreams(Protocol):
    """The streams of a command (Exec) or of a container (Attach). CRI answers with a URL, here they are themselves.

    Nothing is buffered: a read waits for data, a write for room. One reader and one writer a stream.
    """

    async def read_stdout(self) -> bytes:
        """Return some bytes; b"" when the stream is over."""
        ...

    async def read_stderr(self) -> bytes:
        """Read stderr, as `read_stdout`. A terminal has only one output, stdout."""
        ...

    async def write_stdin(self, data: bytes) -> None:
        """Write all of `data`. Raises BrokenPipeError when nobody reads any more."""
        ...

    async def close_stdin(self) -> None:
        """End the client's input. An attach then ends too, unless the container has `stdin_once`."""
        ...

    def resize(self, width: int, height: int) -> None:
        """Set the size of the client's terminal, in characters; do nothing without one."""
        ...

    async def wait(self) -> int:
        """Wait for a command's end; return its exit code, 0 for an attach. Its output may not be over yet."""
        ...

    async def close(self) -> None:
        """Close the streams. A command that still runs goes on, as in containerd."""
        ...


class PortForwardStream(Protocol):
    """A TCP connection to a port of a Pod."""

    async def read(self) -> bytes:
        """Return some bytes; b"" when the other side has ended its direction."""
        ...

    async def write(self, data: bytes) -> None:
        """Write all of `data`. Raises BrokenPipeError."""
        ...

    async def close_write(self) -> None:
        """End this direction."""
        ...

    async def close(self) -> None: ...
