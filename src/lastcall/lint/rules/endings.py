"""Check hooks, grace periods and stop signals: what happens to containers when their Pod ends."""

from collections.abc import Iterator
from typing import Any

from lastcall.endings import fix as fix_of
from lastcall.endings import pipeline_fix
from lastcall.kube.api import STATEFULSETS
from lastcall.lint import commands, images
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.mounted import mounted_file
from lastcall.lint.rules.programs import missing_program
from lastcall.lint.subject import Finding, Op, found
from lastcall.lint.texts import listens_on, own_ports_in

LEAST_LEFT = 5
"""Seconds that a container should have left of the grace period after its hook."""

SPARE = 15
"""Seconds that a patch leaves the application for its own end: the grace period without a hook is 30."""

PAUSE = 5
"""Seconds of a preStop sleep that a patch proposes: endpoints' changes usually arrive within them."""


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        if workload.idle:
            continue
        yield from _grace(workload)
        yield from _finalizers(workload)
        for container in workload.containers:
            yield from _hook(workload, container)
            yield from _signal(workload, container)
            yield from _drain(workload, container)
        yield from _no_pause(workload)
        yield from _ends_first(workload)


def _grace(workload: Workload) -> Iterator[Finding]:
    if workload.grace > 1:
        return
    path = (*workload.spec_path, "terminationGracePeriodSeconds")
    patch = [Op("replace", path, 30)]
    if workload.grace == 1:
        yield found(
            "graceTooShort",
            workload.subject,
            path,
            "terminationGracePeriodSeconds: 1 kills the containers 2 s after the stop signal, whatever they still do.",
            severity="warning",
            certainty="dependsOnApplication",
            patch=patch,
        )
        return
    worse = ", and a second Pod of the same name and volumes is started beside it" * (workload.resource == STATEFULSETS)
    yield found(
        "graceTooShort",
        workload.subject,
        path,
        "terminationGracePeriodSeconds: 0 deletes the Pods by force: the API forgets each at once, while its "
        f"containers still run{worse}.",
        severity="error" if worse else "warning",
        patch=patch,
        automatic=True,
    )


def _finalizers(workload: Workload) -> Iterator[Finding]:
    names = (workload.template.get("metadata") or {}).get("finalizers") or []
    if names:
        path = (*workload.template_path, "metadata", "finalizers")
        text = f"Each Pod has the finalizer {', '.join(map(str, names))}: it stays Terminating until that is removed."
        yield found("finalizerOnPods", workload.subject, path, text)


def hook_seconds(container: Container) -> float | None:
    """Return how long the preStop hook lasts at least; None if that is unknown."""
    hook = (container.spec.get("lifecycle") or {}).get("preStop") or {}
    if hook.get("sleep"):
        return float(hook["sleep"].get("seconds") or 0)
    return commands.sleeps_for((hook.get("exec") or {}).get("command") or [])


def _hook(workload: Workload, container: Container) -> Iterator[Finding]:
    lifecycle = container.spec.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        hook, path = lifecycle.get(name) or {}, (*container.path, "lifecycle", name)
        if "tcpSocket" in hook:
            text = f"The {name} hook of {container.name} is a tcpSocket: the kubelet has none for hooks, so it fails."
            yield found("hookTcpSocket", workload.subject, (*path, "tcpSocket"), text)
        port = (hook.get("httpGet") or {}).get("port")
        if isinstance(port, str) and not port.isdigit() and port not in [each.get("name") for each in container.ports]:
            text = f"The {name} hook of {container.name} asks port {port!r}, which the container does not declare."
            yield found("hookPortUnresolved", workload.subject, (*path, "httpGet", "port"), text)
    hook = lifecycle.get("preStop") or {}
    path = (*container.path, "lifecycle", "preStop")
    argv = (hook.get("exec") or {}).get("command") or []
    seconds = hook_seconds(container)
    if argv and (missing := missing_program(container, argv)):
        fix: dict[str, Any] = {}
        if seconds is not None and seconds >= 1 and _only_sleeps(argv):
            patch = [Op("replace", path, {"sleep": {"seconds": int(seconds)}})]
            if seconds > workload.grace:  # which the API refuses of a sleep
                said = (*workload.spec_path, "terminationGracePeriodSeconds")
                longer = int(seconds) + SPARE
                patch.append(Op("replace" if workload.subject.has(said) else "add", said, longer))
            fix = {"patch": patch, "automatic": True}
        text = (
            f"The preStop hook of {container.name} runs {missing}, and images such as {container.spec.get('image')} "
            "do not have it (in their PATH): the hook fails at once, without any pause."
        )
        yield found("hookCommandMissing", workload.subject, (*path, "exec", "command"), text, **fix)
    elif seconds is not None and seconds > 0:
        yield from _time(workload, container, seconds)
    if argv and workload.serving and commands.stops_a_server(argv):
        text = f"The preStop hook of {container.name} stops the server at once, while proxies and clients still send."
        yield found("hookStopsAtOnce", workload.subject, (*path, "exec", "command"), text)


def _time(workload: Workload, container: Container, seconds: float) -> Iterator[Finding]:
    path = (*container.path, "lifecycle", "preStop")
    said = (*workload.spec_path, "terminationGracePeriodSeconds")
    has = workload.subject.has(said)
    wanted = int(-(-seconds // 1)) + SPARE
    patch = [Op("replace" if has else "add", said, wanted)]
    default = "" if has else " (the default)"
    left = workload.grace - seconds
    if left <= 0:
        text = (
            f"The preStop hook of {container.name} takes {seconds:g} s, and terminationGracePeriodSeconds is "
            f"{workload.grace}{default}: the stop signal comes when the time is over, SIGKILL 2 s later."
        )
        fix = f"terminationGracePeriodSeconds: {wanted} (the hook and {SPARE} s to end), or a shorter hook."
        yield found("hookOutlivesGrace", workload.subject, path, text, fix=fix, patch=patch, automatic=True)
    elif left < LEAST_LEFT:
        text = (
            f"The preStop hook of {container.name} takes {seconds:g} s of the {workload.grace} s{default} that "
            f"terminationGracePeriodSeconds gives: {left:g} s are left to finish what is under way."
        )
        fix = f"terminationGracePeriodSeconds: {wanted}, unless the application ends within {left:g} s."
        yield found("hookEatsGrace", workload.subject, path, text, fix=fix, patch=patch)


def _only_sleeps(argv: list[str]) -> bool:
    script = commands.shell_script(argv)
    lines = [argv] if script is None else commands.commands_of(script)
    return all(commands.program(words) == "sleep" for words in lines)


def _shell_fix(child: commands.Child, script: list[str]) -> str:
    """What helps goes by the child's place in the script, as in the story of an end."""
    if child.place == "pipeline":
        return pipeline_fix(script)
    if child.place == "last":
        return f"Put `exec` before {child.name} in the script's last command, so that it takes the shell's place."
    return fix_of("shellKeepsSignal", child.place, name=child.name)


def _signal(workload: Workload, container: Container) -> Iterator[Finding]:
    if workload.ends_by_itself and container.role != "sidecar":
        return
    if workload.pod_spec.get("shareProcessNamespace"):
        return  # then it is not PID 1
    command = container.spec.get("command") or []
    argv = [*command, *(container.spec.get("args") or [])]
    if not command:
        return  # the image's entrypoint is not known
    where = (*container.path, "args" if container.spec.get("args") and len(command) < 3 else "command")
    file = mounted_file(workload, container, commands.script_file(argv))
    if file is not None:
        shell = commands.shell_of(file.text) if commands.program(argv) not in commands.SHELLS else argv[0]
        script = [shell, "-c", file.text] if shell else []
        child = commands.child_of_shell(script, busybox=False, from_file=True)
    else:
        script = argv
        child = commands.child_of_shell(script, busybox=images.has_busybox(str(container.spec.get("image"))))
    if child is not None:
        hook = (container.spec.get("lifecycle") or {}).get("preStop") or {}
        if commands.stops_a_server((hook.get("exec") or {}).get("command") or []):
            return  # its hook ends it
        text = (
            f"PID 1 of {container.name} is {command[0]}, which does not pass the stop signal on to {child.name}: both "
            "are killed when the grace period is over."
        )
        if child.perhaps:
            text = (
                f"PID 1 of {container.name} is {command[0]}: unless it replaces itself with {child.name} (bash and "
                f"Alpine's sh do so with a last command, Debian's sh does not), {child.name} never gets the stop "
                "signal and is killed when the grace period is over."
            )
        yield found("shellKeepsSignal", workload.subject, where, text, fix=_shell_fix(child, script))
        return
    if commands.ignores_term(commands.shell_script(script) or ""):
        text = (
            f"The shell of {container.name} ignores SIGTERM, and so does what it starts without a handler of its own."
        )
        yield found("stopSignalIgnored", workload.subject, where, text)
        return
    name = commands.program(argv)
    words = argv[1:]
    if name in ("npm", "yarn", "pnpm") and words and words[0] in ("start", "run", "run-script", "exec", "dev", "serve"):
        text = f"PID 1 of {container.name} is {name}, which runs the application in a shell."
        yield found("wrapperKeepsSignal", workload.subject, where, text)
    if name == "uwsgi" and not any("die-on-term" in word or "hook-master-start" in word for word in argv):
        if any(word.endswith((".ini", ".yaml", ".yml", ".xml", ".json")) for word in argv):
            return  # it may be set there
        at_end = len(argv) - len(command)
        last = (*container.path, "args", at_end) if at_end else (*container.path, "command", len(command))
        text = f"SIGTERM makes the uWSGI of {container.name} reload in place of ending: --die-on-term is not set."
        yield found("stopSignalReloads", workload.subject, where, text, patch=[Op("add", last, "--die-on-term")])


_DRAINS = (
    ("gunicorn", ("--graceful-timeout",)),
    ("uvicorn", ("--timeout-graceful-shutdown",)),
    ("hypercorn", ("--graceful-timeout",)),
    ("envoy", ("--drain-time-s",)),
)
_DRAIN_VARIABLES = ("SPRING_LIFECYCLE_TIMEOUT_PER_SHUTDOWN_PHASE", "spring.lifecycle.timeout-per-shutdown-phase")


def _drain(workload: Workload, container: Container) -> Iterator[Finding]:
    """What the command line or the environment says that the application takes to end."""
    argv = [*(container.spec.get("command") or []), *(container.spec.get("args") or [])]
    script = commands.shell_script(argv)
    words = argv if script is None else [word for line in commands.commands_of(script) for word in line]
    where, what, value = (*container.path, "args" if container.spec.get("args") else "command"), "", None
    names = {commands.program([word]) for word in words}
    for program, options in _DRAINS:
        if program in names and (given := commands.option(words, *options)) is not None:
            what, value = f"{options[0]} {given}", commands.seconds_of(given)
    for index, each in enumerate(container.spec.get("env") or ()):
        if each.get("name") in _DRAIN_VARIABLES:
            where, what = (*container.path, "env", index), f"{each['name']}={each.get('value')}"
            value = commands.seconds_of(str(each.get("value") or ""))
    hook = hook_seconds(container) or 0.0
    if value is None or hook + value <= workload.grace:
        return
    wanted = int(-(-(hook + value) // 1)) + LEAST_LEFT
    said = (*workload.spec_path, "terminationGracePeriodSeconds")
    after = f" after a hook of {hook:g} s" if hook else ""
    text = (
        f"{container.name} may drain for {value:g} s ({what}){after}, and terminationGracePeriodSeconds is "
        f"{workload.grace}."
    )
    patch = [Op("replace" if workload.subject.has(said) else "add", said, wanted)]
    fix = f"terminationGracePeriodSeconds: {wanted}, or a shorter drain."
    yield found("drainLongerThanGrace", workload.subject, where, text, fix=fix, patch=patch)


def _no_pause(workload: Workload) -> Iterator[Finding]:
    """One finding for a Pod: whether any container that is sent to may leave at once."""
    if not workload.serving or workload.ends_by_itself:
        return
    if (workload.subject.spec.get("strategy") or {}).get("type") == "Recreate":
        return  # no other Pod could take the requests over
    served = workload.served
    if any(each.role == "sidecar" for each in served):
        # It gets its stop signal when the application's containers have ended: their hooks hold it.
        served = [*served, *(each for each in workload.containers if each.role == "container")]
    if any((each.spec.get("lifecycle") or {}).get("preStop") for each in served):
        return
    container = served[0]
    services = ", ".join(each.name for each in workload.serving)
    lifecycle = (*container.path, "lifecycle")
    hook = {"sleep": {"seconds": PAUSE}}
    has = workload.subject.has(lifecycle)
    patch = Op("add", (*lifecycle, "preStop"), hook) if has else Op("add", lifecycle, {"preStop": hook})
    local = [each for each in workload.serving if each.spec.get("externalTrafficPolicy") == "Local"]
    if local:
        text = (
            f"Service {local[0].name} has externalTrafficPolicy: Local, and {container.name} no preStop hook: the load "
            "balancer goes on sending to a node whose Pod is ending until its health checks have failed."
        )
        longer = Op("add", patch.path, {"sleep": {"seconds": 15}} if has else {"preStop": {"sleep": {"seconds": 15}}})
        yield found("localTrafficCutAtStop", workload.subject, container.path, text, patch=[longer])
        return
    text = (
        f"{container.name} is behind Service {services} and has no preStop hook: if it stops listening as soon as it "
        f"gets the stop signal, requests are refused until proxies know."
    )
    fix = f"lifecycle: {{preStop: {{sleep: {{seconds: {PAUSE}}}}}}}, unless it keeps serving for some seconds."
    yield found("noPauseBeforeStop", workload.subject, container.path, text, fix=fix, patch=[patch])


def _ends_first(workload: Workload) -> Iterator[Finding]:
    """What the containers that are sent to, and that a hook keeps, ask in their own Pod."""
    if not workload.serving or workload.ends_by_itself:
        return
    kept = [each for each in workload.served if (hook_seconds(each) or 0.0) >= 1]
    for container in workload.containers:
        if container.role != "container" or (container.spec.get("lifecycle") or {}).get("preStop"):
            continue
        for front in kept:
            asked = own_ports_in(workload, front) & listens_on(workload, container) - listens_on(workload, front)
            if front is container or not asked:
                continue
            seconds = hook_seconds(front) or 0.0
            text = (
                f"The preStop hook of {front.name} keeps it for {seconds:g} s, and {container.name} behind it (port "
                f"{min(asked)}) has none: it gets its stop signal at once, while {front.name} still passes requests on."
            )
            lifecycle = (*container.path, "lifecycle")
            hook = {"sleep": {"seconds": int(seconds)}}
            has = workload.subject.has(lifecycle)
            patch = Op("add", (*lifecycle, "preStop"), hook) if has else Op("add", lifecycle, {"preStop": hook})
            yield found("backendEndsFirst", workload.subject, container.path, text, patch=[patch])
            break
