"""What the crash guards of a cluster's roles have caught, added up by front for `status`. Pure."""

# check: pure

from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.world.clock import rfc3339
from lastcall.world.dataclass import dataclass

MOST_OF_A_ROLE = 100
"""The key that failed longest ago goes first."""


@dataclass(slots=True)
class CaughtFault:
    """`count` over all lives of the role; `at_ns` is when the last came, nanoseconds since the epoch."""

    component: str
    key: str
    count: int = 0
    error: str = ""
    at_ns: int = 0


@dataclass(slots=True)
class CaughtFaults:
    _of_role: dict[str, dict[tuple[str, str], CaughtFault]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Add a record `FaultCaught`."""
        facts = record.facts_as(kinds.FAULT_CAUGHT)
        component, key = str(facts.get("component", "")), str(facts.get("key", ""))
        faults = self._of_role.setdefault(str(facts.get("role", "")), {})
        fault = faults.pop((component, key), None) or CaughtFault(component, key)
        faults[component, key] = fault
        fault.count += int(facts.get("times") or 1)
        fault.error = str(facts.get("error", ""))
        fault.at_ns = record.wall_ns
        if len(faults) > MOST_OF_A_ROLE:
            del faults[next(iter(faults))]

    def of(self, role: str) -> list[CaughtFault]:
        """Return the faults of a role, in the order of their last occurrence."""
        return list(self._of_role.get(role, {}).values())

    def facts_of(self, role: str) -> list[dict[str, Any]]:
        """Return the faults of a role as `status` shows them."""
        return [
            {
                "component": fault.component,
                "key": fault.key,
                "count": fault.count,
                "error": fault.error,
                "at": rfc3339(datetime.fromtimestamp(fault.at_ns / 1e9, UTC)),
            }
            for fault in self.of(role)
        ]
