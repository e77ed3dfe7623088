"""Exec, Attach and PortForward of the simulated runtime: as much as its programs can say.

A command's output comes when it has ended, and nobody reads its input. Attached to a container there is nothing to
see but its end. No port can be forwarded.
"""

import asyncio

from lastcall.kube.cri.api import ExecSyncResponse, RuntimeServiceError


class SimulatedStreams:
    """`response`: of a command that has ended. `ended`: of the container that is attached to."""

    def __init__(self, response: ExecSyncResponse | None = None, ended: asyncio.Event | None = None) -> None:
        self._stdout, self._stderr = (response.stdout, response.stderr) if response else (b"", b"")
        self._exit_code = response.exit_code if response else 0
        self._ended = ended

    async def read_stdout(self) -> bytes:
        await self._end()
        data, self._stdout = self._stdout, b""
        return data

    async def read_stderr(self) -> bytes:
        await self._end()
        data, self._stderr = self._stderr, b""
        return data

    async def write_stdin(self, data: bytes) -> None:
        return

    async def close_stdin(self) -> None:
        return

    def resize(self, width: int, height: int) -> None:
        return

    async def wait(self) -> int:
        await self._end()
        return self._exit_code

    async def close(self) -> None:
        return

    async def _end(self) -> None:
        if self._ended is not None:
            await self._ended.wait()


def refused(sandbox_id: str, port: int) -> RuntimeServiceError:
    """Return the error that PortForward raises."""
    return RuntimeServiceError(f"sandbox {sandbox_id!r} is simulated: nothing listens on port {port}")
