"""postStart hooks that wait for what the kubelet starts, or makes Ready, only after them."""

import re
from collections.abc import Iterator, Sequence

from lastcall.lint import commands
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.mounted import mounted_file
from lastcall.lint.subject import Finding, Op, Subject, found
from lastcall.lint.texts import listens_on, own_ports_of
from lastcall.manifests import Path, value_at

_WAITS = re.compile(r"(?m)(?:\A|[\s;&|])(?:until|while)\s+[^\n]*?[;\s]do\b|^\s*while\b.*:")
"""A loop of a shell or of Python."""
_GIVES_UP = re.compile(
    r"\btimeout -|\btimeout \d|\$\(\(|\blet\b|\bexpr\b|-(?:lt|le|gt|ge)\b|\bSECONDS\b|\bdate\b|\bexit\b|\braise\b"
    r"|\brange\(|\bmonotonic\b|\btime\(\)|[-+]=|\battempt"
)
"""What ends a loop whose condition never comes true: a counter, a time limit, an exit."""


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        if not workload.idle:
            for index, container in enumerate(workload.all_containers):
                yield from _waits(workload, container, workload.all_containers[index + 1 :])


def _waits(workload: Workload, container: Container, later: Sequence[Container]) -> Iterator[Finding]:
    """kuberuntime_container.go:startContainer runs the hook before the next container is started. Until it has
    returned the container does not count as running, so the Pod is not Ready."""
    path = ("lifecycle", "postStart", "exec", "command")
    argv = [str(each) for each in value_at(container.spec, path) or ()]
    script = commands.shell_script(argv)
    words = argv if script is None else [word for line in commands.commands_of(script) for word in line]
    files = [file.text for word in words if (file := mounted_file(workload, container, word)) is not None]
    texts = [script or "", *argv, *files]
    if not any(_WAITS.search(text) and not _GIVES_UP.search(text) for text in texts):
        return
    where = (*container.path, *path)
    asked = {port for text in texts for port in own_ports_of(text)} - listens_on(workload, container)
    for each in later:
        if each.role != "init" and asked & listens_on(workload, each):
            yield _of_later(workload, container, each, min(asked & listens_on(workload, each)), where)
            return
    for service in workload.services:
        named = re.compile(rf"(?:://|[\s'\"]){re.escape(service.name)}(?:\.[a-z0-9.-]+)?['\"]?(?::|, ?|\s+)\d")
        if _only_ready(workload, service) and any(named.search(text) for text in texts):
            text = (
                f"The postStart hook of {container.name} waits for {service}, which sends to Ready Pods only, and no "
                "Pod is Ready before its own hook has ended: while there is no other one, the hook waits forever."
            )
            yield found(
                "postStartWaits", workload.subject, where, text, fix=f"Ask 127.0.0.1 in place of {service.name}."
            )
            return


def _of_later(workload: Workload, container: Container, other: Container, port: int, where: Path) -> Finding:
    text = (
        f"The postStart hook of {container.name} waits for port {port} of {other.name}, which is started only when the "
        "hook has ended: it waits forever, and the Pod stays in ContainerCreating."
    )
    fix = f"Put {other.name} before {container.name}: the kubelet starts containers in their order."
    patch = []
    if other.path[:-1] == container.path[:-1]:
        raw = value_at(workload.subject.raw, other.path)
        patch = [Op("remove", other.path), Op("add", container.path, raw)]
    return found("postStartWaits", workload.subject, where, text, fix=fix, patch=patch)


def _only_ready(workload: Workload, service: Subject) -> bool:
    """Return whether a Service has an address of its own, and no Pods but those of this workload that are Ready."""
    spec = service.spec
    return not spec.get("publishNotReadyAddresses") and workload.application.selected(service) == [workload]
