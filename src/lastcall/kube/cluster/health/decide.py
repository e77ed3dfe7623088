"""When a role hangs: the rule, pure. `watchdog.py` performs it.

A role's event loop counts its turns, one in two seconds (`heartbeat.py`); init looks at the count (`watchdog.py`). A
heart that does not beat proves nothing: the machine may have been suspended, the role stopped, frozen or starved, or
init itself held up. So what counts is time that the role had and did not use to turn its loop, its *own* time:

| between two looks the role | what counts, and why |
|---|---|
| ran | all of it: a loop that gets time and does not turn is in one callback, however slow the machine is |
| slept (S), a processor was idle, init was punctual | while it was not ready to run: what it waits for had its chance |
| slept, and no processor was ever idle | the share of that which a process has here: what it waits for may be starved |
| slept, and init was late | nothing: all of it may have been a stop, or a jump of the clock |
| was ready to run (R) and did not | nothing: it is starved |
| slept uninterruptibly (D) | nothing: a disk, or a frozen control group. Another process would wait for the same |
| was stopped or traced (T, t), is dead (Z, X) | nothing: it was stopped on purpose |

No look counts more than `MOST_SECONDS`: a virtual machine that was paused may book the pause as processor time of what
ran then, or as a jump of the monotonic clock. That clock does not advance while a machine is suspended, for role and
init alike. A frozen control group of version 2 looks asleep: that role does not answer the signal that asks for its
stack, and a role that does not answer is left alone (`watchdog.py`).
"""

from lastcall.world.dataclass import dataclass

LOOK_SECONDS = 2.0
"""Between two looks at a role whose heart has not beaten since the last one."""
LATE_SECONDS = 0.5
"""init was punctual when it was not later than that."""
MOST_SECONDS = LOOK_SECONDS + LATE_SECONDS
"""How much own time one look proves at most."""
IDLE_SHARE = 0.05
"""Of one processor: how much idle time shows that nobody waited for a processor."""
HANGS_AFTER_SECONDS = 10.0
"""Of own time without a turn of the loop, unless the role has said that it may take longer."""


@dataclass(frozen=True, slots=True)
class Look:
    """What init sees of a role. Seconds, counted from any beginning; `state` is that of /proc/<pid>/stat.

    `cpu` is what the thread with the loop ran; `waited` is how long the role's threads were ready to run and did not.
    `idle` is the machine's, of all processors together; `share` is what a process that is ready to run has of one.
    """

    at: float
    beats: int
    state: str
    cpu: float
    waited: float
    idle: float
    share: float = 1.0


def own_seconds(before: Look, after: Look) -> float:
    """Return the own time between two looks; 0 if the heart has beaten between them."""
    if after.beats != before.beats:
        return 0.0
    passed = max(0.0, after.at - before.at)
    most = min(passed, MOST_SECONDS)
    ran = max(0.0, after.cpu - before.cpu)
    slept = 0.0
    if "S" == after.state == before.state and passed <= MOST_SECONDS:
        was_idle = after.idle - before.idle >= IDLE_SHARE * passed
        share = 1.0 if was_idle else min(before.share, after.share)
        slept = share * (passed - ran - max(0.0, after.waited - before.waited))
    return min(most, ran + max(0.0, slept))


def share_of(processors: int, runnable: int) -> float:
    """Return the share of a processor for each of `runnable` processes."""
    return min(1.0, processors / max(1, runnable))


@dataclass(slots=True)
class Evidence:
    """What speaks against one role since its heart beat last."""

    own: float = 0.0
    last: Look | None = None

    def add(self, look: Look) -> float:
        """Add a look; return the own time without a beat up to it."""
        if self.last is None or look.beats != self.last.beats:
            self.own = 0.0
        else:
            self.own += own_seconds(self.last, look)
        self.last = look
        return self.own

    def forget(self) -> None:
        """Begin anew: the role has shown that it cannot run."""
        self.own, self.last = 0.0, None


def hangs(own: float, allowed: float = HANGS_AFTER_SECONDS) -> bool:
    """Return whether `own` seconds without a turn are too many. `allowed` is what the role asked for (heartbeat.py)."""
    return own >= allowed
