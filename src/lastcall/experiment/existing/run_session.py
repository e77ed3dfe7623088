"""One run on somebody's cluster: the objects are created, their Pods ended and followed, and all of it removed."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from lastcall.endings import pod_facts
from lastcall.endings.render import TICK_SECONDS
from lastcall.errors import LastcallError, NotReady, UnreadyCause, UserError, WorldError
from lastcall.experiment.existing.changes import GONE_SECONDS, Changes
from lastcall.experiment.existing.ledger import claim_templates
from lastcall.experiment.existing.plan import Plan
from lastcall.experiment.existing.retries import PatientClient, until_answered
from lastcall.experiment.existing.run_checks import check_manifests, overlaps, own_pods, planned
from lastcall.experiment.ready.progress import progress
from lastcall.experiment.reasons.named import causes_in
from lastcall.experiment.reasons.object_events import last_events_of
from lastcall.experiment.reasons.pod_watch import FollowedPod
from lastcall.experiment.reasons.why_not_ready import (
    hopeless_reason,
    in_short,
    is_ready,
    programs_of,
    why_no_pods,
    why_not_ready,
)
from lastcall.experiment.rollout.disruption import Disruption
from lastcall.kube.api import (
    DAEMONSETS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
    StatusError,
    is_not_found,
    name_of,
    namespace_of,
    uid_of,
)
from lastcall.manifests import OWNERS
from lastcall.trace import Follower, Scope, Target
from lastcall.world.clock import Clock, monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.endings import Ending
    from lastcall.endings.render import LiveTimeline
    from lastcall.experiment.existing.connection import Reached
    from lastcall.experiment.run.options import RunOptions
    from lastcall.manifests import Manifest

LOOK_SECONDS = 0.5
HOPELESS_SECONDS = 5.0
"""On a cluster of many somebody else may bring the image or the key: a reason has to last so long."""
SYNC_SECONDS = 20.0
_AROUND = (SERVICES, REPLICASETS, REPLICATIONCONTROLLERS, STATEFULSETS, DAEMONSETS, PODS)
_WITH_CLAIMS = (*_AROUND, PERSISTENTVOLUMECLAIMS)

Confirm = Callable[[Plan], None]
"""Raises UserError where nobody said yes."""
Tell = Callable[[Sequence["Ending"], LastcallError | None], None]
"""Takes the stories, and the error that cut them short, if one did."""


@dataclass(slots=True)
class ExistingRun:
    """`run` once. With `delete` Pods are deleted, else evicted. `version` is the cluster's: `1.36`."""

    cluster: "Reached"
    manifests: "Sequence[Manifest]"
    options: "RunOptions"
    delete: bool
    version: str
    live: "LiveTimeline"
    confirm: Confirm
    tell: Tell
    world: World = field(default_factory=World)
    _client: PatientClient = field(init=False)
    _told: dict[str, "Ending"] = field(default_factory=dict)
    _follower: Follower | None = None
    _wanted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._client = PatientClient(self.cluster.client, self.world.clock)

    @property
    def clock(self) -> Clock:
        return self.world.clock

    async def run(self) -> "Sequence[Ending]":
        """Return the stories, which `tell` has got. Raises UserError, WorldError, StatusError, ConnectionLost."""
        namespace = self.cluster.namespace
        check_manifests(namespace, self.manifests)
        unknown = await self._check_there()
        steps, restored = planned(self.manifests, delete=self.delete, timeout=self.options.timeout)
        plan = Plan(self.cluster.context, self.cluster.server, namespace, (*steps, *unknown), restored)
        self.confirm(plan)
        changes = Changes(self._client, namespace, self.world, GONE_SECONDS + self._longest_grace())
        try:
            created = []
            for each in self.manifests:
                created.append((each.resource, await changes.create(each.resource, each.obj)))
            self.live.note(f"created {', '.join(f'{kind.kind} {name_of(obj)}' for kind, obj in created)}")
            return await self._ended(created)
        finally:
            self.live.end()
            if changes.id:
                self.live.note("removes what was created")
                await changes.restore(self.live.note)

    # -- before anything is done --------------------------------------------------------------------------------------

    async def _check_there(self) -> list[str]:
        """What could not be looked at, a step each. Raises UserError."""
        namespace, where = self.cluster.namespace, self.cluster.where
        try:
            await self._client.get(NAMESPACES, namespace)
        except StatusError as error:
            if is_not_found(error):
                fix = f"fix: kubectl --context {self.cluster.context} create namespace {namespace}, or another -n"
                raise UserError(f"{where} has no namespace {namespace}\n{fix}") from error
            if error.code != 403:  # a user without that right can still have those for what is in it
                raise
        taken = []
        for each in self.manifests:
            try:
                await self._client.get(each.resource, name_of(each.obj), namespace)
            except StatusError as error:
                if not is_not_found(error):
                    raise
                continue
            taken.append(f"{each.place.at()}: {each.resource.kind} {name_of(each.obj)} exists in namespace {namespace}")
        if taken:
            fix = "fix: run --context only creates objects; give it another name, or use an empty namespace with -n"
            raise UserError("\n".join([*taken, fix]))
        there: dict[Resource, list[Object]] = {}
        unknown: list[str] = []
        claims = any(claim_templates(each.obj) for each in self.manifests)
        for resource in _WITH_CLAIMS if claims else _AROUND:
            try:
                there[resource] = (await self._client.list(resource, namespace)).items
            except StatusError as error:
                if error.code == 403:
                    unknown.append(resource.plural)
                elif error.code != 404:
                    raise
        if found := overlaps(self.manifests, there):
            fix = "fix: give it other labels or another name, or use an empty namespace with -n"
            raise UserError("\n".join([*found, fix]))
        if not unknown:
            return []
        return [f"not look whether {', '.join(unknown)} there affect these Pods: you have no permission to read them"]

    # -- create to Ready ----------------------------------------------------------------------------------------------

    async def _ended(self, created: Sequence[tuple[Resource, Object]]) -> "Sequence[Ending]":
        """End the Pods and show their stories, or, when something went wrong, what is known of them."""
        try:
            pods = await self._ready(created)
            await self._end(pods)
        except LastcallError as error:
            self.live.end()
            self.tell(self._endings(), error)
            raise
        self.live.end()
        endings = self._endings()
        self.tell(endings, None)
        return endings

    async def _ready(self, created: Sequence[tuple[Resource, Object]]) -> list[Object]:
        """The Pods to end, once all are Ready or have ended by themselves."""
        began, hopeless = monotonic(self.clock), dict[str, float]()
        while True:
            pods = await self._own(created)
            owners = [
                (kind, await self._client.get(kind, name_of(obj), namespace_of(obj)))
                for kind, obj in created
                if kind in OWNERS
            ]
            followed = {uid: FollowedPod(pod, ready=is_ready(pod), owner_uid=root) for uid, (pod, root) in pods.items()}
            late = [each for each in followed.values() if not each.ready and not each.ended_by_itself]
            states = [
                (kind, obj, progress(kind, obj, [each for each in followed.values() if each.owner_uid == uid_of(obj)]))
                for kind, obj in owners
            ]
            waits = [each for each in states if not each[2].settled]
            own_late = [each for each in late if each.owner_uid == uid_of(each.obj)]
            now = monotonic(self.clock)
            if not waits and not own_late:
                break
            bad = [pod for pod, _ in pods.values() if hopeless_reason(pod)]
            hopeless = {uid_of(pod): hopeless.get(uid_of(pod), now) for pod in bad}
            sure = any(now - since >= HOPELESS_SECONDS for since in hopeless.values())
            if sure or now - began > self.options.timeout:
                lines = [] if sure else [f"not every Pod became Ready within {self.options.timeout:g} s (--timeout)"]
                causes: list[UnreadyCause] = []
                for kind, obj, state in waits:
                    what = f"{kind.kind} {name_of(obj)}"
                    lines += why_no_pods(what, obj, state.ready, state.wanted, ())
                for pod in bad if sure else [each.obj for each in late]:
                    events = await last_events_of(self._client, self.clock, pod)
                    lines += (why := why_not_ready(pod, events))
                    what = f"{namespace_of(pod)}/{name_of(pod)}"
                    causes += causes_in(what, why, programs=programs_of(pod, events))
                raise NotReady("\n".join(lines), causes)
            text = "; ".join(in_short(each.obj) for each in late[:2]) or "Pods to be made and available"
            self.live.waiting(now, now - began, text)
            await self.clock.sleep(LOOK_SECONDS)
        await self.clock.sleep(self.options.after)
        found = []
        for pod, _ in (await self._own(created)).values():
            phase = (pod.get("status") or {}).get("phase")
            if phase in ("Succeeded", "Failed"):
                self.live.note(f"{namespace_of(pod)}/{name_of(pod)} has already ended ({phase}) and is left out")
            elif "deletionTimestamp" not in pod["metadata"]:
                found.append(pod)
        if not found:
            raise WorldError("no Pod is left: all have ended by themselves")
        return sorted(found, key=name_of)

    async def _own(self, created: Sequence[tuple[Resource, Object]]) -> dict[str, tuple[Object, str]]:
        """uid → (Pod, uid of the object of the manifests that it belongs to)."""
        namespace = self.cluster.namespace
        sets: list[Object] = []
        if any(kind.plural == "deployments" for kind, _ in created):
            sets = (await self._client.list(REPLICASETS, namespace)).items
        pods = {uid_of(each): each for each in (await self._client.list(PODS, namespace)).items}
        roots = own_pods([uid_of(obj) for _, obj in created], sets, pods.values())
        return {uid: (pods[uid], root) for uid, root in roots.items()}

    # -- the end ------------------------------------------------------------------------------------------------------

    async def _end(self, pods: Sequence[Object]) -> None:
        self._wanted = {uid_of(each) for each in pods}
        targets = tuple(Target(PODS.kind, name_of(each)) for each in pods)
        self._follower = follower = Follower(
            self.cluster.client,
            Scope(namespace=self.cluster.namespace, targets=targets),
            world=self.world,
            kubernetes_version=self.version,
            on_record=self.live.record,
            on_note=self.live.note,
        )
        done = asyncio.Event()
        async with Tasks() as tasks:
            tasks.spawn(follower.run(), name="follow Pods")
            tasks.spawn(self._collect(follower, done), name="stories")
            tasks.spawn(self._tick(), name="live timeline")
            try:
                await self._synced(follower)
                self.live.begin([pod_facts(each) for each in pods])
                await (self._delete(pods) if self.delete else self._evict(pods))
                limit = self._longest_grace(pods) * 2 + self.options.timeout
                with suppress(TimeoutError):
                    async with asyncio.timeout(limit):
                        await done.wait()
                if left := sorted(self._wanted - self._told.keys()):
                    names = [name_of(each) for each in pods if uid_of(each) in left]
                    raise WorldError(
                        f"{', '.join(names)}: the end did not complete, or was not seen, within {limit:g} s"
                    )
            finally:
                tasks.cancel()

    async def _synced(self, follower: Follower) -> None:
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                await follower.synced()
        except TimeoutError:
            raise WorldError(f"the Pods cannot be watched: listing them took more than {SYNC_SECONDS:g} s") from None
        if follower.failure is not None:
            raise follower.failure
        for command in follower.commands():
            self.live.note(f"fix, as an administrator: {command}")

    async def _collect(self, follower: Follower, done: asyncio.Event) -> None:
        async for ending in follower.endings():
            if ending.pod.uid in self._wanted:
                self._told[ending.pod.uid] = ending
            if self._told.keys() >= self._wanted:
                break
        done.set()

    async def _tick(self) -> None:
        while True:
            await self.clock.sleep(TICK_SECONDS)
            self.live.tick(self.clock.monotonic_ns())

    async def _evict(self, pods: Sequence[Object]) -> None:
        """One after another: a budget that says no is waited for, and told."""

        def waiting(waited: float, text: str) -> None:
            self.live.waiting(monotonic(self.clock), waited, text)

        first = self.manifests[0]
        disruption = Disruption(self._client, self.clock, first, "evict", self.options.timeout, waiting)
        for pod in pods:
            options: Object = {"preconditions": {"uid": uid_of(pod)}}
            if self.options.grace is not None:
                options["gracePeriodSeconds"] = self.options.grace
            await until_answered(self.clock, partial(disruption.evict, pod, options))

    async def _delete(self, pods: Sequence[Object]) -> None:
        for pod in pods:
            delete = partial(self._client.delete, PODS, name_of(pod), namespace_of(pod), uid=uid_of(pod))
            try:
                await until_answered(self.clock, partial(delete, grace_period_seconds=self.options.grace))
            except StatusError as error:
                if not is_not_found(error) and error.code != 409:
                    raise

    def _endings(self) -> list["Ending"]:
        """The stories that are known so far."""
        found = list(self._told.values())
        if self._follower is not None:
            ongoing = [each for each in self._follower.ongoing() if each.pod.uid in self._wanted - self._told.keys()]
            found += ongoing
        return found

    def _longest_grace(self, pods: Sequence[Object] = ()) -> float:
        """Seconds that the Pods may take, by their specs; of all in the manifests where none are given."""
        specs = [each.get("spec") or {} for each in pods]
        if not pods:
            made = [each.obj.get("spec") or {} for each in self.manifests if each.resource in (PODS, *OWNERS)]
            specs = [each if "template" not in each else each["template"].get("spec") or {} for each in made]
        own = max([2.0, *(float(each.get("terminationGracePeriodSeconds", 30)) for each in specs)])
        return own if not pods or self.options.grace is None else max(2.0, float(self.options.grace))
