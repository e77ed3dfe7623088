"""Which static Pod of a full name may start: one at a time, in the order in which they came
(pod_workers.go:allowStaticPodStart)."""

from collections.abc import Callable


class StaticPodStarts:
    """By full name (`name_namespace`): who runs, and who waits for the name."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[str]] = {}
        self._started: dict[str, str] = {}

    def wait(self, full_name: str, uid: str) -> None:
        """Note that a Pod of this name has come."""
        self._waiting.setdefault(full_name, []).append(uid)

    def started(self, full_name: str, uid: str) -> None:
        self._started[full_name] = uid

    def uid_of(self, full_name: str) -> str | None:
        """Return the UID that has the name now."""
        return self._started.get(full_name)

    def ended(self, full_name: str, uid: str) -> None:
        """Free the name if it was this Pod's."""
        if self._started.get(full_name) == uid:
            del self._started[full_name]

    def forget(self, full_name: str, uid: str) -> None:
        waiting = self._waiting.get(full_name, [])
        if uid in waiting:
            waiting.remove(uid)
            if not waiting:
                del self._waiting[full_name]
        self.ended(full_name, uid)

    def name_is_taken(self, full_name: str, uid: str, may_start: Callable[[str], bool]) -> bool:
        """Return whether another static Pod of this name runs, or one that `may_start` waits before this one."""
        started = self._started.get(full_name)
        if started is not None:
            return started != uid
        waiting = self._waiting.get(full_name, [])
        while waiting and waiting[0] != uid:
            if may_start(waiting[0]):
                return True
            waiting.pop(0)
        if waiting:
            waiting.pop(0)
        if not waiting:
            self._waiting.pop(full_name, None)
        return False
