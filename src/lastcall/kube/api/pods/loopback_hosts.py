"""Probes and hooks that ask the node itself, because their `host` is a loopback address. Pure."""

# check: pure

from ipaddress import ip_address

from lastcall.kube.api.meta import Object

_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
_HOOKS = ("postStart", "preStop")


def asks_node(spec: Object, container: Object) -> tuple[tuple[str, str, str], ...]:
    """Return (field, handler, host) of each probe and hook of a container that asks the node, not the Pod.

    The kubelet connects from the node, so that `host: localhost` is the node (prober.go:runProbe,
    lifecycle/handlers.go:runHTTPHandler). With hostNetwork both are the same.
    """
    if spec.get("hostNetwork"):
        return ()
    lifecycle = container.get("lifecycle") or {}
    given = [(field, container.get(field) or {}) for field in _PROBES]
    given += [(f"lifecycle.{field}", lifecycle.get(field) or {}) for field in _HOOKS]
    return tuple(
        (field, handler, str(host))
        for field, each in given
        for handler in ("httpGet", "tcpSocket")
        if is_loopback(str(host := (each.get(handler) or {}).get("host") or ""))
    )


def is_loopback(host: str) -> bool:
    """Return whether a host is the machine that connects: localhost, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
