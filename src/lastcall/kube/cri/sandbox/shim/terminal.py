"""A command in a container whose standard streams, or whose terminal, are the node's."""

from __future__ import annotations

import os

from lastcall.kube.cri.sandbox.shim.execs import Exec
from lastcall.kube.cri.sandbox.shim.process import Launched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lastcall.kube.cri.sandbox.shim.containers import Container, Context


class ExecStream(Exec):
    """`on_connected(fds)` gets descriptors to give away, by name, when the command executes; then as `Exec`.

    It is over when the command has ended, even if a process still holds its output: that is for the reader to see.
    """

    def __init__(
        self, context: Context, container: Container, identity: str, argv: list[str], tty: bool, stdin: bool
    ) -> None:
        super().__init__(context, container, identity, argv)
        self.tty, self.stdin = tty, stdin
        self.on_connected: Callable[[dict[str, int]], None] = lambda streams: None
        self._streams: dict[str, int] = {}

    def _connect(self, launched: Launched) -> None:
        if self.tty:
            os.close(launched.stdout)
            os.close(launched.stderr)
            launched.process.on_console = self._console
            return
        if launched.stdin >= 0:
            self._streams["stdin"] = launched.stdin
        self._streams["stdout"], self._streams["stderr"] = launched.stdout, launched.stderr

    def _console(self, fd: int) -> None:
        self._streams["terminal"] = fd

    def _started(self) -> None:
        super()._started()
        given = {name: os.dup(fd) for name, fd in self._streams.items() if name != "stdin"}
        if "stdin" in self._streams:
            # Given away for good: its end is the end of the input.
            given = {"stdin": self._streams.pop("stdin"), **given}
        self.on_connected(given)

    def _clean_up(self) -> None:
        super()._clean_up()
        for fd in self._streams.values():
            os.close(fd)
        self._streams = {}
