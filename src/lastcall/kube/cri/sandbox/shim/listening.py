"""Who listens in a Pod now: of one container, and of all of them after a crash, and what it refused."""

from __future__ import annotations

from lastcall.kube.cri.sandbox.shim import procfs
from lastcall.kube.cri.sandbox.shim.sockets import facts_of, listeners_of, tcp_counts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lastcall.records.definitions.parts import Listener, PodListener, PodResets

_MOST_LISTENERS = 16
"""In the record of a crash."""


def listeners_of_container(network: tuple[int, int], pid: int, alone: Callable[[], bool]) -> list[Listener] | None:
    """Return who of a container, whose PID 1 is `pid`, listens; None when nobody can look. `network` as in `Watched`.

    `alone` returns True if no other container of its Pod runs.
    """
    try:
        found = listeners_of(network, pid) or []
        if found and not alone():
            own = procfs.socket_inodes([pid, *procfs.descendants(pid)])
            found = [each for each in found if each.inode in own]
        if procfs.exiting(pid):
            return None  # what is closed by now the kernel may have closed
    except (OSError, ValueError):
        return None
    return facts_of(found)


def listeners_of_pod(network: tuple[int, int], beside: Iterable[tuple[int, str]]) -> list[PodListener] | None:
    """Return who listens in the Pod of a container that has crashed; None where nobody can tell. Raises OSError.

    `beside` are (PID 1, name) of its other containers that run.
    """
    sockets = listeners_of(network)
    if sockets is None:
        return None
    owners: dict[int, str] = {}
    for pid, name in beside if sockets else ():
        owners |= dict.fromkeys(procfs.socket_inodes([pid, *procfs.descendants(pid)]), name)
    return [
        {"address": each.address, "port": each.port, "container": owners.get(each.inode, "")}
        for each in sockets[:_MOST_LISTENERS]
    ]


class ResetCounter:
    """Counts the resets of one Pod from crash to crash. Nothing is read before the first: all counters begin at 0."""

    def __init__(self) -> None:
        self._before: PodResets = {"sent": 0, "aborted": 0, "attemptsFailed": 0, "loopbackPackets": 0}

    def since_last(self, network: tuple[int, int]) -> PodResets | None:
        """Return what has been counted since the last call; None where nobody can tell."""
        try:
            now, before = tcp_counts_of(network), self._before
        except (OSError, ValueError, KeyError):
            return None
        self._before = now
        return {
            "sent": now["sent"] - before["sent"],
            "aborted": now["aborted"] - before["aborted"],
            "attemptsFailed": now["attemptsFailed"] - before["attemptsFailed"],
            "loopbackPackets": now["loopbackPackets"] - before["loopbackPackets"],
        }
