"""Liveness probes that ask another application: its faults restart this one."""

import re
from collections.abc import Iterator

from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.rules.hosts import TOOLS, URL
from lastcall.lint.subject import Finding, Subject, found

_OPTION = re.compile(r"(?:\A|\s)(?:-h|-H|--host|--hostname)[ =]([a-z][a-z0-9-]*)((?:\.[a-z0-9-]+)*)(?=[:\s\"']|\Z)")
"""As clients of databases have it: `pg_isready -h db`. `-h` alone is often help."""
_KINDS = ("livenessProbe", "startupProbe")


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        if not workload.idle:
            for container in workload.containers:
                yield from _asks_another(workload, container)


def _asks_another(workload: Workload, container: Container) -> Iterator[Finding]:
    for kind in _KINDS:
        probe = container.spec.get(kind) or {}
        words = " ".join(map(str, (probe.get("exec") or {}).get("command") or ()))
        host = str((probe.get("httpGet") or probe.get("tcpSocket") or {}).get("host") or "")
        names = [match.groups() for pattern in (URL, TOOLS, _OPTION) for match in pattern.finditer(words)]
        names.append((host.partition(".")[0], "".join(host.partition(".")[1:])))
        service = next((each for each in (_service(workload, *name) for name in names) if each is not None), None)
        if service is None:
            continue
        text = (
            f"The {kind} of {container.name} asks {service}, which is another application: while that does not "
            f"answer, the kubelet restarts {container.name}, which cures nothing."
        )
        yield found("livenessAsksAnother", workload.subject, (*container.path, kind), text)


def _service(workload: Workload, name: str, rest: str) -> Subject | None:
    """Return the Service of a host name, unless it selects the Pods of this workload."""
    labels = rest.split(".")[1:]
    namespace = labels[0] if labels else workload.subject.namespace
    service = workload.application.get("Service", namespace, name) if labels[1:2] in ([], ["svc"]) else None
    return None if service is None or service in workload.services else service
