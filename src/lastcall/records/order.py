"""The order of records: by time, then as they were written."""

from lastcall.records.record import Record


def by_time(record: Record) -> tuple[int, int, str]:
    """Return a sort key. Records of one nanosecond (virtual time has many) keep their writer's sequence."""
    tail = record.id.rpartition("-")[2]
    return record.at_ns, int(tail) if tail.isdigit() else 0, record.id
