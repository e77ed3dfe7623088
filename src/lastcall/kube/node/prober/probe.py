"""One probe: run its handler and say what came of it. Sources: prober/prober.go, pkg/probe/{exec,http,tcp}."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from lastcall.kube.api.text.go_notation import go_duration, go_quote
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.cri.api import RuntimeService, RuntimeServiceError
from lastcall.kube.node.interfaces import Dialer, DialError, RPCError
from lastcall.kube.node.runtime.expansion import expand
from lastcall.kube.node.status.features import StatusFeatures
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import (
        Container,
        ExecAction,
        GRPCAction,
        HTTPGetAction,
        Probe,
        TCPSocketAction,
    )

MAX_OUTPUT_BYTES = 10 * 1024

Outcome = Literal["success", "warning", "failure"]


class ProbeError(Exception):
    """The probe could not be carried out; its result is thrown away."""


@dataclass(frozen=True, slots=True)
class Probed:
    outcome: Outcome
    output: str


async def run_probe(
    probe: Probe,
    container: Container,
    container_id: str,
    pod_ip: str,
    *,
    runtime: RuntimeService,
    dialer: Dialer,
    features: StatusFeatures,
) -> Probed:
    """Run the probe's handler once. `container_id` is the runtime's. Raises ProbeError."""
    timeout = float(probe.get("timeoutSeconds") or 1)
    if "exec" in probe:
        return await _exec(probe["exec"], container, container_id, timeout, runtime)
    if "httpGet" in probe:
        return await _http_get(probe["httpGet"], container, pod_ip, timeout, dialer, features)
    if "tcpSocket" in probe:
        return await _tcp_socket(probe["tcpSocket"], container, pod_ip, timeout, dialer)
    if "grpc" in probe:
        return await _grpc(probe["grpc"], pod_ip, timeout, dialer, features)
    raise ProbeError(f"missing probe handler for container {container['name']}")


async def _exec(
    action: ExecAction, container: Container, container_id: str, timeout: float, runtime: RuntimeService
) -> Probed:
    command = tuple(expand_static(argument, container) for argument in action.get("command") or [])
    try:
        answer = await runtime.exec_sync(container_id, command, timeout)
    except RuntimeServiceError as error:
        if error.reason == "DeadlineExceeded":
            text = f"command timed out: {go_quote(' '.join(command))} timed out after {go_duration(timeout)}"
            return Probed("failure", text)
        raise ProbeError(error.as_rpc()) from error
    output = (answer.stdout + answer.stderr)[:MAX_OUTPUT_BYTES].decode("utf-8", "replace")
    return Probed("success" if answer.exit_code == 0 else "failure", output)


async def _http_get(
    action: HTTPGetAction, container: Container, pod_ip: str, timeout: float, dialer: Dialer, features: StatusFeatures
) -> Probed:
    scheme = str(action.get("scheme") or "HTTP").lower()
    host = action.get("host") or pod_ip
    port = resolve_port(action["port"], container)
    path = str(action.get("path") or "/")
    if not path.startswith("/"):
        path = "/" + path
    literal = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{literal}:{port}{path}"
    try:
        headers = [*probe_headers(action, features), ("Connection", "close")]  # probes never keep a connection
        response = await dialer.http_get(url, headers, timeout)
    except DialError as error:
        return Probed("failure", str(error))
    body = response.body[:MAX_OUTPUT_BYTES].decode("utf-8", "replace")
    if 200 <= response.status < 300:
        return Probed("success", body)
    if 300 <= response.status < 400:
        return Probed("warning", f"Probe terminated redirects, Response body: {body}")
    return Probed("failure", f"HTTP probe failed with statuscode: {response.status}")


def asked_port(probe: Probe, container: Container) -> int | None:
    """Return the port of its own container that a probe connects to.

    None for a command, another host, or a name that the container does not declare.
    """
    http, tcp, grpc = probe.get("httpGet"), probe.get("tcpSocket"), probe.get("grpc")
    # A gRPC probe has no other host.
    for action, host in ((http, http and http.get("host")), (tcp, tcp and tcp.get("host")), (grpc, None)):
        if action and not host:
            try:
                return resolve_port(action["port"], container)
            except ProbeError:
                return None
    return None


async def _tcp_socket(
    action: TCPSocketAction, container: Container, pod_ip: str, timeout: float, dialer: Dialer
) -> Probed:
    try:
        await dialer.tcp_connect(action.get("host") or pod_ip, resolve_port(action["port"], container), timeout)
    except DialError as error:
        return Probed("failure", str(error))
    return Probed("success", "")


async def _grpc(action: GRPCAction, pod_ip: str, timeout: float, dialer: Dialer, features: StatusFeatures) -> Probed:
    """Source: pkg/probe/grpc/grpc.go:Probe."""
    port, service = int(action["port"]), str(action.get("service") or "")
    agent = f"kube-probe/{features.short_version}"
    address, limit = f"[{pod_ip}]:{port}" if ":" in pod_ip else f"{pod_ip}:{port}", go_duration(timeout)
    try:
        status = await dialer.grpc_health(pod_ip, port, service, timeout, agent)
    except DialError as error:
        return Probed("failure", f"timeout: failed to connect service {go_quote(address)} within {limit}: {error}")
    except RPCError as error:
        if error.code == "Unimplemented":
            text = f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {error}"
        elif error.code == "DeadlineExceeded":
            text = f"timeout: health rpc did not complete within {limit}"
        else:
            text = f"error: health rpc probe failed: rpc error: code = {error.code} desc = {error}"
        return Probed("failure", text)
    if status == SERVING:
        return Probed("success", "service healthy")
    return Probed("failure", f"service unhealthy (responded with {go_quote(_SERVING_STATUS.get(status, str(status)))})")


SERVING = 1
_SERVING_STATUS = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


def probe_headers(action: HTTPGetAction, features: StatusFeatures) -> list[tuple[str, str]]:
    """Return request headers in wire order. An empty custom `Accept` or `User-Agent` removes the default."""
    custom = [(str(h["name"]), str(h.get("value", ""))) for h in action.get("httpHeaders") or []]
    headers: list[tuple[str, str]] = []
    for name, value in (("User-Agent", f"kube-probe/{features.short_version}"), ("Accept", "*/*")):
        if not any(given.lower() == name.lower() for given, _ in custom):
            headers.append((name, value))
    return headers + [(name, value) for name, value in custom if value or name.lower() not in ("accept", "user-agent")]


def resolve_port(port: Any, container: Container) -> int:
    """Return a port by number or by the container's port name. Raises ProbeError. Source: pkg/probe/util.go."""
    number = int_of(port) if isinstance(port, str) else int(port)
    if number is None:
        for declared in container.get("ports") or []:
            if declared.get("name") == port:
                return int(declared["containerPort"])
        raise ProbeError(f"strconv.Atoi: parsing {go_quote(port)}: invalid syntax")
    if not 0 < number < 65536:
        raise ProbeError(f"invalid port number: {number}")
    return number


def expand_static(text: str, container: Container) -> str:
    """Replace `$(NAME)` by the literal values of `env` (container/helpers.go:ExpandContainerCommandOnlyStatic)."""
    env = {e["name"]: str(e["value"]) for e in container.get("env") or [] if "value" in e}
    return expand(text, env)
