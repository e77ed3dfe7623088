"""Requests over the lanes of the Pods' ends, as the page draws them: of an experiment, or of a predicted one. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lastcall.traffic import CAUSE_IDS, LOST_MEANS, WHY, Account, LostRequest, Moment, Outcome, PodLife

MOST_COLUMNS = 240
LEAST_COLUMN = 0.05
"""Seconds."""
MOST_LOST = 300
"""Lost requests that are told one by one: the latest."""


def picture(
    outcomes: Sequence[Outcome], lives: Sequence[PodLife], found: Account | None, zero: float, now: float
) -> dict[str, Any]:
    """Return the picture. Seconds count from `zero`, the disruption where there was one. `found` is None before it.

    The strips have every request: those of `totals`, `controlTotal` that had ended before the disruption, and
    `unmeasured` of a client that was held up.
    """
    begin = min((each.sent for each in outcomes), default=zero) - zero
    end = max([each.finished for each in outcomes] + [now]) - zero
    wide = _column(end - begin)
    return {
        "start": round(begin, 3),
        "end": round(end, 3),
        "column": wide,
        "strips": _strips(outcomes, begin + zero, wide),
        "pods": [_pod(each, zero) for each in lives if each.name and (each.ready is not None or each.deleted)],
        "lost": [_lost(each) for each in found.lost[-MOST_LOST:]] if found is not None else [],
        "causes": _causes(found) if found is not None else [],
        "totals": dict(found.totals) if found is not None else {},
        "losses": dict(found.losses) if found is not None else {},
        "controlTotal": found.control_total if found is not None else 0,
        "unmeasured": len(found.unmeasured) if found is not None else 0,
        "controlLost": found.control_lost if found is not None else sum(1 for each in outcomes if each.lost),
    }


def _column(seconds: float) -> float:
    """Doubled until there are few enough, so that columns keep their places while time goes on."""
    return float(LEAST_COLUMN * 2 ** max(0, math.ceil(math.log2(max(seconds, 1) / LEAST_COLUMN / MOST_COLUMNS))))


def _strips(outcomes: Sequence[Outcome], begin: float, wide: float) -> list[dict[str, Any]]:
    """Of each kind, by columns: answered, carried on elsewhere, lost."""
    counts: Counter[tuple[str, int, str]] = Counter()
    for each in outcomes:
        became = "lost" if each.lost else "moved" if each.moved else "answered"
        counts[each.kind, int((each.sent - begin) / wide), became] += 1
    kinds = dict.fromkeys(each.kind for each in outcomes)
    found = []
    for kind in kinds:
        columns = sorted({column for of, column, _ in counts if of == kind})
        rows = [
            [column, counts[kind, column, "answered"], counts[kind, column, "moved"], counts[kind, column, "lost"]]
            for column in columns
        ]
        found.append({"kind": kind, "columns": rows})
    return found


def _pod(life: PodLife, zero: float) -> dict[str, Any]:
    def at(moment: Moment | None) -> float | None:
        return None if moment is None else round(moment.latest - zero, 3)

    return {
        "uid": life.uid,
        "name": life.name,
        "ready": at(life.ready),
        "deleted": at(life.deleted),
        "hook": at(life.hook),
        "term": at(life.signalled),
        "exited": at(life.exited),
        "killed": life.killed,
        "routed": at(life.routed),
        "unrouted": at(life.unrouted),
        "pauses": [[at(begin), at(end)] for begin, end in life.pauses],
    }


def _lost(lost: LostRequest) -> dict[str, Any]:
    return {
        "id": lost.outcome.id,
        "at": round(lost.at, 3),
        "kind": lost.outcome.kind,
        "how": lost.outcome.lost or "",
        "pod": lost.pod,
        "phase": lost.phase,
        "cause": CAUSE_IDS[lost.cause],
    }


def _causes(found: Account) -> list[dict[str, Any]]:
    counts = Counter((each.outcome.lost, each.cause) for each in found.lost)
    return [
        {
            "count": count,
            "how": how,
            "means": LOST_MEANS[how] if how else "",
            "cause": CAUSE_IDS[cause],
            "why": WHY[cause],
        }
        for (how, cause), count in counts.most_common()
    ]
