"""How a Pod ended in one sentence, and in a few words. Pure."""

# check: pure

from collections.abc import Sequence

from lastcall.endings.facts.never_started import why_never_started
from lastcall.endings.outcome import PROBES, Runs, sentence_of
from lastcall.endings.story import OVERRUN_SECONDS, ContainerEnding, Ending
from lastcall.records import kinds
from lastcall.records.said import joined, tell


def had_ended(ending: Ending) -> bool:
    """Return whether there was nothing left to stop when the DELETE came."""
    started = [container for container in ending.containers if container.started]
    return bool(started) and all(container.exit.before_delete for container in started)


def is_deleted(ending: Ending) -> bool:
    """Return False for a Pod that ended by itself and stays, and for one of another cluster that its kubelet ended."""
    if ending.zero_kind != kinds.TERMINATION_OBSERVED or ending.gone is not None:
        return True
    observed = (e for e in ending.entries if e.record.kind == kinds.TERMINATION_OBSERVED)
    if any(e.facts_as(kinds.TERMINATION_OBSERVED).get("cause") == "completed" for e in observed):
        return False
    return not any(c.exit.from_status for c in ending.containers)


def is_ongoing(ending: Ending) -> bool:
    """Return whether the Pod had not ended yet when its last record was written."""
    runs = any(c.started and c.exit.code is None for c in ending.containers)
    lives = not ending.zero_kind and ending.pod.phase not in ("Succeeded", "Failed")  # between two runs
    if ending.gone is not None or not (runs or lives):
        return False
    done = any(e.record.kind in (kinds.WORKER_FINISHED, kinds.OBJECT_REMOVED) for e in ending.entries)
    deaths = (e.facts_as(kinds.PROCESS_DIED) for e in ending.entries if e.record.kind == kinds.PROCESS_DIED)
    died = any(each.get("restartsIn") is None for each in deaths)
    return not done and not died


def lives_on(ending: Ending) -> bool:
    """Return whether nothing ends the Pod: a container that was not started may be yet."""
    return not ending.zero_kind and is_ongoing(ending)


_PROCESSES_KILLED = ("shellKeepsSignal", "childrenNotSignalled", "childKilledInside")


def lost_processes(ending: Ending) -> bool:
    """Return whether every container ended well, and a finding warns of processes that were killed with or by PID 1."""
    warned = any(each.id in _PROCESSES_KILLED and each.severity != "info" for each in ending.findings)
    return ending.outcome == "graceful" and warned


def outcome_words(ending: Ending) -> str:
    """Return `was killed`, `ended gracefully`, … after the Pod's name."""
    if is_ongoing(ending):
        return tell("is ending") if ending.zero_kind else _lives(ending)
    deleted = is_deleted(ending) and bool(ending.zero_kind or ending.gone is not None)
    if ending.outcome == "graceful" and had_ended(ending) and deleted:
        return tell("had already ended")
    if ending.outcome == "restarted" and not any(c.exit.starts_again for c in _ended_by_probes(ending)):
        if deleted:
            return tell("had been ended by a probe before its end began")
        return tell("was ended by a probe")
    if lost_processes(ending):
        return tell("ended, but some of its processes were killed")
    runs = Runs(ending.containers, ending.earlier, ends=bool(ending.zero_kind))
    return sentence_of(ending.outcome, runs, deleted=deleted)


def _ended_by_probes(ending: Ending) -> list[ContainerEnding]:
    return [c for c in [*ending.earlier, *ending.containers] if c.exit.ended_by in PROBES]


def _lives(ending: Ending) -> str:
    """Of a Pod that nothing ends."""
    if ending.pod.phase != "Running":  # its first records may be lost: a container has run then
        if any(c.kind == "init" for c in ending.containers) and not _own_runs(ending):
            return tell("is initializing")
        if not any(c.started for c in ending.containers if c.kind == "container"):
            return tell("has not started yet")
    count = sum(c.kind != "init" for c in ending.earlier)  # as kubectl's RESTARTS
    if not any(c.started and c.exit.code is None for c in ending.containers):
        return tell("is not running")
    if count == 1:
        return tell("is running, after 1 restart")
    return tell("is running, after $count restarts", count=count) if count else tell("is running")


def _own_runs(ending: Ending) -> bool:
    return any(c.kind == "container" and c.started and c.exit.code is None for c in ending.containers)


def why(ending: Ending) -> str:
    """Return who decided the end and why this Pod, as a sentence; "" when that is not known."""
    if ending.decided_by is None or not ending.decided_by.why:
        return ""
    if is_ongoing(ending):
        return tell("$pod is ending because $why", pod=ending.pod.name, why=ending.decided_by.why)
    return tell("$pod ended because $why", pod=ending.pod.name, why=ending.decided_by.why)


def verdict(ending: Ending) -> str:
    """Return what happened, for a reader of nothing else."""
    started = [c for c in ending.containers if c.started]
    if not started:
        reasons = list(dict.fromkeys(filter(None, (why_never_started(c, ending) for c in ending.containers))))
        if lives_on(ending) and not reasons:
            return tell("No container of it has been started yet.")
        if lives_on(ending):
            because = joined(reasons[:2], "; ")
            return tell("No container of it has been started yet ($because).", because=because)
        if not reasons:
            return tell("No container of it ever ran, so nothing had to be stopped.")
        because = joined(reasons[:2], "; ")
        return tell("No container of it ever ran ($because), so nothing had to be stopped.", because=because)
    sentences = [_container(c, ending) for c in started[:4]]
    if len(started) > 4:
        sentences.append(tell("$count more containers: see below.", count=len(started) - 4))
    return joined([*sentences, _left(ending, started)])


def _container(c: ContainerEnding, ending: Ending) -> str:
    if c.exit.before_delete and not is_deleted(ending):
        return tell("$container ended with $end.", container=c.name, end=_end(c))
    if c.exit.before_delete:
        time, end = _s(-(c.exit.at or 0.0)), _end(c)
        return tell("$container had ended $time before the DELETE with $end.", container=c.name, time=time, end=end)
    steps: list[str] = []
    hook = c.hook
    if hook is not None and hook.outcome != "skipped" and hook.started_at is not None:
        steps.append(
            {
                "succeeded": tell("ran its preStop hook for $time", time=_s(hook.seconds)),
                "failed": tell("ran its preStop hook, which failed after $time", time=_s(hook.seconds)),
                "interrupted": tell("ran its preStop hook for $time, which its own end cut off", time=_s(hook.seconds)),
                "outlived": tell("ran its preStop hook for all of the $time it was given", time=_s(hook.seconds)),
            }.get(hook.outcome)
            or tell("began its preStop hook")
        )
    if c.exit.at is None and c.exit.code is None:
        steps.append(tell("still runs") if is_ongoing(ending) else tell("has not been seen to end"))
        return tell("$container $steps.", container=c.name, steps=_and(steps))
    if c.stop.signal_at is None or c.exit.at is None or c.exit.at < c.stop.signal_at:
        steps.append(tell("ended with $end", end=_end(c)))
    elif c.exit.sigkilled:
        time, signal = _s(c.drain_seconds), c.stop.signal
        steps.append(tell("still ran $time after $signal and was ended by SIGKILL", time=time, signal=signal))
    else:
        time, signal = _s(c.drain_seconds), c.stop.signal
        steps.append(tell("ended $time after $signal with $end", time=time, signal=signal, end=_end(c)))
    return tell("$container $steps.", container=c.name, steps=_and(steps))


def _and(steps: Sequence[str]) -> str:
    if len(steps) < 2:
        return steps[0] if steps else ""
    return tell("$before, then $last", before=joined(steps[:-1], ", "), last=steps[-1])


def _end(c: ContainerEnding) -> str:
    if c.exit.signal and not (c.exit.from_status and c.exit.signal == c.stop.signal):
        return tell("$signal (exit code $code)", signal=c.exit.signal, code=c.exit.code)
    return tell("exit code $code", code=c.exit.code)


def _left(ending: Ending, started: Sequence[ContainerEnding]) -> str:
    budget = ending.budget
    if budget is None or any(c.exit.sigkilled for c in started):
        return ""
    if budget.overrun >= OVERRUN_SECONDS:
        over = _s(budget.overrun)
        return tell("That was $time more than the grace period of $grace s.", time=over, grace=f"{budget.grace:g}")
    grace, left = f"{budget.grace:g}", _s(budget.unused)
    return tell("Of the grace period of $grace s, $time were left.", grace=grace, time=left)


def _s(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.95 else f"{seconds * 1000:.0f} ms"
