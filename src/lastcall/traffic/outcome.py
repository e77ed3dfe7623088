"""What became of one request. Pure.

`Lost` are the classes of a request that its client did not get a good answer to. A connection that the server closed
while it was idle is no loss: no request was on it.
"""

from dataclasses import astuple, dataclass
from typing import Any, Literal, Self, get_args

Kind = Literal["fresh", "keep-alive", "slow", "tcp"]
"""A connection each · connections that are used again · a connection each, and an answer that takes a while · a line
of raw TCP and its echo."""
KINDS: tuple[Kind, ...] = get_args(Kind)

Lost = Literal[
    "refused",
    "unreachable",
    "connect timeout",
    "reset before bytes",
    "closed before bytes",
    "reset after bytes",
    "truncated",
    "timeout",
    "5xx",
]
LOST: tuple[Lost, ...] = get_args(Lost)
TIMEOUTS: tuple[Lost, ...] = ("connect timeout", "timeout")

HELD_UP_SECONDS = 0.5
"""A client that runs so late cannot say whether an answer was late, or only read late."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Times are seconds of the monotonic clock. `planned`: when the rate wanted it sent; `sent`: when it was begun.

    `connection` counts the client's connections, `age` is the connection's when the request went out, in seconds.
    `served_by` is the address of the Pod that the connection led to, "" when it led nowhere. `lost` is "" for a good
    answer. `held_up` is how long the client itself was held up meanwhile, in seconds: its machine was too busy, or
    stood still, and what it says of a timeout says nothing of the server.
    """

    id: int
    kind: Kind
    planned: float
    sent: float
    finished: float
    connection: int
    age: float
    status: int
    served_by: str
    lost: Lost | Literal[""]
    held_up: float = 0.0

    @property
    def measured(self) -> bool:
        """Whether it tells of the server: not where a client that was held up says that time ran out."""
        late = max(self.held_up, self.sent - self.planned)
        return self.lost not in TIMEOUTS or late < HELD_UP_SECONDS

    def to_wire(self) -> list[Any]:
        return list(astuple(self))

    @classmethod
    def from_wire(cls, values: list[Any]) -> Self:
        return cls(*values)
