"""Lifecycle handlers, as the kubelet looks at them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import LifecycleHandler

HANDLERS = ("exec", "httpGet", "sleep")
"""The order in which a handler's fields are looked at."""


def handler_name(handler: LifecycleHandler) -> str:
    """Return `exec`, `httpGet`, `sleep`, or what else is set."""
    for name in HANDLERS:
        if handler.get(name) is not None:
            return name
    return next(iter(handler), "")


def handler_detail(handler: LifecycleHandler) -> str:
    """Return what a hook does, for records."""
    name = handler_name(handler)
    if name == "exec":
        return " ".join((handler.get("exec") or {}).get("command") or [])
    if name == "httpGet":
        get = handler.get("httpGet") or {}
        scheme = (get.get("scheme") or "HTTP").lower()
        path = get.get("path") or "/"
        return f"GET {scheme}://{get.get('host') or 'POD'}:{get.get('port')}{path if path[0] == '/' else '/' + path}"
    if name == "tcpSocket":
        connect = handler.get("tcpSocket") or {}
        return f"connect to {connect.get('host') or 'POD'}:{connect.get('port')}"
    return f"{(handler.get('sleep') or {}).get('seconds', 0)} s" if name == "sleep" else ""
