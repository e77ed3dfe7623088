"""A run in a namespace of a context: the objects are created, their Pods evicted or deleted, all of it removed."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import ClassVar

from lastcall.endings import Ending
from lastcall.errors import UserError, WorldError
from lastcall.experiment.existing.changes import GONE_SECONDS
from lastcall.experiment.existing.connection import PATIENCE_SECONDS
from lastcall.experiment.existing.ends import SYNC_SECONDS, PodEnds
from lastcall.experiment.existing.namespace import ExistingNamespace
from lastcall.experiment.existing.preflight import objects_around
from lastcall.experiment.existing.run_checks import check_manifests, overlaps, planned
from lastcall.experiment.existing.workspace import ExistingWorkspace
from lastcall.experiment.lookups import delete_if_exists, get_or_none
from lastcall.experiment.reasons.object_events import wait_on, what_refuses_the_deletes, with_fixes
from lastcall.experiment.reasons.pod_watch import FollowedPod
from lastcall.experiment.rollout.disruption import Disruption
from lastcall.experiment.run.workspace import Run, RunWorkspace, longest_grace
from lastcall.kube.api import PODS, Object, StatusError, name_of, namespace_of, uid_of
from lastcall.kube.client import Client, ConnectionLost, until_answered
from lastcall.manifests import OWNERS, Applied, Manifest
from lastcall.records.memory import NoRecorder
from lastcall.records.record import Recorder
from lastcall.trace import Target
from lastcall.world.clock import Clock, monotonic
from lastcall.world.clock import now as wall_time
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World


@dataclass(slots=True, kw_only=True)
class ExistingRun(ExistingNamespace, RunWorkspace):
    """With `delete` Pods are deleted, else evicted."""

    delete: bool
    requests: ExistingWorkspace | None = None
    """Where requests enter, None for none."""
    patience: ClassVar[float] = PATIENCE_SECONDS
    world: World = field(default_factory=World)
    _ends: PodEnds = field(init=False)
    _pods: dict[str, Object] = field(default_factory=dict)
    """Uid → a Pod that is ended; not those that replace them."""

    @property
    def namespace(self) -> str:
        return self.cluster.namespace

    def recorder(self) -> Recorder:
        return NoRecorder()  # the stories have what the API says of the ends

    # -- before anything is done --------------------------------------------------------------------------------------

    async def prepare(self, now: Run) -> tuple[list[Applied], str]:
        namespace, manifests = self.namespace, now.manifests
        check_manifests(namespace, manifests)
        unknown = await self._check_there(manifests)
        steps, restored = planned(manifests, delete=self.delete, timeout=now.options.timeout)
        if self.requests is not None and now.requests is not None:
            sent, removed = self.requests.planned(now.requests.options, "their Service")
            steps, restored = (*steps[:2], *sent, *steps[2:]), (*restored, *removed)
        pods = [each.obj for each in manifests if each.resource in (PODS, *OWNERS)]
        gone_seconds = GONE_SECONDS + longest_grace(pods, None)
        changes = await self.agree(namespace, (*steps, *unknown), restored, self.world, gone_seconds)
        if self.requests is not None:
            self.requests.changes = changes
        return [Applied(each.resource, await changes.create(each.resource, each.obj)) for each in manifests], ""

    async def _check_there(self, manifests: Sequence[Manifest]) -> list[str]:
        """What could not be looked at, a step each. Raises UserError."""
        namespace, where = self.namespace, self.cluster.where
        await self.check_free(namespace, f"{where} has no namespace {namespace}")
        taken = []
        for each in manifests:
            name = name_of(each.obj)
            if await get_or_none(self._client, each.resource, name, namespace) is not None:
                taken.append(f"{each.place.at()}: {each.resource.kind} {name} exists in namespace {namespace}")
        if taken:
            fix = "fix: run --context only creates objects; give it another name, or use an empty namespace with -n"
            raise UserError("\n".join([*taken, fix]))
        there, unknown = await objects_around(self._client, manifests, namespace)
        if found := overlaps(manifests, there):
            fix = "fix: give it other labels or another name, or use an empty namespace with -n"
            raise UserError("\n".join([*found, fix]))
        if not unknown:
            return []
        return [f"not look whether {', '.join(unknown)} there affect these Pods: you have no permission to read them"]

    # -- the end ------------------------------------------------------------------------------------------------------

    def is_left_out(self, pod: FollowedPod) -> bool:
        return pod.gone or pod.ended_by_itself or "deletionTimestamp" in pod.obj["metadata"]

    async def attend(self, now: Run) -> None:
        """Follow the Pods through the API, as `trace` does."""
        self._pods = {each.uid: each.obj for each in now.chosen()}
        targets = tuple(Target(PODS.kind, name_of(each)) for each in self._pods.values())
        version, live = now.options.kubernetes_version, now.live
        self._ends = ends = PodEnds(
            self.cluster, targets, self.world, version, live.record, on_note=live.note, asked=self.agents
        )
        now.tasks.spawn(ends.run(), name="follow ends")
        if not await ends.synced():
            why = f"the Pods cannot be watched: listing them took more than {SYNC_SECONDS:g} s"
            raise ends.follower.failure or WorldError(why)
        for command in ends.follower.commands():
            live.note(f"fix, as an administrator: {command}")

    async def disturb(self, now: Run) -> None:
        pods, grace = sorted(self._pods.values(), key=name_of), now.options.grace
        disruption = Disruption(
            client=self._client,
            clock=now.clock,
            workload=now.manifests[0],
            how="evict",
            timeout=now.options.timeout,
            waiting=lambda waited, text: now.live.waiting(monotonic(now.clock), waited, text),
        )
        for pod in pods:
            if self.delete:
                try:
                    await until_answered(now.clock, partial(delete_if_exists, self._client, PODS, pod, grace=grace))
                except StatusError as error:
                    why = await with_fixes(self._client, error)
                    raise WorldError(f"{name_of(pod)}: the API server refuses the DELETE: {why}") from error
                continue
            # One after another: a budget that says no is waited for.
            options: Object = {"preconditions": {"uid": uid_of(pod)}}
            if grace is not None:
                options["gracePeriodSeconds"] = grace
            await until_answered(now.clock, partial(disruption.evict, pod, options))

    async def follow(self, now: Run) -> None:
        limit = longest_grace(self._pods.values(), now.options.grace) * 2 + now.options.timeout
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._ends.until_ended(self._pods.keys())
        if left := [name_of(each) for uid, each in self._pods.items() if uid not in self._ends.ended]:
            late = f"{', '.join(left)}: the end did not complete, or was not seen, within {limit:g} s"
            there = [each for uid, each in self._pods.items() if uid not in self._ends.ended]
            refused = await what_refuses_the_deletes(self._client, there)
            why = [*(line for lines in refused.values() for line in lines)]
            why += await why_left(self._client, now.clock, there)
            raise WorldError("\n".join([late, *dict.fromkeys(why)]))

    def stories(self, now: Run) -> list[Ending]:
        return self._ends.stories(self._pods)


async def why_left(client: Client, clock: Clock, pods: Iterable[Object]) -> list[str]:
    """Return what those of these Pods wait for that are still being deleted, and what ends that, as far as they can be
    read."""
    lines: list[str] = []
    for pod in pods:
        with suppress(StatusError, ConnectionLost):
            there = await get_or_none(client, PODS, name_of(pod), namespace_of(pod))
            if there is not None and uid_of(there) == uid_of(pod):
                wait = await wait_on(client, there, at=wall_time(clock))
                lines += wait.lines if wait else []
    return lines
