"""Check what hooks, and other commands, ask and wait for: ports, loops, and signals to PID 1."""

import re
from collections.abc import Iterator

from lastcall.lint import commands
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.rules.probes import KINDS
from lastcall.lint.rules.programs import COMMANDS
from lastcall.lint.subject import Finding, Op, found
from lastcall.lint.texts import command_of, listens_on, own_ports_in, ports_of, texts_of
from lastcall.manifests import value_at


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        if workload.idle:
            continue
        for container in workload.containers:
            yield from _port(workload, container)
            yield from _loop(workload, container)
            if container.role == "sidecar":
                yield from _ends_sidecar(workload, container)
        if workload.pod_spec.get("shareProcessNamespace"):
            for container in workload.all_containers:
                yield from _first_process(workload, container)


_ASK_A_PORT = ("httpGet", "tcpSocket", "grpc")


def _port(workload: Workload, container: Container) -> Iterator[Finding]:
    """A port that nothing of the Pod names: a container need not declare its ports, so one that declares none may have
    it."""
    path = ("lifecycle", "preStop", "httpGet")
    get = value_at(container.spec, path) or {}
    port = get.get("port")
    if get.get("host") or not str(port).isdigit() or not all(each.ports for each in workload.containers):
        return
    if any(int(str(port)) in ports_of(each) for each in workload.containers):
        return
    probes = [each.spec.get(kind) or {} for each in workload.containers for kind in KINDS]
    probed = {str((each.get(handler) or {}).get("port")) for each in probes for handler in _ASK_A_PORT}
    named = (text for each in workload.containers for text in texts_of(workload, each))
    if str(port) in probed or any(re.search(rf"(?<!\d){port}(?!\d)", text) for text in named):
        return
    declared = ", ".join(str(each.get("containerPort")) for each in container.ports)
    text = (
        f"The preStop hook of {container.name} asks port {port}, which nothing in the Pod names (it declares "
        f"{declared}): if nothing listens there, the hook fails at once and nothing waits for it."
    )
    yield found("hookPortUndeclared", workload.subject, (*container.path, *path, "port"), text)


def _ends_sidecar(workload: Workload, container: Container) -> Iterator[Finding]:
    """A native sidecar's own hook that ends it: its stop signal waits for the containers, its hook does not."""
    lifecycle = container.spec.get("lifecycle") or {}
    hook = lifecycle.get("preStop") or {}
    page = str((hook.get("httpGet") or {}).get("path") or "")
    if not commands.is_quit_page(page) and not commands.stops_a_server((hook.get("exec") or {}).get("command") or []):
        return
    plain = [each for each in workload.containers if each.role == "container"]
    asking = next((each for each in plain if own_ports_in(workload, each) & listens_on(workload, container)), None)
    whose = f"{asking.name}, which connects to it," if asking is not None else "the containers"
    text = (
        f"The preStop hook of sidecar {container.name} ends it: all hooks of a Pod run at once when it ends, so the "
        f"sidecar is gone while {whose} may still need it. Its stop signal would come after them."
    )
    where = (*container.path, "lifecycle", *(("preStop",) if len(lifecycle) > 1 else ()))
    yield found("sidecarHookEndsIt", workload.subject, where, text, patch=[Op("remove", where)])


_LOOP = re.compile(r"(?:\A|[\s;&])(?:while|until)\s+(?P<what>.*?)[;\s]do\b", re.S)
_COMMENT = re.compile(r"(?m)^\s*#.*$")
_LIMITED = re.compile(
    r"\btimeout\b|\$\(\(|\blet\b|\bexpr\b|-(?:lt|le|gt|ge)\b|\bSECONDS\b|\bdate\b|\bread\b|\bbreak\b|\bexit\b"
)
"""What may end a loop: a time limit, a counter, a condition inside of it."""
_ASKS_TO_END = re.compile(r"\bp?kill(?:all)?\b(?! +-0)|\b(?:quit|stop|drain|shutdown)\b")
"""What a loop itself may tell the program."""
_QUICK = ("sleep", "echo", "printf", "cd", "set", "export", "test", "[", "true", ":", "while", "until", "do", "done")


def _loop(workload: Workload, container: Container) -> Iterator[Finding]:
    """A loop that only waits: the hook itself has asked nobody to do what it waits for."""
    path = ("lifecycle", "preStop", "exec", "command")
    script = _COMMENT.sub("", commands.shell_script(value_at(container.spec, path) or []) or "")
    match = _LOOP.search(script)
    if match is None or _LIMITED.search(script):
        return
    before, rest = script[: match.start()].strip("\n; \t"), script[match.start() :]
    steps = commands.commands_of(before)
    if _ASKS_TO_END.search(rest) or (before and not steps):
        return
    if any(words[0] not in _QUICK and "=" not in words[0] for words in steps):
        return
    text = (
        f"The preStop hook of {container.name} loops on {' '.join(match['what'].split()).rstrip('; ')!r} without a "
        "time limit: the stop signal comes when the hook has ended, so what happens only on that never happens in it."
    )
    yield found("hookLoops", workload.subject, (*container.path, *path), text)


_PAUSE_USER = 65535
"""Of its image (build/pause/Dockerfile)."""


def _first_process(workload: Workload, container: Container) -> Iterator[Finding]:
    for path in COMMANDS:
        argv = (value_at(container.spec, path) or {}).get("command") or [] if path else command_of(container)
        signalled = commands.signals_first_process(argv)
        if signalled is None:
            continue
        command, signal = signalled
        what = "command" if not path else f"{path[-2]} hook" if path[0] == "lifecycle" else path[-2]
        head = (
            f"The {what} of {container.name} runs {command!r}, and with shareProcessNamespace: true PID 1 is the Pod's "
            "pause process, not the program"
        )
        field = "command" if path or container.spec.get("command") else "args"
        where = (*container.path, *path, field)
        user = _other_user(workload, container)
        if signal and user is not None:
            text = f"{head}: user {user} may not signal it (EPERM): the program never gets SIG{signal}."
            yield found("signalsPause", workload.subject, where, text)
        elif signal in ("INT", "TERM"):
            text = f"{head}: it exits on SIG{signal}, and with it the kernel kills every container of the Pod (137)."
            yield found("signalsPause", workload.subject, where, text)
        elif signal == "":
            text = f"{head}: the program's processes are no children of it, so none gets the signal."
            yield found("signalsPause", workload.subject, where, text)
        else:
            text = f"{head}, which ignores SIG{signal}: the program never gets it."
            yield found("signalsPause", workload.subject, where, text)


def _other_user(workload: Workload, container: Container) -> int | None:
    """Return the user of a container if that is neither root nor the one of the pause process, which may signal it
    (kill(2)); None for others, and where it is the image's. Pause runs as the Pod's runAsUser, else as its own image's
    user (kuberuntime_sandbox.go:generatePodSandboxLinuxConfig)."""
    pod = (workload.pod_spec.get("securityContext") or {}).get("runAsUser")
    user = (container.spec.get("securityContext") or {}).get("runAsUser", pod)
    return user if isinstance(user, int) and user not in (0, _PAUSE_USER if pod is None else pod) else None
