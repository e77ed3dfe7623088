"""What only the node could see of a container's end: who was left, what became of its sockets, what it did first.

Data only: `facts/node.py` makes it of records. Every fact may be missing: a Pod with hostNetwork has no sockets of its
own, and another runtime reports none of these.
"""

# check: pure

from dataclasses import field
from typing import Literal

from lastcall.records.json_shape import HIDDEN, key
from lastcall.records.record import Evidence
from lastcall.world.dataclass import dataclass

Reaction = Literal["output", "listenerClosed", "connectionsClosed", "exit"]


@dataclass(frozen=True, slots=True)
class ProcessLeft:
    """`container_pid` is its number inside; `disposition` what it would do with the stop signal; `after_signal` whether
    it was begun only after that signal; `child` whether PID 1 is its parent (None: not known)."""

    pid: int
    container_pid: int
    name: str
    disposition: str
    after_signal: bool = field(default=False, metadata=HIDDEN)
    child: bool | None = field(default=None, metadata=HIDDEN)

    @property
    def deaf(self) -> bool:
        return self.disposition in ("ignored", "blocked")


@dataclass(frozen=True, slots=True)
class ProcessAtStop:
    """A process beside PID 1. `container_pid` is its number inside, `parent` that of its parent (0: outside, or not
    known), `disposition` what it does with the stop signal."""

    container_pid: int
    parent: int
    name: str
    disposition: str


@dataclass(frozen=True, slots=True)
class ThreadsWaiting:
    """Threads of one process that slept in the system call `call` ("": they ran, or nobody knows). `limited`: it ends
    after some time by itself. `own`: a futex that only threads of the same process can wake. `wakes_in`: seconds until
    the sleep would have ended."""

    call: str
    threads: int
    limited: bool | None
    own: bool
    wakes_in: float | None = None


@dataclass(frozen=True, slots=True)
class ProcessWaiting:
    """`after_signal`: it was begun only after the stop signal. `caught`: the signals for which it had a handler when
    SIGKILL came (None: not known)."""

    container_pid: int
    name: str
    waits: tuple[ThreadsWaiting, ...]
    after_signal: bool = False
    caught: tuple[str, ...] | None = None

    @property
    def locked(self) -> bool:
        """Return whether all of its threads wait without a time limit for what only one of them can do."""
        return bool(self.waits) and all(each.own and each.limited is False for each in self.waits)

    @property
    def threads(self) -> int:
        return sum(each.threads for each in self.waits)


@dataclass(frozen=True, slots=True)
class WaitsAtKill:
    """What the processes of a container did from the stop signal until SIGKILL, `seconds` later: the CPU time that they
    used, and what they waited for. PID 1 is the first. `switches` is how often its first thread had begun to wait
    (None: not known)."""

    seconds: float
    cpu_seconds: float
    processes: tuple[ProcessWaiting, ...]
    switches: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessesLeft:
    """Other processes of a container that lived right before it was killed (`when` SIGKILL), or that the kernel killed
    when PID 1 exited (exit). `more` were too many to tell; `zombies` had ended already."""

    when: str = field(metadata=key(schema={"enum": ["SIGKILL", "exit"]}))
    evidence: Evidence
    processes: tuple[ProcessLeft, ...] = ()
    more: int = 0
    zombies: int = 0

    @property
    def alive(self) -> int:
        return len(self.processes) + self.more


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """The end of a process beside PID 1 while that lived. `container_pid` is its number inside; exit code and signal
    are None where the kernel does not show them (before Linux 6.15)."""

    container_pid: int
    name: str
    at: float
    disposition: str
    exit_code: int | None
    signal: str | None


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket. `backlog`: connections that the kernel had accepted and the program had not."""

    address: str
    port: int
    backlog: int = 0


@dataclass(frozen=True, slots=True)
class PodListener:
    """A listening socket of a Pod. `container` is "" if its container is not known."""

    address: str
    port: int
    container: str


@dataclass(frozen=True, slots=True)
class ListenerClosed:
    """A listening socket that was closed between `not_before` and `at`, in the story's seconds."""

    address: str
    port: int
    at: float
    not_before: float


@dataclass(frozen=True, slots=True)
class Peer:
    """The other side of a connection. `accepted` False: the kernel had taken it for the program, which had not.
    `own_port` is the port on this side."""

    address: str
    port: int
    accepted: bool
    unread_bytes: int
    own_port: int


@dataclass(frozen=True, slots=True)
class AtExit:
    """Right before the exit (`seconds_before` it), except `resets`: connections cut by a reset with the exit, and
    `closed_unread`: those closed since the stop signal with data that the program never read."""

    listeners: tuple[Listener, ...]
    connections: int
    unread: int
    unread_bytes: int
    backlog: int
    resets: int
    closed_unread: int
    seconds_before: float
    peers: tuple[Peer, ...] = field(default=(), metadata=HIDDEN)
    """The other sides of connections that were open, as far as they were listed."""


@dataclass(frozen=True, slots=True)
class Sockets:
    """`connections` at the stop signal, of either direction; with `scope` pod those of all its containers."""

    listeners: tuple[Listener, ...]
    connections: int
    scope: str = field(metadata=key(schema={"enum": ["container", "pod"]}))
    closed: tuple[ListenerClosed, ...] = field(default=(), metadata=key("listenersClosed"))
    connections_closed_at: float | None = None
    at_exit: AtExit | None = None


@dataclass(frozen=True, slots=True)
class FirstReaction:
    """The first thing that was seen of the program after the stop signal, `seconds` after it."""

    what: Reaction
    seconds: float
