"""`/exec`, `/attach`, `/run` and `/portForward` of the kubelet: who is meant, which protocol, and off it goes.

Sources: kubelet pkg/kubelet/server/server.go (getExec, getAttach, getRun, getPortForward), kubelet_pods.go
(GetExec, GetAttach, GetPortForward, RunInContainer), apimachinery pkg/util/httpstream/httpstream.go:Handshake.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from aiohttp import web

from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.text.go_notation import go_quote
from lastcall.kube.cri.api import (
    ContainerState,
    ContainerStreams,
    PodSandboxState,
    PortForwardStream,
    RuntimeService,
    RuntimeServiceError,
)
from lastcall.kube.node.streaming import port_forward, remote_command, spdy_client, websocket_client
from lastcall.kube.node.streaming.remote_command import StreamOptions, first_common, parse_stream_options
from lastcall.kube.streaming.upgrade import HandedOver, SocketStream, switching_protocols, take_over
from lastcall.world import crash_guard
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

PROTOCOL_HEADER = "X-Stream-Protocol-Version"
_log = logging.getLogger("lastcall.kubelet")

FindPod = Callable[[str, str], "Pod | None"]


class StreamingEndpoints:
    """`add_to(app)` adds the routes. `find_pod(namespace, name)` knows the node's Pods."""

    def __init__(
        self,
        world: World,
        runtime: RuntimeService,
        find_pod: FindPod,
        *,
        idle_timeout: float = remote_command.IDLE_TIMEOUT,
    ) -> None:
        self._clock, self._runtime, self._find_pod = world.clock, runtime, find_pod
        self._idle_timeout = idle_timeout

    def add_to(self, app: web.Application) -> None:
        for path, handler in (("exec", self._exec), ("attach", self._attach)):
            for rest in ("{namespace}/{pod}/{container}", "{namespace}/{pod}/{uid}/{container}"):
                for method in ("GET", "POST"):
                    app.router.add_route(method, f"/{path}/{rest}", handler)
        for rest in ("{namespace}/{pod}", "{namespace}/{pod}/{uid}"):
            for method in ("GET", "POST"):
                app.router.add_route(method, f"/portForward/{rest}", self._port_forward)
            app.router.add_post(f"/run/{rest}/{{container}}", self._run)

    # -- exec, attach --------------------------------------------------------------------------------------------------

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        command = tuple(request.query.getall("command", []))

        def opener(container: str, options: StreamOptions) -> Awaitable[ContainerStreams]:
            return self._runtime.exec(container, command, tty=options.tty, stdin=options.stdin)

        return await self._remote_command(request, opener, "error executing command in container")

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        def opener(container: str, options: StreamOptions) -> Awaitable[ContainerStreams]:
            stdin, stdout, stderr = options.stdin, options.stdout, options.stderr
            return self._runtime.attach(container, stdin=stdin, stdout=stdout, stderr=stderr)

        return await self._remote_command(request, opener, "error attaching to container")

    async def _remote_command(
        self,
        request: web.Request,
        opener: Callable[[str, StreamOptions], Awaitable[ContainerStreams]],
        doing: str,
    ) -> web.StreamResponse:
        try:
            options = parse_stream_options(request.query)
        except ValueError as error:
            return _text(400, str(error))
        pod = self._pod(request)
        if pod is None:
            return _text(404, "pod does not exist")
        name = request.match_info["container"]
        container = await self._running_container(uid_of(pod), name)
        if container is None:
            return _text(500, f"container not found ({go_quote(name)})")

        async def serve(client: remote_command.RemoteClient) -> None:
            def open_streams() -> Awaitable[ContainerStreams]:
                return opener(container, options)

            await remote_command.serve(
                client, options, open_streams, self._clock, doing=doing, idle_timeout=self._idle_timeout
            )

        if is_websocket(request):
            protocol = first_common(asked := _websocket_protocols(request), websocket_client.PROTOCOLS)
            if asked and protocol is None:
                return _text(403, "none of the WebSocket protocols is served")
            socket = await websocket_client.accept(request, protocol or "")
            await serve(websocket_client.WebSocketClient(socket, protocol or "", options))
            return socket
        if not is_spdy(request):
            return _not_upgraded()
        asked = _spdy_protocols(request)
        protocol = first_common(asked, spdy_client.PROTOCOLS) if asked else "channel.k8s.io"
        if protocol is None:
            return _no_protocol(asked, spdy_client.PROTOCOLS)
        return await _taken_over(
            request,
            protocol if asked else "",
            lambda transport: serve(spdy_client.SpdyClient(transport, protocol, options)),
        )

    async def _run(self, request: web.Request) -> web.Response:
        pod, name = self._pod(request), request.match_info["container"]
        if pod is None:
            return _text(404, "pod does not exist")
        container = await self._running_container(uid_of(pod), name)
        if container is None:
            return _text(500, f"container not found ({go_quote(name)})")
        try:
            answer = await self._runtime.exec_sync(container, tuple(request.query.get("cmd", "").split(" ")), 0)
        except RuntimeServiceError as error:
            return _text(500, str(error))
        if answer.exit_code:
            return _text(500, f"command terminated with exit code {answer.exit_code}")
        return web.Response(body=answer.stdout + answer.stderr, content_type="text/plain")

    # -- portForward ---------------------------------------------------------------------------------------------------

    async def _port_forward(self, request: web.Request) -> web.StreamResponse:
        pod = self._pod(request)
        if pod is None:
            return _text(404, "pod does not exist")
        sandboxes = await self._runtime.list_pod_sandbox(uid_of(pod))
        ready = [sandbox.id for sandbox in sandboxes if sandbox.state == PodSandboxState.SANDBOX_READY]
        if not ready:
            meta = pod["metadata"]
            shown = f"{meta['name']}_{meta['namespace']}({uid_of(pod)})"
            return _text(500, f"failed to find sandboxID for pod {go_quote(shown)}")
        sandbox = ready[0]

        def connect(port: int) -> Awaitable[PortForwardStream]:
            return self._runtime.port_forward(sandbox, port)

        if is_websocket(request):
            return await self._port_forward_websocket(request, connect, sandbox)
        if not is_spdy(request):
            return _not_upgraded()
        asked = _spdy_protocols(request)
        if asked and port_forward.SPDY_PROTOCOL not in asked:
            return _no_protocol(asked, [port_forward.SPDY_PROTOCOL])
        return await _taken_over(
            request,
            port_forward.SPDY_PROTOCOL if asked else "",
            lambda transport: port_forward.serve_spdy(
                transport, connect, sandbox, self._clock, idle_timeout=self._idle_timeout
            ),
        )

    async def _port_forward_websocket(
        self, request: web.Request, connect: port_forward.Connect, sandbox: str
    ) -> web.StreamResponse:
        asked = _websocket_protocols(request)
        served = (port_forward.TUNNEL_PROTOCOL, *port_forward.CHANNEL_PROTOCOLS)
        protocol = first_common(asked, served)
        if asked and protocol is None:
            return _text(403, "none of the WebSocket protocols is served")
        if protocol == port_forward.TUNNEL_PROTOCOL:
            socket = await websocket_client.accept(request, protocol)
            stream = port_forward.WebSocketStream(socket)
            await port_forward.serve_spdy(stream, connect, sandbox, self._clock, idle_timeout=self._idle_timeout)
            return socket
        try:
            ports = [port_forward.parse_port(text) for text in request.query.getall("port", [])]
        except ValueError as error:
            return _text(400, str(error))
        if not ports:
            return _text(400, 'query parameter "port" is required')
        if len(ports) > _MOST_PORTS:
            return _text(400, f'query parameter "port": {len(ports)} are more than the channels of a WebSocket')
        socket = await websocket_client.accept(request, protocol or "")
        await port_forward.serve_channels(
            socket, protocol or "", ports, connect, sandbox, self._clock, idle_timeout=self._idle_timeout
        )
        return socket

    # -- who is meant --------------------------------------------------------------------------------------------------

    def _pod(self, request: web.Request) -> Pod | None:
        pod = self._find_pod(request.match_info["namespace"], request.match_info["pod"])
        uid = request.match_info.get("uid")
        return None if pod is None or (uid and uid != uid_of(pod)) else pod

    async def _running_container(self, pod_uid: str, name: str) -> str | None:
        """The id of the newest one. Source: kubelet_pods.go:findContainer."""
        for status in await self._runtime.list_containers(pod_uid):
            if status.metadata.name == name and status.state == ContainerState.CONTAINER_RUNNING:
                return status.id
        return None


_MOST_PORTS = 127


def is_websocket(request: web.BaseRequest) -> bool:
    return _wants_upgrade(request) and request.headers.get("Upgrade", "").lower() == "websocket"


def is_spdy(request: web.BaseRequest) -> bool:
    return _wants_upgrade(request) and request.headers.get("Upgrade", "").lower() == "spdy/3.1"


def _wants_upgrade(request: web.BaseRequest) -> bool:
    return any("upgrade" in value.lower() for value in request.headers.getall("Connection", []))


def _listed(request: web.BaseRequest, header: str) -> list[str]:
    values = ",".join(request.headers.getall(header, []))
    return [name for value in values.split(",") if (name := value.strip())]


def _websocket_protocols(request: web.BaseRequest) -> list[str]:
    return _listed(request, "Sec-WebSocket-Protocol")


def _spdy_protocols(request: web.BaseRequest) -> list[str]:
    return _listed(request, PROTOCOL_HEADER)


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text)


def _not_upgraded() -> web.Response:
    return _text(
        400, "unable to upgrade: missing upgrade headers in request: Connection: Upgrade and Upgrade: SPDY/3.1"
    )


def _no_protocol(asked: Sequence[str], served: Sequence[str]) -> web.Response:
    """Source: httpstream.go:Handshake."""
    text = (
        "unable to upgrade: unable to negotiate protocol: "
        f"client supports [{' '.join(asked)}], server accepts [{' '.join(served)}]"
    )
    response = _text(403, text)
    for name in served:
        response.headers.add("X-Accepted-Stream-Protocol-Versions", name)
    return response


async def _taken_over(
    request: web.Request, protocol: str, serve: Callable[[SocketStream], Awaitable[None]]
) -> web.StreamResponse:
    """Answer 101 and serve what remains of the connection. An error of ours is logged: it has no other way to go."""
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
    if protocol:
        headers[PROTOCOL_HEADER] = protocol
    transport = take_over(request, switching_protocols(headers))
    try:
        await serve(transport)
    except Exception as error:
        crash_guard.noticed("kubelet server", f"{request.method} {request.path}", error)
        _log.exception("%s %s failed", request.method, request.path)
    finally:
        await transport.close()
    return HandedOver()
