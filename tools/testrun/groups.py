"""Share test files out among processes: each process collects and imports once for all of its files."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Group:
    """The files that one process runs, one after the other."""

    files: list[str] = field(default_factory=list)
    seconds: float = 0.0


def groups(expected: Mapping[str, float], seconds: float) -> list[Group]:
    """Return the files in groups of about this many seconds each, the longest group first.

    Files of one directory stay together where they fit, since they import the same modules. A longer file is a group of
    its own.
    """
    made: list[Group] = []
    current = Group()
    for path in sorted(expected):
        own = expected[path]
        if own >= seconds:
            made.append(Group([path], own))
            continue
        if current.files and current.seconds + own > seconds:
            made.append(current)
            current = Group()
        current.files.append(path)
        current.seconds += own
    if current.files:
        made.append(current)
    return sorted(made, key=lambda group: -group.seconds)
