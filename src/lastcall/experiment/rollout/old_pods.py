"""How the old Pods of a rollout ended: how long each took, whether it had to be killed, and its story. Pure."""

# check: pure

import math
from collections.abc import Sequence

from lastcall.endings import PAUSE_SECONDS, Ending, PodFacts, build_endings
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic import LONG_LIVED, LostRequest, PodLife, ids_printed

HEAD = ("old Pod", "from DELETE to exit", "ended by")


def old_pod_rows(lives: Sequence[PodLife]) -> list[tuple[str, str, str]]:
    """Return a row for each Pod that was deleted: its name, seconds from its DELETE to its exit, and what ended it."""
    return [(life.name, _took(life), _ended_by(life)) for life in lives if life.deleted is not None]


def killed_sentence(lives: Sequence[PodLife]) -> str:
    """Return what is to be said of old Pods that SIGKILL ended, even if no request was lost; "" for none."""
    killed = [life.name for life in lives if life.deleted is not None and life.killed]
    if not killed:
        return ""
    others = len(killed) - 1
    names = killed[0] if not others else f"{killed[0]} and {others} other old Pod{'s' if others > 1 else ''}"
    verb = "was" if not others else "were"
    return f"{names} {verb} ended by SIGKILL when the grace period was over"


def _took(life: PodLife) -> str:
    if life.deleted is None or life.exited is None:
        return "not seen"
    least = max(0.0, life.exited.earliest - life.deleted.latest)
    most = max(0.0, life.exited.latest - life.deleted.earliest)
    if math.isinf(most):
        return "not seen"
    return f"{least:.1f} s" if f"{least:.1f}" == f"{most:.1f}" else f"{least:.1f} to {most:.1f} s"


def _ended_by(life: PodLife) -> str:
    if life.killed:
        return "SIGKILL: its grace period was over"
    if life.exited is None:
        return "not seen"
    if life.term is None or life.exited.latest < life.term.earliest:
        return "its own exit, before a stop signal"
    return "its exit on the stop signal"


def stories(
    records: Sequence[Record], lives: Sequence[PodLife], version: str, pause: int = 0, lost: Sequence[LostRequest] = ()
) -> list[Ending]:
    """Return the story of each Pod that was deleted, without the lines that it printed about requests, and without what
    a note says of all Pods. `pause` are the seconds that the rollout's advice lets a preStop hook wait, 0 for none;
    `lost` are the requests that were lost."""
    held = {each.pod for each in lost if each.cause == "held open"}
    streams = {each.pod for each in lost if each.cause == "killed" and each.outcome.kind in LONG_LIVED}
    streams -= {each.pod for each in lost if each.cause == "killed" and each.outcome.kind not in LONG_LIVED}
    old = [
        PodFacts(life.uid, "", "", holds_connections=life.name in held, holds_streams=life.name in streams)
        for life in lives
        if life.deleted is not None
    ]
    uids = {each.uid for each in old}
    shown = [each for each in records if each.kind != kinds.IMAGE_SUBSTITUTED and not is_of_a_request(each)]
    own = [each for each in shown if each.pod_uid in uids]
    return build_endings(own, old, kubernetes_version=version, pause_seconds=pause or PAUSE_SECONDS)


def is_of_a_request(record: Record) -> bool:
    """Return whether it is a line that a Pod printed about a request."""
    return record.kind == kinds.OUTPUT and bool(ids_printed([str(record.facts_as(kinds.OUTPUT).get("text"))]))


def worst_first(endings: Sequence[Ending]) -> list[Ending]:
    """Return the stories with those first that did not end gracefully."""
    return sorted(endings, key=lambda each: each.outcome == "graceful")
