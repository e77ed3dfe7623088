"""Probes: what restarts a container, what lets requests in."""

import posixpath
import re
from collections.abc import Iterator

from lastcall.kube.api import Object, asks_node
from lastcall.lint import commands
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.rules.programs import missing_program
from lastcall.lint.subject import Finding, Op, found

KINDS = ("startupProbe", "livenessProbe", "readinessProbe")
LEAST_START = 15
"""Seconds until the first restart that any application should have to start in."""
LEAST_STARTUP = 10
"""As much of a startupProbe, which a user wrote for this application."""


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        if workload.idle:
            continue
        for container in workload.containers:
            for kind in KINDS:
                if container.spec.get(kind):
                    yield from _one(workload, container, kind)
            yield from _at_the_node(workload, container)
            yield from _liveness(workload, container)
            yield from _only_connects(workload, container)
        yield from _readiness(workload)


def allowed(probe: Object) -> int:
    """Return the seconds from the container's start until the probe has failed for good, at the latest."""
    delay, period = int(probe.get("initialDelaySeconds") or 0), int(probe.get("periodSeconds") or 10)
    return delay + period * int(probe.get("failureThreshold") or 3)


def _handler(probe: Object) -> Object:
    return {kind: probe[kind] for kind in ("exec", "httpGet", "tcpSocket", "grpc") if probe.get(kind)}


def _at_pod(handler: Object) -> Object:
    """Return a handler without a host, which asks the Pod."""
    return {kind: {key: value for key, value in each.items() if key != "host"} for kind, each in handler.items()}


def _one(workload: Workload, container: Container, kind: str) -> Iterator[Finding]:
    probe, path = container.spec[kind], (*container.path, kind)
    names = [each.get("name") for each in container.ports]
    for handler in ("httpGet", "tcpSocket"):
        port = (probe.get(handler) or {}).get("port")
        if isinstance(port, str) and not port.isdigit() and port not in names:
            declared = ", ".join(str(name) for name in names if name) or "none"
            text = (
                f"The {kind} of {container.name} asks port {port!r}, and the container declares no port of that name "
                f"(it has {declared}): it can never succeed."
            )
            near = _only_port(container)
            patch = [Op("replace", (*path, handler, "port"), near)] if near is not None else []
            yield found("probePortUnresolved", workload.subject, (*path, handler, "port"), text, patch=patch)
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace > workload.grace:
        said = (*workload.spec_path, "terminationGracePeriodSeconds")
        text = (
            f"The {kind} of {container.name} has terminationGracePeriodSeconds: {grace}, which holds for the kills of "
            f"that probe only: when the Pod is deleted or updated the container has {workload.grace} s."
        )
        patch = [Op("replace" if workload.subject.has(said) else "add", said, grace)]
        fix = f"terminationGracePeriodSeconds: {grace} in the Pod's spec."
        where = (*path, "terminationGracePeriodSeconds")
        yield found("graceOnProbe", workload.subject, where, text, fix=fix, patch=patch)
    argv = (probe.get("exec") or {}).get("command") or []
    if argv and (missing := missing_program(container, argv)):
        text = (
            f"The {kind} of {container.name} runs {missing}, and images such as {container.spec.get('image')} have "
            "none: it always fails."
        )
        yield found("probeCommandMissing", workload.subject, (*path, "exec", "command"), text)
    yield from _command_time(workload, container, kind)


def _command_time(workload: Workload, container: Container, kind: str) -> Iterator[Finding]:
    """A command with the default time: of a program that takes seconds to start, or that has more in another probe."""
    probe, path = container.spec[kind], (*container.path, kind, "timeoutSeconds")
    argv = list(map(str, (probe.get("exec") or {}).get("command") or []))
    if not argv or probe.get("timeoutSeconds", 1) > 1:
        return
    others = (container.spec.get(each) or {} for each in KINDS if kind == "livenessProbe" and each != kind)
    given = [
        int(each["timeoutSeconds"])
        for each in others
        if (each.get("exec") or {}).get("command", [""])[0] == argv[0] and each.get("timeoutSeconds", 1) > 1
    ]
    script = commands.shell_script(argv)
    program = _SLOW.search(" ".join(argv) if script is None else script)
    if not program and (not given or script is not None or posixpath.basename(argv[0]) in _QUICK):
        return
    name = program["name"] if program else posixpath.basename(argv[0])
    why = f"another probe gives it {given[0]} s" if given else "its start alone may take longer"
    text = f"The {kind} of {container.name} runs {name} and gives it 1 s (timeoutSeconds): {why}."
    patch = [Op("replace" if workload.subject.has(path) else "add", path, max(given, default=COMMAND_SECONDS))]
    yield found("probeCommandSlow", workload.subject, path[:-1], text, patch=patch)


def _only_port(container: Container) -> str | int | None:
    """The one port that can be meant."""
    if len(container.ports) != 1:
        return None
    port: str | int | None = container.ports[0].get("name") or container.ports[0].get("containerPort")
    return port


def _at_the_node(workload: Workload, container: Container) -> Iterator[Finding]:
    for field, handler, host in asks_node(workload.pod_spec, container.spec):
        said = (*container.path, *field.split("."), handler, "host")
        what = f"{field.removeprefix('lifecycle.')}{' hook' if field.startswith('lifecycle') else ''}"
        text = (
            f"The {what} of {container.name} asks {host}: the kubelet asks from the node, so that is the node itself."
        )
        yield found("asksNode", workload.subject, said, text, patch=[Op("remove", said)], automatic=True)


def _liveness(workload: Workload, container: Container) -> Iterator[Finding]:
    startup, liveness = container.spec.get("startupProbe"), container.spec.get("livenessProbe")
    readiness = container.spec.get("readinessProbe")
    if startup and allowed(startup) < LEAST_STARTUP:
        text = (
            f"The startupProbe kills {container.name} when it has not answered {allowed(startup)} s after its start "
            "(exit code 137), each time."
        )
        patch = [Op("replace", (*container.path, "startupProbe", "failureThreshold"), 30)]
        where = (*container.path, "startupProbe")
        if container.role == "container" and workload.subject.has((*where, "failureThreshold")):
            fix = "A failureThreshold that covers the slowest start: 30 in the patch."
            yield found("livenessKillsStart", workload.subject, where, text, fix=fix, patch=patch)
    if startup:
        longest = max(
            (int(each.get("initialDelaySeconds") or 0) for each in (liveness, readiness) if each),
            default=0,
        )
        if allowed(startup) < longest:
            text = (
                f"The startupProbe of {container.name} kills it after {allowed(startup)} s without success, and "
                f"another probe expects a start of {longest} s (initialDelaySeconds)."
            )
            yield found("startupShorterThanDelay", workload.subject, (*container.path, "startupProbe"), text)
    if not liveness:
        return
    path = (*container.path, "livenessProbe")
    if int(liveness.get("failureThreshold") or 3) == 1:
        text = f"A single failed livenessProbe restarts {container.name} (failureThreshold: 1)."
        patch = [Op("replace", (*path, "failureThreshold"), 3)]
        yield found("livenessKillsAtOnce", workload.subject, (*path, "failureThreshold"), text, patch=patch)
    if not startup and allowed(liveness) < LEAST_START and container.role == "container":
        text = (
            f"The livenessProbe kills {container.name} when it has not answered {allowed(liveness)} s after its start "
            f"(exit code 137), and there is no startupProbe.{_slow_page(liveness, readiness)}{_slow_command(liveness)}"
        )
        handler = _handler(liveness)
        wanted = {
            **(_at_pod(handler) if asks_node(workload.pod_spec, {"livenessProbe": liveness}) else handler),
            **({"timeoutSeconds": seconds} if (seconds := _seconds_of(liveness)) > 1 else {}),
            "periodSeconds": 2,
            "failureThreshold": 30,
        }
        patch = [Op("add", (*container.path, "startupProbe"), wanted)]
        said = (*path, "timeoutSeconds")
        if seconds > liveness.get("timeoutSeconds", 1):
            patch.append(Op("replace" if workload.subject.has(said) else "add", said, seconds))
        fix = "Add a startupProbe with the same check and the time that a slow start takes: 60 s in the patch."
        yield found("livenessKillsStart", workload.subject, path, text, fix=fix, patch=patch)
    if not workload.serving or workload.replicas == 1:
        return  # nobody else could answer meanwhile
    if readiness and _handler(liveness) == _handler(readiness) and "httpGet" in _handler(liveness):
        gives_up, out = _patience(liveness), _patience(readiness)
        if gives_up < out:
            text = (
                f"livenessProbe and readinessProbe of {container.name} ask the same; the former kills after "
                f"{gives_up} s without an answer, the latter stops requests only after {out} s."
            )
            yield found("livenessNotPatient", workload.subject, path, text)


def _only_connects(workload: Workload, container: Container) -> Iterator[Finding]:
    """A readinessProbe that only connects to a port on which the container speaks HTTP."""
    readiness = container.spec.get("readinessProbe") or {}
    port = _number(container, (readiness.get("tcpSocket") or {}).get("port"))
    if port is None or not workload.serving or container not in workload.served or container.spec.get("startupProbe"):
        return
    if not (why := _speaks_http(workload, container, port)):
        return
    text = (
        f"The readinessProbe of {container.name} only connects to port {port}, on which it answers HTTP ({why}): it is "
        "Ready as soon as the port is open, even if the application still answers with errors."
    )
    yield found("readinessOnlyConnects", workload.subject, (*container.path, "readinessProbe"), text)


def _speaks_http(workload: Workload, container: Container, port: int) -> str:
    """Return what shows that a port speaks HTTP: the livenessProbe, or the name or appProtocol that the port has in the
    container or in a Service; "" for nothing."""
    get = (container.spec.get("livenessProbe") or {}).get("httpGet") or {}
    if _number(container, get.get("port")) == port:
        return f"its livenessProbe asks {get.get('path') or '/'}"
    ports = [(each, "the container") for each in container.ports if each.get("containerPort") == port]
    for service in workload.serving:
        own = service.spec.get("ports") or ()
        ports += [
            (each, str(service))
            for each in own
            if _number(container, each.get("targetPort") or each.get("port")) == port
        ]
    for each, whose in ports:
        for field in ("appProtocol", "name"):
            if _HTTP.fullmatch(said := str(each.get(field) or "")):
                return f"{whose} calls the port {said}"
    return ""


_HTTP = re.compile(r"(?:kubernetes\.io/)?(?:http|h2c|ws)(?:-[a-z0-9-]+)?", re.I)
"""Names and protocols of ports (KEP-1507; a mesh takes a name's first part for the protocol). Not https and grpc, which
httpGet does not ask for as it is."""


def _number(container: Container, port: str | int | None) -> int | None:
    """Return a port of a probe as a number; None for a name that the container does not declare."""
    named = {each.get("name"): each.get("containerPort") for each in container.ports if each.get("name")}
    found = named.get(port, port)
    return int(str(found)) if str(found).isdigit() else None


def _slow_page(liveness: Object, readiness: Object | None) -> str:
    """What no startupProbe fixes: a page of its own that does more than the one that readiness asks."""
    if "httpGet" not in _handler(liveness) or (readiness and _handler(liveness) == _handler(readiness)):
        return ""
    return (
        f" At any time an answer that takes longer than {int(liveness.get('timeoutSeconds') or 1)} s (timeoutSeconds) "
        "counts as none: if this page queries others, such as a database, stop that, or raise timeoutSeconds above "
        "the time it takes."
    )


COMMAND_SECONDS = 10
"""For a command of a probe that takes longer than the default."""
_SLOW = re.compile(
    r"(?:\A|[;&|]\s*)(?:\S*/)?(?P<name>celery|rabbitmq-diagnostics|rabbitmqctl|mongosh|java|npm|npx|yarn|rails|airflow"
    r"|nodetool|cqlsh|dotnet|kafka-[a-z-]+\.sh)(?=\s|\Z)"
)
"""Programs that load a virtual machine or a whole application before they do anything."""
_QUICK = ("cat", "test", "[", "ls", "stat", "true", "kill", "pgrep")


def _slow_command(liveness: Object) -> str:
    """What no startupProbe fixes, as it runs the same command: one that takes longer than the default."""
    argv = (liveness.get("exec") or {}).get("command") or []
    if not argv or liveness.get("timeoutSeconds", 1) > 1 or posixpath.basename(str(argv[0])) in _QUICK:
        return ""
    return (
        " A command that takes longer than 1 s (timeoutSeconds) counts as failed at any time, also in a startupProbe: "
        "if it needs more, raise timeoutSeconds of both above that."
    )


def _seconds_of(liveness: Object) -> int:
    """Return the timeoutSeconds that probes with its check need: more than the default for a command that may take
    longer."""
    return COMMAND_SECONDS if _slow_command(liveness) else int(liveness.get("timeoutSeconds") or 1)


def _patience(probe: Object) -> int:
    """Seconds from the first failure until it counts."""
    return int(probe.get("periodSeconds") or 10) * int(probe.get("failureThreshold") or 3)


def _readiness(workload: Workload) -> Iterator[Finding]:
    """Of the container that the Service's port leads to; any readinessProbe of the Pod keeps requests away."""
    if not workload.serving or workload.ends_by_itself:
        return
    if any(each.spec.get("readinessProbe") or each.spec.get("startupProbe") for each in workload.containers):
        return
    if workload.pod_spec.get("readinessGates"):
        return
    container = workload.served[0]
    services = ", ".join(each.name for each in workload.serving)
    text = (
        f"Service {services} sends to {container.name}, which has no readinessProbe: requests arrive as soon as its "
        f"process has started, before it listens."
    )
    port = _only_port(container)
    patch = []
    if port is not None and container.ports[0].get("protocol") == "TCP":
        probe = {"tcpSocket": {"port": port}, "periodSeconds": 2}
        patch = [Op("add", (*container.path, "readinessProbe"), probe)]
    fix = (
        "A readinessProbe that succeeds when the application serves (httpGet, if it has a path for it; else tcpSocket)."
    )
    yield found("noReadinessProbe", workload.subject, container.path, text, fix=fix, patch=patch)
