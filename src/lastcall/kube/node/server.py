"""The kubelet's HTTPS endpoint. Source: server/server.go.

A client needs a client certificate of the cluster's authority (the TLS context demands it) in one of the
allowed organizations: the API server's `kube-apiserver-kubelet-client`, not a node's own.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from lastcall.kube.api.meta import Object, uid_of
from lastcall.kube.api.text.go_notation import go_quote
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.api.text.times import later, parse_rfc3339
from lastcall.kube.cri.api import ContainerState, RuntimeService, RuntimeServiceError
from lastcall.kube.node.logs.reader import LogOptions, read_logs
from lastcall.kube.node.logs.target import LogsNotAvailable, log_container_id
from lastcall.kube.node.pods.spec import find_container
from lastcall.kube.node.status.containers import runtime_id
from lastcall.world.clock import now
from lastcall.world.listeners import TLSListener
from lastcall.world.world import World

if TYPE_CHECKING:
    from aiohttp import web

    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus
    from lastcall.kube.node.metrics.kubelet import CountedParts
    from lastcall.kube.node.metrics.node_usage import NodeUsage
    from lastcall.world.counting import Family


class ServedPods(Protocol):
    """What the endpoint may know of the node's Pods."""

    def get_pod_by_name(self, namespace: str, name: str) -> Pod | None: ...
    def get_pods(self) -> Sequence[Pod]: ...
    def active_pods(self) -> Sequence[Pod]: ...
    def get_pod_status(self, uid: str) -> APIPodStatus | None: ...


def listen(host: str, port: int) -> socket.socket:
    """Listen on an address. Raises OSError."""
    listening = socket.create_server((host, port), backlog=128)  # with SO_REUSEADDR
    listening.setblocking(False)
    return listening


class KubeletServer:
    """`/containerLogs/<namespace>/<pod>/<container>`, `/pods`, `/healthz`, `/metrics` (`metrics/`), and what
    `streaming/endpoints.py` serves. `counted` are the kubelet's parts with metrics; `version` is like `1.36.2`.

    `names` are the node's: by them or the address of the connection it is asked. `usage` is of a node that is smaller
    than its machine.
    """

    def __init__(
        self,
        *,
        world: World,
        runtime: RuntimeService,
        pods: ServedPods,
        allowed_organizations: Sequence[str] = ("system:masters",),
        healthy: Callable[[], Awaitable[str]] | None = None,
        names: Sequence[str] = (),
        version: str = "",
        counted: CountedParts | None = None,
        usage: NodeUsage | None = None,
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._pods = pods
        self._allowed = tuple(allowed_organizations)
        self._healthy = healthy
        self._names = names
        self._version = version
        self._counted = counted
        self._usage = usage

    async def start_unauthenticated(self, host: str, port: int) -> web.AppRunner:
        """Listen without TLS, for tests on the loopback; `cleanup()` of the result closes it."""
        # late: 33 ms of a node's start
        from aiohttp import web

        runner = await self._runner(authenticate=False)
        await web.SockSite(runner, listen(host, port)).start()
        return runner

    async def serve_when_asked(self, listening: socket.socket, tls: ssl.SSLContext) -> None:
        """Serve until cancelled. A client certificate is demanded whatever `tls` says of it.

        The first connection waits for the server to be made: most nodes' are never asked, and it is 2 MB of code.
        """
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(listening, asked.set)
        try:
            await asked.wait()
        finally:
            loop.remove_reader(listening)
        tls.verify_mode = ssl.CERT_REQUIRED
        runner = await self._runner(authenticate=True)
        assert runner.server is not None
        try:
            await TLSListener(runner.server, listening, tls, self._world.clock).run()
        finally:
            listening.close()
            await runner.cleanup()

    async def _runner(self, *, authenticate: bool) -> web.AppRunner:
        # late: 33 ms of a node's start
        from aiohttp import web

        from lastcall.kube.streaming.upgrade import LONGEST_HEADER
        from lastcall.world.aiohttp_inside.server import log

        app = self._application(authenticate=authenticate)
        runner = web.AppRunner(app, logger=log, access_log=None, shutdown_timeout=0.1, max_line_size=LONGEST_HEADER)
        await runner.setup()
        return runner

    def _application(self, *, authenticate: bool) -> web.Application:
        # late: 48 ms of a node's start
        from aiohttp import web

        from lastcall.kube.node.streaming.endpoints import StreamingEndpoints
        from lastcall.kube.streaming.hosts import Hosts

        hosts = Hosts(self._names)

        @web.middleware
        async def authorize(request: web.Request, handler: Any) -> web.StreamResponse:
            if (refused := hosts.refusal(request)) is not None:
                return refused
            if authenticate and not self._is_allowed(request):
                raise web.HTTPForbidden(text="Forbidden: this client certificate may not use the kubelet\n")
            answer: web.StreamResponse = await handler(request)
            return answer

        app = web.Application(middlewares=[authorize])
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/pods", self._list_pods)
        StreamingEndpoints(self._world, self._runtime, self._pods.get_pod_by_name).add_to(app)
        app.router.add_get("/stats/summary", self._stats)
        app.router.add_get("/metrics/resource", self._resource_metrics)
        for path, families in (
            ("/metrics", self._families),
            ("/metrics/cadvisor", self._cadvisor_families),
            ("/metrics/probes", self._probe_families),
        ):
            app.router.add_get(path, self._metrics_of(families))
        app.router.add_get("/statusz", self._statusz)
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._container_logs)
        return app

    def _is_allowed(self, request: web.Request) -> bool:
        certificate = request.transport.get_extra_info("peercert") if request.transport else None
        subject = [pair for group in (certificate or {}).get("subject", ()) for pair in group]
        return any(key == "organizationName" and value in self._allowed for key, value in subject)

    async def _healthz(self, request: web.Request) -> web.Response:
        # late: 32 ms of a node's start
        from aiohttp import web

        problem = await self._healthy() if self._healthy else ""
        return web.Response(text=problem or "ok", status=500 if problem else 200)

    async def _list_pods(self, request: web.Request) -> web.Response:
        # late: 32 ms of a node's start
        from aiohttp import web

        items = [
            {**pod, "status": self._pods.get_pod_status(uid_of(pod)) or pod.get("status") or {}}
            for pod in self._pods.get_pods()
        ]
        body = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    async def _summary(self, *, identities: bool = False) -> Object:
        # late: nobody asks on most nodes
        from lastcall.kube.node.metrics.stats import summary

        name = self._names[0] if self._names else ""
        return await summary(
            self._world, self._runtime, name, self._pods.get_pods(), usage=self._usage, identities=identities
        )

    async def _stats(self, request: web.Request) -> web.Response:
        # late: 32 ms of a node's start
        from aiohttp import web

        return web.Response(body=orjson.dumps(await self._summary()), content_type="application/json")

    async def _resource_metrics(self, request: web.Request) -> web.Response:
        # late: 32 ms of a node's start
        from aiohttp import web

        from lastcall.kube.node.metrics.stats import resource_metrics

        return web.Response(text=resource_metrics(await self._summary()))

    def _metrics_of(self, families: Callable[[], Awaitable[Iterable[Family]]]) -> Any:
        async def handler(request: web.Request) -> web.Response:
            # late: few ask for it
            from aiohttp import web

            from lastcall.kube.api.metrics.text import CONTENT_TYPE, exposition

            return web.Response(body=exposition(await families()).encode(), headers={"Content-Type": CONTENT_TYPE})

        return handler

    async def _families(self) -> Iterable[Family]:
        """The kubelet's, and what else this process counts: the service proxy's."""
        # late: few ask for it
        from lastcall.kube.api.metrics.build import build_families
        from lastcall.kube.node.metrics.kubelet import kubelet_families, running_families
        from lastcall.world.process_numbers import process_families

        found = [*self._world.counted.families(), *process_families(self._world.clock), *build_families(self._version)]
        if self._counted is not None:
            found += kubelet_families(self._counted, self._names[0], self._pods.active_pods())
            found += await running_families(self._runtime)
        return found

    async def _cadvisor_families(self) -> Iterable[Family]:
        # late: few ask for it
        from lastcall.kube.node.metrics.cadvisor import cadvisor_families

        return cadvisor_families(await self._summary(identities=True))

    async def _probe_families(self) -> Iterable[Family]:
        # late: few ask for it
        from lastcall.kube.node.metrics.kubelet import probe_families
        from lastcall.world.process_numbers import start_time

        found = list(probe_families(self._counted)) if self._counted is not None else []
        return [*found, ("process_start_time_seconds", [({}, start_time(self._world.clock))])]

    async def _statusz(self, request: web.Request) -> web.Response:
        # late: few ask for it
        from aiohttp import web

        from lastcall.kube.api.metrics import statusz
        from lastcall.world.process_numbers import start_time

        clock = self._world.clock
        paths = ("/healthz", "/metrics")
        status = statusz.Status("kubelet", self._version, start_time(clock), clock.wall_ns() / 1e9, paths)
        return web.Response(text=statusz.text(status, ":"))

    async def _container_logs(self, request: web.Request) -> web.StreamResponse:
        """Source: server.go:getContainerLogs."""
        # late: 32 ms of a node's start
        from aiohttp import web

        namespace, name, container = (request.match_info[key] for key in ("namespace", "pod", "container"))
        try:
            options, previous = self._log_options(request)
        except ValueError as error:
            return web.Response(status=422, text=f"{error}\n")
        pod = self._pods.get_pod_by_name(namespace, name)
        if pod is None:
            return web.Response(status=404, text=f"pod {go_quote(name)} cannot be found - no logs available\n")
        if find_container(pod, container) is None:
            return web.Response(status=404, text=f"container {go_quote(container)} not found in pod {go_quote(name)}\n")
        status = self._pods.get_pod_status(uid_of(pod)) or pod.get("status") or {}
        try:
            container_id = runtime_id(log_container_id(pod, status, container, previous))
            path = (await self._runtime.container_status(container_id)).log_path
        except LogsNotAvailable as error:
            return web.Response(status=400, text=str(error))
        except RuntimeServiceError as error:
            return web.Response(
                status=400, text=f"unable to retrieve container logs for lastcall://{container_id}: {error}"
            )

        async def is_running() -> bool:
            try:
                current = await self._runtime.container_status(container_id)
            except RuntimeServiceError:
                return False
            return current.state in (ContainerState.CONTAINER_RUNNING, ContainerState.CONTAINER_CREATED)

        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        try:
            async for block in read_logs(Path(path), options, world=self._world, is_running=is_running):
                await response.write(block)
        except FileNotFoundError:
            pass  # created, but nothing was written yet
        except ConnectionResetError:
            return response
        with suppress(ConnectionResetError):  # who followed is gone
            await response.write_eof()
        return response

    def _log_options(self, request: web.Request) -> tuple[LogOptions, bool]:
        """Raises ValueError with a text that names the parameter."""
        query = request.query
        numbers: dict[str, int | None] = {}
        for name in ("tailLines", "sinceSeconds", "limitBytes"):
            text = query.get(name)
            numbers[name] = int_of(text)
            if text is not None and numbers[name] is None:
                raise ValueError(f"{name}: {text!r} is not a whole number")
        tail, limit = numbers["tailLines"], numbers["limitBytes"]
        if tail is not None and tail < 0:
            raise ValueError(f"tailLines: {tail} must be greater than or equal to 0")
        if limit is not None and limit < 1:
            raise ValueError(f"limitBytes: {limit} must be greater than 0")
        since = None
        if (seconds := numbers["sinceSeconds"]) is not None:
            if seconds < 1:
                raise ValueError(f"sinceSeconds: {seconds} must be greater than 0")
            since = later(now(self._world.clock), -seconds)
        elif text := query.get("sinceTime"):
            try:
                since = parse_rfc3339(text)
            except ValueError:
                raise ValueError(f"sinceTime: {text!r} is not an RFC 3339 time") from None
        flags = {
            name: query.get(name, "false").lower() in ("true", "1") for name in ("follow", "previous", "timestamps")
        }
        options = LogOptions(
            follow=flags["follow"] and not flags["previous"],
            timestamps=flags["timestamps"],
            tail_lines=tail,
            since=since,
            limit_bytes=limit,
        )
        return options, flags["previous"]
