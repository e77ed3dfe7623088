"""A cluster of our own for the time of a command: its start, what Ctrl-C does meanwhile, and its end."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeVar

from lastcall.cli.errors import say_on_stderr, start_failure
from lastcall.errors import UserError
from lastcall.kube.cluster import ClusterOptions, ClusterStartError, ClusterUsageError
from lastcall.world.interrupts import Interrupts

if TYPE_CHECKING:
    from lastcall.experiment import Workspace
    from lastcall.kube.cluster import Running


class Stopped(Protocol):
    """What ends with the command."""

    def stop(self) -> None: ...


C = TypeVar("C", bound=Stopped)


def start_cluster(options: ClusterOptions) -> "Running":
    """Start the real cluster, and say what the user should know of it. Raises ClusterStartError and UserError."""
    # late: 43 ms of `demo`
    from lastcall.kube.cluster import start

    try:
        cluster = start(options)
    except ClusterUsageError as error:
        raise UserError(str(error)) from error
    if cluster.note:
        _say_once(cluster.note)
    return cluster


@cache
def _say_once(note: str) -> None:
    """Say it of the first of the clusters that a command starts."""
    say_on_stderr(note)


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


async def stay(place: "Workspace", kubeconfig: str, say: Callable[[str], None], interrupts: Interrupts) -> None:
    """Say how to reach the cluster, and return at the first signal, which is the way to end it and no error.

    Raises WorldError when a process of the cluster dies."""
    say(f"The cluster stays up until Ctrl-C: kubectl --kubeconfig {kubeconfig} get pods -A")
    task = asyncio.current_task()
    assert task is not None
    with suppress(asyncio.CancelledError):
        await place.alive(asyncio.Event().wait())
    if interrupts.number:
        task.uncancel()
