"""What a reader should know about an ending, one sentence each. Pure: a list of small rules over the story."""

# check: pure

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lastcall.endings.catalogue.lookup import CATALOGUE, fix, said
from lastcall.endings.facts.finalizers import claim_held, held_by_finalizers
from lastcall.endings.facts.never_started import why_never_started
from lastcall.endings.facts.pid1 import is_shell
from lastcall.endings.findings import children, why
from lastcall.endings.findings.around import around, failed_hook_advice, reloads_on_signal
from lastcall.endings.findings.restarts import is_over, killed_before, restarts
from lastcall.endings.findings.words import at, exit_code
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import ContainerEnding, Ending, Entry, Finding, Severity
from lastcall.endings.verdict import is_deleted, lives_on
from lastcall.records import kinds
from lastcall.records.hook_text import hook_failure
from lastcall.records.recalled import recalled
from lastcall.records.said import joined, tell
from lastcall.records.signal_names import signal_name

if TYPE_CHECKING:
    from lastcall.records.definitions.kubelet_end import VolumeBusy

_TRAP_DELAY_SECONDS = 0.1
"""A shell that was free to run its trap prints within this time of the signal."""

_NOT_HANDLED = ("default", "ignored", "blocked")
_SOON_SECONDS = 1.0
"""What ends so soon after its stop signal may well have ended on it, whatever its masks had shown."""
_STARTING_SECONDS = 0.5
"""A program that has run for no longer than this may not have come to its handlers yet: nothing is known of them."""


def findings_of(ending: Ending, kubernetes_version: str) -> tuple[Finding, ...]:
    """The findings of a story, the Pod's first, then each container's in order of what happened."""
    found = [*dict.fromkeys(_about_pod(ending))]  # a restarted container reports its image again
    found += restarts(ending)
    for container in ending.containers:
        for rule in _CONTAINER_RULES:
            found += rule(container, ending, kubernetes_version)
    told = {(each.id, each.container) for each in found}
    for run in killed_before(ending):
        more = [*why.out_of_memory(run, ending, kubernetes_version), *_killed(run, ending, kubernetes_version)]
        found += [each for each in more if (each.id, each.container) not in told]
    return tuple(found)


# -- the Pod ------------------------------------------------------------------------------------------------------


def _about_pod(ending: Ending) -> Iterator[Finding]:
    for entry in ending.entries:
        if entry.record.kind == kinds.IMAGE_SUBSTITUTED:
            other = entry.told(kinds.IMAGE_SUBSTITUTED)
            text = said("imageSubstituted", image=other.get("image"), substitute=other.get("substitute"))
            yield Finding("imageSubstituted", "warning", text, entry.record.container)
        elif entry.record.kind == kinds.PROCESS_DIED:
            yield _process_died(entry)
        elif entry.record.kind == kinds.VOLUME_BUSY:
            busy = _volume_busy(entry.told(kinds.VOLUME_BUSY))
            yield Finding("volumeBusy", "warning", busy, advice=fix("volumeBusy"))
        elif entry.record.kind == kinds.CLAIM_HELD:
            yield Finding("claimHeldByPod", "info", claim_held(entry.told(kinds.CLAIM_HELD), entry.at))
        elif entry.record.kind == kinds.NETWORK_DETACHED:
            detached = entry.told(kinds.NETWORK_DETACHED)
            if detached.get("error"):
                text = said("networkTeardownFailed", ip=detached.get("ip"), error=detached.get("error"))
                yield Finding("networkTeardownFailed", "warning", text, advice=fix("networkTeardownFailed"))
        elif entry.record.kind == kinds.GRACE_SHORTENED and entry.at >= 0:
            shorter = entry.told(kinds.GRACE_SHORTENED)
            text = said("graceShortened", before=shorter.get("from"), after=shorter.get("to"))
            yield Finding("graceShortened", "info", text)
    yield from held_by_finalizers(ending)
    yield from around(ending)
    late = [c for c in ending.containers if c.exit.at is not None and ending.gone is not None]
    last = max((c.exit.at or 0.0 for c in late), default=0.0)
    if ending.gone is not None and last > ending.gone + 0.001:
        text = said("goneBeforeContainers", gone=_s(ending.gone), last=_s(last))
        yield Finding("goneBeforeContainers", "warning", text, advice=fix("goneBeforeContainers"))


def _volume_busy(facts: "VolumeBusy") -> str:
    holders = [
        said("volumeBusy", "mount" if each.get("how") == "mount" else "process", **_FIELDS_OF_A_HOLDER | each)
        for each in facts.get("holders") or ()
    ]
    held = joined(holders[:4], ", ") or said("volumeBusy", "nobody")
    more = len(holders) - 4 + int(facts.get("more") or 0)
    if more > 0:
        held = said("volumeBusy", "more", holders=held, more=more)
    return said("volumeBusy", volume=facts.get("volume"), error=facts.get("error"), holders=held)


_FIELDS_OF_A_HOLDER: dict[str, Any] = dict.fromkeys(("path", "name", "pid", "how"))


def _process_died(entry: Entry) -> Finding:
    facts = entry.told(kinds.PROCESS_DIED)
    role, how = str(facts.get("role")), signal_name(facts.get("signal"))
    died = said("processDied", "exited", code=facts.get("exitCode"))
    if how:
        died = said("processDied", "killed", signal=how)
    if "hung" in facts:
        died = said("processDied", "hung", seconds=f"{facts['hung']['seconds']:.0f}")
    restarted = facts.get("restartsIn") is not None
    after = "" if restarted else said("processDied", "unknown")
    if restarted and role in CATALOGUE["processDied"].texts:
        after = said("processDied", role)
    severity: Severity = "warning" if restarted and role != "shim-1" else "problem"
    text = said("processDied", role=role, died=died, at=f"{entry.at:.2f}", after=after)
    return Finding("processDied", severity, text)


# -- a container --------------------------------------------------------------------------------------------------


def _never_started(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if not c.started:
        because = why_never_started(c, ending)
        variant = "because" if because else ""
        if lives_on(ending):
            variant = "yetBecause" if because else "yet"
        text = said("neverStarted", variant, container=c.name, because=because)
        yield Finding("neverStarted", "info", text, c.name)


def _own_exit(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if c.exit.at is None or c.exit.sigkilled:
        return
    if c.exit.from_status and c.stop.signal_at is None and not c.exit.before_delete:
        return  # nobody saw its stop signal: that does not mean that none was sent
    if c.stop.signal_at is None and c.hook is not None and c.hook.outcome == "unknown":
        return  # nor is it known whether it ended before its hook did, after which the signal is sent
    if is_over(c, ending) and (c.exit.failed_by_itself or c.exit.ended_by not in ("", "itself")):
        return  # findings_restarts says it; or the node ended it with its Pod, as a sidecar of one that is complete
    if c.exit.before_delete and not is_deleted(ending):
        return  # nobody has deleted it: its first line says that it had ended
    if c.exit.before_delete:
        before = _s(-c.exit.at)
        text = said("endedByItself", "beforeDelete", container=c.name, before=before, exit=_exit(c))
        yield Finding("endedByItself", "info", text, c.name)
    elif c.stop.signal_at is None or c.exit.at < c.stop.signal_at:
        text = said("endedByItself", container=c.name, at=_s(c.exit.at), exit=_exit(c))
        hook = c.hook
        if hook and hook.finished_at is not None and hook.finished_at > c.exit.at + 0.05 and hook.handler != "exec":
            text = joined([text, said("endedByItself", "hookWaited", until=_s(hook.finished_at))])
        yield Finding("endedByItself", "info", text, c.name)


def _hook_skipped(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if c.hook and c.hook.outcome == "skipped":
        text = said("hookNotRun", container=c.name, detail=recalled(c.hook.detail))
        yield Finding("hookNotRun", "warning", text, c.name)


def _hook_failed(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    hook = c.hook
    if hook is None or hook.outcome != "failed":
        return
    if hook.handler == "exec" and c.exit.at is not None and hook.finished_at is not None:
        own_exit = c.stop.signal_at is None or c.exit.at < c.stop.signal_at
        if own_exit and abs(hook.finished_at - c.exit.at) < 0.25:
            text = said("hookDiedWithContainer", container=c.name)
            yield Finding("hookDiedWithContainer", "warning", text, c.name)
            return
    because = tell("exit code $code", code=hook.exit_code) if hook.exit_code else hook_failure(hook.detail)
    if because and not hook.exit_code:
        because = tell("$message", message=because)
    variant = "because" if because else ""
    text = said("hookFailed", variant, container=c.name, seconds=_s(hook.seconds), because=because)
    if output := hook.output.strip().splitlines():
        text = joined([text, said("hookFailed", "said", line=output[-1].strip())])
    yield Finding("hookFailed", "problem", text, c.name, failed_hook_advice(c, hook, ending))


def _hook_outlived(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    hook = c.hook
    if hook is None or hook.outcome != "outlived":
        return
    variant = "" if c.stop.timeout is None else "floor" if c.stop.floor else "left"
    left = f"{c.stop.timeout or 0:g}"
    text = said("hookOutlived", variant, container=c.name, seconds=_s(hook.seconds), signal=c.stop.signal, left=left)
    grace = ending.grace_seconds
    advice = fix("hookOutlived", grace=grace) if grace is not None else ""
    yield Finding("hookOutlived", "problem", text, c.name, advice)


def _term_not_handled(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if c.process.disposition not in _NOT_HANDLED or c.stop.signal_at is None:
        return
    # A blocked signal may have been taken after the look; one that is dropped, or ignored, is so for good.
    heard = c.process.disposition == "blocked" or c.exit.signal == c.stop.signal or c.drain_seconds < _SOON_SECONDS
    if heard and c.exit.at is not None and not c.exit.sigkilled:
        return
    program = (
        c.process.exe
        if not c.process.command or c.process.exe.endswith(f"/{c.process.command}")
        else f"{c.process.command}, {c.process.exe}".rstrip(", ")
    )
    age = c.stop.signal_at - c.started_at if c.started_at is not None else _STARTING_SECONDS
    if (
        c.process.disposition == "default"
        and c.exit.at is not None
        and not c.exit.sigkilled
        and age < _STARTING_SECONDS
    ):
        text = said(
            "stopSignalNotHandled",
            "starting",
            container=c.name,
            program=f" ({program})" if program else "",
            age=_s(age),
            signal=c.stop.signal,
            seconds=_s(c.drain_seconds),
        )
        yield Finding("stopSignalNotHandled", "info", text, c.name)
        return
    text = said(
        "stopSignalNotHandled",
        "" if c.exit.at is None else "untilKill" if c.exit.sigkilled else "untilExit",
        container=c.name,
        program=f" ({program})" if program else "",
        disposition=said("stopSignalNotHandled", c.process.disposition, signal=c.stop.signal),
        seconds=_s(c.drain_seconds),
    )
    yield Finding("stopSignalNotHandled", "problem", text, c.name, why.stop_signal_advice(c, version))


def _shell_trap(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if c.process.disposition != "handled" or c.stop.signal_at is None or not is_shell(c):
        return
    after = [line.at for line in ending.output if line.container == c.name and line.at >= c.stop.signal_at]
    delay = after[0] - c.stop.signal_at if after else 0.0
    if delay >= _TRAP_DELAY_SECONDS:
        text = said("shellRunsTrapLate", container=c.name, seconds=_s(delay), signal=c.stop.signal)
        yield Finding("shellRunsTrapLate", "info", text, c.name)


def _killed(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if not c.exit.sigkilled or (is_over(c, ending) and c.exit.ended_by in ("livenessProbe", "startupProbe")):
        return
    moment = c.stop.kill_at if c.stop.kill_at is not None else c.exit.at
    if c.exit.at is not None and c.exit.before_delete:
        moment = c.exit.at
    when = at(moment) if moment is not None else ""
    if c.exit.killed_by == "out of memory":
        return  # findings_why.out_of_memory
    if c.exit.killed_by == "unknown sender":
        text = said("killedByOther", "status" if c.exit.from_status else "", container=c.name, when=when)
        yield Finding("killedByOther", "problem", text, c.name, fix("killedByOther"))
    elif c.exit.killed_by_grace:
        yield Finding("killed", "problem", _why_killed(c, when), c.name, why.killed_advice(c, ending))
    else:
        why_killed = tell("the shim died") if c.exit.killed_by == "the shim died" else c.exit.killed_by
        text = said("killed", "other", container=c.name, when=when, why=why_killed)
        yield Finding("killed", "problem", text, c.name)


def _why_killed(c: ContainerEnding, when: str) -> str:
    if c.stop.signal_at is None or c.stop.timeout is None:
        return said("killed", "timeOver", container=c.name, when=when)
    timeout = f"{c.stop.timeout:g}"
    if c.hook and c.stop.deducted:
        hook = _s(c.hook.seconds)
        return said(
            "killed", "hookTookTime", container=c.name, when=when, timeout=timeout, signal=c.stop.signal, hook=hook
        )
    return said("killed", "stillRan", container=c.name, when=when, timeout=timeout, signal=c.stop.signal)


def _hook_time_not_counted(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    hook = c.hook
    if hook is None or c.stop.timeout is None or hook.seconds < 1 or c.stop.floor or c.stop.deducted:
        return
    grace = ending.grace_seconds
    total = _s(hook.seconds + c.drain_seconds)
    if not c.exit.sigkilled:
        total = tell("up to $seconds s", seconds=f"{hook.seconds + c.stop.timeout:.0f}")
    reason = recalled(c.stop.why.rstrip(".")) or said("hookTimeNotCounted", "version", version=version)
    text = said("hookTimeNotCounted", why=reason, container=c.name, total=total, grace=grace)
    yield Finding("hookTimeNotCounted", "warning", text, c.name)


def _exit_code(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if c.exit.before_delete or c.exit.sigkilled or not c.exit.code or c.stop.signal_at is None or c.kind != "container":
        return
    if not c.exit.signal and c.process.disposition in ("default", "ignored"):
        return  # the signal was dropped: it did not end on it
    how = tell("$signal (exit code $code)", signal=c.exit.signal, code=c.exit.code) if c.exit.signal else exit_code(c)
    of_job = ending.decided_by is not None and ending.decided_by.owner_kind == "Job"
    variant = "bySignal" if c.exit.signal == c.stop.signal else "job" if of_job else ""
    text = said("exitCodeNotZero", variant, container=c.name, how=how, signal=c.stop.signal)
    if variant:
        yield Finding("exitCodeNotZero", "info", text, c.name)
    else:
        yield Finding("exitCodeNotZero", "warning", text, c.name, fix("exitCodeNotZero", signal=c.stop.signal))


_CONTAINER_RULES: tuple[Callable[[ContainerEnding, Ending, str], Iterator[Finding]], ...] = (
    _never_started,
    _own_exit,
    _hook_skipped,
    _hook_failed,
    _hook_outlived,
    _term_not_handled,
    children.not_signalled,
    _shell_trap,
    _killed,
    reloads_on_signal,
    why.held_by_connections,
    why.out_of_memory,
    why.exit_code_137,
    why.listener_closed_early,
    why.connections_cut,
    children.zombies,
    _hook_time_not_counted,
    _exit_code,
)


def _exit(c: ContainerEnding) -> str:
    return tell("killed by $signal", signal=c.exit.signal) if c.exit.signal else exit_code(c)
