"""What the watching, and each delivery, say of themselves. Data only."""

from collections.abc import Mapping
from dataclasses import field

from lastcall.world.dataclass import dataclass

Delivered = Mapping[str, int]
"""What became of what was to be delivered: `sent`, `failed`, `dropped`; and what is `waiting` now."""


@dataclass(frozen=True, slots=True)
class Health:
    """Of one moment; what only grows counts from the start of the process.

    `watches`: plural of a resource → whether it is being watched now. `reconnects`: how often its watch was begun
    again. `gaps`: how often it could not go on where it had stopped (410 Gone, a lost connection that lasted too long),
    so that something may have been missed. `forbidden`: resources that may not be read.
    """

    watches: Mapping[str, bool] = field(default_factory=dict)
    reconnects: Mapping[str, int] = field(default_factory=dict)
    gaps: Mapping[str, int] = field(default_factory=dict)
    forbidden: frozenset[str] = frozenset()
    pods: int = 0
    """Followed now."""
    ending: int = 0
    """Of these: Terminating, so that their stories are still open."""
    waiting: int = 0
    """Finished stories that are not counted yet."""
    leading: bool = True
    """Whether this process watches, or waits for the one that does."""

    @property
    def ready(self) -> bool:
        """Return True if every permitted watch is open; a process that waits for the lease is ready to take over."""
        if not self.leading:
            return True
        return bool(self.watches) and all(up for name, up in self.watches.items() if name not in self.forbidden)
