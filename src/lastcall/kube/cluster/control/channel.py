"""What init and front say to one another, as packets over a socket pair that was made before the clone.

Init reports its roles (`Started`, `Died`, `Restarted`), or that the namespaces cannot be set up (`Failed`). Front may
ask for one thing, numbered: to cut or to reconnect a node's link (`SetLink`); the answer has an `error` or none. When
front closes its end, or dies, init ends and the kernel ends everything else.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

from lastcall.world.messages import Fields, Message
from lastcall.world.wire import Packets


class Started(Message, verb="started"):
    role: str
    pid: int


class Restarted(Message, verb="restarted"):
    role: str
    pid: int


class Died(Message, verb="died"):
    """The facts of the record ProcessDied. `restarts_in`: seconds, when init starts it again."""

    role: str
    pid: int
    exit_code: int | None
    signal: int | None
    hung: dict[str, Any] | None = None
    working_on: dict[str, str] | None = None
    serves_alone: float | None = None
    restarts_in: float | None = None


class Failed(Message, verb="failed"):
    message: str
    errno: int | None


class SetLink(Message, verb="set_link"):
    node: str
    connected: bool


class Channel:
    """One end."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._packets = Packets(sock)

    @property
    def closed(self) -> bool:
        return self._packets.closed

    def tell(self, message: Message) -> None:
        """A peer that is gone is not an error here: it is noticed by other means."""
        with suppress(OSError):
            self._packets.send(message.to_wire())

    def ask(self, call: int, message: Message) -> None:
        """With a number for the answer. Raises OSError."""
        self._packets.send({**message.to_wire(), "call": call})

    def answer(self, call: object, error: str = "") -> None:
        """To what was asked under that number."""
        with suppress(OSError):
            self._packets.send({"answer": call, **({"error": error} if error else {})})

    def read(self) -> list[Fields]:
        """What has come; `closed` turns True when the peer is gone."""
        return [fields for fields, _ in self._packets.read()]
