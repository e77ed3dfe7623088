"""Rows about containers that ended by themselves, with another code than 0, or that never started. Pure."""

# check: pure

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.never_started import why_never_started
from lastcall.endings.findings.observed import (
    BEFORE_DELETE,
    BEFORE_SIGNAL,
    DROPPED_OR_IGNORED,
    ENDED,
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
from lastcall.endings.findings.words import exit_code
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


def _exit(c: ContainerEnding) -> str:
    return tell("killed by $signal", signal=c.exit.signal) if c.exit.signal else exit_code(c)


def _code(s: RunSubject) -> Finding:
    c, by = s.run, s.ending.decided_by
    how = tell("$signal (exit code $code)", signal=c.exit.signal, code=c.exit.code) if c.exit.signal else exit_code(c)
    of_job = by is not None and by.owner_kind == "Job"
    by_signal = "either" if c.exit.from_status else "bySignal"
    variant = by_signal if c.exit.signal == c.stop.signal else "job" if of_job else ""
    text = said("exitCodeNotZero", variant, container=c.name, how=how, code=c.exit.code, signal=c.stop.signal)
    if variant:
        return Finding("exitCodeNotZero", "info", text, c.name)
    advice = fix("exitCodeNotZero", signal=c.stop.signal)
    return Finding("exitCodeNotZero", "warning", text, c.name, advice, change=Change(program="exitZero"))


ROWS = (
    Row("neverStarted", (NEVER_STARTED,), _never_started),
    Row(
        "endedByItself",
        (ENDED, NOT_KILLED, BEFORE_SIGNAL),
        _by_itself,
        refuted_by=(_EXPLAINED_AS_RESTART, _NOT_DELETED),
    ),
)
CODE_ROWS = (
    Row(
        "exitCodeNotZero",
        (SIGNALLED, FAILED_CODE, NOT_KILLED, _OWN_CONTAINER),
        _code,
        refuted_by=(BEFORE_DELETE, _DROPPED_SIGNAL),
    ),
)
