"""What comes in of an audit log: lines of JSON, or bodies of a webhook. What is no audit event is skipped and counted.

No I/O: `AuditInput` is given the bytes.
"""

# check: pure

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import orjson

from lastcall.trace.auditing.index import AuditIndex
from lastcall.trace.auditing.requests import read_event
from lastcall.world.dataclass import dataclass

LONGEST_LINE = 16 << 20
"""A longer one is skipped: an event of a list at level RequestResponse may be long, and says nothing of an end."""
MOST_NOTES = 3
"""Of so many that are skipped it is said why; the rest is counted."""


@dataclass(slots=True)
class AuditInput:
    """`feed` lines or `take` bodies; requests go into `index`. `note` hears why something was skipped."""

    index: AuditIndex
    note: Callable[[str], None]
    events: int = 0
    skipped: int = 0
    _line: int = 0
    _rest: bytearray = field(default_factory=bytearray)
    _is_too_long: bool = False

    def feed(self, data: bytes) -> None:
        """Read all lines that are complete now."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._line += 1
            whole = bytes(self._rest) + line
            self._rest.clear()
            if self._is_too_long:
                self._skip(f"line {self._line}", f"it is longer than {LONGEST_LINE >> 20} MiB")
            elif whole.strip():
                self._read(whole, f"line {self._line}")
            self._is_too_long = False
        if len(self._rest) + len(rest) > LONGEST_LINE:
            self._rest.clear()
            self._is_too_long = True
        elif not self._is_too_long:
            self._rest += rest

    def end(self) -> None:
        """Read the last line, which has no end."""
        if self._rest:
            self.feed(b"\n")

    def begin_again(self) -> None:
        """Begin another file: what was read of a line is no part of it."""
        self._rest.clear()
        self._line, self._is_too_long = 0, False

    def take(self, body: bytes) -> bool:
        """Read the EventList of a webhook's request. Returns False for what is none."""
        try:
            document = orjson.loads(body)
        except ValueError as error:
            self._skip("a request", f"it is not JSON: {error}")
            return False
        items = document.get("items") if isinstance(document, dict) else None
        if not isinstance(items, list) or document.get("kind") != "EventList":
            self._skip("a request", "it is not an EventList of audit.k8s.io/v1")
            return False
        for number, item in enumerate(items, 1):
            self._add(_typed(item, document), f"item {number} of a request")
        return True

    def _read(self, line: bytes, where: str) -> None:
        try:
            event = orjson.loads(line)
        except ValueError:
            self._skip(where, "it is not JSON")
            return
        if isinstance(event, dict) and event.get("kind") == "EventList" and isinstance(event.get("items"), list):
            for item in event["items"]:
                self._add(_typed(item, event), where)
            return
        self._add(event, where)

    def _add(self, event: object, where: str) -> None:
        try:
            write = read_event(event)
        except ValueError as error:
            self._skip(where, str(error))
            return
        self.events += 1
        if write is not None:
            self.index.add(write)

    def _skip(self, where: str, why: str) -> None:
        self.skipped += 1
        if self.skipped <= MOST_NOTES:
            self.note(f"audit log: {where} was skipped: {why}")

    def summary(self) -> str:
        """Return what was read, in a sentence."""
        events = f"{self.events} audit event{'' if self.events == 1 else 's'} read"
        return f"{events}, {self.skipped} skipped" if self.skipped else events


def _typed(item: Any, of: Mapping[str, Any]) -> Any:
    """Return an item of an EventList with its kind, which it does not repeat."""
    return {"kind": "Event", "apiVersion": of.get("apiVersion"), **item} if isinstance(item, Mapping) else item
