"""What a node and the witness say to each other: a JSON object a line, typed as `world/messages.py` has it.

| verb | asks | answers |
|---|---|---|
| watch | Watch, of a container that was started | Watching: `done` when its start is on record |
| stopping | Stopping, right before StopContainer | Done: `done` True when the records of the stop are written |
| ended | Ended, of a container that its runtime shows as ended | Done: `done` True when its end is on record |
| listeners | Listeners | Listening |
| forget | Forget | Done |

A call that fails is answered with an `error`. Standard library only.
"""

from __future__ import annotations

from lastcall.world.messages import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOCKET = "witness.sock"
"""The name of its socket in the directory that cluster and runtime share."""


class Watch(Message, verb="watch"):
    """`pid` is the runtime's number of PID 1, 0 when it has ended. `argv` is what the runtime was to start.

    `log` is the path of the container's log for this machine, "" for none. `known` True: its start and its output so
    far were told before.
    """

    id: str
    pod_uid: str
    name: str
    attempt: int
    pid: int
    log: str
    argv: list[str] = []
    known: bool = False
    start: int = 0
    """What the answer to an earlier Watch said, 0 without one: another process may have the number by now."""


class Stopping(Message, verb="stopping"):
    """`signal` is a number; `timeout` in seconds, 0 for SIGKILL at once."""

    id: str
    signal: int
    timeout: int


class Ended(Message, verb="ended"):
    """What the runtime says of the end: for a kernel that does not show how a process ended (before Linux 6.15)."""

    id: str
    exit_code: int
    oom_killed: bool


class Listeners(Message, verb="listeners"):
    id: str


class Forget(Message, verb="forget"):
    id: str


class Done(Message):
    done: bool


class Watching(Message):
    """`start` is when PID 1 began, in clock ticks since boot; 0 when it has ended."""

    done: bool
    start: int = 0


class Listening(Message):
    """None when nobody can look."""

    listeners: list[Any] | None
