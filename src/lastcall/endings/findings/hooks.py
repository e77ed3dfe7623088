"""Rows about preStop hooks. Pure."""

# check: pure

import re

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.findings.changes import NOTHING, Remedy, in_container, in_pod, in_program, pause
from lastcall.endings.findings.not_executed import is_not_executable
from lastcall.endings.findings.observed import (
    HOOK_FAILED,
    HOOK_INTERRUPTED,
    HOOK_OUTLIVED,
    HOOK_SKIPPED,
    of_run,
)
from lastcall.endings.findings.probes import REFUSED, asked_node, is_loopback, without_host
from lastcall.endings.findings.refused_signals import FAILED_BY_IT, command_of_hook, signal_of
from lastcall.endings.findings.refused_signals import ROWS as REFUSED_ROWS
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Row
from lastcall.endings.findings.words import listed
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import PAUSE_ENDED, Change, ContainerEnding, Ending, Finding, PreStop
from lastcall.records import kinds
from lastcall.records.hook_text import hook_failure
from lastcall.records.recalled import recalled
from lastcall.records.said import joined, tell

_SPARE_SECONDS = 10
"""For the program's own end, after a hook that sleeps."""
NOT_FOUND = 127
"""The exit code of a shell for a program that is not there."""

_ENDS_ITS_CONTAINER = re.compile(
    r"(?<![\w.-])(?:kill(?: +-{1,2}(?![0l]\b)[\w=]+(?: +[A-Z]\w+)?)? +(?:-- +)?1(?![\w.])|nginx +-s +(?:quit|stop)\b)"
)
"""What a hook says to PID 1 of its container: `kill -TERM 1`, `nginx -s quit`."""
_LOOP = re.compile(r"(?:\A|[\s;&\"'])(?:while|until)\s.*?[;\s]do\b", re.S)
"""A loop that ends when something has happened, with no limit that its words show."""
_SLEEP = re.compile(r"(?:\A|[ /;&])sleep +(?P<seconds>\d+)")


def _hook(subject: RunSubject) -> PreStop:
    assert subject.run.hook is not None
    return subject.run.hook


def _outlasts_by_version(c: ContainerEnding) -> bool:
    hook = c.hook
    return hook is not None and c.stop.timeout is not None and hook.seconds >= 1


_NOTICED = of_run(
    "how long its hook took",
    _outlasts_by_version,
    kinds.PRE_STOP_STARTED,
    kinds.PRE_STOP_FINISHED,
    kinds.STOP_REQUESTED,
)
_COUNTED = of_run(
    "whether the hook's time counts", lambda c: c.stop.floor or bool(c.stop.deducted), kinds.STOP_REQUESTED
)


def _skipped(s: RunSubject) -> Finding:
    c = s.run
    text = said("hookNotRun", container=c.name, detail=recalled(_hook(s).detail))
    ended = c.exit.at is not None and c.stop.requested_at is None
    remedy = in_program(fix("hookNotRun", "ended"), "fixHook") if ended else NOTHING
    return Finding("hookNotRun", "warning", text, c.name, remedy.advice, change=remedy.change)


def _died(s: RunSubject) -> Finding:
    c = s.run
    match = _ENDS_ITS_CONTAINER.search(command_of_hook(c, s.ending))
    if match is None:
        return Finding("hookDiedWithContainer", "info", said("hookDiedWithContainer", container=c.name), c.name)
    if c.exit.killed_by == PAUSE_ENDED:  # which says what to do
        text = said("hookDiedWithContainer", "pause", container=c.name, command=match.group().strip())
        return Finding("hookDiedWithContainer", "info", text, c.name)
    command = match.group().strip()
    if signal_of(command) != c.stop.signal:  # which may end the program in another way
        text = said("hookDiedWithContainer", "otherSignal", container=c.name, command=command, signal=c.stop.signal)
        return Finding("hookDiedWithContainer", "info", text, c.name)
    text = said("hookDiedWithContainer", "signals", container=c.name, command=command)
    advice = fix("hookDiedWithContainer", "signals", signal=c.stop.signal)
    return Finding("hookDiedWithContainer", "info", text, c.name, advice, change=Change(program="fixHook"))


def _failed(s: RunSubject) -> Finding:
    c, hook = s.run, _hook(s)
    because = tell("exit code $code", code=hook.exit_code) if hook.exit_code else hook_failure(hook.detail)
    if because and not hook.exit_code:
        because = tell("$message", message=because)
    variant = "because" if because else ""
    text = said("hookFailed", variant, container=c.name, seconds=_s(hook.seconds), because=because)
    if output := hook.output.strip().splitlines():
        text = joined([text, said("hookFailed", "said", line=output[-1].strip())])
    remedy = _failed_remedy(c, hook, s.ending)
    return Finding("hookFailed", "problem", text, c.name, remedy.advice, change=remedy.change)


def _failed_remedy(c: ContainerEnding, hook: PreStop, ending: Ending) -> Remedy:
    """Return what to do by how the hook failed, and what it was to do."""
    if (node := asked_node(ending.pod, c.name, "lifecycle.preStop")) is not None:
        return Remedy(fix("hookFailed", "node", host=node[2]), without_host(c, node))
    command = command_of_hook(c, ending)
    missing = hook.exit_code == NOT_FOUND or "executable file not found" in hook_failure(hook.detail)
    missing = missing or "no such file or directory" in hook_failure(hook.detail)
    if hook.handler != "exec":
        return _refused_remedy(c, hook, ending) or NOTHING
    if missing and (match := _SLEEP.search(command)):
        return pause(fix("hookFailed", "sleep", seconds=match["seconds"]), c.name, c.kind, int(match["seconds"]))
    denied = is_not_executable(hook.exit_code, hook.output)
    variant = "notFound" if missing else "notExecutable" if denied else ""
    return in_program(fix("hookFailed", variant), "fixHook")


def _refused_remedy(c: ContainerEnding, hook: PreStop, ending: Ending) -> Remedy | None:
    """Return what to do about a hook whose connection to its own Pod was refused, by who listened there a moment later.

    None where nobody looked, where the port is another container's, and where it was open by then.
    """
    refused, asks_pod = REFUSED.search(hook.detail), "//POD:" in command_of_hook(c, ending)
    if hook.handler != "httpGet" or refused is None or not asks_pod or c.seen.sockets is None:
        return None
    port = int(refused[1])
    if any(port in each.ports for each in ending.pod.containers if each.name != c.name):
        return None
    runs = [run for run in ending.containers if run.seen.sockets is not None]
    listeners = [(run.name, each) for run in runs if run.seen.sockets for each in run.seen.sockets.listeners]
    if there := [(name, each.address) for name, each in listeners if each.port == port]:
        if any(name != c.name or not is_loopback(address) for name, address in there):
            return None
        facts = {"container": c.name, "port": port, "address": there[0][1]}
        return in_program(fix("hookFailed", "loopback", **facts), "listenEverywhere")
    reachable = sorted({(each.port, name) for name, each in listeners if not is_loopback(each.address)})
    if not reachable:
        return None
    alone = all(name == c.name for _, name in reachable)
    others = listed([str(number) if alone else f"{number} ({name})" for number, name in reachable])
    if len(reachable) > 1 or not alone:
        return in_program(fix("hookFailed", "ports", port=port, others=others), "fixHook")
    asks = {"preStop": {"httpGet": {"port": reachable[0][0]}}}
    return in_container(fix("hookFailed", "otherPort", port=port, others=others), c.name, c.kind, lifecycle=asks)


def _outlived(s: RunSubject) -> Finding:
    c = s.run
    variant = "" if c.stop.timeout is None else "floor" if c.stop.floor else "left"
    text = said(
        "hookOutlived",
        variant,
        container=c.name,
        seconds=_s(_hook(s).seconds),
        signal=c.stop.signal,
        left=f"{c.stop.timeout or 0:g}",
    )
    remedy = _longer_grace(c, s.ending)
    return Finding("hookOutlived", "problem", text, c.name, remedy.advice, change=remedy.change)


def _longer_grace(c: ContainerEnding, ending: Ending) -> Remedy:
    """Return a grace period that covers the hook: what it sleeps, if that is all it does, else twice what it was."""
    grace = ending.grace_seconds
    if grace is None:
        return NOTHING
    if _LOOP.search(command_of_hook(c, ending)):
        limit = grace // 2  # half of it is for what comes after the hook
        fits = c.exit.at is not None and not c.exit.sigkilled and c.drain_seconds < grace - limit
        variant = "loopShort" if not limit else "loopFits" if fits else "loop"
        facts = {"limit": limit, "signal": c.stop.signal, "drain": _s(c.drain_seconds)}
        return in_program(fix("hookOutlived", variant, **facts), "fixHook")
    if c.hook is not None and c.hook.handler == "httpGet":  # it has no time limit (lifecycle/handlers.go)
        longer = Change({"terminationGracePeriodSeconds": 2 * grace}, "fixHook")
        return Remedy(fix("hookOutlived", "answer", grace=grace, signal=c.stop.signal), longer)
    slept = _SLEEP.search(command_of_hook(c, ending))
    wanted = max(2 * grace, int(slept["seconds"]) + _SPARE_SECONDS if slept else 0)
    return in_pod(fix("hookOutlived", grace=grace), terminationGracePeriodSeconds=wanted)


def _not_counted(s: RunSubject) -> Finding:
    c, hook = s.run, _hook(s)
    total = _s(hook.seconds + c.drain_seconds)
    if not c.exit.sigkilled:
        total = tell("up to $seconds s", seconds=f"{hook.seconds + (c.stop.timeout or 0):.0f}")
    reason = recalled(c.stop.why.rstrip(".")) or said("hookTimeNotCounted", "version", version=s.version)
    text = said("hookTimeNotCounted", why=reason, container=c.name, total=total, grace=s.ending.grace_seconds)
    return Finding("hookTimeNotCounted", "warning", text, c.name)


ROWS = (
    Row("hookNotRun", (HOOK_SKIPPED,), _skipped),
    Row("hookDiedWithContainer", (HOOK_INTERRUPTED,), _died),
    *REFUSED_ROWS,
    Row("hookFailed", (HOOK_FAILED,), _failed, refuted_by=(FAILED_BY_IT,)),
    Row("hookOutlived", (HOOK_OUTLIVED,), _outlived),
)
COUNTING_ROWS = (Row("hookTimeNotCounted", (_NOTICED,), _not_counted, refuted_by=(_COUNTED,)),)
