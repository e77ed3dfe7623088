"""The virtual world: time jumps to the next timer as soon as nothing else can run.

`run_virtual(main)` gives the coroutine function a `World` whose clock starts at 2030-01-01T00:00:00Z and whose
randomness is seeded. A 30 s grace period costs a millisecond, and two runs with one seed give the same records in the
same order. The world is *closed*: sockets, executors and subprocesses raise `VirtualWorldError`, because an autojump
clock beside real I/O gives spurious time-outs. An audit hook refuses blocking calls too (`subprocess.run`, a bare
socket, a thread) while the world runs. A coroutine that waits for something no timer will ever bring raises
`VirtualDeadlockError` instead of hanging.
"""

import asyncio
import contextvars
import heapq
import math
import random
import selectors
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn, TypeVar

from lastcall.world.world import World

T = TypeVar("T")

FEW_TIMERS = 100
"""With more timers, and more than half of them cancelled, the stock loop sweeps its heap."""

EPOCH_NS = 1_893_456_000 * 1_000_000_000  # 2030-01-01T00:00:00Z


class VirtualWorldError(RuntimeError):
    """Something in the virtual world reached for the real one."""


class VirtualDeadlockError(RuntimeError):
    """Every task waits and no timer is pending."""


class _NoSelector(selectors.BaseSelector):
    """A selector that never has anything ready; only the loop's own wake-up pipe may register."""

    def __init__(self) -> None:
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, fileobj if isinstance(fileobj, int) else fileobj.fileno(), events, data)
        self._keys[fileobj] = key
        if len(self._keys) > 1:
            raise VirtualWorldError("the virtual world has no sockets")
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


_REFUSED = {
    "_thread.start_joinable_thread": "threads",  # told since Python 3.12
    "_thread.start_new_thread": "threads",
    "os.exec": "processes",
    "os.fork": "processes",
    "os.forkpty": "processes",
    "os.posix_spawn": "processes",
    "os.system": "processes",
    "socket.__new__": "sockets",
    "socket.getaddrinfo": "sockets",
    "socket.gethostbyname": "sockets",
    "subprocess.Popen": "processes",
    "time.sleep": "blocking sleep",  # told since Python 3.13
}
"""Audit event → what the virtual world does not have."""

_inside: set[int] = set()
"""Idents of the threads that are in a virtual world."""

_hooked: list[bool] = []


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _REFUSED and threading.get_ident() in _inside:
        raise VirtualWorldError(f"the virtual world has no {_REFUSED[event]}")


class _Handle(asyncio.Handle):
    """One that does not ask its loop whether it is being debugged."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None,
    ) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time()` is virtual seconds and jumps when idle.

    It uses private names of asyncio because time is exact with them. With public ones (a selector whose `select` moves
    the time, timers rounded to a grid) asyncio's resolution of 1 ns runs timers too early, and a scenario of
    `tests/scenarios/whole/test_whole_manager_killed.py` never ended: forty informers asked again at one moment of the
    virtual time. Speed would not need them: bench/RESULTS.md, "a virtual loop with asyncio's public names".
    """

    def __init__(self) -> None:
        self._virtual_ns = 0
        super().__init__(_NoSelector())

    def time(self) -> float:
        return self._virtual_ns / 1e9

    @property
    def virtual_ns(self) -> int:
        """Nanoseconds since the loop was made."""
        return self._virtual_ns

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if self._closed or self._debug:  # type: ignore[attr-defined]
            return super().call_soon(callback, *args, context=context)
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def _run_once(self) -> None:
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0].cancelled():
            # The stock loop keeps this count to decide when to sweep its heap.
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
            handle = heapq.heappop(scheduled)
            handle._scheduled = False  # type: ignore[attr-defined]
        if not self._ready and not self._stopping:  # type: ignore[attr-defined]
            if not scheduled:
                raise VirtualDeadlockError(_describe(self))
            # Round up, so that `time()` is never short of the timer that is due. The product may itself be rounded
            # down; whoever then re-arms for the rest would do so forever in a world where no time passes.
            when = scheduled[0].when()
            self._virtual_ns = max(self._virtual_ns, -int(-when * 1e9 // 1))
            while self._virtual_ns / 1e9 < when:
                self._virtual_ns += 1
        # What is due a nanosecond later is not due now: two waiters that are woken too early and wait again for the
        # rest would keep each other ready, and time would never move on.
        self._clock_resolution = math.ulp(self.time())
        swept = len(scheduled) > FEW_TIMERS and 2 * self._timer_cancelled_count > len(scheduled)  # type: ignore[attr-defined]
        if self._debug or swept:  # type: ignore[attr-defined]
            super()._run_once()  # type: ignore[misc]
            return
        # What the stock loop does where there is no selector to ask, a fifth faster a step.
        ready: deque[Any] = self._ready  # type: ignore[attr-defined]
        end = self.time() + self._clock_resolution
        while scheduled and scheduled[0].when() < end:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                try:
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    context = {"message": "Exception in a callback", "exception": error, "handle": handle}
                    self.call_exception_handler(context)

    def run_in_executor(self, *args: Any, **kwargs: Any) -> NoReturn:  # type: ignore[override]
        raise VirtualWorldError("the virtual world has no threads")

    async def _no_sockets(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise VirtualWorldError("the virtual world has no sockets")

    create_connection = create_server = create_datagram_endpoint = _no_sockets
    create_unix_connection = create_unix_server = connect_accepted_socket = _no_sockets
    connect_read_pipe = connect_write_pipe = getaddrinfo = getnameinfo = _no_sockets

    async def _no_processes(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise VirtualWorldError("the virtual world has no processes")

    subprocess_exec = subprocess_shell = _no_processes


def _describe(loop: asyncio.AbstractEventLoop) -> str:
    waiting = sorted(repr(task.get_coro()) for task in asyncio.all_tasks(loop))
    return "every task waits and no timer is pending:\n  " + "\n  ".join(waiting)


class VirtualClock:
    """The clock of a `VirtualLoop`."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def monotonic_ns(self) -> int:
        return self._loop.virtual_ns

    def wall_ns(self) -> int:
        return EPOCH_NS + self._loop.virtual_ns

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_virtual(main: Callable[[World], Awaitable[T]], *, seed: int = 0) -> T:
    """Run `main(world)` in a fresh virtual world to its end and return what it returned.

    Raises `VirtualDeadlockError` when nothing can happen any more, and whatever `main` raises.
    """
    loop = VirtualLoop()
    world = World(clock=VirtualClock(loop), random=random.Random(seed))

    async def run() -> T:
        return await main(world)

    if not _hooked:
        sys.addaudithook(_refuse)  # for good: nobody can take it away, so it asks whether a world runs
        _hooked.append(True)
    here = threading.get_ident()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        # Runner.close waits for the default executor; there is none here.
        loop.shutdown_default_executor = _nothing  # type: ignore[method-assign]
        _inside.add(here)
        try:
            return runner.run(run())
        finally:
            _inside.discard(here)


async def _nothing(*args: Any, **kwargs: Any) -> None:
    return None
