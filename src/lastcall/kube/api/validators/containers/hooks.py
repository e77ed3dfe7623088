"""Hooks, probes and stop signals of containers.

Source: pkg/apis/core/validation/validation.go (validateLifecycle, validateProbe, validateHandler, validateStopSignal).
"""

from lastcall.kube.api.field import FieldError, each, forbidden, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_http_header_name
from lastcall.kube.api.validators.common import POSITIVE, non_negative, one_of, port_number_or_name


def _numbered(prefix: str, sign: str, last: int) -> list[str]:
    return [f"{prefix}{sign}{number}" for number in range(1, last + 1)]


_SIGNALS = sorted((
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO",
    "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGSEGV", "SIGSTKFLT", "SIGSTOP",
    "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM",
    "SIGWINCH", "SIGXCPU", "SIGXFSZ", "SIGRTMIN", *_numbered("SIGRTMIN", "+", 15), *_numbered("SIGRTMAX", "-", 14),
    "SIGRTMAX",
))  # fmt: skip
STOP_SIGNALS = {"linux": _SIGNALS, "windows": ["SIGKILL", "SIGTERM"]}
"""By `spec.os.name`: what `lifecycle.stopSignal` may be."""


def _stop_signal(signal: str, path: str, os: Object | None) -> list[FieldError]:
    """(`validateStopSignal`)"""
    supported = STOP_SIGNALS.get((os or {}).get("name") or "")
    if supported is None:
        return [forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    return [] if signal in supported else [not_supported(path, signal, supported)]


def hooks_and_probes(container: Object, at: str, grace: int | None, os: Object | None) -> list[FieldError]:
    errors: list[FieldError] = []
    lifecycle = container.get("lifecycle") or {}
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            errors += _handler(lifecycle[hook], f"{at}.lifecycle.{hook}", grace)
    if lifecycle.get("stopSignal"):
        errors += _stop_signal(lifecycle["stopSignal"], f"{at}.lifecycle.stopSignal", os)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            errors += _probe(container[name], f"{at}.{name}", grace, readiness=name == "readinessProbe")
    return errors


def _probe(probe: Object, path: str, grace: int | None, *, readiness: bool) -> list[FieldError]:
    errors = _handler(probe, path, grace)
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        errors += non_negative(probe.get(key), f"{path}.{key}")
    period = probe.get("terminationGracePeriodSeconds")
    if period is not None and period <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", period, POSITIVE))
    if readiness:
        if period is not None:
            why = "must not be set for readinessProbes"
            errors.append(invalid(f"{path}.terminationGracePeriodSeconds", period, why))
    elif probe.get("successThreshold", 1) != 1:
        errors.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return errors


def _handler(handler: Object, path: str, grace: int | None) -> list[FieldError]:
    """A probe or hook: exactly one action. (`validateHandler`)"""
    errors: list[FieldError] = []
    found = 0
    for kind in ("exec", "httpGet", "tcpSocket", "grpc", "sleep"):
        action = handler.get(kind)
        if action is None:
            continue
        at = f"{path}.{kind}"
        found += 1
        if found > 1:
            errors.append(forbidden(at, "may not specify more than 1 handler type"))
        elif kind == "exec":
            errors += [] if action.get("command") else [required(f"{at}.command")]
        elif kind == "httpGet":
            errors += _http_get(action, at)
        elif kind in ("tcpSocket", "grpc"):
            errors += port_number_or_name(action.get("port"), f"{at}.port")
        else:
            seconds = action.get("seconds", 0)
            if grace is not None and not 0 <= seconds <= grace:
                why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                errors.append(invalid(at, seconds, why))
    if not found:
        errors.append(required(path, "must specify a handler type"))
    return errors


def _http_get(action: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not action.get("path"):
        errors.append(required(f"{path}.path"))
    errors += port_number_or_name(action.get("port"), f"{path}.port")
    errors += one_of(action.get("scheme"), f"{path}.scheme", ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        errors += each(f"{path}.httpHeaders", header.get("name", ""), is_http_header_name(header.get("name", "")))
    return errors
