"""How fast the nodes of a zone may get the NoExecute taint that evicts their Pods. Pure but for its memory.

When many nodes vanish at once the fault is rather with what watches them, so less is evicted, and nothing at all when
every node is gone. Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go (handleDisruption,
ComputeZoneState), scheduler/rate_limited_queue.go.
"""

# check: pure

from collections.abc import Mapping, Sequence
from typing import Literal

EVICTION_PER_SECOND = 0.1
SECONDARY_EVICTION_PER_SECOND = 0.01
LARGE_ZONE = 50
UNHEALTHY_ZONE = 0.55

ZoneState = Literal["Initial", "Normal", "PartialDisruption", "FullDisruption"]


def zone_state(ready: Sequence[bool]) -> ZoneState:
    """Return the state of a zone. `ready`: one value for each node of the zone."""
    unready = sum(1 for each in ready if not each)
    if unready and unready == len(ready):
        return "FullDisruption"
    if unready > 2 and unready / len(ready) >= UNHEALTHY_ZONE:
        return "PartialDisruption"
    return "Normal"


def rate(state: ZoneState, size: int) -> float:
    """Return the nodes per second of a zone of `size` nodes."""
    if state == "PartialDisruption":
        return SECONDARY_EVICTION_PER_SECOND if size > LARGE_ZONE else 0.0
    return EVICTION_PER_SECOND


class TaintQueue:
    """The nodes of one zone that wait for their taint. One goes at once, the next `1 / per_second` later."""

    def __init__(self) -> None:
        self.per_second = EVICTION_PER_SECOND
        self._known: dict[str, None] = {}
        self._waiting: dict[str, None] = {}
        self._free_at = 0.0

    def add(self, node: str) -> None:
        """Let a node wait for its turn, unless it waits already or has had it and was not removed since."""
        if node not in self._known:
            self._known[node] = self._waiting[node] = None

    def remove(self, node: str) -> None:
        self._known.pop(node, None)
        self._waiting.pop(node, None)

    def set_rate(self, per_second: float, now: float) -> None:
        if per_second == self.per_second:
            return
        if per_second and self.per_second and self._free_at > now:
            self._free_at = now + 1 / per_second
        self.per_second = per_second

    def seconds_to_wait(self, now: float) -> float | None:
        """Return the seconds until the next node's turn; None while there is nothing to wait for."""
        if not self._waiting or not self.per_second:
            return None
        return max(0.0, self._free_at - now)

    def take(self, now: float) -> str | None:
        """Take the node whose turn it is."""
        if self.seconds_to_wait(now) != 0.0:
            return None
        node = next(iter(self._waiting))
        del self._waiting[node]
        self._free_at = now + 1 / self.per_second
        return node


class Zones:
    """The queues of all zones, and the states that set their rates."""

    def __init__(self) -> None:
        self.queues: dict[str, TaintQueue] = {}
        self._states: dict[str, ZoneState] = {}

    def queue(self, zone: str) -> TaintQueue:
        return self.queues.setdefault(zone, TaintQueue())

    def handle_disruption(self, ready: Mapping[str, Sequence[bool]], now: float) -> Literal["", "entered", "left"]:
        """Take in a pass over all nodes. `entered`: no node is Ready any more; `left`: one is again."""
        states = {zone: zone_state(nodes) for zone, nodes in ready.items()}
        for zone in states:
            self._states.setdefault(zone, "Initial")
        for zone in [zone for zone in self._states if zone not in states]:
            del self._states[zone]
        all_are = all(state == "FullDisruption" for state in states.values())
        all_were = all(state == "FullDisruption" for state in self._states.values())
        if all_are and all_were:
            return ""
        if all_are:
            for zone in self._states:
                self.queue(zone).set_rate(0.0, now)
                self._states[zone] = "FullDisruption"
            return "entered"
        for zone, state in states.items():
            if all_were or self._states[zone] != state:
                self.queue(zone).set_rate(rate(state, len(ready[zone])), now)
                self._states[zone] = state
        return "left" if all_were else ""
