"""What the agent says: numbered lines of JSON, kept for a while so that a client that was cut off can go on."""

from __future__ import annotations

import json
import os
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lastcall.records.record import Evidence, Kind
    from lastcall.world.clock import Clock

MOST_KEPT = 4096
"""Keep lines for a client that reconnects; of what fell out before it gets the number."""


class Lines:
    """`write` takes whole lines. Nothing is written before a client has said hello: it would be lost."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=MOST_KEPT)
        self._last = 0
        self._greeted = False

    def say(self, **fields: Any) -> None:
        """Write a line without a number: an answer, which nobody misses later."""
        self._write(_encoded(fields))

    def tell(self, **fields: Any) -> None:
        """Write a line that a client must not miss."""
        self._last += 1
        line = _encoded({"seq": self._last, **fields})
        self._kept.append((self._last, line))
        if self._greeted:
            self._write(line)

    def go_on(self, after: int) -> None:
        """Send the lines after `after` to a client that is there and has seen the lines up to it."""
        self._greeted = True
        first = self._kept[0][0] if self._kept else self._last + 1
        if after + 1 < first:
            self.say(lost=first - after - 1)
        for number, line in self._kept:
            if number > after:
                self._write(line)


class Recorder:
    """Writes records (`lastcall.records.record.Record`) as lines, stamped with this node's clocks."""

    def __init__(self, lines: Lines, clock: Clock, node: str) -> None:
        self._lines, self._clock = lines, clock
        self._begin = f"node-agent-{node}-{os.getpid():x}{clock.wall_ns() & 0xFFFFFF:06x}"
        self._number = 0

    def record(
        self,
        kind: Kind[Any],
        *,
        pod_uid: str,
        container: str,
        facts: dict[str, Any],
        evidence: Evidence = "observed",
        at_ns: int | None = None,
    ) -> None:
        """Write a record.

        `container` is the id that the runtime gave it: the agent does not know its name. `at_ns` (monotonic) is when it
        was, None for now. `facts` are those of the kind, but for what could not be read: that is null.
        """
        self._number += 1
        now, wall = self._clock.monotonic_ns(), self._clock.wall_ns()
        at = now if at_ns is None else at_ns
        self._lines.tell(
            record={
                "id": f"{self._begin}-{self._number}",
                "at_ns": at,
                "wall_ns": wall - (now - at),
                "actor": "node-agent",
                "kind": kind,
                "pod_uid": pod_uid,
                "container": container,
                "facts": facts,
                "evidence": evidence,
            }
        )


def _encoded(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), default=str).encode() + b"\n"
