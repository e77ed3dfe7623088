"""How a client used each connection: when requests went out on it. Pure.

A server that wants to end a connection tells its client before: GOAWAY, `Connection: close`. No request goes out after
that. So requests that go out at the usual pace until a Pod is killed show that it never told its client to leave.
"""

# check: pure

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lastcall.traffic.moments import SKEW_SECONDS
from lastcall.traffic.outcome import REUSED, Outcome


@dataclass(frozen=True, slots=True)
class ConnectionUse:
    """One connection. `sent`: when requests went out on it, sorted, in seconds."""

    sent: Sequence[float]

    def went_on(self, since: float, until: float) -> bool:
        """Return whether requests went out on it at their usual pace from one moment to the other, which is its end."""
        begin, end = bisect_right(self.sent, since + SKEW_SECONDS), bisect_left(self.sent, until)
        if end - begin < 2:
            return False
        last = self.sent[end - 1]
        return until - last <= 2 * (last - since) / (end - begin)


def connection_uses(outcomes: Iterable[Outcome]) -> dict[int, ConnectionUse]:
    """Return how each connection was used that requests share, by its number."""
    by_number: dict[int, list[Outcome]] = {}
    for each in outcomes:
        if each.kind in REUSED and each.served_by:
            by_number.setdefault(each.connection, []).append(each)
    return {number: ConnectionUse(tuple(sorted(each.sent for each in those))) for number, those in by_number.items()}
