"""The crash guard: one bad object ends its own turn, and nothing else (Kubernetes: HandleCrash).

A component works in turns: one key of a queue, one event of a watch, one probe, one packet. Around each it puts a
guard. An `Exception` that the component does not expect is caught there, logged with its traceback, counted by
component and key, and reported; then the key backs off and everything else goes on. Cancellation, and what a component
expects (`StatusError`, `ConnectionLost`, `Retry`), are not the guard's.

    try:
        handler(obj)
    except Exception as error:
        crash_guard.caught("informer pods", key, error)

`Turn` is the same as a context manager, `guarded` for a coroutine that is a turn of its own, `keep_running` for a loop
that is to go on forever.

Guards catch where a role's main has called `install`. Elsewhere, in the virtual world and in tests above all,
`caught` raises again, so that a bug is seen; a test that wants them says `with installed() as faults:`.

Standard library only, and little of it: the shim uses this too.
"""

# check: pure names REQUEST because it is a word
# check: standard library

from __future__ import annotations

import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from types import TracebackType
    from typing import Any, Protocol, Self, TypedDict

    class Stamps(Protocol):
        """The part of `lastcall.world.clock.Clock` that is needed here."""

        def monotonic_ns(self) -> int: ...
        def wall_ns(self) -> int: ...

    class Sleeping(Stamps, Protocol):
        """`lastcall.world.clock.Clock`, without importing it."""

        async def sleep(self, seconds: float) -> None: ...

    class FaultFacts(TypedDict):
        """The facts of the record `FaultCaught`, without importing it."""

        role: str
        component: str
        key: str
        error: str
        times: int
        count: int


on_turn: Callable[[str, str], None] | None = None
"""Called with (component, key) at the start of every turn, before anything of it runs: "this is worked on now".

One for each process, None when nobody asks. Components are words of a component and perhaps its part ("job-controller",
"informer pods", "scheduler bind", "kubelet pod worker"); a key is `namespace/name`, a uid, or "" where a loop has no
key. Both are what `caught` counts by. It is called for every turn: it may not block, not raise, and should take less
than a microsecond. Few turns tell their end, by two empty texts: with one event loop the last note is what runs, or
what was awaited last. Set it as `crash_guard.on_turn = function`; callers read it from the module each time.
"""

REQUEST = "API request"
"""The component of `on_turn` whose key is the verb and the path of a request."""

STORED_OBJECTS = "stored objects"
"""The component of a fault whose key is that of a stored object which cannot be read and is set aside."""

MOST_FAULTS = 100
"""Keys in the table; the one that failed longest ago goes first."""
MOST_TEXT = 300
"""Characters of a key and of an error's text."""
REPORTED_EACH_TIME = 10
"""So often each fault of one key is reported and logged; afterwards once in `QUIET_SECONDS`, with how often it was."""
QUIET_SECONDS = 60.0
MOST_REPORTED = 50
"""Of all keys together, reported and logged in `QUIET_SECONDS`."""
FIRST_DELAY = 0.1
MAX_DELAY = 30.0
"""Seconds before a loop that failed runs again: doubled each time, anew after it has run for longer than that."""


UNFORESEEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NameError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
"""What programs raise that meet something their authors did not think of. Where a component catches every failure of a
turn by itself, for most are the world's, these are counted as well (`noticed`)."""


class Fault:
    """What was caught of one component and key."""

    __slots__ = ("at_ns", "component", "count", "error", "key", "said_at", "untold")

    def __init__(self, component: str, key: str) -> None:
        self.component = component
        self.key = key
        self.count = 0
        self.error = ""
        """The last: `ValueError: year 0 is out of range`."""
        self.at_ns = 0
        """When that was, nanoseconds since the epoch."""
        self.untold = 0
        """How many of `count` were not reported."""
        self.said_at = 0

    def __repr__(self) -> str:
        return f"<{self.component} {self.key!r}: {self.count} x {self.error}>"


class Faults:
    """The faults of one process.

    `tell` gets a fault that is new or has come again (`untold` says how often since the last report), `say` a text for
    the log. Neither is asked more often than the limits above allow.
    """

    def __init__(
        self,
        tell: Callable[[Fault], None] = lambda fault: None,
        say: Callable[[str], None] = lambda text: None,
        clock: Stamps | None = None,
    ) -> None:
        self._tell = tell
        self._say = say
        self._clock = clock or _Clock()
        self._faults: dict[tuple[str, str], Fault] = {}
        self._since = self._clock.monotonic_ns()
        self._reported = 0
        self.total = 0
        """Everything that was caught, also what the table has no room for any more."""

    def all(self) -> list[Fault]:
        """Return all faults, in the order of their last occurrence."""
        return list(self._faults.values())

    def of(self, component: str, key: str | None = None) -> list[Fault]:
        """Return the faults of a component, or of a key of it."""
        return [each for each in self._faults.values() if each.component == component and key in (None, each.key)]

    def add(self, component: str, key: str, error: BaseException) -> None:
        """Count a fault; record and log it unless that was done often enough."""
        key = key[:MOST_TEXT]
        fault = self._faults.pop((component, key), None) or Fault(component, key)
        self._faults[component, key] = fault
        if len(self._faults) > MOST_FAULTS:
            del self._faults[next(iter(self._faults))]
        now = self._clock.monotonic_ns()
        self.total += 1
        fault.count += 1
        fault.untold += 1
        fault.error = text_of(error)
        fault.at_ns = self._clock.wall_ns()
        if now - self._since >= QUIET_SECONDS * 1e9:
            self._since, self._reported = now, 0
        quiet = fault.count > REPORTED_EACH_TIME and now - fault.said_at < QUIET_SECONDS * 1e9
        if quiet or self._reported >= MOST_REPORTED:
            return
        self._reported += 1
        fault.said_at = now
        try:
            often = f" ({fault.untold} times since this was said last)" if fault.untold > 1 else ""
            self._say(f"{component}: {key or 'no key'}: caught{often}: {fault.error}\n{_traceback_of(error)}".rstrip())
            self._tell(fault)
        except Exception:  # noqa: S110 (a guard must not be what ends a process)
            pass
        fault.untold = 0


class _Clock:
    """`lastcall.world.clock.RealClock` without asyncio."""

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        return time.time_ns()


def as_facts(fault: Fault, role: str) -> FaultFacts:
    """Return the facts of the record `FaultCaught` for a fault of a role."""
    return {
        "role": role,
        "component": fault.component,
        "key": fault.key,
        "error": fault.error,
        "times": fault.untold,
        "count": fault.count,
    }


_installed: Faults | None = None


def install(faults: Faults) -> None:
    """Install the guard in this process: errors given to `caught` are counted from now on and not raised."""
    global _installed
    _installed = faults


class installed:
    """Guards for a block, and what they caught there."""

    def __init__(self, faults: Faults | None = None) -> None:
        self._faults = faults or Faults()
        self._before: Faults | None = None

    def __enter__(self) -> Faults:
        global _installed
        self._before, _installed = _installed, self._faults
        return self._faults

    def __exit__(self, *_: object) -> None:
        global _installed
        _installed = self._before


def caught(component: str, key: str, error: Exception) -> None:
    """Count and log `error`; raise it again where no guard is installed."""
    if _installed is None:
        raise error
    _installed.add(component, key, error)


def noticed(component: str, key: str, error: BaseException) -> bool:
    """Count an error that a component caught itself, if it was not foreseen; return whether that is so."""
    unforeseen = isinstance(error, UNFORESEEN)
    if unforeseen and _installed is not None:
        _installed.add(component, key, error)
    return unforeseen


class Turn:
    """`with Turn("kubelet probe", key):` one guarded turn; what is awaited inside belongs to it."""

    __slots__ = ("_component", "_key", "error")

    def __init__(self, component: str, key: str) -> None:
        self._component = component
        self._key = key
        self.error: BaseException | None = None
        """What ended the turn before its end."""

    def __enter__(self) -> Self:
        if on_turn is not None:
            on_turn(self._component, self._key)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self.error = error
        if _installed is None or not isinstance(error, Exception):
            return False
        _installed.add(self._component, self._key, error)
        return True


async def guarded(component: str, key: str, turn: Coroutine[Any, Any, Any]) -> None:
    """Await `turn`, which is a task for one object, under a guard of its own."""
    with Turn(component, key):
        await turn


async def keep_running(component: str, run: Callable[[], Awaitable[Any]], clock: Sleeping, key: str = "") -> None:
    """Run `run()` to its end; after an unexpected error run it again, with a growing delay."""
    delay = FIRST_DELAY
    while True:
        started = clock.monotonic_ns()
        with Turn(component, key) as turn:
            await run()
        if turn.error is None:
            return
        if clock.monotonic_ns() - started > MAX_DELAY * 1e9:
            delay = FIRST_DELAY
        await clock.sleep(delay)
        delay = min(2 * delay, MAX_DELAY)


def text_of(error: BaseException) -> str:
    """Return the text of an error in one line, without the groups around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    try:
        words = str(error)
    except Exception:
        words = "its text cannot be made"
    words = " ".join(words[: 2 * MOST_TEXT].split())
    kind = type(error)
    name = f"{kind.__module__}.{kind.__name__}" if kind.__name__ == "error" else kind.__name__  # struct.error
    return f"{name}: {words}"[:MOST_TEXT] if words else name


def _traceback_of(error: BaseException) -> str:
    # late: every container starts as a copy of the shim, which has no other use for it
    import traceback

    return "".join(traceback.format_exception(error, limit=-30))
