"""Runs of one manifest as one experiment: what is pooled, what the limits say of it, and the exit status."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from lastcall.experiment.rollout.result import Result
from lastcall.traffic import Latencies, Latency, Pooled, Thresholds, check, holds, latencies, upper_bound

if TYPE_CHECKING:
    from lastcall.experiment.rollout import document

LOSES = 3
"""Exit status when requests were lost, a limit is broken, or a container crashed or was restarted by a probe."""
INCONCLUSIVE = 4
"""Exit status when some were lost before anything was disrupted, or when nobody answered."""


def pool(results: Sequence[Result]) -> Pooled:
    """Pool the runs, without the inconclusive ones."""
    useful = [each for each in results if each.judgement.verdict != "inconclusive"]
    return Pooled(
        runs=len(results),
        inconclusive=len(results) - len(useful),
        total=sum(each.account.total for each in useful),
        lost=sum(len(each.account.lost) for each in useful),
        latency=latencies((each.outcomes, each.span) for each in useful),
        crashed=sum(each.crashed for each in results),
    )


def exit_status(found: Pooled, thresholds: Thresholds) -> int:
    """Return the exit status of all runs with the same manifest."""
    if found.crashed or (found.inconclusive < found.runs and not holds(thresholds, found)):
        return LOSES
    unsure = any(each.unsure for each in check(thresholds, found))
    return INCONCLUSIVE if found.inconclusive or unsure else 0


def worst(results: Sequence[Result]) -> Result:
    """Return the run whose story is reported: the one that lost the most, the first of several; useful ones first."""
    return max(results, key=lambda each: (each.judgement.verdict != "inconclusive", len(each.account.lost)))


def pooled_json(found: Pooled, thresholds: Thresholds) -> "document.Pooled":
    """Return the document of all runs with the same manifest."""
    return {
        "runs": found.runs,
        "inconclusive": found.inconclusive,
        "crashed": found.crashed,
        "total": found.total,
        "lost": found.lost,
        "upperBound": upper_bound(found.lost, found.total),
        "latency": latency_json(found.latency),
        "thresholds": [
            {"name": each.name, "limit": each.limit, "value": each.value, "broken": each.broken, "unsure": each.unsure}
            for each in check(thresholds, found)
        ],
        "exitStatus": exit_status(found, thresholds),
    }


def latency_json(found: Latencies) -> "document.Latencies":
    """Return seconds, by phase and kind."""
    by_phase = {phase: {kind: _latency(each) for kind, each in kinds.items()} for phase, kinds in found.items()}
    return cast("document.Latencies", by_phase)


def _latency(found: Latency) -> "document.Latency":
    return {
        "count": found.count,
        "p50": round(found.p50, 6),
        "p95": round(found.p95, 6),
        "p99": round(found.p99, 6),
        "max": round(found.most, 6),
        "p99Least": round(found.p99_least, 6),
    }
