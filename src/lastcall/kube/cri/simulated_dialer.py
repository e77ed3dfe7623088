"""How probes and HTTP hooks reach simulated containers.

The kubelet's answer and error types live above this layer, so they are given: `SimulatedDialer(world, runtime,
response=HTTPResponse, error=DialError)` is a `lastcall.kube.node.interfaces.Dialer`.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from lastcall.kube.cri.simulated import SimulatedRuntime
from lastcall.kube.cri.simulated_program import HTTPAnswer, Listener
from lastcall.world.clock import monotonic
from lastcall.world.world import World

R = TypeVar("R")


class SimulatedDialer(Generic[R]):
    """`response(status, body, headers)` makes an answer, `error(text)` the exception to raise. Texts are Go's."""

    def __init__(
        self,
        world: World,
        runtime: SimulatedRuntime,
        *,
        response: Callable[[int, bytes, dict[str, str]], R],
        error: Callable[[str], Exception],
        rpc_error: Callable[[str, str], Exception] | None = None,
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._response = response
        self._error = error
        self._rpc_error = rpc_error or (lambda code, message: error(f"{code}: {message}"))
        self.requests: list[tuple[str, list[tuple[str, str]]]] = []
        """URL and headers of every GET, in order."""

    async def http_get(
        self, url: str, headers: list[tuple[str, str]], timeout: float | None, *, follow_redirects: bool = True
    ) -> R:
        """Send a GET to the container that listens; redirects are not simulated."""
        self.requests.append((url, headers))
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        prefix = f'Get "{url}": '
        late = f"{prefix}context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        listener, term_at, exited = await self._connect(parts.hostname or "", port, timeout, prefix, late)
        answer = _answer(listener, parts.path or "/", term_at)
        wait = None if answer.hangs else answer.seconds
        cut = timeout is not None and (wait is None or timeout < wait)
        if wait or wait is None or cut:
            if await self._ends_within(exited, timeout if cut else wait):
                raise self._error(f"{prefix}EOF")
            if cut:
                raise self._error(late)
        return self._response(answer.status, answer.body, {})

    async def tcp_connect(self, host: str, port: int, timeout: float | None) -> None:
        late = f"dial tcp {_address(host, port)}: i/o timeout"
        await self._connect(host, port, timeout, "", late)

    async def grpc_health(self, host: str, port: int, service: str, timeout: float, user_agent: str) -> int:
        """Return the health. A refused connection is retried until the time is over, as gRPC does."""
        deadline = monotonic(self._world.clock) + timeout
        while (left := deadline - monotonic(self._world.clock)) > 0:
            try:
                listener, _, _ = await self._connect(host, port, left, "", "")
            except Exception:
                left = deadline - monotonic(self._world.clock)
                await self._world.clock.sleep(min(1.0, max(0.0, left)))
                continue
            if listener.grpc is None:
                await self._world.clock.sleep(left)
                break
            if service not in listener.grpc:
                raise self._rpc_error("NotFound", "unknown service")
            return listener.grpc[service]
        raise self._error("context deadline exceeded")

    async def _connect(
        self, host: str, port: int, timeout: float | None, prefix: str, late: str
    ) -> tuple[Listener, float | None, asyncio.Event]:
        now = monotonic(self._world.clock)
        for program, started, term_at, exited in self._runtime.listening_containers(host):
            listener = program.ports.get(port)
            if listener is None or now < started + listener.opens_after:
                continue
            if listener.closes_on_term and term_at is not None:
                continue
            return listener, term_at, exited
        if self._runtime.has_address(host):
            raise self._error(f"{prefix}dial tcp {_address(host, port)}: connect: connection refused")
        if timeout is not None and timeout < 3.0:
            await self._world.clock.sleep(timeout)
            raise self._error(late)
        # Nobody answers the ARP request: the kernel gives up after three seconds.
        await self._world.clock.sleep(3.0)
        raise self._error(f"{prefix}dial tcp {_address(host, port)}: connect: no route to host")

    async def _ends_within(self, exited: asyncio.Event, seconds: float | None) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await exited.wait()
                return True
        return False


def _answer(listener: Listener, path: str, term_at: float | None) -> HTTPAnswer:
    if term_at is not None and listener.on_term is not None:
        return listener.on_term
    return listener.paths.get(path, listener.default)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
