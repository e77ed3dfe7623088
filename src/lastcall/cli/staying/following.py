"""`lastcall story POD --follow`: the steps of a Pod's end while they happen."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from lastcall.cli.console import CommandConsole
from lastcall.cli.output import stdout_console
from lastcall.cli.terminal import say, show
from lastcall.endings import Ending, is_ongoing
from lastcall.endings.render import TICK_SECONDS, LiveTimeline, record_line
from lastcall.errors import WorldError
from lastcall.records.record import Record
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

QUIET_SECONDS = 0.5
"""After the end no record has come for so long: they come from several processes, the last ones a little late."""

Known = Callable[[Sequence[Record]], list[Ending]]


class Source(Protocol):
    """A cluster's records: `lastcall.kube.cluster.control.socket.ControlClient`."""

    async def records(self, follow: bool = False, pod_uid: str = "") -> AsyncIterator[Record]: ...


async def follow(
    source: Source, first: Ending, known: Known, *, lines: bool, on_stderr: bool, details: bool, world: World
) -> Ending:
    """Print the steps of the Pod of `first`, and return its ending as soon as it is complete.

    With `lines` each record is a line of JSON on stdout. Raises WorldError when the cluster ends before the Pod has,
    and what a console raises.
    """
    return await _Following(source, first, known, lines, on_stderr, details, world).run()


class _Following:
    def __init__(
        self, source: Source, first: Ending, known: Known, lines: bool, on_stderr: bool, details: bool, world: World
    ) -> None:
        self._source = source
        self._first = first
        self._known = known
        self._lines = lines
        self._clock = world.clock
        self._records: dict[str, Record] = {}
        self._came = monotonic(world.clock)
        self._over = False
        self._failure: Exception | None = None
        progress = CommandConsole(stderr=True)
        self._live = LiveTimeline(progress if on_stderr else stdout_console(), progress, details)

    async def run(self) -> Ending:
        pod = self._first.pod
        if not self._first.zero_kind:
            say(f"waiting for the end of Pod {pod.namespace}/{pod.name}", err=True)
        ending, seen, is_complete = self._first, -1, False
        try:
            if not self._lines:
                self._live.begin([pod])
            async with Tasks() as tasks:
                tasks.spawn(self._read(), name="records")
                is_over = False
                while not is_over:
                    await self._clock.sleep(TICK_SECONDS)
                    if not self._lines:
                        self._live.tick(self._clock.monotonic_ns())
                    is_over = self._over
                    if seen != len(self._records):
                        seen = len(self._records)
                        ending = next(iter(self._known(list(self._records.values()))), ending)
                        is_complete = bool(ending.zero_kind) and not is_ongoing(ending)
                    is_over |= is_complete and monotonic(self._clock) - self._came >= QUIET_SECONDS
                tasks.cancel()
        finally:
            self._live.end()
        if self._failure is not None:
            raise self._failure
        if not is_complete:
            raise WorldError(f"the cluster ended before Pod {pod.namespace}/{pod.name} did")
        return ending

    async def _read(self) -> None:
        try:
            async for record in await self._source.records(follow=True, pod_uid=self._first.pod.uid):
                if record.id in self._records:
                    continue
                self._records[record.id] = record
                self._came = monotonic(self._clock)
                if self._lines:
                    show(record_line(record))
                else:
                    self._live.record(record)
        except Exception as error:
            self._failure = error  # raised by `run`: not as one of a group
        finally:
            self._over = True
