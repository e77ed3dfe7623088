"""Waiting for a condition: `eventually` blocks, `until` lets the event loop go on, in real and in virtual time.

The time limits are for a machine that is very busy: a test that waits for an event needs none of them.
"""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

PATIENCE = float(os.environ.get("LASTCALL_TEST_PATIENCE") or 1)
"""By how much every time limit is longer: a machine that is emulated is ten times slower."""
SECONDS = 120.0


def eventually(
    condition: Callable[[], T],
    what: str = "",
    seconds: float = SECONDS,
    *,
    pause: float = 0.01,
    said: Callable[[], object] = str,
) -> T:
    """The first true answer of `condition`; AssertionError with `what` and what is `said` by then when none comes."""
    deadline = time.monotonic() + seconds * PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < deadline, _timed_out(what, seconds, said)
        time.sleep(pause)  # pause of the poll
    return answer


@overload
async def until(
    condition: Callable[[], Awaitable[T]],
    what: str = "",
    seconds: float = SECONDS,
    *,
    pause: float = 0.01,
    said: Callable[[], object] = str,
) -> T: ...


@overload
async def until(
    condition: Callable[[], T],
    what: str = "",
    seconds: float = SECONDS,
    *,
    pause: float = 0.01,
    said: Callable[[], object] = str,
) -> T: ...


async def until(
    condition: Callable[[], Any],
    what: str = "",
    seconds: float = SECONDS,
    *,
    pause: float = 0.01,
    said: Callable[[], object] = str,
) -> Any:
    """As `eventually`, in the time of the event loop; `condition` may be asynchronous."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds * PATIENCE
    while True:
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        assert loop.time() < deadline, _timed_out(what, seconds, said)
        await asyncio.sleep(pause)  # pause of the poll


def _timed_out(what: str, seconds: float, said: Callable[[], object]) -> str:
    return ": ".join(filter(None, (f"timed out after {seconds * PATIENCE:g} s", what, str(said()))))
