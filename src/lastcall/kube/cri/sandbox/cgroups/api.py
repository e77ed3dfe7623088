"""What the rest asks of control groups, whatever the kernel offers. Standard library only.

A `path` is relative to the cluster's own directory and names a Pod's or a container's group as Kubernetes does:
`kubepods/burstable/pod<uid>/<container id>`. Resources carry CRI's names (`LinuxContainerResources`), as a dictionary.

A container's processes live one level below its group, in `LEAF`, and that is the root of their cgroup namespace: who
mounts a hierarchy in there finds neither the files that limit it nor any other group.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Cgroups(Protocol):
        """Makes, changes, reads and removes groups. What fails raises OSError; removing and reading never do."""

        mode: str
        """`v2`, `v1` or `none`."""

        def create(self, path: str, resources: dict[str, Any]) -> None:
            """Make the group with its limits, and the groups above it without any. Update one that exists."""
            ...

        def create_container(self, path: str, resources: dict[str, Any]) -> None:
            """Create a container's groups: the one that its processes live in, and one in every other hierarchy."""
            ...

        def update(self, path: str, resources: dict[str, Any]) -> None:
            """Set other limits for an existing group."""
            ...

        def update_container(self, path: str, resources: dict[str, Any]) -> None:
            """Set other limits for a container."""
            ...

        def view(self, path: str, *, privileged: bool) -> list[tuple[str, str]]:
            """Return (name, directory) of what version 1 shows a container in its /sys/fs/cgroup.

            It is the group that has its limits; a privileged container sees the one its processes are in and may
            divide. Empty: nothing but version 2.
            """
            ...

        def entrance(self, path: str) -> Entrance:
            """Return how a process gets into a container, in every hierarchy."""
            ...

        def oom_kills(self, path: str) -> int | None:
            """Count the processes the kernel killed for lack of memory in this container; None if nobody counts."""
            ...

        def group_kills(self, path: str) -> int | None:
            """Count how often the kernel ended all of this container for lack of memory; None where it does not."""
            ...

        def limit_reached(self, path: str) -> bool | None:
            """Return whether this container needed more memory than its own limit; False if a group above it ran out.

            None if the kernel does not say.
            """
            ...

        def shared_memory(self, path: str) -> int | None:
            """Return the bytes of files in memory (tmpfs) and shared memory that count here; None if nobody counts."""
            ...

        def usage(self, path: str) -> Usage | None:
            """Return what the group uses now; None if it is gone or nobody counts."""
            ...

        def kill(self, path: str) -> None:
            """Send SIGKILL to every process of the group and of those below."""
            ...

        def thaw(self, path: str) -> None:
            """Let what is frozen in a container go on: on version 1 nothing else ends it, SIGKILL included."""
            ...

        def remove(self, path: str) -> bool:
            """Remove the group and those below, or one that is gone; return False if something in it still lives."""
            ...

        def remove_container(self, path: str) -> bool:
            """Remove the groups of a container, in every hierarchy."""
            ...


LARGEST_CHARGE = os.sysconf("SC_PAGE_SIZE") << 3
"""The most bytes that are asked for at once and lead to an out-of-memory kill (PAGE_ALLOC_COSTLY_ORDER)."""
LEAF = "init"
"""The group in a container's group that its processes live in."""


class Entrance:
    """`files` take "0" from a process without other threads; `directory` is for clone3 (version 2; "" for none).

    Neither waits. A write to cgroup.procs holds up every process of the machine that starts a thread, and to begin with
    waits for an RCU grace period: 10 ms and more (Linux kernel/cgroup/cgroup.c:cgroup_attach_lock; `tasks`: 5.5).
    """

    def __init__(self, files: list[str], directory: str) -> None:
        self.files, self.directory = files, directory


class Usage:
    """`memory_bytes` with the page cache, `working_set_bytes` without the part the kernel drops first, `cpu_ns`, `pids`
    (processes and threads)."""

    def __init__(self, memory_bytes: int, working_set_bytes: int, cpu_ns: int, pids: int) -> None:
        self.memory_bytes = memory_bytes
        self.working_set_bytes = working_set_bytes
        self.cpu_ns = cpu_ns
        self.pids = pids


def pids_limit(resources: dict[str, Any]) -> int:
    """Return the most processes and threads, 0 for no limit (CRI has it among the `unified` files)."""
    text = str((resources.get("unified") or {}).get("pids.max", ""))
    return int(text) if text.isdecimal() else 0
