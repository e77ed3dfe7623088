"""Requests over the lanes of the Pods' ends, as the page draws them: of an experiment, or of a predicted one. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lastcall.traffic import (
    CAUSE_IDS,
    LONG_LIVED,
    LOST_MEANS,
    WHY,
    Account,
    LostRequest,
    Moment,
    Outcome,
    PodLife,
    percentage,
    upper_bound,
)
from lastcall.ui.rollout.latency import latency_columns
from lastcall.ui.rollout.tracks import tracks

MOST_COLUMNS = 240
BECAME = ("answered", "moved", "lost", "unmeasured")
"""What a column counts, in this order."""
LEAST_COLUMN = 0.05
"""Seconds."""
MARKS = 500
"""Of lost requests, as many side by side in a lane: what is closer together is one."""


def picture(
    outcomes: Sequence[Outcome], lives: Sequence[PodLife], found: Account | None, zero: float, now: float
) -> dict[str, Any]:
    """Return the picture. Seconds count from `zero`, the disruption where there was one. `found` is None before it.

    The strips have every request: those of `totals`, `controlTotal` that had ended before the disruption, and
    `unmeasured` of a client that was held up, which are not drawn as lost.
    """
    begin = min((each.sent for each in outcomes), default=zero) - zero
    end = max([each.finished for each in outcomes] + [now]) - zero
    wide = _column(end - begin)
    return {
        "start": round(begin, 3),
        "end": round(end, 3),
        "column": wide,
        "strips": _strips(outcomes, _unmeasured(outcomes, found), zero, begin, wide),
        "pods": [_pod(each, zero) for each in lives if each.name and (each.ready is not None or each.deleted)],
        "lost": _marks(found.lost, lives, begin, end) if found is not None else [],
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


def _unmeasured(outcomes: Sequence[Outcome], found: Account | None) -> set[int]:
    """Return the ids of losses of a client that was held up; before the account, of all that may turn out to be."""
    return {each.id for each in (outcomes if found is None else found.unmeasured) if not each.measured}


def _strips(
    outcomes: Sequence[Outcome], unmeasured: set[int], zero: float, begin: float, wide: float
) -> list[dict[str, Any]]:
    """Of each kind, by columns: answered, carried on elsewhere, lost, not measured; how long good answers took."""
    counts: Counter[tuple[str, int, str]] = Counter()
    kinds: dict[str, list[Outcome]] = {}
    for each in outcomes:
        became = "moved" if each.moved else "answered"
        if each.lost:
            became = "unmeasured" if each.id in unmeasured else "lost"
        counts[each.kind, int((each.sent - zero - begin) / wide), became] += 1
        kinds.setdefault(each.kind, []).append(each)
    found = []
    for kind, those in kinds.items():
        columns = sorted({column for of, column, _ in counts if of == kind})
        rows = [[column, *(counts[kind, column, became] for became in BECAME)] for column in columns]
        lasting = kind in LONG_LIVED
        found.append(
            {
                "kind": kind,
                "columns": rows,
                "tracks": tracks(those, zero) if lasting else [],
                "latency": [] if lasting else latency_columns(those, zero + begin, wide),
            }
        )
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


def _marks(lost: Sequence[LostRequest], lives: Sequence[PodLife], begin: float, end: float) -> list[dict[str, Any]]:
    """The first of each place in a lane, and how many more there are."""
    wide = max(end - begin, 0.001) / MARKS
    named: dict[str, list[PodLife]] = {}
    for life in lives:
        named.setdefault(life.name, []).append(life)
    places: dict[tuple[str, int], list[LostRequest]] = {}
    for each in lost:
        uid = next((life.uid for life in named.get(each.pod, ()) if each.pod and _is_of(each, life)), "")
        places.setdefault((uid, int((each.at - begin) / wide)), []).append(each)
    return [{**_lost(those[0]), "uid": uid, "count": len(those)} for (uid, _), those in places.items()]


def _is_of(lost: LostRequest, life: PodLife) -> bool:
    """A StatefulSet's Pods have the names of those before them."""
    where = lost.outcome.served_by
    return where == life.ip if where else life.is_named(lost.outcome.sent)


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
    counts = Counter((each.outcome.kind, each.outcome.lost, each.cause) for each in found.lost)
    return [
        {
            "count": count,
            "atMost": percentage(upper_bound(count, found.totals[kind])),
            "kind": kind,
            "how": how,
            "means": LOST_MEANS[how] if how else "",
            "cause": CAUSE_IDS[cause],
            "why": WHY[cause],
        }
        for (kind, how, cause), count in counts.most_common()
    ]
