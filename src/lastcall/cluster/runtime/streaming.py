"""Exec, attach and port-forward at the URLs that CRI calls answer: a server on loopback, each URL good once.

Source: kubelet pkg/cri/streaming/{server,request_cache}.go: a token is 8 random bytes, lives a minute, and at most 1000
wait.
"""

import base64
import secrets
from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass, field

from aiohttp import web

from lastcall.cri.api import ContainerStreams, PortForwardStream, RuntimeService, RuntimeServiceError
from lastcall.node.streaming.endpoints import port_forward_upgraded, remote_command_upgraded
from lastcall.node.streaming.remote_command import StreamOptions
from lastcall.world.clock import Clock, monotonic

TOKEN_BYTES = 8
TOKEN_SECONDS = 60.0
MOST_WAITING = 1000


@dataclass(frozen=True, slots=True)
class _Asked:
    verb: str
    id: str
    cmd: tuple[str, ...] = ()
    options: StreamOptions = field(default_factory=StreamOptions)


class StreamingServer:
    """`lastcall.cri.v1.needs.Streams`; `start` first."""

    def __init__(self, runtime: RuntimeService, clock: Clock) -> None:
        self._runtime, self._clock = runtime, clock
        self._waiting: OrderedDict[str, tuple[float, _Asked]] = OrderedDict()
        self._runner: web.AppRunner | None = None
        self._base = ""

    async def start(self) -> None:
        """On a port of 127.0.0.1 that the kernel chooses. Raises OSError."""
        app = web.Application()
        for method in ("GET", "POST"):
            app.router.add_route(method, "/{verb}/{token}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self._base = f"http://{host}:{port}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, streams: frozenset[str]) -> str:
        return self._url(_Asked("exec", container_id, cmd, _options(tty, streams)))

    def attach(self, container_id: str, *, tty: bool, streams: frozenset[str]) -> str:
        return self._url(_Asked("attach", container_id, (), _options(tty, streams)))

    def port_forward(self, pod_sandbox_id: str) -> str:
        return self._url(_Asked("portforward", pod_sandbox_id))

    def _url(self, asked: _Asked) -> str:
        now = monotonic(self._clock)
        while self._waiting and next(iter(self._waiting.values()))[0] <= now:
            self._waiting.popitem(last=False)
        if len(self._waiting) >= MOST_WAITING:
            raise RuntimeServiceError("maximum number of in-flight requests exceeded", "ResourceExhausted")
        token = base64.urlsafe_b64encode(secrets.token_bytes(TOKEN_BYTES)).decode().rstrip("=")
        self._waiting[token] = (now + TOKEN_SECONDS, asked)
        return f"{self._base}/{asked.verb}/{token}"

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        until, asked = self._waiting.pop(request.match_info["token"], (0.0, None))
        if asked is None or asked.verb != request.match_info["verb"] or until <= monotonic(self._clock):
            return web.Response(status=404, text="404 page not found")
        if asked.verb == "portforward":

            def connect(port: int) -> Awaitable[PortForwardStream]:
                return self._runtime.port_forward(asked.id, port)

            return await port_forward_upgraded(request, connect, asked.id, self._clock)
        options = asked.options

        def open_streams() -> Awaitable[ContainerStreams]:
            if asked.verb == "exec":
                return self._runtime.exec(asked.id, asked.cmd, tty=options.tty, stdin=options.stdin)
            stdin, stdout, stderr = options.stdin, options.stdout, options.stderr
            return self._runtime.attach(asked.id, stdin=stdin, stdout=stdout, stderr=stderr)

        doing = "error executing command in container" if asked.verb == "exec" else "error attaching to container"
        return await remote_command_upgraded(request, options, open_streams, self._clock, doing=doing)


def _options(tty: bool, streams: frozenset[str]) -> StreamOptions:
    return StreamOptions("stdin" in streams, "stdout" in streams, "stderr" in streams and not tty, tty)
