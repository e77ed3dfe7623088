"""A run on a cluster of our own: its owners are deleted as `kubectl delete -f` does, and its rings tell the ends."""

# check: observes because it sent the DELETE

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from lastcall.endings import Ending, build_endings, pod_facts
from lastcall.errors import LastcallError, WorldError
from lastcall.experiment import embedded
from lastcall.experiment.lookups import delete_if_exists
from lastcall.experiment.reasons.object_events import wait_on, webhooks_of, what_refuses_the_deletes, with_fixes
from lastcall.experiment.reasons.pod_watch import FollowedPod
from lastcall.experiment.reasons.webhooks import fixes_of_webhook
from lastcall.experiment.run.workspace import Run, RunWorkspace, longest_grace
from lastcall.kube.api import (
    PODS,
    Object,
    Resource,
    StatusError,
)
from lastcall.kube.client import ConnectionLost
from lastcall.manifests import Applied, Manifest, apply_manifests, with_grace
from lastcall.records import kinds
from lastcall.records.record import Record, Recorder
from lastcall.world.clock import monotonic
from lastcall.world.clock import now as wall_time
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.client import DeleteSent

ASK_SECONDS = 5.0
"""A Pod that is there so long after its grace period may be one whose DELETE is refused."""
KILL_MARGIN_SECONDS = 5.0
"""How much longer than its grace period a force-deleted Pod's containers are followed."""


class Cluster(embedded.Cluster, Protocol):
    """What a run needs of `lastcall.kube.cluster.embedded.Running`."""

    def recorder(self, actor: str) -> Recorder: ...
    def kubeconfig_path(self) -> str: ...
    def stop(self) -> None: ...


@dataclass(slots=True)
class EmbeddedRun(embedded.EmbeddedCluster, RunWorkspace):
    """Of Pods of the manifests each is deleted, of owners the owner, with every Pod that it has then."""

    cluster: Cluster

    def recorder(self) -> Recorder:
        return self.cluster.recorder("client")

    async def drain(self) -> None:
        await self.cluster.drain_records(0.05)

    async def prepare(self, now: Run) -> tuple[list[Applied], str]:
        # late: 1.0 ms of `demo`
        from lastcall.experiment.not_simulated import of_dropped, of_manifests  # while the cluster starts

        def heard(record: Record) -> None:
            self.records.append(record)
            if now.requests is None or not now.requests.printed(record):
                now.live.record(record)

        await self.start(heard)
        now.note(f"Kubernetes {now.options.kubernetes_version} is up, its node is Ready")
        version = (await self.client.list(PODS)).resource_version
        manifests = [replace(m, obj=with_grace(m.resource, m.obj, now.options.grace)) for m in now.manifests]
        applied, notes = await self._apply(now, manifests)
        lines = [each.line for each in (*of_dropped(manifests, now.options.gates), *of_manifests(manifests))]
        for note in [*notes, *lines]:
            now.note(note)
        return applied, version

    async def _apply(self, now: Run, manifests: Sequence[Manifest]) -> tuple[list[Applied], list[str]]:
        try:
            return await apply_manifests(self.client, now.clock, manifests)
        except LastcallError as error:
            webhooks = await webhooks_of(self.client, [{"message": str(error)}])
            fixes = [f"  fix: {each}" for each in fixes_of_webhook(str(error), {}, webhooks)]
            if not fixes:
                raise
            raise type(error)("\n".join([str(error), *fixes])) from error

    def is_left_out(self, pod: FollowedPod) -> bool:
        return pod.gone and bool(pod.owner_uid)

    async def disturb(self, now: Run) -> None:
        """Delete the owners, then all Pods of the manifests at the same time; what went meanwhile is not an error."""
        recorder, grace = self.recorder(), now.options.grace
        facts: DeleteSent = {"gracePeriodSeconds": grace}

        async def delete_pod(pod: FollowedPod) -> str:
            recorder.record(kinds.DELETE_SENT, pod_uid=pod.uid, facts=facts)
            return await self._delete(PODS, pod.obj, pod.key, grace, None)

        refused = []
        for owner in now.owners.owners.values():
            refused.append(await self._delete(owner.resource, owner.obj, owner.what, grace, "Background"))
        own = [pod for pod in now.pods.pods.values() if not pod.owner_uid]
        deletes = [now.tasks.spawn(delete_pod(pod), name=f"DELETE {pod.key}") for pod in own]
        refused += [await each for each in deletes]
        if any(refused):
            raise WorldError("\n".join(error for error in refused if error))

    async def _delete(self, resource: Resource, obj: Object, what: str, grace: int | None, policy: str | None) -> str:
        """Return why it was not deleted; "" where it was, or is gone."""
        try:
            await delete_if_exists(self.client, resource, obj, grace=grace, policy=policy)
        except StatusError as error:
            return f"{what}: the API server refuses the DELETE: {await with_fixes(self.client, error)}"
        except ConnectionLost as error:
            return f"{what}: the DELETE got no answer: {error}"
        return ""

    async def follow(self, now: Run) -> None:
        longest = longest_grace((pod.obj for pod in now.chosen()), now.options.grace)
        limit = longest * 2 + now.options.timeout
        first = min(limit, longest + ASK_SECONDS)
        if not await self._are_gone(now, first):
            if refused := await self._refused(now, first):
                await self.drain()
                raise WorldError("\n".join(refused))
            if not await self._are_gone(now, limit - first):
                await self.drain()
                raise WorldError("\n".join(await self._still_there(now, limit)))
        await self.drain()
        # A forced deletion does not wait for the node: the containers may outlive the object.
        deadline = monotonic(now.clock) + longest + KILL_MARGIN_SECONDS
        while self._someone_runs(now) and monotonic(now.clock) < deadline:
            await self.drain()

    async def _are_gone(self, now: Run, seconds: float) -> bool:
        return await now.pods.wait(lambda all_: all(pod.gone for pod in all_), seconds)

    async def _refused(self, now: Run, seconds: float) -> list[str]:
        """Return a line for each Pod whose DELETE a webhook refuses, and what to do: waiting does not help them."""
        refused = await what_refuses_the_deletes(self.client, [pod.obj for pod in now.chosen() if not pod.gone])
        those = [f"{key} is still there {seconds:g} s after the DELETE" for key in refused]
        return [*those, *dict.fromkeys(line for lines in refused.values() for line in lines)]

    async def _still_there(self, now: Run, limit: float) -> list[str]:
        """Return lines about what has not gone, and what holds it."""
        lines = []
        for pod in now.chosen():
            if not pod.gone:
                lines += [f"{pod.key} is still there {limit:g} s after the DELETE"]
                lines += await self._held_by(pod.obj, "Pod", now)
        for owner in now.owners.owners.values():
            if not owner.gone and (held := await self._held_by(owner.obj, owner.resource.kind, now)):
                lines += [f"{owner.what} is still there", *held]
        return lines

    async def _held_by(self, obj: Object, kind: str, now: Run) -> list[str]:
        wait = await wait_on(self.client, obj, kind, wall_time(now.clock))
        return [f"  {line.strip()}" for line in wait.lines] if wait else []

    def _someone_runs(self, now: Run) -> bool:
        return any(c.started and c.exit.at is None for ending in self.stories(now) for c in ending.containers)

    def stories(self, now: Run) -> list[Ending]:
        pods = [pod_facts(pod.obj) for pod in now.chosen()]
        records = [each for each in self.records if now.requests is None or not now.requests.printed(each)]
        return build_endings(records, pods, kubernetes_version=now.options.kubernetes_version)
