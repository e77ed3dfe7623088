"""Task groups that own every task.

`asyncio.create_task` is used nowhere else: a task belongs to a `Tasks` scope, and when the scope ends its tasks have
ended. An exception in a task that nobody handles ends the scope and surfaces where the scope was opened, like a panic
in a goroutine ends a Go program.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Tasks:
    """`async with Tasks() as tasks: tasks.spawn(coroutine(), name="...")`.

    Leaving the block normally waits for all tasks; `cancel()` ends them. Cancelling the owner cancels the tasks.
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._tasks: dict[asyncio.Task[Any], None] = {}

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._group.__aexit__(kind, error, traceback)

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Start a task owned by this scope."""
        task = self._group.create_task(coroutine, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def cancel(self) -> None:
        """Cancel every task of this scope, in the order they were started; the scope's end still awaits them."""
        for task in list(self._tasks):
            task.cancel()


async def gather(work: Iterable[Coroutine[Any, Any, T]]) -> list[T | Exception]:
    """Return the results of all, which run at once, in their order; an exception takes the place of its result.

    Cancelling cancels all of them. What is not an `Exception` (the end of the program) is raised when all have ended.
    """
    results = await asyncio.gather(*work, return_exceptions=True)
    found: list[T | Exception] = []
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Exception):
            raise result
        found.append(result)
    return found


async def meanwhile(work: Coroutine[Any, Any, T], beside: Callable[[], None]) -> T:
    """Return the result of `work`; call `beside` when `work` first waits, at the latest before this ends."""

    async def call() -> None:
        beside()

    task = asyncio.ensure_future(call())
    try:
        return await work
    finally:
        await task


def at_first_wait(call: Callable[[], None]) -> None:
    """Run `call` when the running task next waits or ends, before any task that is not ready yet."""
    asyncio.get_running_loop().call_soon(call)


async def unless(work: Coroutine[Any, Any, T], event: asyncio.Event) -> T | None:
    """Return the result of `work`, or None when `event` is set first (`work` is cancelled then and awaited)."""
    task = asyncio.ensure_future(work)
    waiter = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for each in (task, waiter):
            each.cancel()
        await asyncio.gather(task, waiter, return_exceptions=True)


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, which no cancellation interrupts: the caller is cancelled at its next await."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled and (caller := asyncio.current_task()) is not None:
        caller.uncancel()
        caller.cancel()
    return task.result()


class Background:
    """One task that goes on beside its owner, who ends it. Where a scope (`Tasks`) can own it, use that."""

    def __init__(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        self._task = asyncio.ensure_future(work)
        self._task.set_name(name)

    @property
    def ended(self) -> bool:
        return self._task.done()

    async def end(self) -> None:
        """Cancel the task and wait for its end. Raises what it failed with."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
