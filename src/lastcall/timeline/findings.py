"""What a reader should know about an ending, one sentence each. Pure: a list of small rules over the story."""

from collections.abc import Callable, Iterator
from typing import Any

from lastcall.timeline import findings_why as why
from lastcall.timeline import kinds
from lastcall.timeline.finalizers import claim_held, held_by_finalizers
from lastcall.timeline.hook_text import hook_failure
from lastcall.timeline.never_started import why_never_started
from lastcall.timeline.signal_names import signal_name
from lastcall.timeline.story import ContainerEnding, Ending, Entry, Finding, Severity

_TRAP_DELAY_SECONDS = 0.1
"""A shell that was free to run its trap prints within this time of the signal."""

_DISPOSITIONS = {
    "default": (
        "has no handler for {signal}: the kernel drops a signal with its default action when PID 1 of a PID namespace "
        "gets it, so it did nothing"
    ),
    "ignored": "ignores {signal} (SigIgn in /proc), so it did nothing",
    "blocked": "blocks {signal} (SigBlk in /proc), so it was not delivered",
}


def findings_of(ending: Ending, kubernetes_version: str) -> tuple[Finding, ...]:
    """The findings of a story, the Pod's first, then each container's in order of what happened."""
    found = [*dict.fromkeys(_about_pod(ending))]  # a restarted container tells of its image again
    for container in ending.containers:
        for rule in _CONTAINER_RULES:
            found += rule(container, ending, kubernetes_version)
    return tuple(found)


# -- the Pod ------------------------------------------------------------------------------------------------------


def _about_pod(ending: Ending) -> Iterator[Finding]:
    for entry in ending.entries:
        facts = entry.record.facts
        if entry.record.kind == kinds.IMAGE_SUBSTITUTED:
            text = (
                f"Image {facts.get('image')} could not be had: {facts.get('substitute')} ran in its place. "
                "Programs in it may behave differently."
            )
            yield Finding("imageSubstituted", "warning", text, entry.record.container)
        elif entry.record.kind == kinds.PROCESS_DIED:
            yield _process_died(entry)
        elif entry.record.kind == kinds.VOLUME_BUSY:
            yield Finding("volumeBusy", "warning", _volume_busy(facts))
        elif entry.record.kind == kinds.CLAIM_HELD:
            yield Finding("claimHeldByPod", "info", claim_held(facts, entry.at))
        elif entry.record.kind == kinds.NETWORK_DETACHED and facts.get("error"):
            text = (
                f"The Pod's network {facts.get('ip')} could not be taken down: {facts.get('error')}. The Pod stays "
                "Terminating until that succeeds."
            )
            yield Finding("networkTeardownFailed", "warning", text)
        elif entry.record.kind == kinds.GRACE_SHORTENED and entry.at >= 0:
            text = (
                f"A second DELETE shortened the grace period from {facts.get('from')} s to {facts.get('to')} s; a hook "
                "or stop that is under way is not interrupted by it."
            )
            yield Finding("graceShortened", "info", text)
    yield from held_by_finalizers(ending)
    late = [c for c in ending.containers if c.exited_at is not None and ending.gone is not None]
    last = max((c.exited_at or 0.0 for c in late), default=0.0)
    if ending.gone is not None and last > ending.gone + 0.001:
        text = (
            f"The object was gone after {_s(ending.gone)}, its containers lived on until {_s(last)}: a forced deletion "
            "does not wait for the node."
        )
        yield Finding("goneBeforeContainers", "warning", text)


def _volume_busy(facts: dict[str, Any]) -> str:
    holders = [
        f"a mount at {each.get('path')}"
        if each.get("how") == "mount"
        else f"{each.get('name')} (pid {each.get('pid')}) by {each.get('how')} {each.get('path')}"
        for each in facts.get("holders") or ()
    ]
    held = ", ".join(holders[:4]) or "nobody that can be seen"
    more = len(holders) - 4 + int(facts.get("more") or 0)
    return (
        f"Volume {facts.get('volume')} could not be unmounted ({facts.get('error')}): it is held by {held}"
        f"{f' and {more} more' if more > 0 else ''}. The object stays until it is unmounted."
    )


_AFTER_A_DEATH = {
    "node-1": "it was started again and took its containers over, and a grace period under way began anew.",
    "control-plane": "it was started again and went on from its store.",
    "shim-1": "every container that ran ended with it, and it was started again without them.",
}


def _process_died(entry: Entry) -> Finding:
    facts = entry.record.facts
    role, how = str(facts.get("role")), signal_name(facts.get("signal"))
    died = f"was killed by {how}" if how else f"exited with {facts.get('exitCode')}"
    if "hung" in facts:
        died = f"hung (its event loop did not turn for {facts['hung']['seconds']:.0f} s) and was ended"
    restarted = facts.get("restartsIn") is not None
    after = _AFTER_A_DEATH.get(role, "") if restarted else "what it did after that is not known."
    severity: Severity = "warning" if restarted and role != "shim-1" else "problem"
    return Finding("processDied", severity, f"The cluster's {role} {died} at {entry.at:.2f} s; {after}")


# -- a container --------------------------------------------------------------------------------------------------


def _never_started(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if not c.started:
        because = why_never_started(c, ending)
        text = f"{c.name} was never started{f' ({because})' if because else ''}, so nothing had to be stopped."
        yield Finding("neverStarted", "info", text, c.name)


def _own_exit(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if c.exited_at is None or c.sigkilled:
        return
    if c.ended_before_delete:
        when = f"{_s(-c.exited_at)} before the DELETE"
        yield Finding("endedByItself", "info", f"{c.name} ended by itself {when}, {_exit(c)}.", c.name)
    elif c.term_at is None or c.exited_at < c.term_at:
        text = f"{c.name} ended by itself at {_s(c.exited_at)}, before any signal was sent to it, {_exit(c)}."
        hook = c.pre_stop
        if hook and hook.finished_at is not None and hook.finished_at > c.exited_at + 0.05 and hook.handler != "exec":
            text += f" Its preStop hook was still waited for until {_s(hook.finished_at)}."
        yield Finding("endedByItself", "info", text, c.name)


def _hook_skipped(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if c.pre_stop and c.pre_stop.outcome == "skipped":
        yield Finding(
            "hookNotRun", "warning", f"The preStop hook of {c.name} was not run: {c.pre_stop.detail}.", c.name
        )


def _hook_failed(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    hook = c.pre_stop
    if hook is None or hook.outcome != "failed":
        return
    if hook.handler == "exec" and c.exited_at is not None and hook.finished_at is not None:
        own_exit = c.term_at is None or c.exited_at < c.term_at
        if own_exit and abs(hook.finished_at - c.exited_at) < 0.25:
            text = (
                f"{c.name} ended while its preStop command ran; the command died with the container, which counts as a "
                "failed hook."
            )
            yield Finding("hookDiedWithContainer", "warning", text, c.name)
            return
    why = f"exit code {hook.exit_code}" if hook.exit_code else hook_failure(hook.detail)
    output = hook.output.strip().splitlines()
    said = f" It said: {output[-1].strip()}" if output else ""
    text = (
        f"The preStop hook of {c.name} failed after {_s(hook.seconds)}{f' ({why})' if why else ''}: the stop goes on "
        f"without it, and nothing of the Pod's status shows it, only the Event FailedPreStopHook.{said}"
    )
    yield Finding("hookFailed", "problem", text, c.name)


def _hook_outlived(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    hook = c.pre_stop
    if hook is None or hook.outcome != "outlived":
        return
    text = (
        f"The preStop hook of {c.name} still ran when the grace period was over ({_s(hook.seconds)}): {c.stop_signal} "
        "was sent while it ran"
    )
    if c.stop_timeout is not None:
        text += f", and {c.name} was left {c.stop_timeout:g} s{' (the least that is given)' if c.stop_floor else ''}"
    yield Finding("hookOutlived", "problem", text + ".", c.name)


def _term_not_handled(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    words = _DISPOSITIONS.get(c.disposition)
    if words is None or c.term_at is None:
        return
    program = c.exe if not c.command or c.exe.endswith(f"/{c.command}") else f"{c.command}, {c.exe}".rstrip(", ")
    text = f"PID 1 of {c.name}{f' ({program})' if program else ''} {words.format(signal=c.stop_signal)}"
    if c.sigkilled and c.exited_at is not None:
        text += f"; it took the full time until SIGKILL, {_s(c.exited_at - c.term_at)}"
    yield Finding("stopSignalNotHandled", "problem", text + ".", c.name, why.stop_signal_advice(c, version))


def _shell_trap(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if c.disposition != "handled" or c.term_at is None or not why.is_shell(c):
        return
    after = [line.at for line in ending.output if line.container == c.name and line.at >= c.term_at]
    delay = after[0] - c.term_at if after else 0.0
    if delay >= _TRAP_DELAY_SECONDS:
        text = (
            f"{c.name} took {_s(delay)} to react to {c.stop_signal}: its PID 1 is a shell, and a shell runs its trap "
            "only when the command it waits for has ended."
        )
        yield Finding("shellRunsTrapLate", "info", text, c.name)


def _killed(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if not c.sigkilled:
        return
    at = c.kill_at if c.kill_at is not None else c.exited_at
    when = f" at {_s(at)}" if at is not None else ""
    if c.exited_at is not None and c.ended_before_delete:
        when = f" {_s(-c.exited_at)} before the DELETE"
    if c.killed_by == "out of memory":
        return  # findings_why.out_of_memory
    if c.killed_by == "unknown sender":
        text = (
            f"{c.name} ended by SIGKILL{when}, and lastcall did not send it: somebody else did, or the kernel for want "
            "of memory (inferred)."
        )
        yield Finding("killedByOther", "problem", text, c.name)
    elif c.killed_by in ("grace over", "StopContainer"):
        yield Finding("killed", "problem", _why_killed(c, when), c.name, why.killed_advice(c, ending))
    else:
        yield Finding("killed", "problem", f"{c.name} was sent SIGKILL{when} ({c.killed_by}).", c.name)


def _why_killed(c: ContainerEnding, when: str) -> str:
    text = f"{c.name} was sent SIGKILL{when}"
    if c.term_at is None or c.stop_timeout is None:
        return f"{text}: its time was over."
    text += f", because it still ran {c.stop_timeout:g} s after {c.stop_signal}"
    if c.pre_stop and c.deducted_seconds:
        return f"{text}: the preStop hook had taken {_s(c.pre_stop.seconds)} of the grace period before."
    return text + "."


def _hook_time_not_counted(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    hook = c.pre_stop
    if hook is None or c.stop_timeout is None or hook.seconds < 1 or c.stop_floor or c.deducted_seconds:
        return
    grace = ending.grace_seconds
    total = f"up to {hook.seconds + c.stop_timeout:.0f} s" if not c.sigkilled else _s(hook.seconds + c.drain_seconds)
    text = c.stop_why or (
        f"Kubernetes {version} does not take the preStop hook's time off the grace period (so it was from 1.22 to "
        "1.27; 1.28 fixed it)."
    )
    yield Finding(
        "hookTimeNotCounted", "warning", f"{text.rstrip('.')}; {c.name} had {total} in place of {grace} s.", c.name
    )


def _exit_code(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    if c.ended_before_delete or c.sigkilled or not c.exit_code or c.term_at is None:
        return
    if c.kind == "container":
        how = f"{c.signal} (exit code {c.exit_code})" if c.signal else f"exit code {c.exit_code}"
        text = f"{c.name} ended with {how} on {c.stop_signal}: the Pod counts as Failed, although nothing was killed."
        yield Finding("exitCodeNotZero", "warning", text, c.name)


_CONTAINER_RULES: tuple[Callable[[ContainerEnding, Ending, str], Iterator[Finding]], ...] = (
    _never_started,
    _own_exit,
    _hook_skipped,
    _hook_failed,
    _hook_outlived,
    _term_not_handled,
    why.not_signalled,
    _shell_trap,
    _killed,
    why.held_by_connections,
    why.out_of_memory,
    why.exit_code_137,
    why.listener_closed_early,
    why.connections_cut,
    why.zombies,
    _hook_time_not_counted,
    _exit_code,
)


def _exit(c: ContainerEnding) -> str:
    return f"killed by {c.signal}" if c.signal else f"exit code {c.exit_code}"


def _s(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.95 else f"{seconds * 1000:.0f} ms"
