"""Add the user of an audit log's request to records from an API that names no user. Pure."""

# check: pure

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.kube.api import Object, labels_of, name_of, namespace_of, uid_of
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace.auditing.index import SERVERS_APART_NS, WATCH_LATE_NS, AuditIndex
from lastcall.trace.auditing.requests import AuditedWrite
from lastcall.trace.stamps import SECOND, Clocks, stamp_ns
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.apiserver import OwnerDeleted, OwnerWritten

_PLURALS = {
    "Deployment": "deployments", "ReplicaSet": "replicasets", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets",
    "Job": "jobs", "CronJob": "cronjobs", "ReplicationController": "replicationcontrollers", "Namespace": "namespaces",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """An index, and the clocks that place its times. All methods take records of a trace."""

    index: AuditIndex
    clocks: Clocks

    def deletion(self, pod: Object, accepted: Record) -> AuditedWrite | None:
        """Return the request that a Pod's DELETE came with."""
        facts = accepted.facts_as(kinds.DELETE_ACCEPTED)
        stamp = stamp_ns(facts["deletionTimestamp"])
        if stamp is None:  # forced: its object shows no time
            between = self._around(accepted.wall_ns)
        else:
            second = stamp - facts["gracePeriodSeconds"] * SECOND
            between = (second - SERVERS_APART_NS, second + SECOND + SERVERS_APART_NS)
        return self.index.deletion_of("pods", namespace_of(pod), name_of(pod), uid_of(pod), between, labels_of(pod))

    def with_users(self, pod: Object, records: Sequence[Record]) -> list[Record]:
        """Return the records; those that are known to be of an audited request name who sent it."""
        return [self._with_user(pod, each) for each in records]

    def ambiguous(self, records: Sequence[Record]) -> Iterator[str]:
        """Yield a sentence for each write to an owner that may be of several users."""
        for record in records:
            if record.kind == kinds.OWNER_WRITTEN:
                facts = record.facts_as(kinds.OWNER_WRITTEN)
                users = [each.user for each in self._writers(record, facts)]
                if len(users) > 1:
                    names, owner = " or ".join(sorted(users)), f"{facts['ofKind']} {facts['name']}"
                    yield f"Who changed {owner} is not certain: by the audit log {names} did at that time."

    def _with_user(self, pod: Object, record: Record) -> Record:
        write: AuditedWrite | None = None
        if record.kind == kinds.DELETE_ACCEPTED and not record.facts_as(kinds.DELETE_ACCEPTED).get("user"):
            write = self.deletion(pod, record)
        elif record.kind == kinds.OWNER_WRITTEN:
            writers = self._writers(record, record.facts_as(kinds.OWNER_WRITTEN))
            write = writers[0] if len(writers) == 1 else None
        elif record.kind == kinds.OWNER_DELETED:
            facts = record.facts_as(kinds.OWNER_DELETED)
            around = self._around(record.wall_ns)
            plural = _PLURALS.get(facts["ofKind"], "")
            write = self.index.deletion_of(plural, facts["namespace"], facts["name"], facts["uid"], around)
        if write is None:
            return record
        named = {"user": write.user, "userAgent": write.user_agent, **write.facts}
        return replace(record, facts={**record.facts, **named})

    def _writers(self, record: Record, facts: "OwnerWritten | OwnerDeleted") -> list[AuditedWrite]:
        around, plural = self._around(record.wall_ns), _PLURALS.get(facts["ofKind"], "")
        return self.index.writers_of(plural, facts["namespace"], facts["name"], around, facts["userAgent"])

    def _around(self, wall_ns: int) -> tuple[int, int]:
        """Return when, by the API server's clock, a write was accepted that came here at this time of ours."""
        theirs = wall_ns - self.clocks.ours_ns("", 0)
        return theirs - WATCH_LATE_NS, theirs + WATCH_LATE_NS
