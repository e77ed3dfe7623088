"""Exponential back-off per key (client-go util/flowcontrol/backoff.go). Times are nanoseconds of one clock."""

from lastcall.world.dataclass import dataclass

CONTAINER_BACK_OFF_SECONDS = 10.0
MAX_CONTAINER_BACK_OFF_SECONDS = 300.0


class BackoffError(Exception):
    """A sync that failed only because something backs off. `expires_ns` is wall clock nanoseconds."""

    def __init__(self, message: str, expires_ns: int) -> None:
        super().__init__(message)
        self.expires_ns = expires_ns


@dataclass(slots=True)
class _Entry:
    backoff_ns: int
    last_update_ns: int


class Backoff:
    """Waits of 0, initial, twice the initial, … up to the maximum; forgotten after twice the maximum without a
    failure."""

    def __init__(
        self,
        initial_seconds: float = CONTAINER_BACK_OFF_SECONDS,
        max_seconds: float = MAX_CONTAINER_BACK_OFF_SECONDS,
    ) -> None:
        self._initial_ns = int(initial_seconds * 1e9)
        self._max_ns = int(max_seconds * 1e9)
        self._entries: dict[str, _Entry] = {}

    def get_ns(self, key: str) -> int:
        """Return the present window in nanoseconds, 0 for an unknown key."""
        entry = self._entries.get(key)
        return entry.backoff_ns if entry else 0

    def next(self, key: str, event_ns: int, now_ns: int) -> None:
        """Double the window: the thing is tried again."""
        entry = self._entries.get(key)
        if entry is None or self._expired(event_ns, entry):
            self._entries[key] = _Entry(self._initial_ns, now_ns)
            return
        entry.backoff_ns = min(entry.backoff_ns * 2, self._max_ns)
        entry.last_update_ns = now_ns

    def is_in_backoff_since(self, key: str, event_ns: int, now_ns: int) -> bool:
        """Return whether the window, counted from the event (an exit), is still open."""
        entry = self._entries.get(key)
        if entry is None or self._expired(event_ns, entry):
            return False
        return now_ns - event_ns < entry.backoff_ns

    def left_ns(self, key: str, now_ns: int) -> int:
        """Return how long the window, counted from the last update, is still open (IsInBackOffSinceUpdate)."""
        entry = self._entries.get(key)
        return max(0, entry.last_update_ns + entry.backoff_ns - now_ns) if entry else 0

    def collect_garbage(self, now_ns: int) -> None:
        """Drop entries that nobody has touched for twice the maximum."""
        for key in [key for key, entry in self._entries.items() if self._expired(now_ns, entry)]:
            del self._entries[key]

    def _expired(self, event_ns: int, entry: _Entry) -> bool:
        return event_ns - entry.last_update_ns > 2 * self._max_ns
