"""What a reader should know about an ending: asks the tables of causes, in the order of what happened. Pure."""

# check: pure

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lastcall.endings.findings import (
    exits,
    hooks,
    kills,
    pods,
    post_start,
    probes,
    processes,
    restarts,
    sidecar_connections,
    signals,
    single_records,
    sockets,
    together,
    waiting_inside,
    waits,
)
from lastcall.endings.findings.subjects import ContainerSubject, PodSubject, RecordSubject, RunSubject
from lastcall.endings.findings.table import Answer, Row, ask
from lastcall.endings.story import Ending, Finding

RECORD_ROWS: tuple[Row[RecordSubject], ...] = single_records.ROWS
_OF_RECORDS = frozenset(kind for row in RECORD_ROWS for kind in row.kinds)
POD_ROWS: tuple[Row[PodSubject], ...] = pods.ROWS
CONTAINER_ROWS: tuple[Row[ContainerSubject], ...] = restarts.ROWS
RUN_ROWS: tuple[Row[RunSubject], ...] = (
    *exits.ROWS,
    *post_start.ROWS,
    *probes.ROWS,
    *hooks.ROWS,
    *kills.MEMORY_ROWS,
    *signals.ROWS,
    *processes.ROWS,
    *signals.TRAP_ROWS,
    *kills.ROWS,
    *waiting_inside.ROWS,
    *signals.RELOAD_ROWS,
    *sidecar_connections.ROWS,
    *sockets.HELD_ROWS,
    *kills.CODE_ROWS,
    *sockets.ROWS,
    *processes.ZOMBIE_ROWS,
    *hooks.COUNTING_ROWS,
    *together.ROWS,
    *exits.CODE_ROWS,
    *waits.ROWS,
)
"""About the last run of each container."""
EARLIER_ROWS: tuple[Row[RunSubject], ...] = (*kills.MEMORY_ROWS, *kills.ROWS)
"""About the newest earlier run that was killed."""


def find_causes(ending: Ending, kubernetes_version: str) -> Answer:
    """Return the findings of a story, the Pod's first, then each container's, and the questions that stay open."""
    answers = [*_about_pod(ending), *_about_containers(ending, kubernetes_version)]
    findings = [finding for answer in answers for finding in answer.findings]
    known = {(each.id, each.container) for each in findings}
    for run in restarts.killed_before(ending):
        more = ask(EARLIER_ROWS, RunSubject(ending, run, kubernetes_version)).findings
        findings += [each for each in more if (each.id, each.container) not in known]
    open_questions = dict.fromkeys(sentence for answer in answers for sentence in answer.not_known)
    return Answer(tuple(findings), tuple(open_questions))


def _about_pod(ending: Ending) -> Iterator[Answer]:
    entries = (entry for entry in ending.entries if entry.record.kind in _OF_RECORDS)  # few of what containers print
    of_records = [ask(RECORD_ROWS, RecordSubject(ending, entry)) for entry in entries]
    findings = [finding for answer in of_records for finding in answer.findings]
    # A restarted container reports its image again.
    once = {(each.id, each.container, each.text): each for each in reversed(findings)}
    yield Answer(tuple(reversed(once.values())))
    yield ask(POD_ROWS, PodSubject(ending))


def _about_containers(ending: Ending, version: str) -> Iterator[Answer]:
    for name in dict.fromkeys(c.name for c in [*ending.earlier, *ending.containers]):
        earlier = [c for c in ending.earlier if c.name == name]
        last = [c for c in ending.containers if c.name == name and restarts.is_over(c, ending)]
        yield ask(CONTAINER_ROWS, ContainerSubject(ending, earlier, last))
    for run in ending.containers:
        answer = ask(RUN_ROWS, RunSubject(ending, run, version))
        yield replace(answer, findings=_one_cause(answer.findings))


def _one_cause(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings of a run, of which only those are problems that say what to do about its kill, if one does:
    the others are what it led to."""
    about = [each for each in findings if each.id in _ABOUT_A_KILL and each.severity == "problem"]
    if not any(each.advice for each in about):
        return tuple(findings)
    effects = {each.id for each in about if not each.advice}
    return tuple(replace(each, severity="info") if each.id in effects else each for each in findings)


_WHY_NOT_ENDED = {row.id for row in RUN_ROWS if row.answers is signals.WHY_NOT_ENDED} - {"connectionsOpenAtKill"}

_ABOUT_A_KILL = {*_WHY_NOT_ENDED, "killed", "hookOutlived"}


def why_not_ended(ending: Ending) -> Finding | None:
    """Return why a container did not act on its stop signal until it was killed; None if it did, or nobody saw."""
    killed = {c.name for c in ending.containers if c.exit.sigkilled}
    found = [each for each in ending.findings if each.id in _WHY_NOT_ENDED and each.container in killed]
    return next((each for each in found if each.advice), found[0] if found else None)
