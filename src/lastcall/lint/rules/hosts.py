"""Host names in commands and variables that are nearly those of Services."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from lastcall.kube.api import SERVICES
from lastcall.lint.application import Application, Container
from lastcall.lint.subject import Finding, found
from lastcall.manifests import Path, closest

_HOST = r"([a-z][a-z0-9-]*)((?:\.[a-z0-9-]+)*)"
_URL = re.compile(rf"\b[a-z][a-z0-9+]*://(?:[^@/\s]*@)?{_HOST}(?=[:/\s\"']|\Z)")
_TOOLS = re.compile(
    rf"\b(?:nslookup|getent\s+(?:ahosts\w*|hosts)|nc(?:\s+-\w+)*|ping(?:\s+-\w+)*)\s+{_HOST}(?=[:\s;|&)]|\Z)"
)
_VARIABLE = re.compile(r"(?:\A|_)(?:HOST|HOSTNAME|ADDR|ADDRESS|SERVER|SERVERS|URL|URI|ENDPOINT)\Z")
_VALUE = re.compile(rf"\A{_HOST}(?::\d+)?\Z")


class Host(NamedTuple):
    """`rest` is what follows the first label: "", `.shop`, `.shop.svc.cluster.local`."""

    name: str
    rest: str
    path: Path


def findings(app: Application) -> Iterator[Finding]:
    services = app.of(SERVICES)
    if not services:
        return
    for workload in app.workloads:
        seen: set[tuple[str, str]] = set()
        for container in workload.all_containers:
            for host in _hosts(container):
                labels = host.rest.split(".")[1:]
                namespace = labels[0] if labels else workload.subject.namespace
                if labels and labels[1:2] != ["svc"] and namespace not in {each.namespace for each in services}:
                    continue  # a name of the outside
                names = [each.name for each in services if each.namespace == namespace]
                own = (workload.subject.name, container.name, "localhost")
                if host.name in names or host.name in own or (host.name, namespace) in seen:
                    continue
                best = closest(host.name, names)
                if best is not None:
                    seen.add((host.name, namespace))
                    text = (
                        f"{container.name} of {workload} asks for host {host.name}, and these files have no such "
                        f"Service; {best} is one."
                    )
                    fix = f"{best}, if you mean that."
                    yield found("hostNameUnknown", workload.subject, host.path, text, fix=fix)


def _hosts(container: Container) -> Iterator[Host]:
    for field in ("command", "args"):
        words = container.spec.get(field) or []
        text = " ".join(words)
        for pattern in (_URL, _TOOLS):
            for match in pattern.finditer(text):
                at = next((index for index, word in enumerate(words) if match[1] in word), None)
                path = (*container.path, field) if at is None else (*container.path, field, at)
                yield Host(match[1], match[2], path)
    for index, each in enumerate(container.spec.get("env") or ()):
        value = str(each.get("value") or "")
        path = (*container.path, "env", index, "value")
        for match in _URL.finditer(value):
            yield Host(match[1], match[2], path)
        plain = _VALUE.match(value)
        if plain is not None and _VARIABLE.search(str(each.get("name"))):
            yield Host(plain[1], plain[2], path)
