"""Joins causes across processes.

Inside a process the writer of a record knows what led to it (`cause_id`). Between processes nothing is handed over:
a component that writes an object records the resourceVersion it wrote; one that reacts to a watch event the one it saw,
and (Pod uid, resourceVersion) joins the two here. A few effects have their cause by nature: a DELETE accepted was sent
by a client, a process that ended by signal 9 was sent one.
"""

# check: reads facts because any kind of record may carry the version that it wrote or saw

from collections.abc import Iterable, Sequence

from lastcall.endings.causes.owners import OwnerHistory
from lastcall.records import kinds
from lastcall.records.order import by_time
from lastcall.records.record import Record
from lastcall.records.signal_names import signal_name

_WRITERS = (
    kinds.POD_CREATED,
    kinds.POD_BOUND,
    kinds.DELETE_ACCEPTED,
    kinds.GRACE_SHORTENED,
    kinds.POD_STATUS_WRITTEN,
    kinds.OBJECT_REMOVED,
    kinds.ENDPOINT_CHANGED,
    kinds.ENDPOINT_REMOVED,
)
"""Kinds whose `resourceVersion` is one that the API server gave: of the Pod, or of the slice with its endpoint."""

_OBSERVERS_BY_VERSION = (kinds.POD_READY_SEEN, kinds.POD_GONE_SEEN)
"""Kinds whose `resourceVersion` is one that a watcher saw."""


def join_causes(records: Sequence[Record]) -> dict[str, str]:
    """Map each record whose cause is known, by its id, to the id of the record that led to it.

    Records may be in any order and of any number of Pods; a cause that is missing (its process died) is left out.
    """
    known = {record.id for record in records}
    written = _written_versions(records)
    owners = OwnerHistory(sorted(records, key=by_time))
    causes: dict[str, str] = {}
    for record in records:
        above = owners.cause_of(record)
        if above is not None and above.id != record.id:
            # A decision goes back to what its owner asks for, before it goes back to the state of the Pod.
            causes[record.id] = above.id
            continue
        cause = record.cause_id if record.cause_id in known else ""
        if not cause:
            cause = written.get((record.pod_uid, _observed_version(record)), "")
        if cause and cause != record.id:
            causes[record.id] = cause
    for effect, cause in _by_nature(records):
        causes.setdefault(effect, cause)
    return causes


def _written_versions(records: Iterable[Record]) -> dict[tuple[str, str], str]:
    written: dict[tuple[str, str], str] = {}
    for record in records:
        version = str(record.facts.get("resourceVersion") or "")
        if record.kind in _WRITERS and version:
            written.setdefault((record.pod_uid, version), record.id)
    return written


def _observed_version(record: Record) -> str:
    name = "resourceVersion" if record.kind in _OBSERVERS_BY_VERSION else "observedResourceVersion"
    return str(record.facts.get(name) or "-")


def _by_nature(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Pairs (effect, cause) that need no version to be joined."""
    latest: dict[tuple[str, ...], str] = {}
    pairs: list[tuple[str, str]] = []
    decided: dict[str, Record] = {}
    for record in sorted(records, key=by_time):
        uid, name = record.pod_uid, record.container
        match record.kind:
            case kinds.DELETE_SENT | kinds.WORKER_FINISHED:
                latest[(record.kind, uid)] = record.id
            case kinds.FINAL_DELETE_SENT:
                latest[(record.kind, uid)] = record.id
                _pair(pairs, record.id, latest.get((kinds.WORKER_FINISHED, uid)))
            case kinds.STOP_REQUESTED:
                latest[(record.kind, uid, name)] = record.id
            case kinds.PROCESS_SIGNAL_STATE:
                _pair(pairs, record.id, latest.get((kinds.STOP_REQUESTED, uid, name)))
            case kinds.SIGNAL_SENT:
                sent = record.facts_as(kinds.SIGNAL_SENT)
                if sent.get("why") in ("StopContainer", "grace over"):
                    _pair(pairs, record.id, latest.get((kinds.STOP_REQUESTED, uid, name)))
                latest[(record.kind, uid, name, signal_name(sent.get("signal")) or "")] = record.id
            case kinds.DELETION_DECIDED:
                # What was decided later is not what this DELETE came of: another client was faster.
                latest[(kinds.DELETION_DECIDED, uid)] = record.id
                decided[record.id] = record
            case kinds.DELETE_ACCEPTED:
                by = decided.get(latest.get((kinds.DELETION_DECIDED, uid), ""))
                if by is not None and _may_be_of(record, by):
                    _pair(pairs, record.id, by.id)
                else:
                    _pair(pairs, record.id, latest.get((kinds.DELETE_SENT, uid)))
            case kinds.OBJECT_REMOVED | kinds.HELD_BY_FINALIZERS:
                _pair(pairs, record.id, latest.get((kinds.FINAL_DELETE_SENT, uid)))
            case kinds.PROCESS_EXITED:
                ended_by = signal_name(record.facts_as(kinds.PROCESS_EXITED).get("signal")) or "-"
                _pair(pairs, record.id, latest.get((kinds.SIGNAL_SENT, uid, name, ended_by)))
    return pairs


def _may_be_of(accepted: Record, decided: Record) -> bool:
    """Whether who sent the DELETE may be who decided: an evicting user is named, controllers are users of their own."""
    user = str(accepted.facts_as(kinds.DELETE_ACCEPTED).get("user") or "")
    by = decided.facts_as(kinds.DELETION_DECIDED).get("user")
    return user == by if by else user.startswith("system:") or not user


def _pair(pairs: list[tuple[str, str]], effect: str, cause: str | None) -> None:
    if cause:
        pairs.append((effect, cause))
