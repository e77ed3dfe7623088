"""What led to the decision of a controller: the writes to the owners of a Pod, joined by uid and generation.

A generation is one state of what an object asks for. A component that writes an owner records the generation and the
resourceVersion it wrote; the controller that reacts records the generation it observed. A status write in between
changes the resourceVersion and not what was decided, so that the generation joins more than the version would.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lastcall.records import kinds
from lastcall.records.record import Record

if TYPE_CHECKING:
    from lastcall.records.definitions.controllers import DeletionDecided, ScaleDecided

OWNER_KINDS = (kinds.OWNER_WRITTEN, kinds.OWNER_DELETED, kinds.SCALE_DECIDED)
"""Kinds of records that are about an owner and of no Pod."""

_FIELDS = {"scaling": ("replicas", "parallelism", "completions"), "rollout": ("template",), "suspended": ("suspend",)}
"""Which spec field's write is meant by a step."""


def is_about_owner(record: Record) -> bool:
    """Return whether a record reports an owner: a write, a deletion, or the decision of a controller to delete it."""
    return record.kind in OWNER_KINDS or (record.kind == kinds.DELETION_DECIDED and not record.pod_uid)


class OwnerHistory:
    """All that records report about the owners of Pods, in order of time."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._scaled: dict[tuple[str, int], Record] = {}
        self._versions: dict[tuple[str, str], Record] = {}
        self._written: dict[str, list[Record]] = {}
        self._deleted: dict[str, Record] = {}
        self._namespaces: dict[str, Record] = {}
        self._decided: dict[str, Record] = {}
        for record in records:
            if not is_about_owner(record):
                continue
            if record.kind == kinds.SCALE_DECIDED:
                scaled = record.facts_as(kinds.SCALE_DECIDED)
                uid = str(scaled.get("uid"))
                self._scaled.setdefault((uid, _whole(scaled.get("generation"))), record)
                self._versions.setdefault((uid, str(scaled.get("resourceVersion"))), record)
            elif record.kind == kinds.DELETION_DECIDED:
                self._decided[str(record.facts_as(kinds.DELETION_DECIDED).get("uid"))] = record
            elif record.kind == kinds.OWNER_WRITTEN:
                self._written.setdefault(str(record.facts_as(kinds.OWNER_WRITTEN).get("uid")), []).append(record)
            else:
                deleted = record.facts_as(kinds.OWNER_DELETED)
                self._deleted.setdefault(str(deleted.get("uid")), record)
                if deleted.get("ofKind") == "Namespace":
                    self._namespaces[str(deleted.get("name"))] = record

    def cause_of(self, record: Record) -> Record | None:
        """Return what an owner's record, or the decision to end a Pod, goes back to; None where nobody saw it."""
        if record.kind == kinds.OWNER_DELETED:
            deleted = record.facts_as(kinds.OWNER_DELETED)
            decided = self._decided.get(str(deleted.get("uid")))
            return decided or self._deleted.get(str(deleted.get("ownerUid") or "-"))
        if record.kind == kinds.OWNER_WRITTEN:
            written = record.facts_as(kinds.OWNER_WRITTEN)
            return self._versions.get((str(written.get("uid")), str(written.get("resourceVersion"))))
        if record.kind == kinds.SCALE_DECIDED:
            return self._write_before(record.facts_as(kinds.SCALE_DECIDED))
        if record.kind != kinds.DELETION_DECIDED or not record.pod_uid:
            return None
        facts = record.facts_as(kinds.DELETION_DECIDED)
        if not facts.get("ownerUid"):
            return self._namespaces.get(str(facts.get("namespace") or "-"))
        uid, generation = str(facts["ownerUid"]), facts.get("ownerGeneration")
        if generation is None:
            return self._deleted.get(uid)
        return self._scale_before(uid, generation) or self._write_before(facts)

    def _scale_before(self, uid: str, generation: int) -> Record | None:
        """The resize that the owner's controller reacts to; a write of something else may have followed it."""
        found = self._scaled.get((uid, generation))
        if found is not None:
            return found
        sizes = [
            each
            for each in self._written.get(uid, ())
            if "replicas" in (each.facts_as(kinds.OWNER_WRITTEN).get("changed") or ())
        ]
        generations = [_whole(each.facts_as(kinds.OWNER_WRITTEN).get("generation")) for each in sizes]
        before = [each for each in generations if each <= generation]
        return self._scaled.get((uid, before[-1])) if before else None

    def _write_before(self, facts: "ScaleDecided | DeletionDecided") -> Record | None:
        """The last write, up to the observed generation, of the field that the step is about."""
        fields = _FIELDS.get(str(facts.get("step")), ())
        generation = _whole(facts.get("ownerGeneration"))
        for record in reversed(self._written.get(str(facts.get("ownerUid")), [])):
            written = record.facts_as(kinds.OWNER_WRITTEN)
            changed = written.get("changed") or ()
            if _whole(written.get("generation")) <= generation and any(field in changed for field in fields):
                return record
        return None


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
