"""Feed the page from an experiment on an existing cluster: with what is followed there, without further requests."""

from __future__ import annotations

from typing import Any

from lastcall.endings import Ending
from lastcall.experiment.existing import ExistingWorkspace
from lastcall.experiment.rollout import RolloutSession
from lastcall.kube.api import Object, Resource
from lastcall.kube.cluster import record_message
from lastcall.records.said import to_wire
from lastcall.ui.command_page import SHOWN, PageLink, Seen, Story
from lastcall.ui.rollout import lives_to_wire, traced_to_wire
from lastcall.world.clock import monotonic

LOOK_SECONDS = 0.5
"""Between two looks at what causes can be concluded from: it takes some milliseconds."""


class FollowedFeed:
    """Made before Pods are followed; `end` when they are not any more."""

    def __init__(self, link: PageLink, place: ExistingWorkspace, session: RolloutSession) -> None:
        self._link = link
        self._place = place
        self._session = session
        self._looked = -LOOK_SECONDS
        self._state: dict[str, Any] = {}
        self._sent: dict[str, int] = {}
        """Story → how many records of it the page has."""
        place.following.on_record = link.record
        place.following.on_object = self._seen
        place.following.on_ending = self._ended

    def state(self) -> dict[str, Any]:
        """Return the Pods' lives, and what is known about their ends, for `Rollout.state`."""
        now = monotonic(self._session.clock)
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._look()
        return self._state

    def end(self) -> None:
        """Tell the last of it."""
        self._look()

    def _look(self) -> None:
        traced = self._place.traced(self._session)
        self._state = {"lives": lives_to_wire(self._place.following.lives())}
        if traced is not None:
            self._state["traced"] = traced_to_wire(traced)
        for ending in self._place.following.follower.ongoing():
            if len(ending.entries) > self._sent.get(ending.pod.uid, 0):
                self._tell(ending, whole=False)

    def _seen(self, resource: Resource, type_: str, obj: Object) -> None:
        if resource.plural in SHOWN:
            self._link.tell(Seen(resource=resource.plural, type=type_, obj=dict(obj)))

    def _ended(self, ending: Ending) -> None:
        self._tell(ending, whole=True)

    def _tell(self, ending: Ending, *, whole: bool) -> None:
        self._sent[ending.pod.uid] = len(ending.entries)
        records = [record_message(each.record)["record"] for each in ending.entries]
        not_known = [to_wire(each) for each in ending.not_known]
        self._link.tell(Story(uid=ending.pod.uid, records=records, not_known=not_known, whole=whole))
