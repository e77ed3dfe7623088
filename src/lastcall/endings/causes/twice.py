"""Two Pods that ran for the same work at the same time: the next one began before the old one had ended. Pure.

A StatefulSet's Pod whose object was removed by force, a Job's Pod that was replaced while it was still ending.
"""

# check: pure

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.story import Ending, Finding
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.world.dataclass import dataclass

_OWNERS = ("Job", "StatefulSet")
"""Whose Pods are one at a time: a Job's by its completions, a StatefulSet's by their name."""
_NOTICED_SECONDS = 0.1


@dataclass(slots=True)
class _Run:
    """Of one Pod; monotonic ns, None where nobody saw it."""

    name: str
    owner: str
    created: int
    started: int | None = None
    deleted: int | None = None
    exited: int | None = None


def with_overlap_findings(endings: Sequence[Ending], records: Iterable[Record]) -> list[Ending]:
    """Return the endings, with a finding for each Pod that still ran when its successor did."""
    runs = _runs(records)
    return [_with_overlap(ending, runs) for ending in endings] if len(runs) > 1 else list(endings)


def _runs(records: Iterable[Record]) -> dict[str, _Run]:
    """uid → its run, of Pods whose owner has one at a time."""
    found: dict[str, _Run] = {}
    for record in records:
        created = record.facts_as(kinds.POD_CREATED) if record.kind == kinds.POD_CREATED else None
        if created and (owner := created.get("owner")):
            if isinstance(owner, Mapping) and owner.get("kind") in _OWNERS:
                name = str(created.get("name"))
                same = f"{owner['kind']} {owner.get('uid')} {name if owner['kind'] == 'StatefulSet' else ''}"
                found[record.pod_uid] = _Run(name, same, record.at_ns)
        elif (run := found.get(record.pod_uid)) is not None:
            if record.kind == kinds.PROCESS_STARTED and run.started is None:
                run.started = record.at_ns
            elif record.kind == kinds.PROCESS_EXITED:
                run.exited = record.at_ns
            elif record.kind in (kinds.DELETE_ACCEPTED, kinds.OBJECT_REMOVED) and run.deleted is None:
                run.deleted = record.at_ns
    return found


def _with_overlap(ending: Ending, runs: Mapping[str, _Run]) -> Ending:
    own = runs.get(ending.pod.uid)
    if own is None or own.deleted is None or own.exited is None:
        return ending
    for uid, other in runs.items():
        if uid == ending.pod.uid or other.owner != own.owner or other.started is None:
            continue
        both = (min(own.exited, other.exited or own.exited) - other.started) / 1e9
        if own.deleted <= other.created and both >= _NOTICED_SECONDS:
            kind = own.owner.partition(" ")[0]
            text = said("ranTwice", kind, pod=own.name, next=other.name, seconds=f"{both:.1f}")
            finding = Finding("ranTwice", "warning", text, advice=fix("ranTwice", kind))
            return replace(ending, findings=(finding, *ending.findings))
    return ending
