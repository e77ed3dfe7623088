"""What the rest asks of control groups, whatever the kernel offers. Standard library only.

A `path` is relative to the cluster's own directory and names a Pod's or a container's group as Kubernetes does:
`kubepods/burstable/pod<uid>/<container id>`. Resources carry CRI's names (`LinuxContainerResources`), as a dictionary.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Cgroups(Protocol):
        """Makes, changes, reads and removes groups. What fails raises OSError; removing and reading never do."""

        mode: str
        """`v2`, `v1` or `none`."""

        def create(self, path: str, resources: dict[str, Any]) -> None:
            """Make the group with its limits, and the groups above it without any. One that is there is updated."""
            ...

        def update(self, path: str, resources: dict[str, Any]) -> None:
            """Set the limits of a group that is there."""
            ...

        def member_files(self, path: str) -> list[str]:
            """The files to write "0" to for becoming a member."""
            ...

        def oom_kills(self, path: str) -> int | None:
            """How many processes the kernel killed for lack of memory in this group; None when nobody counts."""
            ...

        def usage(self, path: str) -> Usage | None:
            """What the group uses now; None when it is gone or nobody counts."""
            ...

        def kill(self, path: str) -> None:
            """SIGKILL to every process of the group and of those below."""
            ...

        def remove(self, path: str) -> bool:
            """Remove the group and those below; False when something in it still lives. One that is gone is removed."""
            ...


class Usage:
    """`memory_bytes` with the page cache, `working_set_bytes` without the part the kernel drops first, `cpu_ns`, `pids`
    (processes and threads)."""

    def __init__(self, memory_bytes: int, working_set_bytes: int, cpu_ns: int, pids: int) -> None:
        self.memory_bytes = memory_bytes
        self.working_set_bytes = working_set_bytes
        self.cpu_ns = cpu_ns
        self.pids = pids


def cpu_weight(shares: int) -> int:
    """Version 2's weight (1 to 10000) for version 1's shares (2 to 262144).

    Source: opencontainers/cgroups utils.go:ConvertCPUSharesToCgroupV2Value (the line of KEP-2254).
    """
    return 1 + (max(shares, 2) - 2) * 9999 // 262142


def pids_limit(resources: dict[str, Any]) -> int:
    """The most processes and threads, 0 for no limit (CRI has it among the `unified` files)."""
    text = str((resources.get("unified") or {}).get("pids.max", ""))
    return int(text) if text.isdecimal() else 0


class NoCgroups:
    """Nothing is limited and nobody counts. `why` is for a person."""

    mode = "none"

    def __init__(self, why: str) -> None:
        self.why = why

    def create(self, path: str, resources: dict[str, Any]) -> None:
        return

    def update(self, path: str, resources: dict[str, Any]) -> None:
        return

    def member_files(self, path: str) -> list[str]:
        return []

    def oom_kills(self, path: str) -> int | None:
        return None

    def usage(self, path: str) -> Usage | None:
        return None

    def kill(self, path: str) -> None:
        return

    def remove(self, path: str) -> bool:
        return True
