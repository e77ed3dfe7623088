"""What a container uses, beyond its group's numbers: descriptors, sockets, and its Pod's network."""

from __future__ import annotations

import contextlib
import os
import resource

from lastcall.cri.sandbox.shim import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastcall.cri.sandbox.shim.containers import Container

_MOST_PROCESSES = 512


def of_processes(container: Container) -> dict[str, int]:
    """`processes`, `descriptors`, `sockets` and `soft_files`: every descriptor of every process is looked at."""
    pids = container.limits.members()
    found = {"processes": len(pids)}
    descriptors = sockets = 0
    for pid in pids[:_MOST_PROCESSES]:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                descriptors += 1
                with contextlib.suppress(OSError):
                    sockets += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
    found["descriptors"], found["sockets"] = descriptors, sockets
    if container.process is not None:
        with contextlib.suppress(OSError):
            found["soft_files"] = resource.prlimit(container.process.pid, resource.RLIMIT_NOFILE)[0]
    return found


def network_of(container: Container) -> dict[str, list[int]]:
    """Link → the numbers of `parse_dev`; {} for a Pod in the machine's network."""
    if container.process is None or not container.sandbox.namespaces:
        return {}
    return parse_dev(procfs.read(f"/proc/{container.process.pid}/net/dev"))


def parse_dev(text: str) -> dict[str, list[int]]:
    """/proc/net/dev without the loopback: bytes, packets, errors and drops received, then the same transmitted."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        numbers = [int(word) for word in rest.split()]
        if len(numbers) >= 12 and name.strip() != "lo":
            found[name.strip()] = [*numbers[:4], *numbers[8:12]]
    return found
