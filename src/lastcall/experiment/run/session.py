"""One run: objects are created, their Pods ended and followed, their stories built. No output but notes.

The phases are prepare, ready, disturb, follow and restore; the workspace says how, on a cluster of our own or on an
existing one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lastcall.endings import Ending, pod_facts
from lastcall.endings.render import TICK_SECONDS
from lastcall.errors import LastcallError, WorldError
from lastcall.experiment.ready.views import Followed
from lastcall.experiment.ready.waiting import Waiting
from lastcall.experiment.reasons.owner_watch import FollowedOwner, OwnerFollower
from lastcall.experiment.reasons.pod_watch import FollowedPod, PodFollower
from lastcall.experiment.reasons.why_not_ready import has_failed, is_ready
from lastcall.experiment.run.workspace import Run
from lastcall.kube.api import DAEMONSETS, PODS
from lastcall.manifests import OWNERS, Applied
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    from lastcall.experiment.rollout.result import Result


@dataclass(slots=True)
class RunSession(Run):
    """`run` once. After an error `endings()` has what is known so far."""

    found: "Result | None" = None
    """What became of requests, where some were sent."""
    _disturbed: bool = False

    async def run(self) -> list[Ending]:
        """Return the stories, which `tell` has got before anything is put back. Raises LastcallError."""
        self.began = monotonic(self.clock)
        try:
            try:
                await self.place.alive(self._run())
            except LastcallError as error:
                self.tell(self.endings(), error)
                raise
            found = self.endings()
            self.tell(found, None)
            return found
        finally:
            await self.place.restore(self.note)

    def endings(self) -> list[Ending]:
        """Return the stories that are known so far; none before the disruption, but of what was left alone."""
        return self.place.stories(self) if self._disturbed or self.left_alone else []

    # -- the phases ---------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            async with Tasks() as self.tasks:
                self.tasks.spawn(self._tick(), name="live timeline")
                await self._phases()
                self.tasks.cancel()
        finally:
            self.live.end()

    async def _phases(self) -> None:
        created, version = await self.place.prepare(self)
        await self._ready(created, version)
        if self.before_end is not None:
            await self.before_end()
        if self.requests is None:
            await self.clock.sleep(self.options.after)
            await self._end()
            return
        await self.requests.workspace.join(self.requests, created)
        found = await self.requests.measured(self._end)
        self.found = None if self.left_alone else found

    async def _end(self) -> float:
        """End the Pods, but for those that are to be left alone. Return how many seconds it took."""
        self._choose()
        if self._say_what_is_not_well() and self.options.keep_on_failure:
            self.left_alone = True
            return 0.0
        await self.place.attend(self)
        self.live.begin([pod_facts(pod.obj) for pod in self.chosen()])
        self._disturbed = True
        began = monotonic(self.clock)
        if self.requests is not None:
            self.requests.begin()
        await self.place.disturb(self)
        await self.place.follow(self)
        took = monotonic(self.clock) - began
        if self.requests is not None:  # senders learn of it later
            await self.clock.sleep(self.requests.options.propagation.most)
        return took

    async def _ready(self, created: Sequence[Applied], version: str) -> None:
        """Follow what was created until all of it is Ready."""
        place, client, clock = self.place, self.place.client, self.clock
        self.pods = pods = PodFollower(client, place.recorder(), clock, namespace=place.namespace)
        self.owners = owners = OwnerFollower(client, clock, pods.changed, place.namespace)
        alone = [pods.follow(each.obj) for each in created if each.resource == PODS]
        parents = [owners.follow(each.resource, each.obj) for each in created if each.resource in OWNERS]
        if parents:
            pods.owner_of = owners.owner_of
            self.tasks.spawn(owners.run(version), name="follow owners")
        self.tasks.spawn(pods.run(version), name="follow Pods")
        self.note(f"created {', '.join([*(each.what for each in parents), *(pod.key for pod in alone)])}")
        there, options = Followed(pods, owners, place.drain), self.options
        waiting = Waiting(
            there, clock, place.records, options.timeout, self.live.waiting, options.kubernetes_version, place.patience
        )
        await waiting.until(there.ready, "all Pods to become Ready")
        for pod in pods.pods.values():
            if not pod.gone or not pod.owner_uid:
                self.note(f"{pod.key} {_state(pod)}")

    def _choose(self) -> None:
        """Set the Pods of the story. Raises WorldError where there is none."""
        followed = self.pods.pods.values()
        self.left_out = {pod.uid for pod in followed if self.place.is_left_out(pod)}
        if not self.chosen():
            there = any(not pod.gone for pod in followed)
            why = map(_gone_by_itself, () if there else self.owners.owners.values())
            raise WorldError("no Pod is left to end: " + ("; ".join(why) or "all have ended by themselves"))

    def _say_what_is_not_well(self) -> bool:
        """Whether containers have crashed, or were restarted, before anything was ended."""
        found = False
        for pod in self.chosen():
            if not has_failed(pod.obj):
                continue
            # late: 3.6 ms of `demo`
            from lastcall.experiment.reasons.failures import describe_ends

            if lines := describe_ends(pod.obj, self.place.records, self.options.kubernetes_version):
                found = True
                self.note(f"{pod.key} is unhealthy:")
                for line in lines:
                    self.live.note(line)
        return found

    async def _tick(self) -> None:
        while True:
            await self.clock.sleep(TICK_SECONDS)
            self.live.tick(self.clock.monotonic_ns())


def _state(pod: FollowedPod) -> str:
    if pod.ready and (is_ready(pod.obj) or not has_failed(pod.obj)):
        return "is Ready"
    phase = (pod.obj.get("status") or {}).get("phase") or "Pending"
    return f"has already ended ({phase})" if pod.ended_by_itself or pod.gone else f"is not Ready ({phase})"


def _gone_by_itself(owner: FollowedOwner) -> str:
    """Of an owner that has no Pod when its time to be deleted has come."""
    if owner.gone:
        return f"{owner.what} is already gone"
    if owner.resource == DAEMONSETS:
        return f"{owner.what} needs no Pod on the node: see spec.template.spec.nodeSelector, affinity and tolerations"
    return f"{owner.what} has none"
