"""Which container of a Pod another one missed after it had ended, by what that one printed. Pure."""

# check: pure

import re
from collections.abc import Iterable, Sequence

from lastcall.endings.story import ContainerEnding, OutputLine

REFUSED = re.compile(r"connection (?:refused|reset)|ECONNREFUSED|ECONNRESET|broken pipe|Errno (?:32|104|111)", re.I)
"""What strerror(3) and runtimes of languages say when the other side is not there."""
_LOOPBACK = re.compile(r"\b127\.0\.0\.1\b|\blocalhost\b|\[::1\]")
_BESIDE_SECONDS = 0.2
"""Lines of one complaint, such as a traceback, are printed within this time."""
_MOST_LINES = 100
"""The last ones that are looked at: each is compared with the others."""
_SKEW_SECONDS = 0.05
"""A line may be recorded a moment before the end that it is about."""


def missed_container(
    lines: Sequence[OutputLine], others: Iterable[ContainerEnding], *, named: bool = False
) -> tuple[ContainerEnding, OutputLine] | None:
    """Return who was missed, and the line that says so; None for nobody. `lines` are those of one container, `others`
    the other containers of its Pod.

    The one whose port is named beside that line; else, unless it has to be `named`, the only one that had left, if it
    listened or the line is about this Pod's own network (a container that leaves at once has no record of its sockets).
    """
    mine, those = lines[-_MOST_LINES:], list(others)
    for line in (each for each in mine if REFUSED.search(each.text)):
        gone = _gone_before(those, line.at)
        beside = " ".join(each.text for each in mine if abs(each.at - line.at) <= _BESIDE_SECONDS)
        whose = [c for c in gone if any(re.search(rf"\b{port}\b", beside) for port in _ports(c))]
        if whose:
            return whose[0], line
        if not named and len(gone) == 1 and (_ports(gone[0]) or _LOOPBACK.search(beside)):
            return gone[0], line
    return None


def _gone_before(others: Iterable[ContainerEnding], at: float) -> list[ContainerEnding]:
    """Return the containers that had ended by then, and that had listened or may have: the last end first."""
    before = [c for c in others if c.exit.at is not None and c.exit.at <= at + _SKEW_SECONDS]
    listened = [c for c in before if c.seen.sockets is None or c.seen.sockets.listeners]
    return sorted(listened, key=lambda c: -(c.exit.at or 0.0))


def _ports(c: ContainerEnding) -> list[int]:
    return [each.port for each in c.seen.sockets.listeners] if c.seen.sockets else []
