"""The Pods that wait for a node: whose turn it is, who has to wait, and what may help whom.

Source: pkg/scheduler/backend/queue/scheduling_queue.go. Four places: active (ready to be looked at, highest priority
first), back-off (woken, but looked at a short while ago; taken when nothing is active), unschedulable (waits for an
event that may help) and gated. A Pod that failed for another reason than its wishes waits out its back-off in any case.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal

from lastcall.kube.scheduler.pod_info import PodInfo
from lastcall.world import crash_guard
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass

INITIAL_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 10.0
MAX_UNSCHEDULABLE_SECONDS = 300.0
"""After this long a Pod is looked at again without an event (`DefaultPodMaxInUnschedulablePodsDuration`)."""
FLUSH_SECONDS = 30.0

Place = Literal["active", "backoff", "error", "unschedulable", "gated", "busy"]


@dataclass(slots=True, eq=False)
class QueuedPod:
    """`plugins` are those that refused a node when the Pod was last looked at."""

    pod: PodInfo
    place: Place = "active"
    turn: int = 0
    attempts: int = 0
    failed_at: float = 0.0
    plugins: tuple[str, ...] = ()
    first_turn_ns: int = 0

    @property
    def backoff_ends(self) -> float:
        if not self.attempts:
            return 0.0
        return self.failed_at + min(MAX_BACKOFF_SECONDS, INITIAL_BACKOFF_SECONDS * 2.0 ** min(self.attempts - 1, 16))


class SchedulingQueue:
    """By uid. `pop` answers the next Pod, which then is `busy` until it is put back or deleted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, QueuedPod] = {}
        self._active: list[tuple[int, int, str]] = []
        self._backoff: list[tuple[float, int, str]] = []
        self._errors: list[tuple[float, int, str]] = []
        self._by_plugin: dict[str, dict[str, None]] = {}
        self._waiting: dict[str, None] = {}
        self._turns = 0
        self._wake = asyncio.Event()
        self._next_flush = monotonic(clock) + FLUSH_SECONDS

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> QueuedPod | None:
        return self._pods.get(uid)

    # -- Pods come, change and go

    def add(self, pod: PodInfo, *, gated: bool) -> None:
        """Add a new Pod."""
        entry = self._pods[pod.uid] = QueuedPod(pod)
        if gated:
            entry.place = "gated"
        else:
            self._activate(entry)

    def update(self, pod: PodInfo, *, gated: bool, matters: bool) -> None:
        """Update a known Pod; `matters`: it changed in a way that may help it."""
        entry = self._pods[pod.uid]
        entry.pod = pod
        if entry.place == "gated" and not gated:
            self._activate(entry)
        elif entry.place == "unschedulable" and matters:
            self._retry(entry)

    def delete(self, uid: str) -> None:
        entry = self._pods.pop(uid, None)
        if entry is not None:
            self._leave(entry)

    # -- a turn and its end

    async def pop(self) -> QueuedPod:
        """Wait for the Pod whose turn it is and return it."""
        while True:
            self._move_due()
            entry = self._first()
            if entry is not None:
                entry.place = "busy"
                entry.first_turn_ns = entry.first_turn_ns or self._clock.monotonic_ns()
                return entry
            self._wake.clear()
            due = [self._errors[0][0]] if self._errors else []
            if self._waiting:
                due.append(self._next_flush)
            try:
                async with asyncio.timeout(max(0.0, min(due) - monotonic(self._clock)) if due else None):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def unschedulable(self, entry: QueuedPod, plugins: tuple[str, ...]) -> None:
        """Keep a Pod that fits nowhere now."""
        if self._pods.get(entry.pod.uid) is not entry:
            return
        self._failed(entry)
        entry.place = "unschedulable"
        entry.plugins = plugins
        self._waiting[entry.pod.uid] = None
        for plugin in plugins:
            self._by_plugin.setdefault(plugin, {})[entry.pod.uid] = None

    def failed(self, entry: QueuedPod) -> None:
        """Retry a Pod after its back-off, because something went wrong."""
        if self._pods.get(entry.pod.uid) is not entry:
            return
        self._leave(entry)
        self._failed(entry)
        entry.place = "error"
        self._turns += 1
        heapq.heappush(self._errors, (entry.backoff_ends, self._turns, entry.pod.uid))
        self._wake.set()

    def activate(self, uid: str) -> None:
        """Retry the Pod at once."""
        entry = self._pods.get(uid)
        if entry is not None and entry.place != "active":
            self._activate(entry)

    def move(self, plugins: Iterable[str], helps: Callable[[str, PodInfo], bool] | None = None) -> None:
        """Retry Pods that one of `plugins` refused after an event that may help; `helps(plugin, pod)` looks closer."""
        if not self._by_plugin:
            return
        for plugin in plugins:
            for uid in list(self._by_plugin.get(plugin, ())):
                entry = self._pods[uid]
                try:
                    if helps is None or helps(plugin, entry.pod):
                        self._retry(entry)
                except Exception as error:
                    crash_guard.caught("scheduler events", f"{entry.pod.namespace}/{entry.pod.name}", error)

    # -- how it is now

    def places(self) -> Counter[str]:
        """Count how many Pods wait where."""
        return Counter(entry.place for entry in self._pods.values())

    def refused(self) -> dict[str, int]:
        """Count how many Pods each plugin refused."""
        return {plugin: len(pods) for plugin, pods in self._by_plugin.items()}

    # -- within

    def _failed(self, entry: QueuedPod) -> None:
        entry.attempts += 1
        entry.failed_at = monotonic(self._clock)

    def _activate(self, entry: QueuedPod) -> None:
        self._leave(entry)
        entry.place = "active"
        self._turns += 1
        entry.turn = self._turns
        heapq.heappush(self._active, (-entry.pod.priority, entry.turn, entry.pod.uid))
        self._wake.set()

    def _retry(self, entry: QueuedPod) -> None:
        """To the active ones, or to those that back off when the last look was a short while ago."""
        ends = entry.backoff_ends
        if ends <= monotonic(self._clock):
            self._activate(entry)
            return
        self._leave(entry)
        entry.place = "backoff"
        self._turns += 1
        entry.turn = self._turns
        heapq.heappush(self._backoff, (ends, entry.turn, entry.pod.uid))
        self._wake.set()

    def _leave(self, entry: QueuedPod) -> None:
        for plugin in entry.plugins:
            waiting = self._by_plugin.get(plugin, {})
            waiting.pop(entry.pod.uid, None)
            if not waiting:
                self._by_plugin.pop(plugin, None)
        entry.plugins = ()
        self._waiting.pop(entry.pod.uid, None)

    def _first(self) -> QueuedPod | None:
        """The first active one; when there is none, the one whose back-off ends first (`SchedulerPopFromBackoffQ`)."""
        while self._active:
            _, turn, uid = heapq.heappop(self._active)
            entry = self._pods.get(uid)
            if entry is not None and entry.place == "active" and entry.turn == turn:
                return entry
        while self._backoff:
            _, turn, uid = heapq.heappop(self._backoff)
            entry = self._pods.get(uid)
            if entry is not None and entry.place == "backoff" and entry.turn == turn:
                return entry
        return None

    def _move_due(self) -> None:
        now = monotonic(self._clock)
        while self._errors and self._errors[0][0] <= now:
            _, _, uid = heapq.heappop(self._errors)
            entry = self._pods.get(uid)
            if entry is not None and entry.place == "error":
                self._activate(entry)
        while self._backoff and self._backoff[0][0] <= now:
            _, turn, uid = heapq.heappop(self._backoff)
            entry = self._pods.get(uid)
            if entry is not None and entry.place == "backoff" and entry.turn == turn:
                self._activate(entry)
        if now >= self._next_flush:
            self._next_flush = now + FLUSH_SECONDS
            for uid in list(self._waiting):
                if now - self._pods[uid].failed_at > MAX_UNSCHEDULABLE_SECONDS:
                    self._retry(self._pods[uid])
