"""A container's output, read once: for its log, and for everybody who is attached.

An attached node holds the other end of a pipe of its own. Like containerd's writer groups, a client that does not read
makes the container wait, once its pipe is full; one that goes away is forgotten.
Source: containerd internal/cri/io/container_io.go, pkg/ioutil/writer_group.go.
"""

from __future__ import annotations

import os
import select

from lastcall.kube.cri.sandbox.shim.loop import WRITE, Loop
from lastcall.kube.cri.sandbox.shim.process import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_GONE = select.EPOLLERR | select.EPOLLHUP


class Taps:
    """The outputs of one container by name (`stdout`, `stderr`), and who listens to each."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._outputs: dict[str, Output] = {}
        self._taps: dict[str, list[_Tap]] = {}
        self._held = False

    def hold(self, held: bool) -> None:
        """Stop reading output until asked to go on: there is no room for it. The program that prints waits."""
        self._held = held
        for name in list(self._taps):
            self._flow(name)

    def follow(self, name: str, fd: int, feed: Callable[[bytes], None], end: Callable[[], None]) -> Output:
        """Read `fd` for `feed` and for the taps of `name`, until its end."""

        def on_data(data: bytes) -> None:
            feed(data)
            for tap in list(self._taps[name]):
                tap.write(data)

        def on_end() -> None:
            end()
            for tap in self._taps.pop(name):
                tap.end()

        self._taps[name] = []
        self._outputs[name] = Output(self._loop, fd, on_data, on_end)
        return self._outputs[name]

    def attach(self, name: str) -> int:
        """Return a pipe that gets all output of `name` from now on, and ends with it (at once if there is none)."""
        read, write = os.pipe2(os.O_CLOEXEC)
        if name in self._taps:
            self._taps[name].append(
                _Tap(self._loop, write, lambda: self._flow(name), lambda tap: self._drop(name, tap))
            )
        else:
            os.close(write)
        return read

    def _drop(self, name: str, tap: _Tap) -> None:
        if name in self._taps:
            self._taps[name].remove(tap)
            self._flow(name)

    def _flow(self, name: str) -> None:
        """The slowest listener sets the pace."""
        if name in self._taps:
            self._outputs[name].pause(self._held or any(tap.behind for tap in self._taps[name]))


class _Tap:
    """The writing end of one pipe."""

    def __init__(self, loop: Loop, fd: int, on_flow: Callable[[], None], on_gone: Callable[[_Tap], None]) -> None:
        os.set_blocking(fd, False)
        self._loop, self._fd, self._on_flow, self._on_gone = loop, fd, on_flow, on_gone
        self._left = b""
        self._ended = False
        loop.watch(fd, self._ready, 0)  # called when the other side has gone

    @property
    def behind(self) -> bool:
        return bool(self._left)

    def write(self, data: bytes) -> None:
        """At most one read of the container's output waits here, but for what is left at its end."""
        was_behind, self._left = self.behind, self._left + data
        if not was_behind:
            self._flush()
            if self.behind:
                self._loop.modify(self._fd, WRITE)
                self._on_flow()

    def end(self) -> None:
        """No more will come. What is left is still delivered."""
        self._ended = True
        if not self.behind:
            self._close()

    def _ready(self, events: int) -> None:
        if events & _GONE:
            self._close()
            return
        self._flush()
        if self._fd >= 0 and not self.behind:
            if self._ended:
                self._close()
            else:
                self._loop.modify(self._fd, 0)
                self._on_flow()

    def _flush(self) -> None:
        try:
            self._left = self._left[os.write(self._fd, self._left) :]
        except BlockingIOError:
            return
        except OSError:  # EPIPE: nobody reads any more
            self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            self._loop.unwatch(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._left = b""
            if not self._ended:
                self._on_gone(self)
