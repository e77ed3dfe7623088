"""Rows about containers that ended by themselves, with another code than 0, or that never started. Pure."""

# check: pure

import posixpath
import re

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.never_started import why_never_started
from lastcall.endings.findings.changes import container_change
from lastcall.endings.findings.last_words import advice_about_files
from lastcall.endings.findings.observed import (
    BEFORE_DELETE,
    BEFORE_SIGNAL,
    DROPPED_OR_IGNORED,
    ENDED,
    ENDED_WELL,
    FAILED_CODE,
    NEVER_STARTED,
    NOT_KILLED,
    SIGNALLED,
    of_run,
    once_ended,
)
from lastcall.endings.findings.restarts import is_over
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row, every
from lastcall.endings.findings.words import exit_code, listed
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import Change, ContainerEnding, Finding
from lastcall.endings.verdict import is_deleted, lives_on
from lastcall.records import kinds
from lastcall.records.said import joined, tell

_EXPLAINED_AS_RESTART: Fact[RunSubject] = Fact(
    "why it ended",
    lambda s: is_over(s.run, s.ending) and (s.run.exit.failed_by_itself or s.run.exit.ended_by not in ("", "itself")),
    (kinds.KILLING,),
)
"""Rows about restarts say it; or the node ended it with its Pod, as a sidecar of one that is complete."""
_NOT_DELETED: Fact[RunSubject] = Fact(
    "whether it was deleted", lambda s: s.run.exit.before_delete and not is_deleted(s.ending), (kinds.DELETE_ACCEPTED,)
)
"""The first line of the story says that it had ended."""
_NO_SIGNAL = of_run("how it ended", once_ended(lambda c: not c.exit.signal), kinds.PROCESS_EXITED)
_DROPPED_SIGNAL: Fact[RunSubject] = Fact(
    DROPPED_OR_IGNORED.name, every(_NO_SIGNAL, DROPPED_OR_IGNORED), DROPPED_OR_IGNORED.kinds
)
_OWN_CONTAINER = of_run("its kind", lambda c: c.kind == "container")
_SIDECAR = of_run("its kind", lambda c: c.kind == "sidecar")


def _never_started(s: RunSubject) -> Finding:
    because = why_never_started(s.run, s.ending)
    variant = "because" if because else ""
    if lives_on(s.ending):
        variant = "yetBecause" if because else "yet"
    text = said("neverStarted", variant, container=s.run.name, because=because)
    return Finding("neverStarted", "info", text, s.run.name)


def _by_itself(s: RunSubject) -> Finding:
    c = s.run
    if c.exit.before_delete:
        before = _s(-(c.exit.at or 0.0))
        text = said("endedByItself", "beforeDelete", container=c.name, before=before, exit=_exit(c))
        return Finding("endedByItself", "info", text, c.name)
    text = said("endedByItself", container=c.name, at=_s(c.exit.at), exit=_exit(c))
    hook = c.hook
    if (
        hook
        and hook.finished_at is not None
        and hook.handler != "exec"
        and hook.finished_at > (c.exit.at or 0.0) + 0.05
    ):
        text = joined([text, said("endedByItself", "hookWaited", until=_s(hook.finished_at))])
    return Finding("endedByItself", "info", text, c.name)


_ANSWER_LATE_SECONDS = 0.1
"""The kubelet may read the answer to its hook a moment after the program has ended."""
_BY_HOOK_SECONDS = 1.0
"""What ends so soon after its hook has succeeded may well have ended because of it."""


def _needed(s: RunSubject) -> list[str]:
    """Return the containers that still ran when a native sidecar ended."""
    at = s.run.exit.at
    others = [c for c in s.ending.containers if c.kind == "container" and c.started]
    return [c.name for c in others if at is not None and (c.exit.at is None or c.exit.at > at)]


def _sidecar_by_hook(s: RunSubject) -> bool:
    c, hook = s.run, s.run.hook
    if c.kind != "sidecar" or hook is None or hook.handler == "sleep" or c.exit.at is None or c.exit.before_delete:
        return False
    ended = hook.finished_at if hook.outcome == "succeeded" else c.exit.at if hook.outcome == "interrupted" else None
    return ended is not None and -_ANSWER_LATE_SECONDS <= c.exit.at - ended < _BY_HOOK_SECONDS and bool(_needed(s))


_BY_ITS_HOOK: Fact[RunSubject] = Fact(
    "when its hook ended", _sidecar_by_hook, (kinds.PRE_STOP_STARTED, kinds.PRE_STOP_FINISHED, kinds.PROCESS_EXITED)
)


def _by_its_hook(s: RunSubject) -> Finding:
    """All preStop hooks run at once; the order of native sidecars is that of the stop signal (kuberuntime_container.go,
    termination_order.go)."""
    c = s.run
    text = said("sidecarHookEndsIt", container=c.name, at=_s(c.exit.at), names=listed(_needed(s)))
    advice = fix("sidecarHookEndsIt", container=c.name, signal=c.stop.signal)
    patch = container_change(c.name, c.kind, lifecycle={"preStop": None})
    return Finding("sidecarHookEndsIt", "warning", text, c.name, advice, change=patch)


def _exit(c: ContainerEnding) -> str:
    return tell("killed by $signal", signal=c.exit.signal) if c.exit.signal else exit_code(c)


_MOST_LINES = 100
_NONE_LOST = re.compile(r"(?i)\b(?:0|no(?! (?:such|space|route))|none|without)\b")
"""`0 events lost` reports nothing; `No such file` and `No space left` do."""
_COMPLAINT = re.compile(
    r"(?i)\b(?:\w*error|cannot|can't|could not|unable|fail(?:ed|ure)?|lost|refused|denied|\w*exception|"
    r"read-only file system|no space left)\b"
)
"""Also the name of a class, such as OSError."""


def _after_signal(s: RunSubject) -> list[str]:
    """Return the last lines that it printed after its stop signal."""
    since = s.run.stop.signal_at or 0.0
    those = [line.text for line in s.ending.output if line.container == s.run.name and line.at >= since]
    return [line for line in those[-_MOST_LINES:] if line.strip()]


_TRACEBACK, _EXCEPTION, _PANIC = "Traceback (most recent call last):", re.compile(r"[\w.]+(?:: |$)"), "panic: "


def _uncaught(s: RunSubject) -> str:
    """Return the exception that ended it, by the lines and the exit code with which Python (1) and Go (2) end of one
    that nobody caught; "" for none."""
    lines = _after_signal(s)
    if s.run.exit.code == 1 and any(line.startswith(_TRACEBACK) for line in lines[:-1]):
        return lines[-1].strip()[:200] if _EXCEPTION.match(lines[-1]) else ""
    if s.run.exit.code == 2:
        return next((line.strip()[:200] for line in lines if line.startswith(_PANIC)), "")
    return ""


def _complaint(s: RunSubject) -> str:
    """Return the last line after the stop signal that says that something failed; "" for none."""
    found = (line.strip()[:200] for line in reversed(_after_signal(s)) if _COMPLAINT.search(line))
    return next((line for line in found if not _NONE_LOST.search(line)), "")


_EXPERIMENT = "lastcall"
"""The client of `lastcall run`, which ends a Pod soon after it is Ready."""


def _code(s: RunSubject) -> Finding:
    c, by = s.run, s.ending.decided_by
    how = tell("$signal (exit code $code)", signal=c.exit.signal, code=c.exit.code) if c.exit.signal else exit_code(c)
    of_job = by is not None and by.owner_kind == "Job"
    by_signal = "either" if c.exit.from_status else "bySignal"
    variant = by_signal if c.exit.signal == c.stop.signal else "job" if of_job else ""
    if variant in ("", "job") and c.process.disposition == "handled":
        facts = {"container": c.name, "how": how, "signal": c.stop.signal}
        if line := _uncaught(s):
            text = said("exitCodeNotZero", "jobUncaught" if of_job else "uncaught", **facts, line=line)
            advice = advice_about_files(line) or fix("exitCodeNotZero", "uncaught", signal=c.stop.signal)
            return Finding("exitCodeNotZero", "warning", text, c.name, advice, change=Change(program="fixCrash"))
        if line := _complaint(s):
            text = said("exitCodeNotZero", "jobReported" if of_job else "reported", **facts, line=line)
            advice = advice_about_files(line) or fix("exitCodeNotZero", "reported")
            return Finding("exitCodeNotZero", "warning", text, c.name, advice)
    if not variant and _is_own_code_of_jvm(c):
        text = said("exitCodeNotZero", "jvm", container=c.name, how=how, signal=c.stop.signal)
        return Finding("exitCodeNotZero", "info", text, c.name, fix("exitCodeNotZero", "jvm"))
    text = said("exitCodeNotZero", variant, container=c.name, how=how, code=c.exit.code, signal=c.stop.signal)
    if variant:
        early = by is not None and of_job and by.client == _EXPERIMENT
        return Finding("exitCodeNotZero", "info", text, c.name, fix("exitCodeNotZero", "early") if early else "")
    advice = fix("exitCodeNotZero", signal=c.stop.signal)
    return Finding("exitCodeNotZero", "warning", text, c.name, advice, change=Change(program="exitZero"))


def _code_of_sidecar(s: RunSubject) -> Finding:
    """The phase counts no exit code of a native sidecar (kubelet_pods.go:getPhase)."""
    c = s.run
    text = said("exitCodeNotZero", "sidecar", container=c.name, how=exit_code(c), signal=c.stop.signal)
    advice = fix("exitCodeNotZero", "sidecar", container=c.name, signal=c.stop.signal)
    return Finding("exitCodeNotZero", "info", text, c.name, advice, change=Change(program="exitZero"))


def _is_own_code_of_jvm(c: ContainerEnding) -> bool:
    """Return whether a JVM ended as it does when its shutdown hooks have run: with 128 and the signal's number (JDK
    Terminator.java:setup)."""
    numbers = {"SIGHUP": 1, "SIGINT": 2, "SIGTERM": 15}
    java = posixpath.basename(c.process.exe) == "java" and c.process.disposition == "handled"
    return java and c.exit.code == 128 + numbers.get(c.stop.signal, 0)


_OF_JOB: Fact[RunSubject] = Fact(
    "who owns its Pod",
    lambda s: s.ending.decided_by is not None and s.ending.decided_by.owner_kind == "Job",
    (kinds.DELETION_DECIDED,),
)
_WORK_WAS_DONE: Fact[RunSubject] = Fact(
    "which containers had ended before",
    lambda s: any(c.exit.before_delete and c.kind == "container" for c in s.ending.containers if c.name != s.run.name),
    (kinds.PROCESS_EXITED,),
)
_ANOTHER_FAILED: Fact[RunSubject] = Fact(
    "how the others ended",
    lambda s: any(c.exit.code and c.kind == "container" for c in s.ending.containers if c.name != s.run.name),
    (kinds.PROCESS_EXITED,),
)
"""The Pod counts as Failed then (kubelet_pods.go:getPhase)."""


def _counts_as_done(s: RunSubject) -> Finding:
    """A Job counts a Pod of phase Succeeded as a completion, whatever ended it (job_controller.go:syncJob)."""
    c = s.run
    text = said("jobCountsAsDone", container=c.name, signal=c.stop.signal)
    advice = fix("jobCountsAsDone", signal=c.stop.signal)
    return Finding("jobCountsAsDone", "info", text, c.name, advice)


ROWS = (
    Row("neverStarted", (NEVER_STARTED,), _never_started),
    Row(
        "endedByItself",
        (ENDED, NOT_KILLED, BEFORE_SIGNAL),
        _by_itself,
        refuted_by=(_EXPLAINED_AS_RESTART, _NOT_DELETED, _BY_ITS_HOOK),
    ),
    Row("sidecarHookEndsIt", (ENDED, NOT_KILLED, BEFORE_SIGNAL, _BY_ITS_HOOK), _by_its_hook),
)
CODE_ROWS = (
    Row(
        "jobCountsAsDone",
        (SIGNALLED, NOT_KILLED, ENDED_WELL, _OWN_CONTAINER, _OF_JOB),
        _counts_as_done,
        refuted_by=(BEFORE_DELETE, _WORK_WAS_DONE, _DROPPED_SIGNAL, _ANOTHER_FAILED),
    ),
    Row(
        "exitCodeNotZero",
        (SIGNALLED, FAILED_CODE, NOT_KILLED, _OWN_CONTAINER),
        _code,
        refuted_by=(BEFORE_DELETE, _DROPPED_SIGNAL),
    ),
    Row(
        "exitCodeNotZero",
        (SIGNALLED, FAILED_CODE, _NO_SIGNAL, _SIDECAR),
        _code_of_sidecar,
        refuted_by=(BEFORE_DELETE, _DROPPED_SIGNAL),
        variant="sidecar",
    ),
)
