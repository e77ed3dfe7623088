"""What becomes of a repeated Event: a new one, a higher count, one line for many like it, or nothing.

Pure but for its memory; `now` is given. Source: client-go tools/record/events_cache.go:EventCorrelator.
"""

from collections import OrderedDict
from dataclasses import field
from datetime import datetime
from typing import Any, Generic, TypeVar

from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.client.workqueue import TokenBucket
from lastcall.world.clock import rfc3339
from lastcall.world.dataclass import dataclass

V = TypeVar("V")

MAX_ENTRIES = 4096
"""How many keys each memory holds; the least recently used go first."""
AGGREGATE_MAX_EVENTS = 10
AGGREGATE_INTERVAL_SECONDS = 600.0
SPAM_BURST = 25
SPAM_PER_SECOND = 1.0 / 300.0
AGGREGATE_PREFIX = "(combined from similar events): "


@dataclass(frozen=True, slots=True)
class Write:
    """What to send: `patch` for `event` when it is there already, else create `event`. `key` names its memory."""

    event: Object
    patch: Object | None
    key: tuple[str, ...]


@dataclass(slots=True)
class _Similar:
    """Messages seen of one kind of Event, and when the last came (seconds)."""

    messages: OrderedDict[str, None] = field(default_factory=OrderedDict)
    last: float = 0.0


@dataclass(frozen=True, slots=True)
class _Known:
    """The last state written of one Event."""

    count: int
    first_timestamp: str
    name: str


class EventCorrelator:
    """One per event source. `correlate` decides; `update_state` gets what the server has stored."""

    def __init__(self) -> None:
        self._spam: _Recent[TokenBucket] = _Recent()
        self._similar: _Recent[_Similar] = _Recent()
        self._known: _Recent[_Known] = _Recent()

    def correlate(self, event: Object, moment: datetime) -> Write | None:
        """Return the write for a fresh `event` (count 1, first = last = now), None when the spam filter drops it.

        The order is the original's: aggregate, count, and only then filter.
        """
        seconds = moment.timestamp()
        event, key = self._aggregate(event, moment, seconds)
        known = self._known.get(key)
        patch: Object | None = None
        if known is not None:
            event["metadata"]["name"] = known.name
            event["firstTimestamp"] = known.first_timestamp
            event["count"] = known.count + 1
            patch = {
                "count": event["count"],
                "lastTimestamp": event["lastTimestamp"],
                "message": event["message"],
            }
        self.update_state(key, event)
        spam_key = _object_key(event)
        bucket = self._spam.get(spam_key)
        if bucket is None:
            bucket = self._spam.put(spam_key, TokenBucket(SPAM_PER_SECOND, SPAM_BURST, seconds))
        if not bucket.try_take(seconds):
            return None
        return Write(event, patch, key)

    def update_state(self, key: tuple[str, ...], event: Object) -> None:
        """Remember what is now stored under the Event's name."""
        self._known.put(key, _Known(event["count"], event["firstTimestamp"], event["metadata"]["name"]))

    def _aggregate(self, event: Object, moment: datetime, seconds: float) -> tuple[Object, tuple[str, ...]]:
        """`EventAggregator.EventAggregate`: from the tenth different message in 600 s on, one Event represents all."""
        aggregate_key = (*_object_key(event), event["type"], event["reason"], event["reportingComponent"])
        similar = self._similar.get(aggregate_key)
        if similar is None or seconds - similar.last > AGGREGATE_INTERVAL_SECONDS:
            similar = self._similar.put(aggregate_key, _Similar())
        similar.messages[event["message"]] = None
        similar.last = seconds
        if len(similar.messages) < AGGREGATE_MAX_EVENTS:
            reference = event["involvedObject"]
            return event, (*aggregate_key, reference.get("fieldPath", ""), event["message"])
        similar.messages.popitem(last=False)
        combined = copy_object(event)
        combined["message"] = AGGREGATE_PREFIX + event["message"]
        combined["firstTimestamp"] = combined["lastTimestamp"] = rfc3339(moment)
        return combined, aggregate_key


def _object_key(event: Object) -> tuple[str, ...]:
    source: dict[str, Any] = event["source"]
    reference: dict[str, Any] = event["involvedObject"]
    return (
        source.get("component", ""),
        source.get("host", ""),
        *(reference.get(name, "") for name in ("kind", "namespace", "name", "uid", "apiVersion")),
    )


class _Recent(Generic[V]):
    """The `MAX_ENTRIES` most recently used values."""

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[str, ...], V] = OrderedDict()

    def get(self, key: tuple[str, ...]) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: tuple[str, ...], value: V) -> V:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > MAX_ENTRIES:
            self._values.popitem(last=False)
        return value
