"""Follow the Pods of an experiment on an existing cluster, and give bounds for the times of their ends.

What an event says was so when it came: that bounds it on one side. On the other side are what came before (the
disruption, a hook's sleep) and the API server's stamps, whose clock is looked at several times.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, replace
from typing import Any

from lastcall.contexts import NotOneOffset, Offset, Sample, clock_sample, offset_of
from lastcall.experiment.existing.ends import PodEnds
from lastcall.kube.api import Object, StatusError, name_of, uid_of
from lastcall.kube.client import ConnectionLost
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace import SECOND, MissingRight, condition_of, deletion_of, stamp_ns
from lastcall.traffic import Moment, Outage, PodLife, ids_printed, pod_lives
from lastcall.world.clock import monotonic, now
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

LATE_SECONDS = 1.0
"""Events of what has happened are here by then."""
NEEDED = ("pods", "pods/log", "events")
_LOOKS = 12
_LOOK_SECONDS = 0.37
"""No part of a second: each look at a clock of whole seconds finds another part of one."""
_FOREVER = float("inf")


@dataclass(slots=True)
class Following(PodEnds):
    """`serving` are the containers to which requests go, none for all. With a `selector` the Pods are those that it
    matches, no matter who owns them."""

    serving: frozenset[str] = frozenset()
    selector: str = ""
    pods: dict[str, PodLife] = field(default_factory=dict)
    """By uid; their moments have the bounds that a watch gives them."""
    records: list[Record] = field(default_factory=list)
    began: float | None = None
    """When the disruption was asked for; no Pod of it was deleted before."""
    _samples: list[Sample] = field(default_factory=list)
    _states: dict[str, Object] = field(default_factory=dict)
    _seen_at: dict[str, float] = field(default_factory=dict)
    _deleted_stamps: dict[str, float] = field(default_factory=dict)
    _graces: dict[str, int] = field(default_factory=dict)
    """Seconds that the first DELETE gave: with the last one, which removes the object, they are 0."""
    _gone: dict[str, float] = field(default_factory=dict)
    _killing: dict[str, float] = field(default_factory=dict)

    async def run(self) -> None:
        async with Tasks() as tasks:
            tasks.spawn(self._look_at_clock(), name="clock of the API server")
            await PodEnds.run(self)
            tasks.cancel()

    @property
    def missing(self) -> list[MissingRight]:
        """Return the missing permissions for that which causes are concluded from."""
        return [each for each in self.follower.missing.values() if each.resource in NEEDED]

    @property
    def has_gaps(self) -> bool:
        """Return whether something of the Pods was not seen, because a watch was interrupted."""
        return any(source.resource.plural == "pods" and source.gaps for source in self.follower.sources())

    @property
    def server(self) -> Offset | None:
        """Return the API server's clock, by what it says in its answers; None where it says none, or was set."""
        try:
            return offset_of(self._samples) if self._samples else None
        except NotOneOffset:
            return None

    # -- what the follower says ---------------------------------------------------------------------------------------

    def pod(self, pod: Object) -> None:
        PodEnds.pod(self, pod)
        at, uid = monotonic(self.world.clock), uid_of(pod)
        new = Moment.at(at) if self.began is not None else None
        found = self.pods.setdefault(uid, PodLife(uid, name_of(pod), created=new))
        found.ip = str((pod.get("status") or {}).get("podIP") or found.ip)
        was_ready = found.ready is not None
        ready = condition_of(pod, "Ready").get("status") == "True"
        timestamp, grace = deletion_of(pod)
        if timestamp and found.deleted is None:
            if grace is not None:
                self._graces[uid] = grace
            made = stamp_ns(timestamp)
            if made is not None:
                self._deleted_stamps[uid] = made / SECOND - (grace or 0)
            found.deleted = Moment(-_FOREVER, at)
        before, last = self._states.get(uid), self._seen_at.get(uid, at)
        if ready and found.ready is None:
            found.ready = Moment.at(at)
        if not ready and found.ready is not None and found.deleted is None and found.unreadied is None:
            found.unreadied = Moment(last, at)
        if found.deleted is None and before is not None and was_ready:
            self._note_restart(found, before, pod, last, at, ready=ready)
        elif found.deleted is not None and found.exited is None and self._has_ended(pod):
            found.exited = Moment(-_FOREVER, at)
        self._states[uid], self._seen_at[uid] = pod, at

    def _note_restart(
        self, found: PodLife, before: Object, pod: Object, last: float, at: float, *, ready: bool
    ) -> None:
        if found.outages and found.outages[-1].exited.latest == _FOREVER and ready:
            found.outages[-1] = _outage(found.outages[-1].exited.earliest, at)
        if self._runs(before) != self._runs(pod):
            found.outages.append(_outage(last, at if ready else _FOREVER))

    def _statuses(self, pod: Object) -> list[Mapping[str, Any]]:
        those = (pod.get("status") or {}).get("containerStatuses") or ()
        return [each for each in those if not self.serving or each.get("name") in self.serving]

    def _runs(self, pod: Object) -> list[tuple[int, bool]]:
        return [
            (int(each.get("restartCount") or 0), "terminated" in (each.get("state") or {}))
            for each in self._statuses(pod)
        ]

    def _has_ended(self, pod: Object) -> bool:
        states = [each.get("state") or {} for each in self._statuses(pod)]
        return bool(states) and all("terminated" in each for each in states)

    def _record(self, record: Record) -> None:
        at = monotonic(self.world.clock)
        self.records.append(record)
        PodEnds._record(self, record)
        if record.kind == kinds.KILLING:
            self._killing[record.pod_uid] = max(at, self._killing.get(record.pod_uid, at))
        elif record.kind == kinds.OBJECT_REMOVED:
            self._gone[record.pod_uid] = at

    async def _look_at_clock(self) -> None:
        """Times on our monotonic clock."""
        clock = self.world.clock
        for _ in range(_LOOKS):
            sent = monotonic(clock)
            with suppress(StatusError, ConnectionLost):
                _, date = await self.cluster.client.dated("/version")
                sample = clock_sample(date, sent, monotonic(clock))
                self._samples += [sample] if sample is not None else []
            await clock.sleep(_LOOK_SECONDS)

    # -- what was found -----------------------------------------------------------------------------------------------

    def bounded_lives(self) -> list[PodLife]:
        """Return every Pod of the workload that was seen, with the bounds of its end."""
        lives = {life.uid: life for life in pod_lives(self.records, None, self.serving)}
        return [
            replace(self._bounded(each), killed=uid in lives and lives[uid].killed) for uid, each in self.pods.items()
        ]

    def printed(self) -> dict[str, dict[int, int]]:
        """Return the ids of requests that each Pod printed, by its uid, and how often."""
        lines: dict[str, list[str]] = {}
        for record in self.records:
            if record.kind == kinds.OUTPUT:
                lines.setdefault(record.pod_uid, []).append(str(record.facts_as(kinds.OUTPUT).get("text")))
        return {uid: ids_printed(those) for uid, those in lines.items() if uid in self.pods}

    def _bounded(self, pod: PodLife) -> PodLife:
        if pod.deleted is None:
            return pod
        earliest = max(self.began if self.began is not None else -_FOREVER, self._stamped(pod.uid))
        deleted = Moment(min(earliest, pod.deleted.latest), pod.deleted.latest)
        ended = pod.exited.latest if pod.exited is not None else self._gone.get(pod.uid, _FOREVER)
        hooked, slept = self._hooks(self._states[pod.uid], self._graces.get(pod.uid))
        latest = ended if hooked else min(ended, self._killing.get(pod.uid, _FOREVER))
        term = Moment(min(deleted.earliest + slept, latest), latest)
        return replace(pod, deleted=deleted, term=term, exited=Moment(term.earliest, ended))

    def _stamped(self, uid: str) -> float:
        """The earliest moment that the API server's stamp of the DELETE allows."""
        stamp, server = self._deleted_stamps.get(uid), self.server
        if stamp is None or server is None:
            return -_FOREVER
        return server.to_ours(stamp) - server.error_at(monotonic(self.world.clock))

    def _hooks(self, pod: Object, grace: int | None) -> tuple[bool, float]:
        """(whether a container that serves has a preStop hook, how long the shortest of them sleeps at least)."""
        spec = pod["spec"]
        longest = grace if grace is not None else spec.get("terminationGracePeriodSeconds") or 0
        those = [each for each in spec["containers"] if not self.serving or each["name"] in self.serving]
        hooks = [(each.get("lifecycle") or {}).get("preStop") or {} for each in those]
        slept = [float((each.get("sleep") or {}).get("seconds") or 0) for each in hooks]
        return any(hooks), min([float(longest), *slept]) if all(hooks) and hooks else 0.0

    def lives(self) -> list[PodLife]:
        """Return the most likely moments of each Pod's life, for pictures and documents."""
        found = {life.uid: life for life in pod_lives(self.records, None, self.serving)}
        for uid, pod in self.pods.items():
            life = found.setdefault(uid, PodLife(uid))
            life.name, life.ip, life.ready = pod.name, pod.ip, pod.ready
        return list(found.values())

    def describe_clock_skew(self) -> str:
        """Return how far the API server's clock is from this machine's; "" where it does not say."""
        server = self.server
        if server is None:
            return ""
        ahead = now(self.world.clock).timestamp() - monotonic(self.world.clock)
        return replace(server, seconds=server.seconds - ahead).text


def _outage(since: float, until: float) -> Outage:
    """A container that serves may have been down between two moments, for any time of it."""
    return Outage(Moment(since, until), Moment(since, until))
