"""Lifecycle hooks: preStop and postStart (kubelet lifecycle/handlers.go).

A handler either returns (success) or raises `HookError`. Exec hooks run in the container, httpGet hooks go from the
node to the Pod with no time limit, any HTTP answer is a success, sleep waits. A tcpSocket hook passes validation in
Kubernetes and then fails as not implemented; with the gate TCPSocketLifecycleHook it connects, as older documentation
says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from lastcall.kube.api.pods.handlers import handler_name
from lastcall.kube.api.pods.spec import pod_ref_text
from lastcall.kube.api.text.go_notation import go_list, go_quote
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.cri.api import RuntimeService, RuntimeServiceError
from lastcall.kube.node.interfaces import Dialer, DialError, EventRecorder
from lastcall.kube.node.pods.spec import container_field_path
from lastcall.kube.node.versions import Behaviour
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container, HTTPGetAction, LifecycleHandler, TCPSocketAction
    from lastcall.kube.api.types.pod import Pod

OUTPUT_LIMIT = 4096
"""Bytes of a hook's stdout and stderr kept in a record, each."""

HTTP_RESPONSE_TO_HTTPS_CLIENT = "server gave HTTP response to HTTPS client"


class HookError(Exception):
    """A hook failed. The text is the kubelet's message, shown in a postStart's waiting state."""

    def __init__(self, message: str, *, exit_code: int | None = None, stdout: bytes = b"", stderr: bytes = b"") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


@dataclass(frozen=True, slots=True)
class HookResult:
    """`exit_code` is None but for exec. Output is what an exec hook printed."""

    exit_code: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""


class UnknownPort(ValueError):
    """A port name that the container does not declare, or a number out of range."""


def resolve_port(port: object, container: Container) -> int:
    """Resolve a number, a number as text, or the name of one of the container's ports. Raises UnknownPort.

    Source: pkg/probe/util.go:ResolveContainerPort.
    """
    if isinstance(port, str):
        named = next((p["containerPort"] for p in container.get("ports") or () if p.get("name") == port), None)
        if named is not None:
            number = int(named)
        elif (read := int_of(port)) is not None:
            number = read
        else:
            raise UnknownPort(f"couldn't find port: {go_quote(port)} in container ports")
    else:
        number = int(port)  # type: ignore[call-overload]
    if not 0 < number < 65536:
        raise UnknownPort(f"invalid port number: {number}")
    return number


def http_request(
    action: HTTPGetAction, container: Container, pod_ip: str, behaviour: Behaviour
) -> tuple[str, list[tuple[str, str]]]:
    """Return URL and headers of an httpGet hook (http/request.go:NewRequestForHTTPGetAction). Raises UnknownPort."""
    port = resolve_port(action.get("port"), container)
    host = action.get("host") or pod_ip
    shown_host = f"[{host}]" if ":" in host else host
    path = action.get("path") or "/"
    if not path.startswith("/"):
        path = "/" + path
    if not behaviour.http_hook_scheme_and_headers:
        return f"http://{shown_host}:{port}{path}", [("User-Agent", "Go-http-client/1.1"), ("Accept-Encoding", "gzip")]
    scheme = (action.get("scheme") or "HTTP").lower()
    given = [(h["name"], h.get("value", "")) for h in action.get("httpHeaders") or ()]
    names = {name.lower() for name, _ in given}
    headers: list[tuple[str, str]] = []
    if "user-agent" not in names:
        headers.append(("User-Agent", f"kube-lifecycle/{behaviour.version}"))
    if "accept" not in names:
        headers.append(("Accept", "*/*"))
    # An Accept or User-Agent that the user set to nothing is not sent at all.
    headers += [(name, value) for name, value in given if value or name.lower() not in ("accept", "user-agent")]
    if "accept-encoding" not in names:
        headers.append(("Accept-Encoding", "gzip"))
    return f"{scheme}://{shown_host}:{port}{path}", headers


PodIP = Callable[[], Awaitable[str]]
"""The Pod's first address as the runtime has it now; "" for none (always on the host network)."""


class HandlerRunner:
    """Run one hook to its end. It has no time limit of its own: the caller decides how long to wait."""

    def __init__(
        self,
        *,
        clock: Clock,
        runtime: RuntimeService,
        dialer: Dialer,
        events: EventRecorder,
        behaviour: Behaviour,
        tcp_socket_connects: bool = False,
    ) -> None:
        self._clock = clock
        self._runtime = runtime
        self._dialer = dialer
        self._events = events
        self._behaviour = behaviour
        self._tcp_socket_connects = tcp_socket_connects

    async def run(
        self, container_id: str, pod: Pod, container: Container, handler: LifecycleHandler, pod_ip: PodIP
    ) -> HookResult:
        """Run a hook. Raises HookError (lifecycle/handlers.go:Run)."""
        kind = handler_name(handler)
        name = container.get("name", "")
        where = f"for Container {go_quote(name)} in Pod {go_quote(pod_ref_text(pod))} failed - error:"
        if kind == "exec":
            return await self._exec(container_id, list(handler["exec"].get("command") or []), where)
        if kind == "httpGet":
            await self._http(handler["httpGet"], pod, container, pod_ip, where)
            return HookResult()
        if kind == "sleep" and self._behaviour.sleep_hook:
            await self._clock.sleep(int(handler["sleep"].get("seconds", 0)))
            return HookResult()
        if kind == "tcpSocket" and self._tcp_socket_connects:
            await self._tcp(handler["tcpSocket"], pod, container, pod_ip, where)
            return HookResult()
        raise HookError(f"Cannot run handler: invalid handler: {kind or 'empty'}")

    async def _exec(self, container_id: str, command: list[str], where: str) -> HookResult:
        try:
            answer = await self._runtime.exec_sync(container_id, tuple(command), 0)
        except RuntimeServiceError as error:
            text = error.as_rpc()
            raise HookError(f'Exec lifecycle hook ({go_list(command)}) {where} {text}, message: ""') from error
        if answer.exit_code == 0:
            return HookResult(0, answer.stdout, answer.stderr)
        joined = " ".join(command)
        error_text = f"command '{joined}' exited with {answer.exit_code}: {_text(answer.stderr)}"
        output = go_quote(_text(answer.stdout + answer.stderr))
        raise HookError(
            f"Exec lifecycle hook ({go_list(command)}) {where} {error_text}, message: {output}",
            exit_code=answer.exit_code,
            stdout=answer.stdout,
            stderr=answer.stderr,
        )

    async def _tcp(self, action: TCPSocketAction, pod: Pod, container: Container, pod_ip: PodIP, where: str) -> None:
        """A connection that comes about is a success; it is closed at once. Ours: no Kubernetes ever did it."""
        port = action.get("port")
        host = action.get("host") or await pod_ip()
        if not host:
            raise HookError(
                f"TCP lifecycle hook ({port}) {where} failed to find networking container: {pod_ref_text(pod)}"
            )
        try:
            await self._dialer.tcp_connect(host, resolve_port(port, container), None)
        except (UnknownPort, DialError) as error:
            raise HookError(f"TCP lifecycle hook ({port}) {where} {error}") from error

    async def _http(self, action: HTTPGetAction, pod: Pod, container: Container, pod_ip: PodIP, where: str) -> None:
        path = action.get("path") or ""
        ip = ""
        if not action.get("host"):
            ip = await pod_ip()
            if not ip:
                raise HookError(
                    f"HTTP lifecycle hook ({path}) {where} failed to find networking container: {pod_ref_text(pod)}"
                )
        try:
            url, headers = http_request(action, container, ip, self._behaviour)
        except UnknownPort as error:
            raise HookError(f"HTTP lifecycle hook ({path}) {where} {error}") from error
        try:
            await self._dialer.http_get(url, headers, None)
        except DialError as error:
            if not (url.startswith("https:") and HTTP_RESPONSE_TO_HTTPS_CLIENT in str(error)):
                raise HookError(f"HTTP lifecycle hook ({path}) {where} {error}") from error
            await self._fall_back_to_http(url, headers, pod, container, path, where)

    async def _fall_back_to_http(
        self, url: str, headers: list[tuple[str, str]], pod: Pod, container: Container, path: str, where: str
    ) -> None:
        """The server speaks plain HTTP: once more without TLS, and without credentials."""
        plain = [(name, value) for name, value in headers if name.lower() != "authorization"]
        try:
            await self._dialer.http_get("http:" + url.removeprefix("https:"), plain, None)
        except DialError as error:
            raise HookError(f"HTTP lifecycle hook ({path}) {where} {error}") from error
        host = url.removeprefix("https://").partition("/")[0]
        self._events.event(
            pod,
            "Warning",
            "LifecycleHTTPFallback",
            f"request to HTTPS lifecycle hook {host} got HTTP response, retry with HTTP succeeded",
            field_path=container_field_path(pod, container.get("name", "")),
        )


def shown_output(output: bytes) -> str:
    """Return a hook's output as records have it."""
    return _text(output[:OUTPUT_LIMIT])


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
