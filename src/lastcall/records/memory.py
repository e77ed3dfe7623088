"""A recorder that keeps its records in a list: for the virtual world and for tests."""

from typing import TYPE_CHECKING, Literal, Self

from lastcall.records.record import Evidence, Facts, Record
from lastcall.world.clock import Clock

if TYPE_CHECKING:
    from lastcall.records.record import Kind
    from lastcall.records.rules import Rule


class MemoryRecorder:
    """`records` is in the order of writing and shared by the recorders of all actors made with `for_actor`."""

    def __init__(self, actor: str, clock: Clock, *, boot_id: str = "0", records: list[Record] | None = None) -> None:
        self.records: list[Record] = [] if records is None else records
        self._actor = actor
        self._clock = clock
        self._boot_id = boot_id

    def for_actor(self, actor: str) -> Self:
        """Return a recorder of another actor with the same list."""
        return type(self)(actor, self._clock, boot_id=self._boot_id, records=self.records)

    def record(
        self,
        kind: "Kind[Facts]",
        *,
        pod_uid: str = "",
        container: str = "",
        rule: "Rule | Literal['']" = "",
        facts: Facts | None = None,
        cause_id: str = "",
        evidence: Evidence = "observed",
    ) -> str:
        record = Record(
            id=f"{self._actor}-{self._boot_id}-{len(self.records) + 1}",
            at_ns=self._clock.monotonic_ns(),
            wall_ns=self._clock.wall_ns(),
            actor=self._actor,
            kind=kind,
            pod_uid=pod_uid,
            container=container,
            rule=rule,
            facts=dict(facts or {}),
            cause_id=cause_id,
            evidence=evidence,
        )
        self.records.append(record)
        return record.id


class NoRecorder:
    """Keep no record, if nobody builds a story."""

    def record(
        self,
        kind: "Kind[Facts]",
        *,
        pod_uid: str = "",
        container: str = "",
        rule: "Rule | Literal['']" = "",
        facts: Facts | None = None,
        cause_id: str = "",
        evidence: Evidence = "observed",
    ) -> str:
        return ""
