"""How far an experiment is: lines on stderr."""

from lastcall.cli.terminal import say
from lastcall.endings.render import StatusLine, redrawn_stderr
from lastcall.world.clock import RealClock, monotonic


class Progress:
    """Write lines on stderr with the seconds since now: an experiment takes longer than anybody waits in silence. What
    is waited for changes in place on a terminal, and is written once to a log."""

    def __init__(self) -> None:
        self._clock = RealClock()
        self._began = monotonic(self._clock)
        self._status = StatusLine(self._line, redrawn_stderr())

    def say(self, text: str) -> None:
        self._status.clear()
        self._line(text)

    def show(self, now: float, waited: float, text: str) -> None:
        self._status.show(now, waited, text)

    def end(self) -> None:
        self._status.clear()

    def _line(self, text: str) -> None:
        say(f"{monotonic(self._clock) - self._began:7.3f}s  {text}", err=True)
