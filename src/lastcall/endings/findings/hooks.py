"""Rows about preStop hooks. Pure."""

# check: pure

import re

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.findings.observed import (
    HOOK_FAILED,
    HOOK_OUTLIVED,
    HOOK_SKIPPED,
    RunFact,
    of_run,
)
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Row
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import ContainerEnding, Ending, Finding, PreStop
from lastcall.records import kinds
from lastcall.records.hook_text import hook_failure
from lastcall.records.recalled import recalled
from lastcall.records.said import joined, tell

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit codes of a shell for a program that is not there, and for one that may not be executed."""

TOGETHER_SECONDS = 0.25
"""The kubelet hears of the end of a hook's command, and the runtime of the container's, within this time of both."""

_SLEEP = re.compile(r"(?:\A|[ /;&])sleep +(?P<seconds>\d+)")


def _hook(subject: RunSubject) -> PreStop:
    assert subject.run.pre_stop is not None
    return subject.run.pre_stop


def _died_with_container(c: ContainerEnding) -> bool:
    hook = c.pre_stop
    if hook is None or hook.handler != "exec" or c.exited_at is None or hook.finished_at is None:
        return False
    own_exit = c.term_at is None or c.exited_at < c.term_at
    return own_exit and abs(hook.finished_at - c.exited_at) < TOGETHER_SECONDS


def _outlasts_by_version(c: ContainerEnding) -> bool:
    hook = c.pre_stop
    return hook is not None and c.stop_timeout is not None and hook.seconds >= 1


DIED_WITH_CONTAINER: RunFact = of_run(
    "when its container ended", _died_with_container, kinds.PRE_STOP_FINISHED, kinds.PROCESS_EXITED
)
_NOTICED = of_run(
    "how long its hook took",
    _outlasts_by_version,
    kinds.PRE_STOP_STARTED,
    kinds.PRE_STOP_FINISHED,
    kinds.STOP_REQUESTED,
)
_COUNTED = of_run(
    "whether the hook's time counts", lambda c: c.stop_floor or bool(c.deducted_seconds), kinds.STOP_REQUESTED
)


def _skipped(s: RunSubject) -> Finding:
    text = said("hookNotRun", container=s.run.name, detail=recalled(_hook(s).detail))
    return Finding("hookNotRun", "warning", text, s.run.name)


def _died(s: RunSubject) -> Finding:
    return Finding("hookDiedWithContainer", "warning", said("hookDiedWithContainer", container=s.run.name), s.run.name)


def _failed(s: RunSubject) -> Finding:
    c, hook = s.run, _hook(s)
    because = tell("exit code $code", code=hook.exit_code) if hook.exit_code else hook_failure(hook.detail)
    if because and not hook.exit_code:
        because = tell("$message", message=because)
    variant = "because" if because else ""
    text = said("hookFailed", variant, container=c.name, seconds=_s(hook.seconds), because=because)
    if output := hook.output.strip().splitlines():
        text = joined([text, said("hookFailed", "said", line=output[-1].strip())])
    return Finding("hookFailed", "problem", text, c.name, _failed_advice(c, hook, s.ending))


def _failed_advice(c: ContainerEnding, hook: PreStop, ending: Ending) -> str:
    """Return advice by how the hook failed, and what it was to do."""
    started = [e.record for e in ending.entries if e.record.kind == kinds.PRE_STOP_STARTED]
    command = next(
        (str(r.told(kinds.PRE_STOP_STARTED).get("detail") or "") for r in reversed(started) if r.container == c.name),
        "",
    )
    missing = hook.exit_code == NOT_FOUND or "executable file not found" in hook_failure(hook.detail)
    missing = missing or "no such file or directory" in hook_failure(hook.detail)
    if hook.handler != "exec":
        return ""
    if missing and (match := _SLEEP.search(command)):
        return fix("hookFailed", "sleep", seconds=match["seconds"])
    if missing:
        return fix("hookFailed", "notFound")
    return fix("hookFailed", "notExecutable" if hook.exit_code == NOT_EXECUTABLE else "")


def _outlived(s: RunSubject) -> Finding:
    c = s.run
    variant = "" if c.stop_timeout is None else "floor" if c.stop_floor else "left"
    text = said(
        "hookOutlived",
        variant,
        container=c.name,
        seconds=_s(_hook(s).seconds),
        signal=c.stop_signal,
        left=f"{c.stop_timeout or 0:g}",
    )
    grace = s.ending.grace_seconds
    return Finding(
        "hookOutlived", "problem", text, c.name, fix("hookOutlived", grace=grace) if grace is not None else ""
    )


def _not_counted(s: RunSubject) -> Finding:
    c, hook = s.run, _hook(s)
    total = _s(hook.seconds + c.drain_seconds)
    if not c.sigkilled:
        total = tell("up to $seconds s", seconds=f"{hook.seconds + (c.stop_timeout or 0):.0f}")
    reason = recalled(c.stop_why.rstrip(".")) or said("hookTimeNotCounted", "version", version=s.version)
    text = said("hookTimeNotCounted", why=reason, container=c.name, total=total, grace=s.ending.grace_seconds)
    return Finding("hookTimeNotCounted", "warning", text, c.name)


ROWS = (
    Row("hookNotRun", (HOOK_SKIPPED,), _skipped),
    Row("hookDiedWithContainer", (HOOK_FAILED, DIED_WITH_CONTAINER), _died),
    Row("hookFailed", (HOOK_FAILED,), _failed, refuted_by=(DIED_WITH_CONTAINER,)),
    Row("hookOutlived", (HOOK_OUTLIVED,), _outlived),
)
COUNTING_ROWS = (Row("hookTimeNotCounted", (_NOTICED,), _not_counted, refuted_by=(_COUNTED,)),)
