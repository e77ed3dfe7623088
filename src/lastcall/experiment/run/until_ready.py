"""Waits until what a run created is Ready; says meanwhile what is late, and at last why it is not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lastcall.errors import Crashed, NotReady, UnreadyCause
from lastcall.experiment.ready.progress import Progress, progress
from lastcall.experiment.reasons.named import Explained, causes_in
from lastcall.experiment.reasons.object_events import events_of, hook_keeps_failing, webhooks_of, why_late
from lastcall.experiment.reasons.owner_watch import FollowedOwner
from lastcall.experiment.reasons.pod_watch import FollowedPod
from lastcall.experiment.reasons.why_not_ready import (
    Refused,
    Unschedulable,
    hopeless_reason,
    in_short,
    is_crash_looping,
    why_no_pods,
)
from lastcall.experiment.run.workspace import Run
from lastcall.kube.api import PODS
from lastcall.world.clock import monotonic

_LOOKED_AT = 10
"""Pods whose Events are read in one look."""


@dataclass(slots=True)
class UntilReady:
    """`ready` once, while the Pods of the run and their owners are followed."""

    run: Run
    _given_up: str = ""
    """Why waiting changes nothing."""
    _bad: dict[str, float] = field(default_factory=dict)
    """Uid of a Pod for which waiting changes nothing → since when."""

    async def ready(self) -> None:
        """Return when all Pods are Ready, or have ended. Raises NotReady, Crashed."""
        late = self.run.tasks.spawn(self._say_what_is_late(), name="what is late")
        try:
            await self._wait()
        finally:
            late.cancel()

    async def _wait(self) -> None:
        followed = self.run.pods.pods.values()
        await self.run.pods.wait(self._is_decided, self.run.options.timeout)
        # A Pod of an owner counts by what its owner waits for: it may be one that was replaced.
        waiting = [owner for owner in self.run.owners.owners.values() if self._waits(owner)]
        by_owner = {owner.uid for owner in waiting}
        late = [p for p in followed if not _is_settled(p) and (not p.owner_uid or p.owner_uid in by_owner)]
        hopeless = self._hopeless(followed)
        rejected = [pod for pod in followed if pod.uid in hopeless and pod.ended_by_itself]
        if not late and not rejected and not waiting:
            return
        head = ""
        if self._given_up:
            head = f"giving up: {self._given_up}"
        elif any(pod.uid in hopeless for pod in [*late, *rejected]):
            # Its siblings would have come along, had they been waited for.
            late = [pod for pod in late if not pod.owner_uid or pod.uid in hopeless]
        else:
            head = f"not every Pod became Ready within {self.run.options.timeout:g} s (--timeout)"
        await self.run.place.client.list(PODS, self.run.place.namespace)  # a server that is lost is the reason itself
        why = await self._why_not_ready(waiting, [*late, *rejected])
        crashed = bool(late) and all(is_crash_looping(pod.obj) for pod in late)
        lines = [head, *why.lines] if head else why.lines
        raise (Crashed if crashed else NotReady)("\n".join(lines), why.causes)

    def _is_decided(self, pods: Sequence[FollowedPod]) -> bool:
        if self._given_up or self._hopeless(pods):
            return True
        own = all(_is_settled(pod) for pod in pods if not pod.owner_uid)
        return own and not any(map(self._waits, self.run.owners.owners.values()))

    def _hopeless(self, pods: Iterable[FollowedPod]) -> set[str]:
        """The uids of Pods that waiting has not helped for as long as the workspace's patience lasts."""
        now = monotonic(self.run.clock)
        bad = [pod for pod in pods if not pod.gone and hopeless_reason(pod.obj)]
        self._bad = {pod.uid: self._bad.get(pod.uid, now) for pod in bad}
        return {uid for uid, since in self._bad.items() if now - since >= self.run.place.patience}

    def _state_of(self, owner: FollowedOwner) -> Progress:
        its_pods = [pod for pod in self.run.pods.pods.values() if pod.owner_uid == owner.uid]
        return progress(owner.resource, owner.obj, its_pods)

    def _waits(self, owner: FollowedOwner) -> bool:
        return not owner.gone and not self._state_of(owner).settled

    async def _why_not_ready(self, waiting: Sequence[FollowedOwner], late: Sequence[FollowedPod]) -> Explained:
        """What the cluster, its records and the containers say of the owners and Pods that are waited for."""
        lines: list[str] = []
        causes: list[UnreadyCause] = []
        client = self.run.place.client
        for owner, state in [(owner, self._state_of(owner)) for owner in waiting]:
            events = await self.run.owners.events_of(owner)
            webhooks = await webhooks_of(client, events)
            why = why_no_pods(owner.what, owner.obj, state.ready, state.wanted, events, webhooks)
            lines += why
            causes += causes_in(owner.what, why)
        await self.run.place.drain()
        pods = [each.obj for each in {each.uid: each for each in late}.values()]
        told = await why_late(client, self.run.clock, pods, self.run.place.records, self.run.options.kubernetes_version)
        return Explained((*lines, *told.lines), (*causes, *told.causes))

    async def _say_what_is_late(self) -> None:
        """What is waited for, until cancelled: nobody waits in silence for a Pod that cannot start."""
        began, stuck, refused = monotonic(self.run.clock), Unschedulable(), Refused()
        while True:
            await self.run.clock.sleep(1.0)
            there = [pod for pod in self.run.pods.pods.values() if not pod.gone]
            late = [pod for pod in there if not (pod.ready or pod.ended_by_itself)]
            if not self.run.place.patience:
                self._given_up = await self._why_give_up(stuck, refused, there, late) or self._given_up
            self.run.pods.changed.set()  # for what has to last
            told = [in_short(pod.obj, await events_of(self.run.place.client, pod.obj)) for pod in late[:2]]
            told += [f"{len(late) - 2} more"] if len(late) > 2 else []
            now = monotonic(self.run.clock)
            self.run.live.waiting(now, now - began, "; ".join(told) or "for Pods to be made and available")

    async def _why_give_up(
        self, stuck: Unschedulable, refused: Refused, there: Sequence[FollowedPod], late: Sequence[FollowedPod]
    ) -> str:
        """Why waiting changes nothing on a cluster that nobody else changes; "" while it may."""
        objects, now, client = [pod.obj for pod in there], monotonic(self.run.clock), self.run.place.client
        if stuck.look(objects, objects, now, more_to_come=False):
            return "no node accepts the Pod, and waiting will not change that"
        if refused.look([each.obj for each in self.run.owners.owners.values() if not each.gone], objects, now):
            return "the API server refuses the Pods, and waiting will not change that"
        if late and all(is_crash_looping(pod.obj) for pod in late):
            return "a container crashes again and again, and no other object is still starting"
        if late and all([await hook_keeps_failing(client, pod.obj) for pod in late[:_LOOKED_AT]]):
            return "a postStart hook fails again and again, and no other object is still starting"
        return ""


def _is_settled(pod: FollowedPod) -> bool:
    return pod.ready or pod.ended_by_itself or pod.gone
