"""EndpointSlices: what became of the endpoints of Pods that are ending."""

from collections.abc import Iterable
from dataclasses import replace

from lastcall.kube.api import Object, name_of, namespace_of, resource_version_of
from lastcall.records import kinds
from lastcall.trace import endpoints
from lastcall.trace.drafts import Draft
from lastcall.trace.following.state import Remembered, SharedState
from lastcall.trace.pod_timeline import Moment, PodTimeline
from lastcall.trace.stamps import SECOND

EARLY_NS = 3 * SECOND
"""A slice may change before the Pod's own event comes, by another watch: so long before."""


class EndpointTracker:
    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._known: dict[tuple[str, str], tuple[str, dict[str, endpoints.Endpoint]]] = {}
        self._early: Remembered[tuple[Draft, Moment]] = Remembered()

    def change(self, type_: str, obj: Object) -> None:
        """Take an event of the watch."""
        key, now = (namespace_of(obj), name_of(obj)), self._shared.now()
        service, old = self._known.get(key, (endpoints.service_of(obj), {}))
        new = {} if type_ == "DELETED" else endpoints.endpoints_of(obj)
        for uid, each in endpoints.changes(service, key[1], resource_version_of(obj), old, new):
            self._endpoint(uid, each, now)
        if type_ == "DELETED":
            self._known.pop(key, None)
        else:
            self._known[key] = (service, new)

    def listed(self, items: Iterable[Object]) -> None:
        """Take all slices that are there."""
        there = set()
        for obj in items:
            there.add((namespace_of(obj), name_of(obj)))
            self.change("MODIFIED", obj)
        for key in [each for each in self._known if each not in there]:
            service, old = self._known.pop(key)
            for uid, each in endpoints.changes(service, key[1], "", old, {}):
                self._endpoint(uid, each, self._shared.now())

    def begin(self, timeline: PodTimeline, now: Moment) -> None:
        """Begin the end of a Pod: what its endpoints did just before is of it."""
        for early, at in self._early.pop(timeline.uid, ()):
            if now.at_ns - at.at_ns < EARLY_NS:
                timeline.write(replace(early, at_ns=max(at.at_ns, (timeline.deleted_ns or 0) + 1)), now)

    def _endpoint(self, uid: str, each: Draft, now: Moment) -> None:
        timeline = self._shared.timelines.get(uid)
        if timeline is not None:
            timeline.write(each, now)
        elif each.kind == kinds.ENDPOINT_REMOVED or each.facts_as(kinds.ENDPOINT_CHANGED).get("terminating"):
            self._early.remember(uid, (each, now))
