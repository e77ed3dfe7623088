"""What init and front say to one another, as packets over a socket pair that was made before the clone.

Init reports its roles (`Started`, `Died`, `Restarted`), or that the namespaces cannot be set up (`Failed`). Front asks,
numbered: to cut or to reconnect a node's link (`SetLink`), to start one node more (`Join`), and to end one (`Leave`);
the answer has an `error` or none, and comes when it is done. When front closes its end, or dies, init ends and the
kernel ends everything else.
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


class Join(Message, verb="join"):
    """With the descriptors of `JOIN_FDS`, which init owns from then on.

    `capacity` is what is declared of the node. `first_id` and `id_ranges` are as in `UserIDBlocks`.
    """

    number: int
    capacity: dict[str, str]
    first_id: int
    id_ranges: int


JOIN_FDS = ("the shim's ring", "the shim's log", "the node's ring", "the node's log", "egress", "control")


class Leave(Message, verb="leave"):
    """Nothing of the node stays: no process, container, link, group or file. A node that is not there is no error."""

    node: str


class Channel:
    """One end."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._packets = Packets(sock)

    @property
    def closed(self) -> bool:
        return self._packets.closed

    def tell(self, message: Message) -> None:
        """Send a message. A peer that is gone is no error here: it is noticed by other means."""
        with suppress(OSError):
            self._packets.send(message.to_wire())

    def ask(self, call: int, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Send a message with a number for the answer. `fds` stay the caller's. Raises OSError."""
        self._packets.send({**message.to_wire(), "call": call}, fds)

    def answer(self, call: object, error: str = "") -> None:
        """Answer the message that came with that number."""
        with suppress(OSError):
            self._packets.send({"answer": call, **({"error": error} if error else {})})

    def read(self) -> list[tuple[Fields, tuple[int, ...]]]:
        """Return what has come, with descriptors that are the caller's; `closed` turns True when the peer is gone."""
        return self._packets.read()
