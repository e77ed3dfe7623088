"""What a node uses in all, where that is not what its machine uses."""

from __future__ import annotations

from typing import Protocol


class NodeUsage(Protocol):
    """Counts all Pods of a node that is smaller than its machine. None: the machine's figures are the node's."""

    def memory(self) -> tuple[int, int, int] | None:
        """Return (capacity, usage, working set) in bytes."""
        ...

    def cpu_ns(self) -> int | None:
        """Return the CPU time that was used since the start, in nanoseconds."""
        ...
