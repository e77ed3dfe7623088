"""How a Pod ended in one sentence, and in a few words. Pure."""

from collections.abc import Sequence

from lastcall.timeline import kinds
from lastcall.timeline.facts.never_started import why_never_started
from lastcall.timeline.story import OVERRUN_SECONDS, ContainerEnding, Ending

OUTCOMES = {
    "graceful": "ended gracefully",
    "killed": "was killed",
    "hookFailed": "ended, but its preStop hook failed",
    "crashed": "had crashed before its end began",
    "restarted": "had been restarted by a probe before its end began",
    "unknown": "how it ended is not known",
}


def had_ended(ending: Ending) -> bool:
    """Whether there was nothing left to stop when the DELETE came."""
    started = [container for container in ending.containers if container.started]
    return bool(started) and all(container.ended_before_delete for container in started)


def is_deleted(ending: Ending) -> bool:
    """False for a Pod of another cluster that ended by itself, or that its kubelet ended, and stays as it is."""
    if ending.zero_kind != kinds.TERMINATION_OBSERVED or ending.gone is not None:
        return True
    return not any(c.from_status for c in ending.containers)


def is_ongoing(ending: Ending) -> bool:
    """Whether the Pod had not ended yet when its last record was written."""
    runs = any(c.started and c.exit_code is None for c in ending.containers)
    lives = not ending.zero_kind and ending.pod.phase not in ("Succeeded", "Failed")  # between two runs
    if ending.gone is not None or not (runs or lives):
        return False
    done = any(e.record.kind in (kinds.WORKER_FINISHED, kinds.OBJECT_REMOVED) for e in ending.entries)
    deaths = (e.told(kinds.PROCESS_DIED) for e in ending.entries if e.record.kind == kinds.PROCESS_DIED)
    died = any(each.get("restartsIn") is None for each in deaths)
    return not done and not died


def outcome_words(ending: Ending) -> str:
    """`was killed`, `ended gracefully`, … after the Pod's name."""
    if is_ongoing(ending):
        return "is ending" if ending.zero_kind else _lives(ending)
    if ending.outcome == "graceful" and had_ended(ending):
        return "had already ended"
    if ending.outcome == "restarted" and not any(c.starts_again for c in _ended_by_probes(ending)):
        return "had been ended by a probe before its end began" if is_deleted(ending) else "was ended by a probe"
    return OUTCOMES[ending.outcome]


def _ended_by_probes(ending: Ending) -> list[ContainerEnding]:
    return [c for c in [*ending.earlier, *ending.containers] if c.ended_by in ("livenessProbe", "startupProbe")]


def _lives(ending: Ending) -> str:
    """Of a Pod that nothing ends."""
    count = len(ending.earlier)
    if not any(c.started and c.exit_code is None for c in ending.containers):
        return "is not running"
    return f"is running, after {count} restart{'' if count == 1 else 's'}" if count else "is running"


def why(ending: Ending) -> str:
    """Who decided the end and why this Pod, as a sentence; "" when that is not known."""
    if ending.decided_by is None or not ending.decided_by.why:
        return ""
    verb = "is ending" if is_ongoing(ending) else "ended"
    return f"{ending.pod.name} {verb} because {ending.decided_by.why}"


def verdict(ending: Ending) -> str:
    """What happened, for somebody who reads nothing else."""
    started = [c for c in ending.containers if c.started]
    if not started:
        reasons = list(dict.fromkeys(filter(None, (why_never_started(c, ending) for c in ending.containers))))
        because = f" ({'; '.join(reasons[:2])})" if reasons else ""
        return f"No container of it ever ran{because}, so nothing had to be stopped."
    sentences = [_container(c, ending) for c in started[:4]]
    if len(started) > 4:
        sentences.append(f"{len(started) - 4} more containers: see below.")
    left = _left(ending, started)
    return " ".join([*sentences, *([left] if left else [])])


def _container(c: ContainerEnding, ending: Ending) -> str:
    if c.ended_before_delete and not is_deleted(ending):
        return f"{c.name} ended with {_end(c)}."
    if c.ended_before_delete:
        return f"{c.name} had ended {_s(-(c.exited_at or 0.0))} before the DELETE with {_end(c)}."
    steps: list[str] = []
    hook = c.pre_stop
    if hook is not None and hook.outcome != "skipped" and hook.started_at is not None:
        steps.append(
            {
                "succeeded": f"ran its preStop hook for {_s(hook.seconds)}",
                "failed": f"ran its preStop hook, which failed after {_s(hook.seconds)}",
                "outlived": f"ran its preStop hook for all of the {_s(hook.seconds)} it was given",
            }.get(hook.outcome, "began its preStop hook")
        )
    if c.exited_at is None and c.exit_code is None:
        ended = "still runs" if is_ongoing(ending) else "has not been seen to end"
        return f"{c.name} {_and([*steps, ended])}."
    if c.term_at is None or c.exited_at is None or c.exited_at < c.term_at:
        steps.append(f"ended with {_end(c)}")
    elif c.sigkilled:
        steps.append(f"still ran {_s(c.drain_seconds)} after {c.stop_signal} and was ended by SIGKILL")
    else:
        steps.append(f"ended {_s(c.drain_seconds)} after {c.stop_signal} with {_end(c)}")
    return f"{c.name} {_and(steps)}."


def _and(steps: Sequence[str]) -> str:
    if len(steps) < 2:
        return "".join(steps)
    return f"{', '.join(steps[:-1])}, then {steps[-1]}"


def _end(c: ContainerEnding) -> str:
    if c.signal:
        return f"{c.signal} (exit code {c.exit_code})"
    return f"exit code {c.exit_code}"


def _left(ending: Ending, started: Sequence[ContainerEnding]) -> str:
    budget = ending.budget
    if budget is None or any(c.sigkilled for c in started):
        return ""
    if budget.overrun >= OVERRUN_SECONDS:
        return f"That was {_s(budget.overrun)} more than the grace period of {budget.grace:g} s."
    return f"Of the grace period of {budget.grace:g} s, {_s(budget.unused)} were left."


def _s(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.95 else f"{seconds * 1000:.0f} ms"
