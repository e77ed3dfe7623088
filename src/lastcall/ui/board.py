"""Keep what the overview shows, with a version for each change, so that a browser can get what it has missed. Pure.

There is no queue for a browser: it says which version it has, and gets the present state of what changed since. One
that is slow gets fewer and larger answers, and costs the cluster nothing.
"""

# check: pure

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from lastcall.world.dataclass import dataclass

Value = Mapping[str, Any]
Changes = dict[str, Value | None]
"""Key → what is there now, None for what has gone."""

MOST_GONE = 4096
"""Keys that have gone and are remembered. A browser that is further behind gets everything anew."""


@dataclass(slots=True)
class Board:
    """Keys are `pod/UID`, `node/NAME`, `workload/KIND/NAMESPACE/NAME`, `end/UID` and `cluster`."""

    most_gone: int = MOST_GONE
    on_change: Callable[[], None] = lambda: None
    epoch: str = field(default_factory=lambda: secrets.token_hex(4))
    """Versions of another epoch mean nothing here."""
    version: int = 0
    _there: OrderedDict[str, tuple[int, Value]] = field(default_factory=OrderedDict)
    _gone: OrderedDict[str, int] = field(default_factory=OrderedDict)
    _complete_since: int = 0
    _cleared: int = 0

    def put(self, key: str, value: Value) -> None:
        """Put what is there now; the same again is not a change."""
        before = self._there.get(key)
        if before is not None and before[1] == value:
            return
        self.version += 1
        self._gone.pop(key, None)
        self._there[key] = (self.version, value)
        self._there.move_to_end(key)
        self.on_change()

    def take(self, key: str) -> None:
        """Take away what has gone."""
        if self._there.pop(key, None) is None:
            return
        self.version += 1
        self._gone[key] = self.version
        while len(self._gone) > self.most_gone:
            self._complete_since = self._gone.popitem(last=False)[1]
        self.on_change()

    def get(self, key: str) -> Value | None:
        found = self._there.get(key)
        return found[1] if found else None

    def clear(self) -> None:
        """Remove everything, for another cluster: everybody starts anew."""
        self._there.clear()
        self._gone.clear()
        self.version += 1
        self._complete_since = self._cleared = self.version
        self.on_change()

    def everything(self) -> Changes:
        """Return the present state."""
        return {key: value for key, (_, value) in self._there.items()}

    def after(self, version: int) -> Changes | None:
        """Return what changed after `version`; None for a version from which that is not known any more."""
        if version < self._complete_since or version > self.version:
            return None
        found: Changes = {}
        for key, (changed, value) in reversed(self._there.items()):
            if changed <= version:
                break
            found[key] = value
        for key, changed in reversed(self._gone.items()):
            if changed <= version:
                break
            found[key] = None
        return found

    def is_behind(self, version: int) -> bool:
        """Return True for a version of this cluster after which changes are no longer known."""
        return self._cleared <= version < self._complete_since

    # -- what a browser gets of a version

    @property
    def event_id(self) -> str:
        return f"{self.epoch}.{self.version}"

    def version_of(self, event_id: str) -> int:
        """Return the version in an event's id, -1 for what is not an id of this board."""
        epoch, _, number = event_id.partition(".")
        return int(number) if epoch == self.epoch and number.isascii() and number.isdigit() else -1
