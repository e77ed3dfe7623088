"""What a container's group says of its memory. Pure.

Sources: Linux Documentation/admin-guide/cgroup-v2.rst (memory.events, memory.max), cgroup-v1/memory.rst (oom_control).
"""

# check: pure

from __future__ import annotations

_NO_LIMIT_V1 = 1 << 60
"""Version 1 has no word for "no limit": it shows the largest number of pages that fits."""


def oom_kills(events: str) -> int | None:
    """Count the processes of the group that the kernel killed for lack of memory; None if nobody counts.

    It is `oom_kill` of memory.events (version 2) or memory.oom_control (version 1, since Linux 4.13).
    """
    for line in events.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill" and value.strip().isdecimal():
            return int(value)
    return None


def limit(text: str) -> int | None:
    """Return the bytes of memory.max or memory.limit_in_bytes; None without a limit."""
    value = text.strip()
    if not value.isdecimal() or int(value) >= _NO_LIMIT_V1:
        return None
    return int(value)


def files_of(groups: str) -> tuple[str, str]:
    """Return the files of `oom_kills` and of `limit`, below the root of the control groups, of /proc/<pid>/cgroup.

    Version 1's hierarchy decides where there is one (cgroups(7)). Empty texts where the process is gone.
    """
    unified = ""
    for line in groups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            here = f"memory{path.rstrip('/')}"
            return f"{here}/memory.oom_control", f"{here}/memory.limit_in_bytes"
        if not controllers:
            unified = path
    here = unified.strip("/")
    return (f"{here}/memory.events", f"{here}/memory.max") if here else ("", "")
