"""A page of shared memory for each role: how often its loop has turned, and what it works on.

Made by front before the clone, written by the role, read by init (`watchdog.py`), also after the role has died. There
is one writer, and the reader needs no lock: the counter is one word, and the note is read when nobody writes it any
more. A store costs no system call.

| word | what |
|---|---|
| 0 | turns of the loop that were counted, one in two seconds; 0: it does not run yet |
| 1 | seconds of own time that may pass without one (`decide.py`), 0: as many as usual |
| 2 | 1: the note is that of the code that ran when the stack was asked for, and no guess |
| 3 | seconds that a control plane answers without controllers (`restarts.py:serves_alone`) |

From byte 64 on: what takes longer than usual; from byte 256 on: what is worked on, `component` and `key`, each in 250
bytes at most.
"""

import faulthandler
import mmap
import os
import signal
from asyncio import AbstractEventLoop
from contextvars import ContextVar

from lastcall.kube.cluster.health.decide import HANGS_AFTER_SECONDS
from lastcall.records.quoting import one_line
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass

BEAT_SECONDS = 2.0
"""Between two beats: what an idle role is woken for."""
STARTING_SECONDS = 600.0
"""Of own time, from the fork until a role says that it runs as usual: imports, the store that is read."""
STACK_SIGNAL = signal.SIGUSR2
"""A role that gets it writes its stack to `Heartbeat.stack_fd`."""

_SIZE = 4096
_BEATS, _ALLOWED, _EXACT, _ALONE = range(4)
_BUSY, _NOTE = 64, 256
_MOST = 250
"""Bytes of a text."""
_SEPARATOR, _END = b"\x1f", b"\0"


@dataclass(frozen=True, slots=True)
class WorkingOn:
    """A turn: `component` as in `crash_guard.on_turn`, `key` its object, or the request."""

    component: str
    key: str

    def __str__(self) -> str:
        return f"{self.key} ({self.component})" if self.key else self.component


class Heartbeat:
    """The page, and the memory file for the stack. Inherited over fork as it is."""

    def __init__(self, role: str) -> None:
        """Raises OSError."""
        self._map = mmap.mmap(-1, _SIZE)
        # A cast view stores and loads whole 64-bit words.
        self._words = memoryview(self._map)[:_BUSY].cast("Q")
        self._noted = False
        self.stack_fd = os.memfd_create(f"lastcall-stack-{role}", os.MFD_CLOEXEC)

    # -- the role's side -----------------------------------------------------------------------------------------------

    def take(self) -> None:
        """Make this process the role: it answers the signal, and notes what it works on."""
        # A handler in Python runs in the context of the code that it interrupts, so it knows whose turn that is. In
        # code that does not come back to Python it never runs; the stack is written all the same.
        signal.signal(STACK_SIGNAL, lambda *_: self._note_exactly())
        faulthandler.register(STACK_SIGNAL, file=self.stack_fd, all_threads=True, chain=True)
        crash_guard.on_turn = self.note

    def start(self, loop: AbstractEventLoop) -> None:
        """Count the turns of the loop that runs here, until it ends."""
        self._words[_BEATS] += 1
        if self._noted:  # the task at work has let others have their turn
            self._noted = False
            self._map[_NOTE] = 0
        loop.call_later(BEAT_SECONDS, self.start, loop)

    @property
    def serves_alone(self) -> float:
        """Return the seconds without controllers and scheduler."""
        return float(self._words[_ALONE])

    def as_usual(self) -> None:
        """Allow the loop the usual time again."""
        self._words[_ALLOWED] = 0

    def takes(self, what: str, seconds: float) -> None:
        """Allow the loop to stand still for so many seconds, for `what`, until `as_usual`."""
        text = what.encode(errors="replace")[: _NOTE - _BUSY - 1] + _END
        self._map[_BUSY : _BUSY + len(text)] = text
        self._words[_ALLOWED] = int(seconds)

    def note(self, component: str, key: str) -> None:
        """Note that a turn begins. Takes a microsecond: it is called for each."""
        text = f"{component[:_MOST]}\x1f{key[:_MOST]}\0".encode(errors="replace")
        self._map[_NOTE : _NOTE + len(text)] = text
        self._noted = True
        _turn.set((component, key) if component else None)

    def _note_exactly(self) -> None:
        turn = _turn.get()
        if turn is not None:
            self.note(*turn)
        else:
            self._map[_NOTE] = 0
        self._words[_EXACT] = 1

    # -- init's side ---------------------------------------------------------------------------------------------------

    def reset(self, alone: float = 0.0) -> None:
        """Clear the page for a role that is about to be started and `serves_alone` for a while."""
        self._map[:] = bytes(_SIZE)
        self._words[_ALONE] = int(alone)
        self.takes("starting", STARTING_SECONDS)

    @property
    def beats(self) -> int:
        return self._words[_BEATS]

    @property
    def allowed(self) -> float:
        """Return the seconds of own time that the loop may stand still."""
        return float(self._words[_ALLOWED] or HANGS_AFTER_SECONDS)

    @property
    def takes_longer(self) -> str:
        """Return why the loop may stand still for longer than usual, else ""."""
        return _text(self._map[_BUSY:_NOTE]) if self._words[_ALLOWED] else ""

    @property
    def working_on(self) -> WorkingOn | None:
        """Return the last turn that began; None if none was noted, or others had their turn since."""
        noted = self._map[_NOTE:_SIZE]
        component, _, key = noted.partition(_END)[0].partition(_SEPARATOR)
        return WorkingOn(_text(component), _text(key)) if component else None

    @property
    def is_exact(self) -> bool:
        """Return whether `working_on` is that of the code that ran when the stack was asked for."""
        return bool(self._words[_EXACT])

    def ask_for_stack(self, pid: int) -> None:
        """Ask for the stack, which `stack` will have if the process can run at all. Raises ProcessLookupError."""
        self._words[_EXACT] = 0
        os.lseek(self.stack_fd, 0, os.SEEK_SET)
        os.ftruncate(self.stack_fd, 0)
        os.kill(pid, STACK_SIGNAL)

    @property
    def stack(self) -> str:
        """Return the stack as faulthandler writes it; "" if none has come."""
        return os.pread(self.stack_fd, 1 << 16, 0).decode(errors="replace")


_turn: ContextVar[tuple[str, str] | None] = ContextVar("turn", default=None)
"""Whose turn runs: every task has its own."""


def _text(data: bytes) -> str:
    """What may be shown on a terminal: a client chooses the paths of its requests."""
    return one_line(data.partition(_END)[0].decode(errors="replace"))
