"""The one door for time.

Nothing outside `lastcall.world` reads a clock or sleeps by another way. A `Clock` belongs to a running event loop:
in the real world that is uvloop or the stock loop, in the virtual world `lastcall.world.virtual.VirtualLoop`, whose
time jumps to the next timer as soon as nothing else can run.
"""

# check: pure names rfc3339 because it writes a time that it is given

import asyncio
import contextlib
import math
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Reads time and waits for it. All seconds are floats, all `_ns` values are integer nanoseconds."""

    def monotonic_ns(self) -> int:
        """Return the nanoseconds on the machine's monotonic clock (comparable between processes of one machine)."""
        ...

    def wall_ns(self) -> int:
        """Return the nanoseconds since the Unix epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return not earlier than `seconds` from now, as `monotonic_ns` counts (loop timers may fire early)."""
        ...


def monotonic(clock: Clock) -> float:
    """Return the seconds on the monotonic clock."""
    return clock.monotonic_ns() / 1e9


def now(clock: Clock) -> datetime:
    """Return the time as an aware UTC datetime."""
    return datetime.fromtimestamp(clock.wall_ns() / 1e9, UTC)


def rfc3339(moment: datetime) -> str:
    """Format a moment as Kubernetes' `metav1.Time`: whole seconds, `Z`."""
    return _rfc3339_of(math.floor(moment.timestamp()))


def rfc3339_now(clock: Clock) -> str:
    """Return `rfc3339(now(clock))`, which is made once a second."""
    return _rfc3339_of(clock.wall_ns() // 1_000_000_000)


@lru_cache(64)
def _rfc3339_of(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds")[:-6] + "Z"


def rfc3339_micro(moment: datetime) -> str:
    """Format a moment as Kubernetes' `metav1.MicroTime`: microseconds, `Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class RealClock:
    """The machine's clocks."""

    # The functions themselves: each request reads a clock a few times.
    monotonic_ns = staticmethod(time.monotonic_ns)
    wall_ns = staticmethod(time.time_ns)

    async def sleep(self, seconds: float) -> None:
        deadline = time.monotonic_ns() + int(seconds * 1e9)
        await asyncio.sleep(seconds)
        # uvloop timers are whole milliseconds and may fire early: read the clock again and re-arm.
        while (left := deadline - time.monotonic_ns()) > 0:  # noqa: ASYNC110 (re-arms an early timer, polls nothing)
            await asyncio.sleep(left / 1e9)


async def wait_for_event(clock: Clock, event: asyncio.Event, seconds: float) -> bool:
    """Return whether `event` is set within `seconds`; False never comes too early (loop timers may fire early)."""
    least = int(seconds > 0)  # a clock cannot count less than a nanosecond: who waits for less would never get on
    deadline = clock.monotonic_ns() + max(least, round(seconds * 1e9))
    while not event.is_set() and (left := deadline - clock.monotonic_ns()) > 0:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left / 1e9):
                await event.wait()
    return event.is_set()
