"""Events: what a component says about an object, written to the API behind the component's back.

`EventRecorder.event` never waits; `run` writes one Event after the other, in order; one that cannot be written is
dropped and ends nothing. Source: client-go tools/record (event.go:recordToSink, recordEvent).
"""

import asyncio
import contextlib
from collections import deque
from typing import Literal, Protocol

from lastcall.kube.api.errors import StatusError, is_already_exists, is_not_found
from lastcall.kube.api.meta import AnyObject, Object, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.resources import EVENTS
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.event_correlator import EventCorrelator, Write
from lastcall.world import crash_guard
from lastcall.world.clock import now, rfc3339_now
from lastcall.world.world import World

MAX_QUEUED_EVENTS = 1000
MAX_TRIES_PER_EVENT = 12
SLEEP_SECONDS = 10.0
"""Between two tries; the first wait is a random part of it, so that clients do not come back all at once."""
MAX_NAME_LENGTH = 253
MAX_NAMES = 100


INTERNAL_ERROR = "InternalError"
"""The reason of Events on objects on which a component failed as nobody expected."""


class Telling(Protocol):
    """The part of an EventRecorder that is needed to say something."""

    def event(self, obj: AnyObject, event_type: Literal["Normal", "Warning"], reason: str, message: str) -> None: ...


def tell_of_fault(events: Telling, obj: AnyObject, error: BaseException) -> None:
    """Write what a guard caught at `obj` as an Event on it."""
    text = f"An internal error, tried again later: {crash_guard.text_of(error)}"
    with contextlib.suppress(Exception):  # what is wrong with the object may be what an Event needs
        events.event(obj, "Warning", INTERNAL_ERROR, text)


class EventRecorder:
    """Events from `component` on `host` ("" where the component belongs to no node)."""

    def __init__(
        self, client: Client, world: World, component: str, host: str = "", *, hold_seconds: float = 0.0
    ) -> None:
        """`hold_seconds` after the first of a row they are written, so that what they report goes before them."""
        self._client = client
        self._world = world
        self._component = component
        self._host = host
        self._hold_seconds = hold_seconds
        self._correlator = EventCorrelator()
        self._queue: deque[Object] = deque()
        self._writing: Write | None = None  # a `run` after a cancelled one continues with it
        self._wake = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._last_name_ns = 0
        self.dropped = 0
        """Events thrown away: the queue was full, or the server refused them or stayed away."""

    def event(
        self,
        obj: AnyObject,
        event_type: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        *,
        field_path: str = "",
    ) -> None:
        """Report `reason` and `message` about `obj`, which needs kind, apiVersion and metadata. Never blocks.

        `field_path` names a part of the object: `spec.containers{web}`.
        """
        if len(self._queue) >= MAX_QUEUED_EVENTS:
            self.dropped += 1
            return
        self._queue.append(self._make_event(obj, event_type, reason, message, field_path))
        self._drained.clear()
        self._wake.set()

    async def run(self) -> None:
        """Write Events until cancelled."""
        tries_waited = False
        while True:
            while self._writing is None:
                while not self._queue:
                    self._drained.set()
                    self._wake.clear()
                    await self._wake.wait()
                    if self._hold_seconds:
                        await self._world.clock.sleep(self._hold_seconds)
                event = self._queue.popleft()
                try:
                    self._writing = self._correlator.correlate(event, now(self._world.clock))
                except Exception as error:
                    self._caught(event, error)
            for attempt in range(MAX_TRIES_PER_EVENT):
                try:
                    if await self._record(self._writing):
                        break
                except Exception as error:
                    self._caught(self._writing.event, error)
                    break
                if attempt == MAX_TRIES_PER_EVENT - 1:
                    self.dropped += 1
                    break
                part = 1.0 if tries_waited else self._world.random.random()
                tries_waited = True
                await self._world.clock.sleep(SLEEP_SECONDS * part)
            self._writing = None

    def _caught(self, event: Object, error: Exception) -> None:
        crash_guard.caught(f"{self._component} events", f"{namespace_of(event)}/{name_of(event)}", error)
        self.dropped += 1

    async def drained(self) -> None:
        """Return when everything said so far has been dealt with (`run` must be running)."""
        await self._drained.wait()

    async def _record(self, write: Write) -> bool:
        """True when nothing more is to be tried: it is written, or the server refused it for good."""
        event = write.event
        namespace = event["metadata"]["namespace"]
        try:
            if write.patch is not None:
                try:
                    stored = await self._client.patch(EVENTS, event["metadata"]["name"], write.patch, namespace)
                except StatusError as error:
                    if not is_not_found(error):
                        raise
                    # It has expired meanwhile: it is a new one, with the count it had reached.
                    stored = await self._create(event, namespace)
            else:
                stored = await self._create(event, namespace)
        except StatusError as error:
            if error.code >= 500 or error.code == 429:
                return False
            self.dropped += 1
            return True
        except ConnectionLost:
            return False
        self._correlator.update_state(write.key, {**event, "metadata": stored["metadata"]})
        return True

    async def _create(self, event: Object, namespace: str) -> Object:
        """POST; under another name when another component took this one: its clock read the same nanosecond."""
        names_left = MAX_NAMES
        while True:
            names_left -= 1
            try:
                return await self._client.create(EVENTS, event, namespace)
            except StatusError as error:
                if not is_already_exists(error) or not names_left:
                    raise
            # A node may write Events and not read them: a patch of nothing answers what is there.
            stored = await self._client.patch(EVENTS, event["metadata"]["name"], {}, namespace)
            if all(stored.get(key) == event[key] for key in ("involvedObject", "reason", "message", "source")):
                return stored  # our own: the answer to the first try got lost
            event["metadata"]["name"] = self._name(event["involvedObject"]["name"])

    def _make_event(self, obj: AnyObject, event_type: str, reason: str, message: str, field_path: str) -> Object:
        reference: Object = {
            "kind": obj["kind"],
            "namespace": namespace_of(obj),
            "name": name_of(obj),
            "uid": uid_of(obj),
            "apiVersion": obj["apiVersion"],
            "resourceVersion": resource_version_of(obj),
            "fieldPath": field_path,
        }
        reference = {key: value for key, value in reference.items() if value}
        source = {"component": self._component}
        if self._host:
            source["host"] = self._host
        stamp = rfc3339_now(self._world.clock)
        return {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": self._name(name_of(obj)), "namespace": namespace_of(obj) or "default"},
            "involvedObject": reference,
            "reason": reason,
            "message": message,
            "source": source,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "type": event_type,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }

    def _name(self, object_name: str) -> str:
        """`<object>.<nanoseconds in hex>`; never the same twice from one recorder, even with a clock that is frozen."""
        self._last_name_ns = max(self._world.clock.wall_ns(), self._last_name_ns + 1)
        suffix = f"{self._last_name_ns:x}"
        name = f"{object_name}.{suffix}"
        return name if len(name) <= MAX_NAME_LENGTH else f"event.{suffix}"
