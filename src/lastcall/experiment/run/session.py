"""One run: an embedded cluster is started, the manifests' Pods are ended, their stories built. No output but notes.

Pods of the manifests are deleted as such; of owners (Deployments …) the owner is deleted, as `kubectl delete -f` does,
and every Pod that it has then is followed to its end.
"""

# check: observes because it sent the DELETE

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from lastcall.endings import Ending, build_endings, pod_facts, wait_of
from lastcall.endings.render import TICK_SECONDS, LiveTimeline
from lastcall.errors import Crashed, LastcallError, NotReady, UnreadyCause, WorldError
from lastcall.experiment.death import LAST_WORDS_SECONDS, Death
from lastcall.experiment.ready.progress import Progress, progress
from lastcall.experiment.reasons.object_events import events_of, hook_keeps_failing, last_events_of, webhooks_of
from lastcall.experiment.reasons.owner_watch import FollowedOwner, OwnerFollower
from lastcall.experiment.reasons.pod_watch import FollowedPod, PodFollower
from lastcall.experiment.reasons.webhooks import fixes_of_webhook
from lastcall.experiment.reasons.why_not_ready import (
    Refused,
    Unschedulable,
    has_failed,
    hopeless_reason,
    in_short,
    is_crash_looping,
    is_ready,
    why_no_pods,
    why_not_ready,
    without_names,
)
from lastcall.experiment.run.options import RunOptions
from lastcall.kube.api import (
    DAEMONSETS,
    PODS,
    FeatureGates,
    Object,
    Resource,
    StatusError,
    dropped_fields,
    is_not_found,
    name_of,
    namespace_of,
    uid_of,
)
from lastcall.kube.client import Client, ConnectionLost
from lastcall.manifests import OWNERS, Applied, Manifest, apply_manifests, with_grace
from lastcall.records import kinds
from lastcall.records.record import Record, Recorder
from lastcall.world.clock import Clock, RealClock, monotonic
from lastcall.world.clock import now as wall_time
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    from lastcall.experiment.reasons.named import Explained
    from lastcall.records.definitions.client import DeleteSent

KILL_MARGIN_SECONDS = 5.0
"""How much longer than its grace period a force-deleted Pod's containers are followed."""

_LOOKED_AT = 10
"""Pods whose Events are read in one look."""


class Cluster(Protocol):
    """What a run needs of `lastcall.kube.cluster.embedded.Running`."""

    client: Any  # a lastcall.kube.client.api.Client; the concrete class varies

    async def connect(self) -> None: ...
    async def wait_node_ready(self) -> None: ...
    def on_record(self, callback: Callable[[Record], None]) -> None: ...
    def on_process_died(self, callback: Callable[[str, int, int | None, int | None], None]) -> None: ...
    def recorder(self, actor: str) -> Recorder: ...
    def kubeconfig_path(self) -> str: ...
    async def drain_records(self, seconds: float = 0.05) -> None: ...
    def last_words(self, role: str, lines: int = 20) -> str: ...
    def why_it_hung(self, role: str) -> str: ...
    def stop(self) -> None: ...


@dataclass(slots=True)
class Session:
    """`run` ends the Pods and answers their stories; after an error `endings()` has what is known so far."""

    cluster: Cluster
    options: RunOptions
    live: LiveTimeline
    clock: Clock = field(default_factory=RealClock)
    records: list[Record] = field(default_factory=list)
    _follower: PodFollower | None = None
    _owners: OwnerFollower | None = None
    _over: set[str] = field(default_factory=set)
    """Uids of owners' Pods that were gone before the DELETE: they have no part in the story."""
    death: Death = field(init=False)
    _deleted: bool = False
    _given_up: str = ""
    """Why waiting changes nothing."""
    before_end: Callable[[], Awaitable[None]] | None = None
    """Awaited when all is Ready, before anything is deleted."""
    left_alone: bool = False
    """Nothing was deleted because a Pod was not well and `keep_on_failure` was asked for."""

    def __post_init__(self) -> None:
        self.death = Death(self.cluster)

    async def run(self, manifests: Sequence[Manifest]) -> list[Ending]:
        """Start to story. Raises UserError, WorldError or ClusterStartError."""
        started = monotonic(self.clock)
        self.cluster.on_record(self._record)
        self.cluster.on_process_died(self.death.process_died)
        await self.cluster.connect()
        client: Client = self.cluster.client
        self._follower = PodFollower(client, self.cluster.recorder("client"), self.clock)
        self._owners = OwnerFollower(client, self.clock, self._follower.changed)
        failure: Exception | None = None
        async with Tasks() as tasks:
            tasks.spawn(self._tick(), name="live timeline")
            try:
                await self.death.unless(self._run(manifests, client, tasks, started))
            except Exception as error:
                failure = error
            finally:
                tasks.cancel()
                self.live.end()
        if failure is not None:
            await self.cluster.drain_records(LAST_WORDS_SECONDS)
            raise failure
        return self.endings()

    async def keep(self) -> None:
        """Return never; raises WorldError when a process of the cluster dies."""
        await self.death.unless(_forever())

    async def close(self) -> None:
        """Give back the client's connections, whatever state the API server is in."""
        client: Client | None = getattr(self.cluster, "client", None)
        if client is not None:
            with suppress(ConnectionLost, OSError):
                await client.close()

    def endings(self) -> list[Ending]:
        """Return the stories that are known so far; none before the first DELETE, but of what was left alone."""
        if self._follower is None or not (self._deleted or self.left_alone):
            return []
        pods = [pod_facts(pod.obj) for pod in self._told()]
        return build_endings(self.records, pods, kubernetes_version=self.options.kubernetes_version)

    # -- the way of a run ---------------------------------------------------------------------------------------------

    async def _run(self, manifests: Sequence[Manifest], client: Client, tasks: Tasks, started: float) -> None:
        # late: 1.0 ms of `demo`
        from lastcall.experiment.not_simulated import of_manifests  # while the cluster starts

        await self.cluster.wait_node_ready()
        self._note(started, f"Kubernetes {self.options.kubernetes_version} is up, its node is Ready")
        follower, owners = self._follower, self._owners
        assert follower is not None
        assert owners is not None
        version = (await client.list(PODS)).resource_version
        manifests = [replace(m, obj=with_grace(m.resource, m.obj, self.options.grace)) for m in manifests]
        applied, notes = await self._apply(client, manifests)
        kept = (each.told for each in of_manifests(manifests))
        for note in [*notes, *self._dropped(manifests), *kept]:
            self._note(started, note)
        pods = [follower.follow(each.obj) for each in applied if each.resource == PODS]
        parents = [owners.follow(each.resource, each.obj) for each in applied if each.resource in OWNERS]
        if parents:
            follower.owner_of = owners.owner_of
            tasks.spawn(owners.run(version), name="follow owners")
        tasks.spawn(follower.run(version), name="follow Pods")
        self._note(started, f"created {', '.join([*(each.what for each in parents), *(pod.key for pod in pods)])}")
        waiting = tasks.spawn(self._say_what_is_late(follower, owners, client), name="what is late")
        try:
            await self._wait_ready(follower, owners, client)
        finally:
            waiting.cancel()
        for pod in follower.pods.values():
            if not pod.gone or not pod.owner_uid:
                self._note(started, f"{pod.key} {_state(pod)}")
        if self.before_end is not None:
            await self.before_end()
        await self.clock.sleep(self.options.after)
        self._over = {pod.uid for pod in follower.pods.values() if pod.gone and pod.owner_uid}
        if not self._told():
            raise WorldError("no Pod is left to end: " + "; ".join(_gone_by_itself(each) for each in parents))
        if self._say_what_is_not_well(started) and self.options.keep_on_failure:
            self.left_alone = True
            return
        self.live.begin([pod_facts(pod.obj) for pod in self._told()])
        await self._delete(pods, parents, client, tasks)
        await self._wait_gone(follower)

    async def _apply(self, client: Client, manifests: Sequence[Manifest]) -> tuple[list[Applied], list[str]]:
        try:
            return await apply_manifests(client, self.clock, manifests)
        except LastcallError as error:
            webhooks = await webhooks_of(client, [{"message": str(error)}])
            fixes = [f"  fix: {each}" for each in fixes_of_webhook(str(error), {}, webhooks)]
            if not fixes:
                raise
            raise type(error)("\n".join([str(error), *fixes])) from error

    def _say_what_is_not_well(self, started: float) -> bool:
        """Whether containers have crashed, or were restarted, before anything was deleted."""
        found = False
        for pod in self._told():
            if not has_failed(pod.obj):
                continue
            # late: 3.6 ms of `demo`
            from lastcall.experiment.reasons.failures import ends_told

            if lines := ends_told(pod.obj, self.records, self.options.kubernetes_version):
                found = True
                self._note(started, f"{pod.key} is unhealthy:")
                for line in lines:
                    self.live.note(line)
        return found

    def _dropped(self, manifests: Sequence[Manifest]) -> list[str]:
        """Fields that this version does not know, or has switched off, and so leaves out without a word."""
        version = self.options.kubernetes_version
        gates = FeatureGates(version, self.options.cluster.feature_gates)
        return [
            f"Kubernetes {version} drops {path} of {manifest.obj['kind']} {name_of(manifest.obj)}: this version does "
            f"not know the field"
            for manifest in manifests
            for path in dropped_fields(manifest.resource, manifest.obj, gates)
        ]

    def _told(self) -> list[FollowedPod]:
        """The Pods of the story."""
        assert self._follower is not None
        return [pod for pod in self._follower.pods.values() if pod.uid not in self._over]

    async def _wait_ready(self, follower: PodFollower, owners: OwnerFollower, client: Client) -> None:
        def is_settled(pod: FollowedPod) -> bool:
            return pod.ready or pod.ended_by_itself or pod.gone

        def state_of(owner: FollowedOwner) -> Progress:
            its_pods = [pod for pod in follower.pods.values() if pod.owner_uid == owner.uid]
            return progress(owner.resource, owner.obj, its_pods)

        def waits(owner: FollowedOwner) -> bool:
            return not owner.gone and not state_of(owner).settled

        def is_decided(pods: Sequence[FollowedPod]) -> bool:
            if self._given_up or any(hopeless_reason(pod.obj) for pod in pods if not pod.gone):
                return True
            own = all(is_settled(pod) for pod in pods if not pod.owner_uid)
            return own and not any(map(waits, owners.owners.values()))

        await follower.wait(is_decided, self.options.timeout)
        # A Pod of an owner counts by what its owner waits for: it may be one that was replaced.
        waiting = [owner for owner in owners.owners.values() if waits(owner)]
        by_owner = {owner.uid for owner in waiting}
        pods = follower.pods.values()
        late = [p for p in pods if not is_settled(p) and (not p.owner_uid or p.owner_uid in by_owner)]
        rejected = [p for p in pods if p.ended_by_itself and not p.gone and hopeless_reason(p.obj)]
        if not late and not rejected and not waiting:
            return
        head = ""
        if self._given_up:
            head = f"giving up: {self._given_up}"
        elif any(hopeless_reason(pod.obj) for pod in [*late, *rejected]):
            # Its siblings would have come along, had they been waited for.
            late = [pod for pod in late if not pod.owner_uid or hopeless_reason(pod.obj)]
        else:
            head = f"not every Pod became Ready within {self.options.timeout:g} s (--timeout)"
        states = [(owner, state_of(owner)) for owner in waiting]
        why = await self._why_not_ready(client, owners, states, [*late, *rejected])
        crashed = bool(late) and all(is_crash_looping(pod.obj) for pod in late)
        lines = [head, *why.lines] if head else why.lines
        raise (Crashed if crashed else NotReady)("\n".join(lines), why.causes)

    async def _why_not_ready(
        self,
        client: Client,
        owners: OwnerFollower,
        waiting: Sequence[tuple[FollowedOwner, Progress]],
        late: Sequence[FollowedPod],
    ) -> "Explained":
        """What the cluster, its records and the containers say of the owners and Pods that are waited for."""
        # late: 3.6 ms of `demo`
        from lastcall.experiment.reasons.failures import explain
        from lastcall.experiment.reasons.named import Explained, causes_in

        lines: list[str] = []
        causes: list[UnreadyCause] = []
        for owner, state in waiting:
            events = await owners.events_of(owner)
            webhooks = await webhooks_of(client, events)
            why = why_no_pods(owner.what, owner.obj, state.ready, state.wanted, events, webhooks)
            lines += why
            causes += causes_in(owner.what, why)
        told: dict[tuple[str, ...], str] = {}
        for pod in {each.uid: each for each in late}.values():
            events = await last_events_of(client, self.clock, pod.obj)
            head, *why = why_not_ready(pod.obj, events)
            same_as = told.setdefault(without_names(pod.obj, why), pod.key)
            if same_as != pod.key:
                lines.append(f"{head}, as {same_as}")
                continue
            await self.cluster.drain_records()
            version, now_ns = self.options.kubernetes_version, self.clock.monotonic_ns()
            explained = explain(why, pod.obj, self.records, version, now_ns=now_ns, events=events)
            lines += [head, *explained.lines]
            causes += explained.causes
        return Explained(tuple(lines), tuple(causes))

    def _give_up(self, follower: PodFollower, why: str) -> None:
        self._given_up = why
        follower.changed.set()

    async def _say_what_is_late(self, follower: PodFollower, owners: OwnerFollower, client: Client) -> None:
        """What is waited for, until cancelled: nobody waits in silence for a Pod that cannot start."""
        began, stuck, refused = monotonic(self.clock), Unschedulable(), Refused()
        while True:
            await self.clock.sleep(1.0)
            there = [pod for pod in follower.pods.values() if not pod.gone]
            late = [pod for pod in there if not (pod.ready or pod.ended_by_itself)]
            objects = [pod.obj for pod in there]
            now = monotonic(self.clock)
            if stuck.look(objects, objects, now, more_to_come=False):
                self._give_up(follower, "no node accepts the Pod, and waiting will not change that")
            elif refused.look([each.obj for each in owners.owners.values() if not each.gone], objects, now):
                self._give_up(follower, "the API server refuses the Pods, and waiting will not change that")
            elif late and all(is_crash_looping(pod.obj) for pod in late):
                self._give_up(follower, "a container crashes again and again, and no other object is still starting")
            elif late and all([await hook_keeps_failing(client, pod.obj) for pod in late[:_LOOKED_AT]]):
                self._give_up(follower, "a postStart hook fails again and again, and no other object is still starting")
            told = [in_short(pod.obj, await events_of(client, pod.obj)) for pod in late[:2]]
            told += [f"{len(late) - 2} more"] if len(late) > 2 else []
            now = monotonic(self.clock)
            self.live.waiting(now, now - began, "; ".join(told) or "for Pods to be made and available")

    async def _delete(
        self, pods: Sequence[FollowedPod], owners: Sequence[FollowedOwner], client: Client, tasks: Tasks
    ) -> None:
        """DELETE the owners, then all Pods of the manifests at the same time; what went meanwhile is not an error."""
        self._deleted = True
        recorder = self.cluster.recorder("client")
        grace = self.options.grace

        async def delete(resource: Resource, obj: Object, what: str, policy: str | None) -> str:
            try:
                await client.delete(
                    resource,
                    name_of(obj),
                    namespace_of(obj),
                    grace_period_seconds=grace,
                    uid=uid_of(obj),
                    propagation_policy=policy,
                )
            except StatusError as error:
                if not is_not_found(error) and error.code != 409:
                    return f"{what}: the API server refuses the DELETE: {error.message}"
            except ConnectionLost as error:
                return f"{what}: the DELETE got no answer: {error}"
            return ""

        async def delete_pod(pod: FollowedPod) -> str:
            facts: DeleteSent = {"gracePeriodSeconds": grace}
            recorder.record(kinds.DELETE_SENT, pod_uid=pod.uid, facts=facts)
            return await delete(PODS, pod.obj, pod.key, None)

        refused = []
        for owner in owners:
            refused.append(await delete(owner.resource, owner.obj, owner.what, "Background"))
        deletes = [tasks.spawn(delete_pod(pod), name=f"DELETE {pod.key}") for pod in pods]
        refused += [await each for each in deletes]
        if any(refused):
            raise WorldError("\n".join(error for error in refused if error))

    async def _wait_gone(self, follower: PodFollower) -> None:
        limit = self._longest_grace(self._told()) * 2 + self.options.timeout
        if not await follower.wait(lambda all_: all(pod.gone for pod in all_), limit):
            await self.cluster.drain_records()
            lines = []
            left = [pod for pod in self._told() if not pod.gone]
            for pod in left:
                lines.append(f"{pod.key} is still there {limit:g} s after the DELETE")
                lines += _held_by(pod.obj, "Pod", wall_time(self.clock))
            for owner in self._owners.owners.values() if self._owners is not None else ():
                if not owner.gone and (held := _held_by(owner.obj, owner.resource.kind, wall_time(self.clock))):
                    lines += [f"{owner.what} is still there", *held]
            raise WorldError("\n".join(lines))
        await self.cluster.drain_records()
        # A forced deletion does not wait for the node: the containers may outlive the object.
        deadline = monotonic(self.clock) + self._longest_grace(self._told()) + KILL_MARGIN_SECONDS
        while self._someone_runs() and monotonic(self.clock) < deadline:
            await self.cluster.drain_records()

    def _longest_grace(self, pods: Sequence[FollowedPod]) -> float:
        own = [float((pod.obj.get("spec") or {}).get("terminationGracePeriodSeconds") or 0) for pod in pods]
        return max([*own, 2.0]) if self.options.grace is None else max(float(self.options.grace), 2.0)

    def _someone_runs(self) -> bool:
        return any(c.started and c.exit.at is None for ending in self.endings() for c in ending.containers)

    # -- what happens meanwhile ---------------------------------------------------------------------------------------

    def _record(self, record: Record) -> None:
        self.records.append(record)
        self.live.record(record)

    async def _tick(self) -> None:
        while True:
            await self.clock.sleep(TICK_SECONDS)
            self.live.tick(self.clock.monotonic_ns())

    def _note(self, started: float, text: str) -> None:
        self.live.note(f"{monotonic(self.clock) - started:7.3f}s  {text}")


def _state(pod: FollowedPod) -> str:
    if pod.ready and (is_ready(pod.obj) or not has_failed(pod.obj)):
        return "is Ready"
    phase = (pod.obj.get("status") or {}).get("phase") or "Pending"
    return f"has already ended ({phase})" if pod.ended_by_itself or pod.gone else f"is not Ready ({phase})"


def _held_by(obj: Object, kind: str, at: datetime) -> list[str]:
    wait = wait_of(obj, kind, now=at)
    return [f"  {line.strip()}" for line in wait.lines] if wait else []


def _gone_by_itself(owner: FollowedOwner) -> str:
    """Of an owner that has no Pod when its time to be deleted has come."""
    if owner.gone:
        return f"{owner.what} is already gone"
    if owner.resource == DAEMONSETS:
        return f"{owner.what} needs no Pod on the node: see spec.template.spec.nodeSelector, affinity and tolerations"
    return f"{owner.what} has none"


async def _forever() -> None:
    await asyncio.Event().wait()
