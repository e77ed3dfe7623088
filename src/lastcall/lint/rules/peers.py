"""Members of a StatefulSet that wait for members which are made only when they are Ready."""

import re
from collections.abc import Iterator

from lastcall.kube.api import STATEFULSETS
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.mounted import mounted_file
from lastcall.lint.subject import Finding, Op, found
from lastcall.lint.texts import command_of

_LOOP = re.compile(r"\bfor\s+\w+\s+in\s+(?:range\(|\$\(seq\b|`seq\b|0 1\b)")
"""What makes the names of all members in Python and shells. A name that is made once is the member's own."""
_ANSWERS = ("httpGet", "exec", "grpc")
"""Probes that a program may fail until its peers are there; one of a port succeeds before."""


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        if workload.resource == STATEFULSETS and not workload.idle:
            yield from _in_order(workload)


def _in_order(workload: Workload) -> Iterator[Finding]:
    """stateful_set_control.go:updateStatefulSet: in order, a member is made when the one before it is Ready."""
    spec = workload.subject.spec
    replicas = workload.replicas or 0
    if spec.get("podManagementPolicy") == "Parallel" or replicas < 2:
        return
    first = int((spec.get("ordinals") or {}).get("start") or 0)
    for container in workload.containers:
        readiness = container.spec.get("readinessProbe") or {}
        where = _names_later(workload, container, range(first + 1, first + replicas))
        if not where or not any(kind in readiness for kind in _ANSWERS):
            continue
        name, later = f"{workload.subject.name}-{first}", f"{workload.subject.name}-{first + 1}"
        text = (
            f"{where} of {container.name} names the other members, and {later} is made only when {name} is Ready: if "
            "the readinessProbe needs a quorum, none ever is."
        )
        path = ("spec", "podManagementPolicy")
        op = Op("replace" if workload.subject.has(path) else "add", path, "Parallel")
        hidden = _hidden(workload)
        fix = "podManagementPolicy: Parallel. It cannot be changed: delete the StatefulSet with --cascade=orphan first."
        if hidden:
            fix = f"{fix} And publishNotReadyAddresses: true in Service {hidden}: DNS has no member that is not Ready."
        patch = [] if hidden else [op]
        yield found("peersInOrder", workload.subject, (*container.path, "readinessProbe"), text, fix=fix, patch=patch)
        return


def _names_later(workload: Workload, container: Container, later: range) -> str:
    """Return where a container is given the name of a later member; "" for nowhere."""
    base = re.escape(workload.subject.name)
    service = re.escape(str(workload.subject.spec.get("serviceName") or workload.subject.name))
    literal = re.compile(rf"(?<![\w.-]){base}-(\d+)(?![\w-])")
    made = re.compile(rf"(?<![\w.-]){base}-(?:%[ds]|\{{\w*\}}|\$\{{?\w+\}}?)\.{service}\b")

    def names(text: str) -> bool:
        found = (int(each) for each in literal.findall(text))
        return any(each in later for each in found) or bool(made.search(text) and _LOOP.search(text))

    for each in container.spec.get("env") or ():
        if names(str(each.get("value") or "")):
            return f"Variable {each.get('name')}"
    for word in command_of(container):
        if names(word):
            return "The command"
        if (file := mounted_file(workload, container, word)) is not None and names(file.text):
            return f"File {word}"
    return ""


def _hidden(workload: Workload) -> str:
    """Return the governing Service if DNS has only its Ready Pods; "" for any other, and for one that is not here."""
    subject, name = workload.subject, str(workload.subject.spec.get("serviceName") or "")
    service = workload.application.get("Service", subject.namespace, name)
    return "" if service is None or service.spec.get("publishNotReadyAddresses") else name
