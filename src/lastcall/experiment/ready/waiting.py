"""Waits until what an experiment needs is so; says meanwhile what is late, and at last why it is not."""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from datetime import datetime

from lastcall.endings import is_crash_looping, unschedulable_message
from lastcall.errors import Crashed, NotReady
from lastcall.experiment.ready.views import ReadinessView
from lastcall.experiment.reasons.named import Explained, causes_in
from lastcall.experiment.reasons.object_events import (
    events_around,
    hook_keeps_failing,
    in_short_of,
    webhooks_of,
    why_it_stays,
    why_late,
)
from lastcall.experiment.reasons.siblings import fix_of_named_peers, fix_of_old_pod
from lastcall.experiment.reasons.why_not_ready import (
    Refused,
    Unschedulable,
    is_ready,
    replica_failure,
    why_no_pods,
    without_repeats,
)
from lastcall.kube.api import PODS, Object, parse_rfc3339, uid_of
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.records.words import words_for
from lastcall.world.clock import Clock, monotonic, now
from lastcall.world.dataclass import dataclass

_LOOK_SECONDS = 1.0
"""Between two looks at whether waiting changes anything."""
_PULL_SECONDS = 2.5
"""The progress of a pull is told once a second."""
_RECENT_RECORDS = 1000
_HOPELESS = "a container cannot start"
_STRANDED = "no node accepts the Pod"
_REFUSED = "the API server refuses the Pods"
_CRASHES = "a container crashes again and again"
_HOOK_FAILS = "a postStart hook fails again and again"


@dataclass(slots=True)
class Waiting:
    """`limit` is seconds for each thing that is waited for. `records` grow meanwhile. `show` gets now, the seconds
    so far, and what is waited for and why. `limited_by` is what a user sets the limit with.

    `patience` is seconds for which a Pod has to be hopeless. 0 where nobody else changes the cluster: then it is also a
    reason to give up that no node takes a Pod, or that the API server refuses it.
    """

    there: ReadinessView
    clock: Clock
    records: Sequence[Record]
    limit: float
    show: Callable[[float, float, str], None]
    version: str = ""
    patience: float = 0.0
    limited_by: str = "--timeout"
    _stuck: Unschedulable = field(default_factory=Unschedulable)
    _refusals: Refused = field(default_factory=Refused)
    _bad: dict[str, float] = field(default_factory=dict)
    """Uid of a Pod for which waiting changes nothing → since when."""

    async def until(
        self, condition: Callable[[], Awaitable[str]], what: str, *, may_strand: bool = False
    ) -> Sequence[Object]:
        """Wait until `condition` returns ""; anything else says what is missing.

        Raises WorldError when time is over or waiting changes nothing; it names the Pods and says why. Raises `Crashed`
        where a container keeps crashing. With `may_strand` it ends, too, when all that is missing are Pods that no node
        takes, and returns those: a drained node may be the one that they need.
        """
        began = monotonic(self.clock)
        next_look = began + _LOOK_SECONDS
        while missing := await condition():
            at = monotonic(self.clock)
            if at >= began + self.limit:
                raise await self._error(
                    f"timed out after {self.limit:g} s ({self.limited_by}) waiting for {what}: {missing}"
                )
            if at >= next_look:
                next_look = at + _LOOK_SECONDS
                why, pods = await self._why_give_up(at)
                if may_strand and why == _STRANDED:
                    return pods
                if why:
                    head = f"giving up waiting for {what}: {missing}, after {at - began:.0f} s: {why}"
                    raise await self._error(head, pods, crashed=why in (_CRASHES, _HOOK_FAILS))
                self.show(at, at - began, f"{what}: {await self._in_short(missing)}")
            await self.there.pause(self.clock)
        return ()

    async def _why_give_up(self, at: float) -> tuple[str, Sequence[Object]]:
        """Return why waiting changes nothing, "" while it may, and the Pods of which that is so, none for all."""
        if failed := self.there.failed():
            return failed, ()
        pods, client = await self.there.pods(), self.there.client
        self._bad = {uid_of(pod): self._bad.get(uid_of(pod), at) for pod in pods if self.there.is_hopeless(pod)}
        if bad := [pod for pod in pods if at - self._bad.get(uid_of(pod), math.inf) >= self.patience]:
            return _HOPELESS, bad
        owners = [] if self.patience else [each.obj for each in await self.there.late()]
        crashing = [pod for pod in pods if is_crash_looping(pod) or await hook_keeps_failing(client, pod)]
        if not (crashing or any(map(unschedulable_message, pods)) or any(map(replica_failure, owners))):
            return "", ()
        everywhere = pods if self.patience else (await client.list(PODS)).items
        more_to_come = any(each["spec"].get("minReadySeconds") for each in owners)
        stranded = self._stuck.look(pods, everywhere, at, more_to_come=more_to_come)
        if stranded and not self.patience:
            return _STRANDED, stranded
        if self._refusals.look(owners, everywhere, at) and not more_to_come:
            return _REFUSED, ()
        known = set(map(uid_of, crashing))
        # A container that crashes may wait for another Pod.
        others = any(_may_become_ready(pod) for pod in everywhere if uid_of(pod) not in known)
        if not crashing or others:
            return "", ()
        return (_CRASHES if any(map(is_crash_looping, crashing)) else _HOOK_FAILS), crashing

    async def _in_short(self, missing: str) -> str:
        """In one line: the first Pods that are waited for, and when the last one that ends is killed."""
        pods = await self.there.pods()
        ending = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
        if left := _until_killed(ending, now(self.clock)):
            missing, ending = f"{missing}, killed in {left:.0f} s at the latest", []
        late = [
            *ending,
            *(pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and _may_become_ready(pod)),
        ]
        first = [await in_short_of(self.there.client, pod) for pod in late[:2]]
        more = [f"{len(late) - 2} more"] if len(late) > 2 else []
        return "; ".join([missing, *self._pulls(), *first, *more])

    def _pulls(self) -> list[str]:
        """Return how far each pull of another runtime is that still goes on."""
        newest: dict[str, str] = {}
        for record in self.records[-_RECENT_RECORDS:]:
            if record.kind == kinds.IMAGE_PULL_PROGRESS:
                age = (self.clock.monotonic_ns() - record.at_ns) / 1e9
                if age < _PULL_SECONDS:
                    image = record.facts_as(kinds.IMAGE_PULL_PROGRESS)["image"]
                    newest[image] = str(words_for(record).text)
        return list(newest.values())

    async def _error(self, head: str, those: Sequence[Object] = (), *, crashed: bool = False) -> NotReady | Crashed:
        """Return what says of these Pods, or of all that are late, and of their owners why they are not Ready."""
        await self.there.catch_up()
        pods, client = await self.there.pods(), self.there.client
        ending = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
        late = those or [pod for pod in pods if pod not in ending and not is_ready(pod) and not _is_done(pod)]
        lines = [line for pod in ending for line in await why_it_stays(client, pod, now(self.clock))]
        causes = list(causes_in("", lines))
        owners = await self.there.late()
        for each in owners:
            events = await events_around(client, each.obj)
            webhooks = await webhooks_of(client, events)
            said = without_repeats(why_no_pods(each.what, each.obj, each.ready, each.wanted, events, webhooks), lines)
            lines += said
            causes += causes_in(each.what, said)
        explained = await why_late(client, self.clock, late, self.records, self.version)
        found = [fix_of_old_pod(pod, pods, now(self.clock)) for pod in late]
        if all(each.id != "peersNotPublished" for each in explained.causes):
            found += [fix_of_named_peers(pod, each.obj, pods, explained.lines) for pod in late for each in owners]
        if in_the_way := next(filter(None, found), ""):
            # Of a probe that the old Pod answers, or that says that others are missing, there is nothing to correct.
            added = (*(line for line in explained.lines if not line.endswith("[probeFailed]")), f"  fix: {in_the_way}")
            others = (each for each in explained.causes if each.id != "probeFailed")
            explained = Explained(added, (*others, *causes_in("", added[-1:])))
        printed = [line for pod in late for line in await self.there.printed(pod)]
        kind = Crashed if crashed or (late and all(map(is_crash_looping, late))) else NotReady
        return kind("\n".join([head, *lines, *explained.lines, *printed]), (*causes, *explained.causes))


def _until_killed(ending: Sequence[Object], at: datetime) -> float:
    """Return the seconds until the last grace period of these Pods is over; 0 where a Pod outlived its own."""
    left = [(parse_rfc3339(pod["metadata"]["deletionTimestamp"]) - at).total_seconds() for pod in ending]
    return max(left) if left and min(left) > 0 else 0.0


def _is_done(pod: Object) -> bool:
    return bool((pod.get("status") or {}).get("phase") == "Succeeded")


def _may_become_ready(pod: Object) -> bool:
    return not is_ready(pod) and (pod.get("status") or {}).get("phase") in (None, "Pending", "Running")
