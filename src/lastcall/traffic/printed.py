"""What the applications printed of the requests that they saw. Pure.

An application that prints the `X-Request-ID` when it begins a request and when it has answered says which it saw; so
does one that prints the messages of a WebSocket.
"""

# check: pure

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Literal, Self

from lastcall.traffic.outcome import Kind, Outcome
from lastcall.world.dataclass import dataclass

_ID = re.compile(r"\blc-(\d+)\b(?!\.\d)")
_MESSAGE = re.compile(r"\blc-\d+\.\d+\b")

Seen = Literal["never", "begun", "answered", "unknown"]
"""By the application: not at all, begun and not answered, answered (and the answer was lost); unknown where it does not
print what it sees."""


@dataclass(frozen=True, slots=True)
class Printed:
    """By the applications: ids and how often, messages; and the kinds of requests that they print, none where not all
    that they printed is known."""

    ids: Mapping[int, int]
    messages: Container[str]
    kinds: Container[Kind]

    @classmethod
    def of_output(cls, output: Sequence[str], outcomes: Iterable[Outcome], *, whole: bool) -> Self:
        """Return what the lines of the applications say; `whole`: they are all of them."""
        ids = ids_printed(output)
        messages = {each for line in output for each in _MESSAGE.findall(line)}
        return cls(ids, messages, {each.kind for each in outcomes if each.id in ids} if whole else set())

    def of(self, outcome: Outcome) -> Seen:
        if outcome.kind not in self.kinds:
            return "unknown"
        seen: tuple[Seen, ...] = ("never", "begun", "answered")
        return seen[min(self.ids.get(outcome.id, 0), 2)]

    def of_message(self, outcome: Outcome) -> Seen:
        if outcome.kind not in self.kinds or not outcome.unanswered or not self.messages:
            return "unknown"
        return "begun" if outcome.unanswered in self.messages else "never"


def ids_printed(output: Iterable[str]) -> dict[int, int]:
    """Return id → how often the applications printed it."""
    found: Counter[int] = Counter()
    for line in output:
        found.update({int(number) for number in _ID.findall(line)})
    return found


def only_ids(line: str) -> str:
    """Return a line with nothing but the ids of requests and messages in it, "" without one."""
    return " ".join([*(f"lc-{number}" for number in _ID.findall(line)), *_MESSAGE.findall(line)])


def answered_unseen(outcomes: Iterable[Outcome], seen: Mapping[int, int]) -> tuple[int, ...]:
    """Return ids that a client got an answer to and no application printed, of the kinds that it prints."""
    answered = [each for each in outcomes if not each.lost]
    printed = {each.kind for each in answered if each.id in seen}
    return tuple(sorted(each.id for each in answered if each.kind in printed and each.id not in seen))
