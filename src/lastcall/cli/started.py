"""A cluster of our own for the time of a command: its start, what Ctrl-C does meanwhile, and its end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, TypeVar

from lastcall.cli.errors import start_failure
from lastcall.cli.interrupts import Interrupts
from lastcall.kube.cluster import ClusterStartError


class Stopped(Protocol):
    """What ends with the command."""

    def stop(self) -> None: ...


C = TypeVar("C", bound=Stopped)


@contextmanager
def started(start: Callable[[], C]) -> Iterator[tuple[C, Interrupts]]:
    """Start a cluster, and stop it after the block. Raises WorldError, and Interrupted."""
    with Interrupts() as interrupts:
        interrupts.check()
        try:
            cluster = start()
            try:
                interrupts.check()
                yield cluster, interrupts
            finally:
                cluster.stop()
        except ClusterStartError as error:
            raise start_failure(error) from error


async def stay(forever: Awaitable[object], interrupts: Interrupts) -> None:
    """Return at the first signal, which is the way to end it and no error; raise what `forever` raises."""
    task = asyncio.current_task()
    assert task is not None
    with suppress(asyncio.CancelledError):
        await forever
    if interrupts.number:
        task.uncancel()
