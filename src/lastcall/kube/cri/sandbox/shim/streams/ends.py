"""How the exec streams of one connection ended, and who waits for that."""

from __future__ import annotations

from lastcall.kube.cri.sandbox.shim import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Streams:
    """The exec streams of one connection."""

    def __init__(self) -> None:
        self._ended: dict[str, messages.Ended] = {}
        self._waiting: dict[str, Callable[[messages.Ended], None]] = {}
        self._open: dict[str, None] = {}

    def opened(self, identity: str) -> None:
        self._open[identity] = None

    def ended(self, identity: str, how: messages.Ended) -> None:
        waiter = self._waiting.pop(identity, None)
        if waiter is not None:
            self._open.pop(identity, None)
            waiter(how)
        elif identity in self._open:
            self._ended[identity] = how

    def wait(self, identity: str, waiter: Callable[[messages.Ended], None]) -> None:
        if identity not in self._open or identity in self._waiting:
            raise messages.CallError(f"no exec {identity!r} to wait for", "NotFound")
        if identity in self._ended:
            del self._open[identity]
            waiter(self._ended.pop(identity))
        else:
            self._waiting[identity] = waiter

    def release(self, identity: str) -> None:
        for table in (self._open, self._ended, self._waiting):
            table.pop(identity, None)
