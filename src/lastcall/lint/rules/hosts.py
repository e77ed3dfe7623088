"""Host names that DNS does not know: nearly those of Services, of another namespace, of a StatefulSet's members."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from lastcall.kube.api import SERVICES, STATEFULSETS
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.mounted import mounted_file
from lastcall.lint.subject import Finding, Subject, found
from lastcall.manifests import Path, closest

_HOST = r"([a-z][a-z0-9-]*)((?:\.[a-z0-9-]+)*)"
URL = re.compile(rf"\b[a-z][a-z0-9+]*://(?:[^@/\s]*@)?{_HOST}(?=[:/\s\"']|\Z)")
TOOLS = re.compile(
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
    members = {each.subject: _member_names(each) for each in app.workloads if each.resource == STATEFULSETS}
    for workload in app.workloads:
        yield from _members(workload, members)
        aliases = workload.pod_spec.get("hostAliases") or ()
        given = [str(name) for each in aliases for name in each.get("hostnames") or ()]
        seen: set[tuple[str, str]] = set()
        for container in workload.all_containers:
            for host in _hosts(container):
                labels = host.rest.split(".")[1:]
                namespace = labels[0] if labels else workload.subject.namespace
                if labels and labels[1:2] != ["svc"] and namespace not in {each.namespace for each in services}:
                    continue  # a name of the outside
                names = [each.name for each in services if each.namespace == namespace]
                own = (workload.subject.name, container.name, "localhost", *given)
                if host.name in names or host.name in own or (host.name, namespace) in seen:
                    continue
                best = closest(host.name, names)
                elsewhere = _elsewhere(workload, services, host)
                if elsewhere is not None:
                    seen.add((host.name, namespace))
                    text = (
                        f"{container.name} of {workload} asks for host {host.name}, which is looked up in its own "
                        f"namespace {namespace}, and these files have that Service in namespace {elsewhere} only."
                    )
                    fix = f"{host.name}.{elsewhere}, if you mean that."
                    yield found("hostNameUnknown", workload.subject, host.path, text, fix=fix)
                elif best is not None:
                    seen.add((host.name, namespace))
                    text = (
                        f"{container.name} of {workload} asks for host {host.name}, and these files have no such "
                        f"Service; {best} is one."
                    )
                    fix = f"{best}, if you mean that."
                    yield found("hostNameUnknown", workload.subject, host.path, text, fix=fix)


def _elsewhere(workload: Workload, services: list[Subject], host: Host) -> str | None:
    """Return the namespace of the Service that a host without one is named as, where all of them say theirs: kubectl
    puts objects that say none into one of its own choice."""
    if host.rest or not workload.subject.has(("metadata", "namespace")):
        return None
    named = [each for each in services if each.name == host.name]
    if not named or not all(each.has(("metadata", "namespace")) for each in named):
        return None
    return named[0].namespace


def _member_names(workload: Workload) -> re.Pattern[str]:
    """Return what finds the names of a StatefulSet's Pods with what follows: `web-0.web`."""
    return re.compile(rf"(?<![\w.-]){re.escape(workload.subject.name)}-\d+\.([a-z][a-z0-9-]*)")


def _members(workload: Workload, members: dict[Subject, re.Pattern[str]]) -> Iterator[Finding]:
    """Names of members by another Service than their StatefulSet's serviceName, which alone is their subdomain."""
    for subject, names in members.items():
        service = str(subject.spec.get("serviceName") or "")
        if subject.namespace != workload.subject.namespace:
            continue
        for container in workload.all_containers:
            for text, path in _texts(workload, container):
                match = next((each for each in names.finditer(text) if each[1] != service), None)
                other = workload.application.get("Service", subject.namespace, match[1]) if match is not None else None
                if match is None or other is None:
                    continue
                said = (
                    f"{container.name} of {workload} asks for {match[0]}, and serviceName of {subject} is "
                    f"{service or 'not set'}: DNS has its Pods under that Service only, so the name has no address."
                )
                fix = f"serviceName: {other.name}. It cannot be changed: delete {subject} with --cascade=orphan first."
                if workload.application.get("Service", subject.namespace, service) is not None:
                    fix = f"{match[0].removesuffix(match[1])}{service}, the name that DNS has."
                yield found("hostNameUnknown", workload.subject, path, said, fix=fix, certainty="certain")
                return


def _texts(workload: Workload, container: Container) -> Iterator[tuple[str, Path]]:
    """Yield the words of its command with the files that they name, and its variables, each with its place."""
    for field in ("command", "args"):
        for index, word in enumerate(container.spec.get(field) or ()):
            file = mounted_file(workload, container, str(word))
            yield str(word) if file is None else file.text, (*container.path, field, index)
    for index, each in enumerate(container.spec.get("env") or ()):
        yield str(each.get("value") or ""), (*container.path, "env", index, "value")


def _hosts(container: Container) -> Iterator[Host]:
    for field in ("command", "args"):
        words = container.spec.get(field) or []
        text = " ".join(words)
        for pattern in (URL, TOOLS):
            for match in pattern.finditer(text):
                at = next((index for index, word in enumerate(words) if match[1] in word), None)
                path = (*container.path, field) if at is None else (*container.path, field, at)
                yield Host(match[1], match[2], path)
    for index, each in enumerate(container.spec.get("env") or ()):
        value = str(each.get("value") or "")
        path = (*container.path, "env", index, "value")
        for match in URL.finditer(value):
            yield Host(match[1], match[2], path)
        plain = _VALUE.match(value)
        if plain is not None and _VARIABLE.search(str(each.get("name"))):
            yield Host(plain[1], plain[2], path)
