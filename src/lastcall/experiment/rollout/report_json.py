"""Report a rollout's experiments as JSON (`lastcall/rollout/v1`)."""

# check: long functions experiment_json because it waits for the one JSON shape of all commands

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, cast

from lastcall._version import __version__
from lastcall.endings.render import ending_json, envelope
from lastcall.errors import causes_of
from lastcall.experiment.not_simulated import OF_THE_RUN, Note
from lastcall.experiment.rollout.pool import latency_json, pool, pooled_json
from lastcall.experiment.rollout.result import Result
from lastcall.traffic import (
    CAUSE_IDS,
    Balance,
    LostRequest,
    Moment,
    PodLife,
    Thresholds,
    latencies,
    upper_bound,
)

if TYPE_CHECKING:
    from lastcall.experiment.rollout import document

SCHEMA: Literal["lastcall/rollout/v1"] = "lastcall/rollout/v1"


def as_json(
    results: Sequence[Result], thresholds: Thresholds | None = None, failure: Exception | None = None
) -> "document.Rollout":
    """Return the document; `experiments` has more entries when it was repeated, and when the advice was tried.
    `pooled` are the runs with the manifest as it is, and, where there are any, those with the advice: all of a group
    together. `failure` ended the last run: why its Pods did not become Ready, if that is what it says."""
    begins = envelope(SCHEMA, results[0].cluster if results else None)
    content = {"lastcall": __version__, "experiments": [experiment_json(each) for each in results]}
    made = cast("document.Rollout", begins | content)
    if causes := causes_of(failure):
        made["error"] = str(failure)
        made["notReady"] = [cast("document.NotReady", asdict(each)) for each in causes]
    if thresholds is None or not results:  # runs that were not alike
        return made
    made["pooled"] = {"manifest": pooled_json(pool([each for each in results if not each.advised]), thresholds)}
    if those := [each for each in results if each.advised]:
        made["pooled"]["withAdvice"] = pooled_json(pool(those), thresholds)
    return made


def experiment_json(result: Result) -> "document.Experiment":
    """Return one of `experiments`."""
    found = result.account
    return {
        "workload": result.what,
        "run": result.run,
        "withAdvice": result.advised,
        "service": result.service,
        "disrupt": result.disrupt,
        "disrupted": result.of_run or not result.unheard,
        "node": result.node or None,
        "nodes": result.nodes,
        "from": result.source,
        "propagation": result.propagation,
        "seconds": round(result.seconds, 6),
        "verdict": result.judgement.verdict,
        "sentence": result.judgement.sentence,
        "total": found.total,
        "lost": len(found.lost),
        "upperBound": found.upper_bound,
        "byKind": {kind: {"total": count, "lost": found.losses.get(kind, 0)} for kind, count in found.totals.items()},
        "byCause": dict(found.causes),
        "byPod": dict(found.by_pod),
        "upperBoundByCause": {cause: upper_bound(count, found.total) for cause, count in found.causes},
        "requestsByPod": [
            {"pod": each.pod, "total": each.total, "lost": each.lost, "upperBound": each.upper_bound}
            for each in found.pods
        ],
        "moved": [{"kind": kind, "class": moved, "count": count} for (kind, moved), count in found.moves],
        "balance": [_balance(each) for each in found.balance],
        "balanceAfter": [_balance(each) for each in found.balance_after],
        "control": {"total": found.control_total, "lost": found.control_lost},
        "neverAnswered": [each.kind for each in found.never_answered],
        "unmeasured": len(found.unmeasured),
        "unaccounted": list(found.unaccounted),
        "withoutOutcome": list(found.without_outcome),
        "answeredUnseen": list(found.answered_unseen),
        "applicationOutput": {"requests": found.seen, "whole": found.whole_output},
        "during": _during(result),
        "lateness": _lateness(result),
        "latency": latency_json(latencies([(result.outcomes, result.span)])),
        "notSimulated": [_note(each) for each in result.notes if each.id not in OF_THE_RUN],
        "notes": [_note(each) for each in result.notes if each.id in OF_THE_RUN],
        "advice": [
            {
                "id": a.id,
                "sentence": a.sentence,
                "saves": a.saves,
                "patch": a.patch,
                "program": a.program,
                "refused": a.refused or None,
            }
            for a in result.judgement.advice
        ],
        "patch": result.judgement.patch,
        "notWell": [
            {
                "pod": each.pod,
                "id": f.id,
                "severity": f.severity,
                "container": f.container,
                "text": f.text,
                "advice": f.advice or None,
            }
            for each in result.not_well
            for f in each.findings
        ],
        "lostRequests": [_lost(each) for each in found.lost],
        "pods": [_pod(life, result.began) for life in result.lives],
        "stories": [ending_json(each) for each in result.endings],
    }


def _pod(life: PodLife, began: float) -> "document.Pod":
    def after(moment: Moment | None) -> float | None:
        return None if moment is None else round(moment.latest - began, 6)

    return {
        "name": life.name,
        "ip": life.ip,
        "ready": after(life.ready),
        "deleted": after(life.deleted),
        "preStop": after(life.hook),
        "term": after(life.term),
        "listenerClosed": after(life.listener_closed),
        "exited": after(life.exited),
        "unrouted": after(life.unrouted),
        "killed": life.killed,
        "neverAccepted": life.never_accepted,
        "unread": life.unread,
    }


def _balance(balance: Balance) -> "document.Balance":
    return {"kind": balance.kind, "connections": balance.connections, "requests": dict(balance.requests)}


def _note(note: Note) -> "document.Note":
    return {"id": note.id, "what": note.what, "text": note.text}


def _during(result: Result) -> "document.Counted":
    """Of the requests that were planned between the begin of the disruption and the last change of rules."""
    span = result.span
    during = [each for each in result.outcomes if span.began <= each.planned <= span.over]
    unmeasured = {each.id for each in result.account.unmeasured}
    measured = [each for each in during if each.id not in unmeasured]
    return {"total": len(measured), "lost": sum(1 for each in measured if each.lost)}


def _lateness(result: Result) -> dict[str, float]:
    """How much later than planned requests were sent, in seconds."""
    late = sorted(each.sent - each.planned for each in result.outcomes)
    if not late:
        return {}
    p99 = late[min(len(late) - 1, int(0.99 * len(late)))]
    held_up = max(each.held_up for each in result.outcomes)
    return {"p99": round(p99, 6), "most": round(late[-1], 6), "heldUp": round(held_up, 6)}


def _lost(lost: LostRequest) -> "document.Lost":
    outcome = lost.outcome
    return {
        "id": outcome.id,
        "kind": outcome.kind,
        "at": round(lost.at, 6),
        "class": outcome.lost,
        "status": outcome.status or None,
        "sent": round(lost.at - (0.0 if outcome.lost == "connect timeout" else outcome.finished - outcome.sent), 6),
        "echoed": outcome.messages if outcome.kind == "websocket" else None,
        "unansweredMessage": outcome.unanswered or None,
        "messageSeen": lost.message if outcome.unanswered else None,
        "behindPublishedPort": outcome.behind or None,
        "connectionAge": round(outcome.age, 6),
        "pod": lost.pod or None,
        "phase": lost.phase or None,
        "cause": lost.cause,
        "causeId": CAUSE_IDS[lost.cause],
        "notKnown": lost.not_known or None,
        "between": list(lost.between),
        "application": lost.seen,
        "container": lost.container or None,
    }
