"""Advice for requests that came before the application listened, or served: its readiness probe. Pure."""

# check: pure

from typing import Any

from lastcall.endings import fix
from lastcall.traffic.proposal import Advice, container_behind, in_template, number_of


def probe_the_port(count: int, owner: dict[str, Any], port: int | str) -> Advice:
    """Advise a probe of the port that requests go to.

    One that is there keeps all else that it says; its handler is never joined by a second one.
    """
    container = container_behind(owner["spec"]["template"]["spec"], port)
    name, probe = container["name"], container.get("readinessProbe")
    if not probe:
        made = {"tcpSocket": {"port": port}, "periodSeconds": 1}
        return Advice(
            "notListeningYet",
            fix("notListeningYet"),
            count,
            in_template({"containers": [{"name": name, "readinessProbe": made}]}),
        )
    handler = next((each for each in ("httpGet", "tcpSocket") if each in probe), "")
    asked = probe[handler].get("port") if handler else None
    if handler and number_of(container, asked) != number_of(container, port):
        return Advice(
            "notListeningYet",
            fix("notListeningYet", "otherPort", name=name, asked=asked, port=port),
            count,
            in_template({"containers": [{"name": name, "readinessProbe": {handler: {"port": port}}}]}),
        )
    if not handler:
        return Advice("notListeningYet", fix("notListeningYet", "otherProbe", name=name, port=port), count)
    return Advice("notListeningYet", fix("notListeningYet", "samePort", name=name, asked=asked), count)


def probe_the_application(count: int, owner: dict[str, Any], port: int | str, path: str) -> Advice:
    """Advise a probe that asks for what requests ask for: that was answered with errors until the application served.

    One that asks the application already, or a program, is the user's to correct.
    """
    container = container_behind(owner["spec"]["template"]["spec"], port)
    name, probe = container["name"], container.get("readinessProbe") or {}
    handler = next((each for each in ("httpGet", "tcpSocket", "exec", "grpc") if each in probe), "")
    facts = {"name": name, "path": path, "handler": handler, "asked": (probe.get("httpGet") or {}).get("path", "/")}
    if handler in ("httpGet", "exec", "grpc"):
        variant = "httpGet" if handler == "httpGet" and facts["asked"] != path else "other"
        return Advice("notServingYet", fix("notServingYet", variant, **facts), count)
    asked = (probe.get("tcpSocket") or {}).get("port")
    same = number_of(container, asked) == number_of(container, port)
    made: dict[str, Any] = {"httpGet": {"path": path, "port": asked if same else port}}
    made |= {"tcpSocket": None} if handler else {"periodSeconds": 1}
    patch = in_template({"containers": [{"name": name, "readinessProbe": made}]})
    return Advice("notServingYet", fix("notServingYet", handler, **facts), count, patch)
