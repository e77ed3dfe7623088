"""Exec and attach over an open connection: join the client's streams and the container's.

What speaks WebSocket or SPDY with the client is a `RemoteClient`; here nothing is known of either.
Sources: kubelet pkg/cri/streaming/remotecommand/{exec,attach}.go, websocket.go, httpstream.go.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import orjson

from lastcall.kube.cri.api import ContainerStreams, RuntimeServiceError
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

STREAM_CREATION_TIMEOUT = 30.0
"""Seconds a client has to open its streams (kubelet remotecommand.DefaultStreamCreationTimeout)."""
IDLE_TIMEOUT = 4 * 3600.0
"""Seconds without a byte in either direction (kubelet --streaming-connection-idle-timeout)."""
LINGER = 2.0
"""Seconds a client has to close its connection after the last word."""
_LOOKS = 8


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What of a command's streams the client wants."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(name for name in ("stdout", "stderr") if getattr(self, name))


def parse_stream_options(query: Mapping[str, str]) -> StreamOptions:
    """Parse the kubelet's own query parameters. Raises ValueError. Source: remotecommand/httpstream.go:NewOptions."""
    tty = query.get("tty") == "1"
    options = StreamOptions(
        stdin=query.get("input") == "1",
        stdout=query.get("output") == "1",
        stderr=query.get("error") == "1" and not tty,  # a terminal has one output
        tty=tty,
    )
    if not (options.stdin or options.outputs):
        raise ValueError("you must specify at least 1 of stdin, stdout, stderr")
    return options


class RemoteClient(Protocol):
    """The client's end. Every method raises ConnectionError when the client is gone."""

    @property
    def activity(self) -> int:
        """Return a count that grows with every piece of data in either direction."""
        ...

    async def run(self) -> None:
        """Read what the client sends until it closes."""
        ...

    async def connected(self) -> None:
        """Wait until all streams exist. Raises TimeoutError."""
        ...

    async def read_stdin(self) -> bytes:
        """Return the next data of stdin; b"" at the end."""
        ...

    async def read_size(self) -> tuple[int, int]:
        """Return the terminal's next (width, height)."""
        ...

    async def write(self, stream: str, data: bytes) -> None:
        """Write to `stdout` or `stderr`."""
        ...

    async def end(self, stream: str) -> None:
        """End `stdout` or `stderr`."""
        ...

    def internal_error(self, text: str) -> dict[str, Any]:
        """Return the Status of a runtime's error."""
        ...

    async def finish(self, status: dict[str, Any]) -> None:
        """Send the final Status; then wait a little for the client to close."""
        ...


async def serve(
    client: RemoteClient,
    options: StreamOptions,
    open_streams: Callable[[], Awaitable[ContainerStreams]],
    clock: Clock,
    *,
    doing: str,
    idle_timeout: float = IDLE_TIMEOUT,
) -> None:
    """Serve one client to its end. `doing` begins the text of a runtime's error."""
    session = _Session(client, options)
    try:
        async with Tasks() as tasks:
            tasks.spawn(session.read(), name="streaming client")
            tasks.spawn(watch_idleness(lambda: client.activity, clock, idle_timeout), name="idle timeout")
            await client.connected()
            try:
                streams = await open_streams()
            except RuntimeServiceError as error:
                status = client.internal_error(f"{doing}: {error}")
            else:
                try:
                    status = exit_status(await session.join(tasks, streams))
                except RuntimeServiceError as error:  # the runtime does not know any more
                    status = client.internal_error(f"{doing}: {error}")
                finally:
                    await streams.close()
            session.finished = True
            await client.finish(status)
            tasks.cancel()
    except* (ConnectionError, TimeoutError, RuntimeServiceError):
        pass  # the client went away, or never came; or the runtime did


class _Session:
    def __init__(self, client: RemoteClient, options: StreamOptions) -> None:
        self._client, self._options = client, options
        self.finished = False

    async def read(self) -> None:
        await self._client.run()
        if not self.finished:
            raise ConnectionResetError("the client is gone")

    async def join(self, tasks: Tasks, streams: ContainerStreams) -> int:
        """The exit code, once the outputs are over too."""
        reads = {"stdout": streams.read_stdout, "stderr": streams.read_stderr}
        outputs = [tasks.spawn(self._output(name, read), name=name) for name, read in reads.items()]
        inputs = []
        if self._options.stdin:
            inputs.append(tasks.spawn(self._input(streams), name="stdin"))
        if self._options.tty:
            inputs.append(tasks.spawn(self._sizes(streams), name="resize"))
        code = await streams.wait()
        for output in outputs:
            await output
        for each in inputs:
            each.cancel()
        return code

    async def _output(self, name: str, read: Callable[[], Awaitable[bytes]]) -> None:
        """What nobody asked for is read too, or the command would wait."""
        wanted = name in self._options.outputs
        while data := await read():
            if wanted:
                await self._client.write(name, data)
        if wanted:
            await self._client.end(name)

    async def _input(self, streams: ContainerStreams) -> None:
        while data := await self._client.read_stdin():
            try:
                await streams.write_stdin(data)
            except BrokenPipeError:  # nobody reads it; the client may go on all the same
                while await self._client.read_stdin():
                    pass
                return
        await streams.close_stdin()

    async def _sizes(self, streams: ContainerStreams) -> None:
        while True:
            streams.resize(*await self._client.read_size())


async def watch_idleness(activity: Callable[[], int], clock: Clock, seconds: float) -> None:
    """Raise ConnectionResetError when `activity` has not changed for so long, an eighth late at most."""
    seen, idle = activity(), 0
    while idle < _LOOKS:
        await clock.sleep(seconds / _LOOKS)
        current = activity()
        idle = idle + 1 if current == seen else 0
        seen = current
    raise ConnectionResetError(f"nothing was said for {seconds:g}s")


# -- the last word -----------------------------------------------------------------------------------------------------


def exit_status(code: int) -> dict[str, Any]:
    """Return the `metav1.Status` of an exit code."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def internal_error_status(text: str) -> dict[str, Any]:
    """Return the Status that `errors.NewInternalError` makes."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {text}",
        "reason": "InternalError",
        "details": {"causes": [{"message": text}]},
        "code": 500,
    }


def encode_status(status: dict[str, Any], *, as_json: bool) -> bytes:
    """Encode for the error stream: JSON from protocol v4 on, before only an error's text (v1WriteStatusFunc)."""
    if as_json:
        return orjson.dumps(status)
    return str(status.get("message", "")).encode()


def parse_size(data: bytes) -> tuple[int, int] | None:
    """Parse a resize message into (width, height); None if it is invalid, or no terminal can have that size."""
    try:
        size = orjson.loads(data)
        width, height = int(size["Width"]), int(size["Height"])
    except (ValueError, KeyError, TypeError):
        return None
    return (width, height) if 0 <= width <= 0xFFFF and 0 <= height <= 0xFFFF else None


def first_common(asked: Sequence[str], served: Sequence[str]) -> str | None:
    """Return the client's first choice that is served. Source: httpstream.go:negotiateProtocol."""
    return next((name for name in asked if name in served), None)
