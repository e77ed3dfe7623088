"""How one container ended, from its records. Pure; every record may be missing."""

# check: pure

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from lastcall.endings.facts.node import (
    children_ended_of,
    closed_in_hook_of,
    first_reaction_of,
    pod_listeners_of,
    processes_at_stop_of,
    processes_left_of,
    refused_in_pod_of,
    sockets_of,
    waits_of,
)
from lastcall.endings.story import (
    PAUSE_ENDED,
    ContainerEnding,
    ContainerFacts,
    EndedBy,
    Entry,
    Exit,
    FailedProbe,
    PreStop,
    PreStopOutcome,
    Process,
    Seen,
    Stop,
)
from lastcall.records import kinds
from lastcall.records.signal_names import SIGKILL, signal_name

if TYPE_CHECKING:
    from lastcall.records.definitions.runtime import ProcessSignalState, ProcessStarted

_EXEC_SIGNALS = ("exec timeout", "caller gone")
"""`why` of signals that go to an exec in the container, not to the container."""


_MOST_LINES = 10

TOGETHER_SECONDS = 0.25
"""Within this time the kubelet hears of the end of a hook's command and the runtime of the container's, when one end is
the reason of the other."""

LISTED_LATE_SECONDS = 1.0
"""A runtime lists an end within this time."""

_ENDED_BY: dict[str, EndedBy] = {
    "LivenessProbe": "livenessProbe", "StartupProbe": "startupProbe", "FailedPostStartHook": "postStartHook",
}  # fmt: skip
"""By the reason of the record Killing."""

_ENDS = (kinds.DELETE_ACCEPTED, kinds.TERMINATION_OBSERVED, kinds.DELETION_DECIDED)
"""A Pod's end begins with the first of these."""


def container_runs(
    facts: ContainerFacts, entries: Sequence[Entry], orphans: Sequence[Entry] = ()
) -> tuple[ContainerEnding, list[ContainerEnding]]:
    """Return the last run of a container, and those before it that were seen to end.

    `entries` are the Pod's, sorted by time. `orphans` are the ProcessDied records of role `orphan`: when the shim is
    dead, init reports how its children ended.
    """
    mine = [entry for entry in entries if entry.record.container == facts.name]
    starts = [i for i, entry in enumerate(mine) if entry.record.kind == kinds.PROCESS_STARTED]
    if not starts:
        starts = [i for i, entry in enumerate(mine) if entry.record.kind == kinds.CONTAINER_STARTED]
    ends_at = next((entry.at for entry in entries if entry.record.kind in _ENDS), None)
    pauses = [_killed_by_pause(entry) for entry in entries if entry.record.kind == kinds.PAUSE_ENDED]
    earlier: list[ContainerEnding] = []
    if len(starts) > 1:
        before = replace(facts, exit_code=None, reason=None, signal=None)  # the object reports the last run
        earlier = [_run(before, mine[start:end], True, orphans, ends_at, pauses) for start, end in pairwise(starts)]
    last = mine[starts[-1] :] if starts else mine
    ending = _run(facts, last, bool(starts), orphans, ends_at, pauses, max(0, len(starts) - 1))
    return ending, [each for each in earlier if each.exit.code is not None]


def _run(
    facts: ContainerFacts,
    last: Sequence[Entry],
    started: bool,
    orphans: Sequence[Entry],
    ends_at: float | None,
    pauses: Sequence[tuple[float, float]],
    restarts: int = 0,
) -> ContainerEnding:
    """One run: what the records from its start to the next one tell; `restarts` are those before it."""
    # A run begins with the process, or with the kubelet's word where nobody saw the process.
    begun = started and last[0].record.kind == kinds.PROCESS_STARTED
    start = last[0].facts_as(kinds.PROCESS_STARTED) if begun else None
    pid = _whole(start.get("pid")) if start else None
    exit_ = _last(last, kinds.PROCESS_EXITED) or next(
        (o for o in orphans if pid and o.facts_as(kinds.PROCESS_DIED).get("pid") == pid), None
    )
    sent = _Sent.of(last, pid)
    state = _last(last, kinds.PROCESS_SIGNAL_STATE)
    signalled = state.facts_as(kinds.PROCESS_SIGNAL_STATE) if state else None
    stop = _stop(last, sent, signalled, exit_)
    return ContainerEnding(
        name=facts.name,
        kind=facts.kind,
        started=started or exit_ is not None,
        started_at=last[0].at if started else None,
        restarts=restarts,
        process=_process(pid, start, signalled, sent.kill),
        stop=stop,
        exit=_exit(facts, last, sent, exit_, ends_at, pauses),
        hook=_interrupted(_pre_stop(facts, last), exit_),
        seen=_seen(last, stop, exit_, ends_at),
    )


class _Sent(NamedTuple):
    """The signals that were sent to a container: those before SIGKILL, and the last SIGKILL."""

    stops: Sequence[Entry]
    kill: Entry | None

    @classmethod
    def of(cls, run: Sequence[Entry], pid: int | None) -> "_Sent":
        """Return the signals of a run, without those to a process that was already ending: they had no effect."""
        sent = [e for e in run if e.record.kind == kinds.SIGNAL_SENT and _is_for_container(e, pid)]
        sent = [e for e in sent if not e.facts_as(kinds.SIGNAL_SENT).get("exiting")]
        kills = [e for e in sent if _is_kill(e)]
        return cls([e for e in sent if not _is_kill(e)], kills[-1] if kills else None)


def _is_kill(sent: Entry) -> bool:
    return signal_name(sent.facts_as(kinds.SIGNAL_SENT).get("signal")) == SIGKILL


def _process(
    pid: int | None, start: "ProcessStarted | None", signalled: "ProcessSignalState | None", kill: Entry | None
) -> Process:
    argv = tuple(str(word) for word in start.get("argv") or ()) if start else ()
    exe = str(start.get("exe") or "") if start else ""
    started_as = _whole(start.get("uid")) if start else None
    if signalled is None:
        return Process(pid=pid, exe=exe, argv=argv, started_as=started_as)
    return Process(
        pid=pid,
        exe=str(signalled.get("exe") or exe),
        command=str(signalled.get("name") or ""),
        argv=argv,
        disposition=_disposition(signalled, kill),
        caught=tuple(str(name) for name in signalled.get("caught") or ()),
        container_pid=_whole(signalled.get("containerPid")) or 1,
        started_as=started_as,
        user=_whole(signalled.get("uid")),
    )


def _stop(run: Sequence[Entry], sent: _Sent, signalled: "ProcessSignalState | None", exit_: Entry | None) -> Stop:
    requested = _last(run, kinds.STOP_REQUESTED)
    asked = requested.facts_as(kinds.STOP_REQUESTED) if requested else None
    return Stop(
        requested_at=next((each.at for each in run if each.record.kind == kinds.STOP_REQUESTED), None),
        seconds=_stop_seconds(requested, _last(run, kinds.STOP_FINISHED), exit_),
        timeout=asked.get("timeoutSeconds") if asked else None,
        floor=bool(asked and asked.get("floor")),
        why=str(asked.get("why") or "") if asked else "",
        deducted=asked.get("deductedSeconds") if asked else None,
        signal=_stop_signal(signalled, sent.stops),
        signal_at=sent.stops[0].at if sent.stops else None,
        kill_at=sent.kill.at if sent.kill else None,
    )


def _exit(
    facts: ContainerFacts,
    run: Sequence[Entry],
    sent: _Sent,
    exit_: Entry | None,
    ends_at: float | None,
    pauses: Sequence[tuple[float, float]],
) -> Exit:
    code, signal, reason = _exit_of(exit_, facts)
    return Exit(
        at=exit_.at if exit_ else None,
        code=code,
        reason=reason,
        signal=signal,
        killed_by=_killed_by(signal, exit_, sent, pauses),
        ended_by=_by_its_rule(_ended_by(run, exit_, ends_at), code, facts),
        starts_again=_starts_again(run),
        from_status=bool(exit_ and exit_.facts_as(kinds.PROCESS_EXITED).get("finishedAt")),
    )


def _seen(run: Sequence[Entry], stop: Stop, exit_: Entry | None, ends_at: float | None) -> Seen:
    exited = exit_.facts_as(kinds.PROCESS_EXITED) if exit_ else None
    return Seen(
        probe=_failed_probe(run, ends_at),
        last_lines=_last_lines(run),
        oom_kills=_whole(exited.get("oomKills")) if exited else None,
        memory_limit=_whole(exited.get("memoryLimit")) if exited else None,
        limit_reached=exited.get("limitReached") if exited else None,
        peak_rss=_whole(exited.get("peakRss")) if exited else None,
        files_in_memory=_whole(exited.get("filesInMemory")) if exited else None,
        ended_together=bool(exited and exited.get("endedTogether")),
        processes_at_stop=processes_at_stop_of(run),
        processes_left=processes_left_of(run),
        waits=waits_of(run),
        children_ended=children_ended_of(run),
        sockets=sockets_of(run, stop.signal_at),
        pod_listeners=pod_listeners_of(exited) if exited else None,
        refused_in_pod=refused_in_pod_of(exited) if exited else None,
        first_reaction=first_reaction_of(run, stop.signal_at, exit_.at if exit_ else None),
    )


def _stop_signal(seen: "ProcessSignalState | None", stops: Sequence[Entry]) -> str:
    """Return the signal that asked the process to stop: the one whose state was seen, or the first that was sent."""
    found = signal_name(seen.get("signal")) if seen else None
    if found is None and stops:
        found = signal_name(stops[0].facts_as(kinds.SIGNAL_SENT).get("signal"))
    return found or "SIGTERM"


def _ended_by(entries: Sequence[Entry], exit_: Entry | None, ends_at: float | None) -> EndedBy:
    """`ends_at` is when the Pod's end began, None for one that lives."""
    if exit_ is None:
        return ""
    requested = _last(entries, kinds.STOP_REQUESTED)
    killings = [e for e in entries if e.record.kind == kinds.KILLING and e.at <= exit_.at]
    asked = requested is not None and requested.at <= exit_.at
    if not killings:
        unexplained = exit_.facts_as(kinds.PROCESS_EXITED).get("unexplained")
        return "node" if asked else "" if unexplained else "itself"
    first = killings[0].facts_as(kinds.KILLING)
    if first.get("gracePeriodSeconds") and not asked and _last(entries, kinds.PRE_STOP_STARTED) is None:
        return "itself"  # it was about to be stopped, and was quicker
    return _ENDED_BY.get(_why_killed(entries, killings[0], ends_at), "node")


def _by_its_rule(ended_by: EndedBy, code: int | None, facts: ContainerFacts) -> EndedBy:
    """An exit that its rules restart is what they are there for."""
    asked = any((code in codes) == (operator == "In") for operator, codes in facts.restart_rules)
    return "restartRule" if ended_by == "itself" and code and asked else ended_by


def _why_killed(entries: Sequence[Entry], killing: Entry, ends_at: float | None) -> str:
    """The reason of a Killing. The kubelet gives none where it ends a whole Pod; it does so, too, when the last
    container of a Pod that starts none again fails its probe, before any end of the Pod was decided.

    (`kuberuntime_manager.go:computePodActions`: KillPod where nothing is kept and nothing starts)
    """
    reason = str(killing.facts_as(kinds.KILLING).get("reason") or "")
    if reason or (ends_at is not None and ends_at <= killing.at):
        return reason
    # A kubelet's record says that the failures were too many; an Event, from which `trace` infers, of each failure.
    changes = [
        each.facts_as(kinds.PROBE_CHANGED)
        for each in entries
        if each.record.kind == kinds.PROBE_CHANGED and each.record.evidence == "observed" and each.at <= killing.at
    ]
    for name, probe in _PROBES.items():
        last = next((each for each in reversed(changes) if each.get("probe") == probe), None)
        if last is not None and last.get("result") == "failure":
            return name
    return ""


def _starts_again(entries: Sequence[Entry]) -> bool:
    """Whether the kubelet ended it to start it again: its message says so."""
    killing = _last(entries, kinds.KILLING)
    return killing is None or "will be restarted" in str(killing.facts_as(kinds.KILLING).get("message") or "")


def _failed_probe(entries: Sequence[Entry], ends_at: float | None) -> FailedProbe | None:
    """The last failure of the probe for which the node ended it."""
    killing = _last(entries, kinds.KILLING)
    probe = _PROBES.get(_why_killed(entries, killing, ends_at)) if killing else None
    changes = [e.facts_as(kinds.PROBE_CHANGED) for e in entries if e.record.kind == kinds.PROBE_CHANGED]
    failures = [each for each in changes if each.get("probe") == probe and each.get("result") == "failure"]
    if probe is None or not failures:
        return None
    return FailedProbe(str(failures[-1].get("output") or "").strip(), failures[-1].get("succeededBefore"))


_PROBES = {"LivenessProbe": "liveness", "StartupProbe": "startup"}


def _last_lines(entries: Sequence[Entry]) -> tuple[str, ...]:
    lines = [str(e.facts_as(kinds.OUTPUT).get("text") or "").rstrip() for e in entries if e.record.kind == kinds.OUTPUT]
    return tuple(lines[-_MOST_LINES:])


def _last(entries: Sequence[Entry], kind: str) -> Entry | None:
    for entry in reversed(entries):
        if entry.record.kind == kind:
            return entry
    return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _is_for_container(entry: Entry, pid: int | None) -> bool:
    sent = entry.facts_as(kinds.SIGNAL_SENT)
    target = _whole(sent.get("pid"))
    if pid is not None and target is not None:
        return pid == target
    return sent.get("why") not in _EXEC_SIGNALS


def _disposition(state: "ProcessSignalState", kill: Entry | None) -> str:
    """ "" for a process without a handler that is not PID 1 of its namespace: the default action ends it as usual.

    What was blocked when the signal came, and was no longer pending at SIGKILL, has been taken.
    """
    disposition = str(state.get("disposition") or "")
    if (
        disposition == "blocked"
        and kill is not None
        and kill.facts_as(kinds.SIGNAL_SENT).get("stopSignalPending") is False
    ):
        return "handled"
    return "" if disposition == "default" and state.get("containerPid", 1) != 1 else disposition


def _exit_of(exit_: Entry | None, facts: ContainerFacts) -> tuple[int | None, str | None, str | None]:
    """Exit code, signal and reason. The wait status is the truth; the API object fills in what nobody recorded."""
    if exit_ is None:
        number = signal_name(facts.signal) or (SIGKILL if facts.exit_code == 137 and facts.reason == "Error" else None)
        return facts.exit_code, number, facts.reason
    seen = exit_.facts_as(kinds.PROCESS_EXITED)
    number = signal_name(seen.get("signal"))
    code = _whole(seen.get("exitCode"))
    raw: object = seen.get("signal")
    if code is None and isinstance(raw, int):
        code = 128 + raw
    if facts.reason and facts.exit_code == code:
        return code, number, facts.reason
    if seen.get("oomKilled"):
        return code, number, "OOMKilled"
    return code, number, "Completed" if code == 0 else "Error"


def _killed_by_pause(ended: Entry) -> tuple[float, float]:
    """Return between which moments containers end that the end of a pause process kills.

    A pause that exits is gone when the kernel has ended all others there, so just after them.
    """
    before = ended.facts_as(kinds.PAUSE_ENDED).get("secondsBefore")
    if before is None:
        return ended.at - TOGETHER_SECONDS, ended.at
    return ended.at - before - LISTED_LATE_SECONDS, ended.at + LISTED_LATE_SECONDS


def _killed_by(
    number: str | None, exit_: Entry | None, sent: _Sent, pauses: Sequence[tuple[float, float]]
) -> str | None:
    if number is None:
        return None
    kill = sent.kill
    if exit_ and exit_.facts_as(kinds.PROCESS_EXITED).get("oomKilled") and not _outlived_lack_of_memory(exit_, kill):
        return "out of memory"
    if number == SIGKILL:
        if kill:
            return str(kill.facts_as(kinds.SIGNAL_SENT).get("why") or "StopContainer")
        together = exit_ is not None and any(first <= exit_.at <= last for first, last in pauses)
        return PAUSE_ENDED if together else "unknown sender"
    if any(signal_name(entry.facts_as(kinds.SIGNAL_SENT).get("signal")) == number for entry in sent.stops):
        return "StopContainer"
    return None


def _outlived_lack_of_memory(exit_: Entry, kill: Entry | None) -> bool:
    """Whether only a child had died of it before, and PID 1 lived until our SIGKILL."""
    before = _whole(kill.facts_as(kinds.SIGNAL_SENT).get("oomKills")) if kill and kill.at <= exit_.at else None
    return bool(before) and before == exit_.facts_as(kinds.PROCESS_EXITED).get("oomKills")


def _stop_seconds(requested: Entry | None, finished: Entry | None, exit_: Entry | None) -> float | None:
    if finished and (seconds := finished.facts_as(kinds.STOP_FINISHED).get("seconds")) is not None:
        return float(seconds)
    if requested and exit_:
        return max(0.0, exit_.at - requested.at)
    return None


def _interrupted(hook: PreStop | None, exit_: Entry | None) -> PreStop | None:
    """The hook's outcome, as it is with its container's end in view: its command lives in the container, and when PID 1
    exits the kernel kills it (137) and lets the kubelet hear of that first."""
    if hook is None or exit_ is None or hook.finished_at is None:
        return hook
    killed = hook.handler == "exec" and hook.outcome == "failed" and hook.exit_code == 137
    together = abs(hook.finished_at - exit_.at) < TOGETHER_SECONDS
    out_of_memory = bool(exit_.facts_as(kinds.PROCESS_EXITED).get("oomKills"))
    return replace(hook, outcome="interrupted") if killed and together and not out_of_memory else hook


def _pre_stop(facts: ContainerFacts, entries: Sequence[Entry]) -> PreStop | None:
    """The last run of the hook: a retried stop runs it again."""
    started = _last(entries, kinds.PRE_STOP_STARTED)
    if started is None:
        skipped = _last(entries, kinds.PRE_STOP_SKIPPED)
        if skipped is None:
            return None
        return PreStop(
            facts.pre_stop, "skipped", 0.0, detail=str(skipped.facts_as(kinds.PRE_STOP_SKIPPED).get("why") or "")
        )
    after = entries[entries.index(started) :]
    ends = [entry for entry in after if entry.record.kind == kinds.PRE_STOP_FINISHED]
    handler = str(started.facts_as(kinds.PRE_STOP_STARTED).get("handler") or facts.pre_stop)
    if not ends:
        next_step = next((e for e in after if e.record.kind in (kinds.STOP_REQUESTED, kinds.PROCESS_EXITED)), after[-1])
        seconds = next_step.at - started.at
        return PreStop(handler, "unknown", seconds, started_at=started.at, closed=closed_in_hook_of(after))
    # A hook that outlives its time has two ends: the moment it was waited for no longer, and its own.
    first, own = ends[0], ends[-1].facts_as(kinds.PRE_STOP_FINISHED)
    end = first.facts_as(kinds.PRE_STOP_FINISHED)
    outcome: PreStopOutcome = end.get("outcome") or "unknown"
    return PreStop(
        handler=handler,
        outcome=outcome,
        seconds=float(end.get("seconds") or first.at - started.at),
        exit_code=_whole(own.get("exitCode")),
        detail=str(own.get("message") or ""),
        output=f"{own.get('stdout') or ''}{own.get('stderr') or ''}",
        started_at=started.at,
        finished_at=first.at,
        closed=closed_in_hook_of(after),
    )
