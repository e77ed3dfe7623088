"""What became of requests: counts, and findings that are told once."""

import re
from collections import Counter
from dataclasses import dataclass, field

from api_inputs import Input

AS_KUBERNETES = re.compile(
    r"failed to create typed (patch|live) object|failed to create manager for existing fields"
    r"|failed to convert new object \(.*\) to proper version"
    r"|resourceVersion should not be set on objects to be created"
    r"|list element types are not identical|does not contain declared merge key"
    r"|expected a map in a list with merge key|strconv\.ParseUint: parsing"
)
"""What a kube-apiserver answers 500 to as well: tried with 1.36.2."""


def _text(body: bytes) -> str:
    """The end of an answer, in which its message stands, whatever the encoding."""
    return " ".join(body.decode(errors="replace").split())[-400:]


def is_finding(status: int, body: bytes) -> bool:
    """Whether this answer is a fault of ours."""
    return status >= 500 and not AS_KUBERNETES.search(" ".join(body.decode(errors="replace").split()))


@dataclass
class Outcome:
    """What became of a batch. `sent` and `reached` count by (kind, encoding); `findings` are texts."""

    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    reached: Counter[tuple[str, str]] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        self.sent += other.sent
        self.reached += other.reached
        self.statuses += other.statuses
        self.findings += other.findings

    def answered(self, each: Input, status: int, body: bytes) -> None:
        """A finding: this answer."""
        self.findings.append(f"{each.method} {each.path[:100]}: {status} {_text(body)}")

    def distinct(self) -> Counter[str]:
        """The findings without what differs between two of one cause: request, numbers, names in quotes."""
        return Counter(re.sub(r"^[A-Z]+ /\S*: |\d+|'[^']*'", "…", finding) for finding in self.findings)

    def report(self) -> list[str]:
        """Lines: how many inputs passed decoding and reached a handler, per kind and encoding, and the findings."""
        lines = []
        for title, index in (("kind", 0), ("encoding", 1)):
            sent, reached = Counter[str](), Counter[str]()
            for key, number in self.sent.items():
                sent[key[index]] += number
                reached[key[index]] += self.reached[key]
            lines.append(f"{title:34} sent  reached a handler")
            lines += [
                f"{name:32} {sent[name]:6}  {reached[name]:6}  {reached[name] / sent[name]:4.0%}"
                for name in sorted(sent)
            ]
        total, there = sum(self.sent.values()), sum(self.reached.values())
        lines.append(f"{'all':32} {total:6}  {there:6}  {there / max(total, 1):4.0%}")
        lines.append("answers: " + ", ".join(f"{status} {number}" for status, number in sorted(self.statuses.items())))
        lines += [f"finding ({number} times): {text}" for text, number in self.distinct().most_common()]
        lines.append(f"{len(self.distinct())} findings")
        return lines

    def too_few_reached(self) -> list[str]:
        """Kinds and encodings of which less than half of many inputs reached a handler: a fault of the fuzzer."""
        found = []
        for index in (0, 1):
            names = {key[index] for key in self.sent}
            for name in sorted(names):
                sent = sum(number for key, number in self.sent.items() if key[index] == name)
                reached = sum(number for key, number in self.reached.items() if key[index] == name)
                if sent >= 50 and reached * 2 < sent:
                    found.append(f"{name}: {reached} of {sent}")
        return found
