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
import math
import random
import selectors
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn, TypeVar

from lastcall.world.world import World

T = TypeVar("T")

GRID_NS = 2
"""Timers lie at least this far apart: asyncio runs at once what is due within the clock's resolution, 1 ns."""

EPOCH_NS = 1_893_456_000 * 1_000_000_000  # 2030-01-01T00:00:00Z


class VirtualWorldError(RuntimeError):
    """Something in the virtual world reached for the real one."""


class VirtualDeadlockError(RuntimeError):
    """Every task waits and no timer is pending."""


class _TimeMoves(selectors.BaseSelector):
    """A selector that never has anything ready and never waits: it calls `wait` with the seconds that it was to wait.

    Only the loop's own wake-up pipe may register.
    """

    def __init__(self, wait: Callable[[float | None], None]) -> None:
        self._wait = wait
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
        self._wait(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


_REFUSED = {
    "_thread.start_joinable_thread": "threads",  # its name since Python 3.12
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
    "time.sleep": "blocking sleep",  # audited since Python 3.13
}
"""Audit event → what the virtual world does not have."""

_inside: set[int] = set()
"""Idents of the threads that are in a virtual world."""

_hooked: list[bool] = []


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _REFUSED and threading.get_ident() in _inside:
        raise VirtualWorldError(f"the virtual world has no {_REFUSED[event]}")


def moment(seconds: float) -> int:
    """Return the first nanosecond on the grid of timers that is not before `seconds`.

    The grid is 2 ns, and 4 units in the last place of such floats where those are more (after 24 days).
    """
    grid = max(GRID_NS, math.ceil(4e9 * math.ulp(seconds)))
    due = round(seconds * 1e9 / grid) * grid
    while due / 1e9 < seconds:
        due += grid
    return due


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time()` is virtual seconds and jumps when idle.

    asyncio asks its selector to wait until the next timer: this one moves the time instead. Timers lie on a grid that
    asyncio's clock resolution (1 ns) and floats of their size can tell apart: a waiter that is woken too early and
    waits again for the rest would be ready again at once, and time would never move on.
    """

    def __init__(self) -> None:
        self._virtual_ns = 0
        super().__init__(_TimeMoves(self._wait))

    def time(self) -> float:
        return self._virtual_ns / 1e9

    @property
    def virtual_ns(self) -> int:
        """Return the nanoseconds since the loop was made."""
        return self._virtual_ns

    def call_at(  # type: ignore[override]  # typeshed binds the callback's types, which nobody here needs
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        # One float below its moment: then it is due there whatever rounding does to the sum of time and resolution.
        return super().call_at(math.nextafter(moment(when) / 1e9, 0), callback, *args, context=context)

    def _wait(self, timeout: float | None) -> None:
        """Move the time to where asyncio would have waited until; `None` means that nothing would wake it.

        Raises `VirtualDeadlockError` then.
        """
        if timeout is None:
            raise VirtualDeadlockError(_describe(self))
        if timeout > 0:
            self._virtual_ns = max(self._virtual_ns, moment(self.time() + timeout))

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
