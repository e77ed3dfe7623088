"""Ctrl-C and its relatives, at every stage: once ends in order, twice ends at once.

The handler is a plain one, so that it also holds while no event loop runs. A forked role inherits it and must not act
on it: it does nothing in another process than the one that installed it.
"""

# check: prints because a signal handler may have interrupted a write to stderr; its text is our own

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

from lastcall.errors import Interrupted

T = TypeVar("T")

_SIGHUP: int | None = getattr(signal, "SIGHUP", None)
"""Windows has none."""
_SIGNALS = tuple(number for number in (signal.SIGINT, signal.SIGTERM, _SIGHUP) if number is not None)


class Interrupts:
    """`with Interrupts() as interrupts:`. The first signal calls `on_first` when set, and is kept for `check`. The
    second leaves the process at once (the kernel then ends the cluster).

    Nothing is raised from the handler: an exception between two bytecodes of an import is lost or, in the start-up code
    of some extension modules, fatal."""

    def __init__(
        self,
        leave: Callable[[int], None] = os._exit,
        message: str = "tearing down the cluster",
        *,
        until_reported: bool = False,
    ) -> None:
        """`until_reported`: after a signal the handlers stay, so that a second one does not end this process before it
        has said what the first one has done."""
        self.on_first: Callable[[], object] | None = None
        self.number = 0
        self._leave = leave
        self._message = message
        self._until_reported = until_reported
        self._pid = os.getpid()
        self._old: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            if number == _SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup: the user wants us to outlive the terminal
            self._old[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.number and self._until_reported:
            return
        for number, old in self._old.items():
            signal.signal(number, old if old is not None else signal.SIG_DFL)  # type: ignore[arg-type]  # what it gave

    @property
    def exit_status(self) -> int:
        """Return 128 plus the signal's number."""
        return 128 + self.number

    def check(self) -> None:
        """Raise Interrupted when a signal has come."""
        if self.number:
            raise self.error()

    def run(self, work: Coroutine[Any, Any, T], *, runner: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
        """Run `work` with `asyncio.run` (or another's `run`); the first signal cancels it. Raises Interrupted."""

        async def cancellable() -> T:
            task, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None
            self.on_first = lambda: loop.call_soon_threadsafe(task.cancel)
            try:
                self.check()
            except Interrupted:
                work.close()
                raise
            return await work

        try:
            return runner(cancellable())
        except asyncio.CancelledError:
            if not self.number:
                raise
            raise self.error() from None
        finally:
            self.on_first = None

    def error(self) -> Interrupted:
        """Return the error to raise for the signal that came."""
        name = "Ctrl-C" if self.number == signal.SIGINT else signal.Signals(self.number).name
        return Interrupted(f"{name}: {self._message}", self.number)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            return
        if self.number:
            _write_stderr("\x1b[?25h" if sys.stderr.isatty() else "")
            _write_stderr("lastcall: stopped at once; the kernel ends the cluster\n")
            self._leave(128 + number)
            return
        self.number = number
        if self.on_first is not None:
            self.on_first()


def _write_stderr(text: str) -> None:
    """Straight to the descriptor: a handler may have interrupted a write to the stream."""
    try:
        os.write(2, text.encode())
    except OSError:
        return
